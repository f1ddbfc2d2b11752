package orchestration

import (
	"context"
	"errors"
	"maps"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// facts reads the facts for planning the jobs of a stage.
func (a *Activities) facts(ctx context.Context, r bench.Request, stage bench.Stage) (plan.Facts, error) {
	project, config, err := a.config(ctx, r.Project)
	if err != nil {
		return plan.Facts{}, err
	}
	f := plan.Facts{Request: r, Config: config}
	if f.Fleet, err = a.Store.Fleet(ctx, a.OfflineAfter); err != nil || !r.OfSuite() {
		return f, err
	}
	return a.measuring(ctx, f, stage, project.SuiteHash)
}

// measuring adds the facts about a suite, its series and their sizes.
func (a *Activities) measuring(ctx context.Context, f plan.Facts, stage bench.Stage, suiteHash string) (plan.Facts, error) {
	var err error
	f.SuiteHash = suiteHash
	if f.Suite, err = a.Suites.Suite(ctx, suiteHash); err != nil {
		return f, found(err, "loading the suite of project "+f.Request.Project)
	}
	if f.Series, err = a.series(ctx, f, stage); err != nil {
		return f, err
	}
	if shapes := f.Shapes(); len(shapes) > 0 {
		f.Learned, err = a.Store.BestClasses(ctx, f.Request.Project, shapes)
	}
	return f, err
}

// series reads the size classes of series on all targets with a registered collector.
func (a *Activities) series(ctx context.Context, f plan.Facts, stage bench.Stage) (map[bench.TestCase]bench.SizeClass, error) {
	near, err := a.seriesSeenFrom(ctx, f.Request, stage)
	if err != nil {
		return nil, err
	}
	all := make(map[bench.TestCase]bench.SizeClass)
	read := make(map[bench.Target]bool)
	for _, c := range f.Fleet {
		target := c.Pool.Target
		if read[target] {
			continue
		}
		read[target] = true
		classes, err := a.Store.SeriesClasses(ctx, f.Request.Project, target, near)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, classes)
	}
	return all, nil
}

// seriesSeenFrom returns the tag whose results those of a stage must be comparable with:
// the tag of the parent or baseline; when verifying the request's own results, its own.
func (a *Activities) seriesSeenFrom(ctx context.Context, r bench.Request, stage bench.Stage) (string, error) {
	switch {
	case stage == bench.StageVerify:
		return r.Tag, nil
	case r.InTurns() != "":
		return r.Versus, nil
	case r.Profiler != "":
		return r.Tag, nil
	case r.Type.HasParent():
		return r.Parent, nil
	}
	return a.baseline(ctx, r)
}

// stages returns the stages of a request. For a project whose suite is missing, writing
// the jobs reports the error.
func (a *Activities) stages(ctx context.Context, r bench.Request, project store.Project, config bench.ProjectConfig) ([]bench.Stage, error) {
	var loaded *suite.Suite
	if r.OfSuite() {
		var err error
		if loaded, err = a.Suites.Suite(ctx, project.SuiteHash); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return plan.Stages(r, config, loaded), nil
}

// planned makes an error of planning permanent, because the same facts give the same
// error, unless it is that no collector can run a job.
func planned(err error) error {
	if err == nil || plan.Unplaceable(err) != nil {
		return err
	}
	return permanent(err)
}
