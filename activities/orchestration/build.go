package orchestration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/store"
)

// Revisions finds revisions; a *revision.Repositories does.
type Revisions interface {
	Resolve(ctx context.Context, repository, tag string) (revision.Revision, error)
}

// withBuild puts the stage that builds before the others, for requests whose
// artifacts come from the provider build.
func (a *Activities) withBuild(ctx context.Context, r bench.Request, config bench.ProjectConfig, stages []bench.Stage) ([]bench.Stage, error) {
	if r.Command != nil || r.Batch > 0 {
		return stages, nil
	}
	project, err := a.Store.Project(ctx, r.Project)
	if err != nil {
		return stages, found(err, "reading project "+r.Project)
	}
	loaded, err := a.Suites.Suite(ctx, project.SuiteHash)
	if errors.Is(err, store.ErrNotFound) {
		return stages, nil // writing its jobs says so
	}
	if err != nil {
		return stages, err
	}
	source := loaded.Artifact()
	for _, tag := range []string{r.Tag, r.Parent, r.Versus} {
		if provider, _ := config.Artifacts.For(tag, source.Provider, source.Parameters); provider == bench.BuildProvider {
			return append([]bench.Stage{bench.StageBuild}, stages...), nil
		}
	}
	return stages, nil
}

// ownBuildFailures counts the failed builds without which the request itself
// cannot be measured, alone or in turns; those of its parent only cost the comparison.
func (a *Activities) ownBuildFailures(ctx context.Context, r bench.Request) (int, error) {
	jobs, err := a.Store.StageJobs(ctx, r.ID, bench.StageBuild)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, j := range jobs {
		if j.Status != bench.JobFailure || j.Build == nil {
			continue
		}
		own, err := a.Store.IsBuiltAs(ctx, r.Project, r.Tag, j.Build.Key)
		if err == nil && !own && r.Versus != "" {
			own, err = a.Store.IsBuiltAs(ctx, r.Project, r.Versus, j.Build.Key)
		}
		if err != nil {
			return 0, err
		}
		if own {
			n++
		}
	}
	return n, nil
}

// buildStage is what has to be built before the request and its parent can be
// measured. A parent that cannot be built is no failure of its child.
func (a *Activities) buildStage(ctx context.Context, e expansion) (store.Expansion, error) {
	out := store.Expansion{Stage: bench.StageBuild, Optional: e.optional()}
	if e.loaded == nil {
		return out, nil
	}
	parent, err := a.parentJobs(ctx, e)
	if err == nil {
		out.Jobs, err = a.buildJobs(ctx, e, parent.Jobs)
	}
	if err != nil {
		if store.IsTransient(err) || ctx.Err() != nil {
			return out, err
		}
		out.Jobs = nil
		a.Log.WarnContext(ctx, "the parent is not built", "project", e.request.Project, "request", e.request.ID, "parent", e.request.Parent, "error", err)
	}
	own, err := a.ownJobs(ctx, e)
	if err != nil {
		return out, err
	}
	measured := own.Jobs
	for _, j := range own.Jobs {
		if j.Versus != "" {
			measured = append(measured, e.of(j.Versus, j))
		}
	}
	jobs, err := a.buildJobs(ctx, e, measured)
	if err != nil {
		return out, err
	}
	for _, j := range jobs {
		if !slices.ContainsFunc(out.Jobs, func(have bench.PlannedJob) bool { return have.Key == j.Key }) {
			out.Jobs = append(out.Jobs, j)
		}
	}
	return out, nil
}

// buildJobs are the jobs that build the artifacts of measuring jobs, as far as
// they come from the provider build and are not built yet. It records what each
// tag is built as, so that collectors find it. Asking again gives the same jobs;
// requests that need the same build get the same one.
//
// Errors that no repetition mends are permanent, or a [*placement.Unplaceable].
func (a *Activities) buildJobs(ctx context.Context, e expansion, measured []bench.PlannedJob) ([]bench.PlannedJob, error) {
	source := e.loaded.Artifact()
	var jobs []bench.PlannedJob
	asked := make(map[string]bool)
	for _, m := range measured {
		provider, parameters := e.config.Artifacts.For(m.Tag, source.Provider, source.Parameters)
		if provider != bench.BuildProvider || asked[m.Tag+" "+string(m.Target)] {
			continue
		}
		asked[m.Tag+" "+string(m.Target)] = true
		job, needed, err := a.buildJob(ctx, e, buildWish{m.Tag, m.Target, parameters})
		if err != nil {
			return nil, err
		}
		if needed && !slices.ContainsFunc(jobs, func(j bench.PlannedJob) bool { return j.Key == job.Key }) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// buildWish is an artifact that may have to be built.
type buildWish struct {
	tag        string
	target     bench.Target
	parameters map[string]string
}

// buildJob is the job that builds an artifact, unless it is built already.
func (a *Activities) buildJob(ctx context.Context, e expansion, w buildWish) (job bench.PlannedJob, needed bool, err error) {
	recipe, err := bench.ParseBuildRecipe(w.parameters, w.tag, w.target)
	if err != nil {
		return bench.PlannedJob{}, false, permanent(fmt.Errorf("how %s is built: %w", w.tag, err))
	}
	spec, err := a.buildSpec(ctx, e, recipe, w)
	if err != nil {
		return bench.PlannedJob{}, false, err
	}
	if err := a.Store.SetBuildRevision(ctx, e.request.Project, recipe.Hash(w.target), spec); err != nil {
		return bench.PlannedJob{}, false, err
	}
	_, err = a.Store.Build(ctx, spec.Key)
	if !errors.Is(err, store.ErrNotFound) {
		return bench.PlannedJob{}, false, err // stored, or not known
	}
	e.request.Constraints = nil // a build is for all who need it: only the project's hold
	wish := e.wish(w.target)
	wish.Class = e.pin()
	place, err := placement.Choose(e.fleet, wish)
	if err != nil {
		return bench.PlannedJob{}, false, err
	}
	generation, err := a.Store.BuildGeneration(ctx, e.request.ID, e.request.Project, spec.Key)
	if err != nil {
		return bench.PlannedJob{}, false, err
	}
	return e.build(place.Pool, spec, generation), true, nil
}

// repositoryTries bounds how often a repository that does not answer is asked: an
// admitted request holds a slot, which others wait for. With the pauses of the
// activity's policy that is about half a minute, and as long as git itself waits.
const repositoryTries = 8

// buildSpec looks the tag up in its repository.
func (a *Activities) buildSpec(ctx context.Context, e expansion, recipe bench.BuildRecipe, w buildWish) (bench.BuildSpec, error) {
	if a.Revisions == nil {
		return bench.BuildSpec{}, permanent(errors.New("this orchestrator reads no repositories"))
	}
	rev, err := a.Revisions.Resolve(ctx, recipe.Repository, w.tag)
	switch {
	case errors.Is(err, revision.ErrNoRepository), errors.Is(err, revision.ErrNoRevision), errors.Is(err, revision.ErrNoGit):
		return bench.BuildSpec{}, permanent(err)
	case errors.Is(err, revision.ErrUnreachable) && activity.IsActivity(ctx) && activity.GetInfo(ctx).Attempt >= repositoryTries:
		return bench.BuildSpec{}, permanent(fmt.Errorf("tried %d times: %w", repositoryTries, err))
	case err != nil:
		return bench.BuildSpec{}, err
	}
	spec, err := recipe.Spec(e.request.Project, w.tag, w.target, rev.Commit, rev.Tree)
	if err != nil {
		return bench.BuildSpec{}, permanent(err)
	}
	return spec, nil
}

// build is the job of a build. It is nobody's own: its key holds neither tag nor
// request nor size class, so that all who need the build share it.
func (e expansion) build(pool bench.Pool, spec bench.BuildSpec, generation int) bench.PlannedJob {
	j := e.job(pool, bench.Job{
		Generation: generation,
		Work:       bench.Work{Tag: spec.Tag, Kind: bench.KindBuild, Target: spec.Target, TestCases: []bench.TestCase{}, Build: &spec},
	})
	j.Key = bench.BuildJobIdentity(e.request.Project, spec, generation).Key()
	return j
}

// pruneBuilds keeps the stored builds within their budget. Part of each
// reconciliation.
func (a *Activities) pruneBuilds(ctx context.Context) error {
	if a.BuildBudget <= 0 {
		return nil
	}
	removed, err := a.Store.PruneBuilds(ctx, a.BuildBudget)
	for _, b := range removed {
		a.Log.InfoContext(ctx, "removed a build that was not used for long", "project", b.Project, "build", b.Key, "bytes", b.Size, "last_used", b.LastUsed)
	}
	return err
}
