package orchestration

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// facts reads what is needed to plan the jobs of a stage of a request.
func (a *Activities) facts(ctx context.Context, r bench.Request, stage bench.Stage) (plan.Facts, error) {
	project, config, err := a.config(ctx, r.Project)
	if err != nil {
		return plan.Facts{}, err
	}
	f := plan.Facts{Request: r, Config: config}
	if f.Fleet, err = a.Store.Fleet(ctx, a.OfflineAfter); err != nil || r.OfCommands() {
		return f, err
	}
	f.SuiteHash = project.SuiteHash
	if f.Suite, err = a.Suites.Suite(ctx, project.SuiteHash); err != nil {
		return f, found(err, "loading the suite of project "+project.Name)
	}
	if f.Series, err = a.series(ctx, f, stage); err != nil {
		return f, err
	}
	if shapes := f.Shapes(); len(shapes) > 0 {
		f.Learned, err = a.Store.BestClasses(ctx, r.Project, shapes)
	}
	return f, err
}

// series reads where series live, on all targets for which a collector is registered.
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

// seriesSeenFrom is the tag next to whose results those of a stage belong, so that
// both compare: that of the parent or baseline; when it is verified what the request
// itself has measured, its own.
func (a *Activities) seriesSeenFrom(ctx context.Context, r bench.Request, stage bench.Stage) (string, error) {
	switch {
	case stage == bench.StageVerify:
		return r.Tag, nil
	case r.Versus != "":
		return r.Versus, nil
	case r.Type.HasParent():
		return r.Parent, nil
	}
	return a.baseline(ctx, r)
}

// differing are the test cases of which a metric that counts differs significantly,
// for a reason that measuring them in turns might take away.
func (a *Activities) differing(ctx context.Context, pair results.Pair) (map[bench.TestCase]bool, error) {
	report, err := results.Compare(ctx, a.Store, a.Suites, pair)
	if err != nil {
		return nil, fmt.Errorf("comparing with the baseline: %w", err)
	}
	differ := make(map[bench.TestCase]bool)
	for _, s := range report.Comparison.Results {
		if s.Significant && s.Basis != stats.ByEquality && !s.InTurns && !bench.Metric(s.Metric).Explains() {
			differ[bench.TestCase{
				Benchmark: s.Benchmark, Profile: s.Profile, Scenario: s.Scenario, Backend: s.Backend, Target: bench.Target(s.Target),
			}] = true
		}
	}
	return differ, nil
}

// stages are those through which a request goes. Of a project without a suite, or with one
// that is gone, writing the jobs says so.
func (a *Activities) stages(ctx context.Context, r bench.Request, project store.Project, config bench.ProjectConfig) ([]bench.Stage, error) {
	var loaded *suite.Suite
	if !r.OfCommands() {
		var err error
		if loaded, err = a.Suites.Suite(ctx, project.SuiteHash); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return plan.Stages(r, config, loaded), nil
}

// planned makes an error of planning permanent, unless it says that no collector can run
// a job: the same facts give the same answer.
func planned(err error) error {
	if err == nil || plan.Unplaceable(err) != nil {
		return err
	}
	return permanent(err)
}
