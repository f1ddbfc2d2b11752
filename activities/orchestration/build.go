package orchestration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/store"
)

// Revisions finds revisions and exports their trees; a *revision.Repositories is one.
// Activities call it under no lock, many at once, and it may take minutes. Nil: no artifacts
// are built, and no definitions taken from repositories.
type Revisions interface {
	Resolve(ctx context.Context, repository, tag string) (revision.Revision, error)
	// Export writes the tree of a revision into an empty directory.
	Export(ctx context.Context, repository string, want revision.Revision, dir string) error
}

// ownBuildFailures counts the failed builds that the request itself needs, alone or in
// turns. A failed build of its parent only costs the comparison.
func (a *Activities) ownBuildFailures(ctx context.Context, r bench.Request) (int, error) {
	builds, err := a.Store.FailedBuilds(ctx, r.ID)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, key := range builds {
		own, err := a.Store.IsBuiltAs(ctx, r.Project, r.Tag, key)
		if err == nil && !own && r.Versus != "" {
			own, err = a.Store.IsBuiltAs(ctx, r.Project, r.Versus, key)
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

// buildStage returns the jobs that build the artifacts of the request and its parent. A
// parent that cannot be built does not fail its child.
func (a *Activities) buildStage(ctx context.Context, f plan.Facts) (store.Expansion, error) {
	out := store.Expansion{Stage: bench.StageBuild, Optional: f.Optional()}
	parent, err := a.parentJobs(ctx, f)
	if err == nil {
		out.Jobs, err = a.buildJobs(ctx, f, parent.Jobs)
	}
	if err != nil {
		if store.IsTransient(err) || ctx.Err() != nil {
			return out, err
		}
		out.Jobs = nil
		a.Log.WarnContext(ctx, "the parent is not built", "project", f.Request.Project, "request", f.Request.ID, "parent", f.Request.Parent, "error", err)
	}
	own, err := a.ownJobs(ctx, f)
	if err != nil {
		return out, err
	}
	jobs, err := a.buildJobs(ctx, f, own.Jobs)
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

// buildSides has those artifacts built that the jobs of a look measure and that are no longer
// stored. building reports that their jobs have been written, or are open; failed says why
// one cannot be built.
func (a *Activities) buildSides(ctx context.Context, r bench.Request, look []bench.PlannedJob) (building bool, failed string, err error) {
	if len(look) == 0 {
		return false, "", nil
	}
	f, err := a.facts(ctx, r, bench.StageVerify)
	if err != nil {
		return false, incurable(err), retried(err)
	}
	jobs, err := a.buildJobs(ctx, f, look)
	if err != nil || len(jobs) == 0 {
		return false, incurable(err), retried(err)
	}
	before, err := a.Store.StageJobs(ctx, r.ID, bench.StageVerify)
	if err != nil {
		return false, "", err
	}
	for _, j := range before {
		if !j.Status.Open() && slices.ContainsFunc(jobs, func(build bench.PlannedJob) bool { return build.Key == j.Key }) {
			return false, j.Message, nil
		}
	}
	return true, "", a.Store.ExpandRequest(ctx, r.ID, store.Expansion{Stage: bench.StageVerify, Jobs: jobs})
}

// retried returns err if a retry may cure it, else nil.
func retried(err error) error {
	if incurable(err) != "" {
		return nil
	}
	return err
}

// buildJobs returns the jobs that build those artifacts of measuring jobs that
// come from the provider build and are not built yet. It records the build of each
// tag, so that collectors find it. Repeated calls return the same jobs; requests that
// need the same build share its job.
//
// Errors that a retry cannot cure are permanent, or a placement.Unplaceable.
func (a *Activities) buildJobs(ctx context.Context, f plan.Facts, measuring []bench.PlannedJob) ([]bench.PlannedJob, error) {
	artifacts, err := f.Artifacts(measuring)
	if err != nil {
		return nil, permanent(err)
	}
	var jobs []bench.PlannedJob
	for _, artifact := range artifacts {
		job, needed, err := a.buildJob(ctx, f, artifact)
		if err != nil {
			return nil, err
		}
		if needed && !slices.ContainsFunc(jobs, func(j bench.PlannedJob) bool { return j.Key == job.Key }) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// buildJob returns the job that builds an artifact, unless it is built already.
func (a *Activities) buildJob(ctx context.Context, f plan.Facts, artifact plan.Artifact) (job bench.PlannedJob, needed bool, err error) {
	spec, err := a.buildSpec(ctx, f.Request.Project, artifact)
	if err != nil {
		return bench.PlannedJob{}, false, err
	}
	if err := a.Store.SetBuildRevision(ctx, f.Request.Project, artifact.Recipe.Hash(artifact.Target), spec); err != nil {
		return bench.PlannedJob{}, false, err
	}
	_, err = a.Store.Build(ctx, spec.Key)
	if !errors.Is(err, store.ErrNotFound) {
		return bench.PlannedJob{}, false, err // stored, or unknown
	}
	generation, err := a.Store.BuildGeneration(ctx, f.Request.ID, f.Request.Project, spec.Key)
	if err != nil {
		return bench.PlannedJob{}, false, err
	}
	job, err = f.Build(spec, generation)
	return job, true, planned(err)
}

// repositoryTries bounds the attempts at a repository that does not answer: an
// admitted request holds a slot that others wait for. With the pauses of the
// activity's policy that is about half a minute, plus git's own timeouts.
const repositoryTries = 8

// buildSpec looks the tag up in its repository.
func (a *Activities) buildSpec(ctx context.Context, project string, artifact plan.Artifact) (bench.BuildSpec, error) {
	rev, err := a.revision(ctx, artifact.Recipe.Repository, artifact.Tag)
	if err != nil {
		return bench.BuildSpec{}, err
	}
	spec, err := artifact.Recipe.Spec(project, artifact.Tag, artifact.Target, rev.Commit, rev.Tree)
	if err != nil {
		return bench.BuildSpec{}, permanent(err)
	}
	return spec, nil
}

// revision looks a name up in a repository. Errors that a retry cannot cure are permanent;
// after many tries, silence is one of them.
func (a *Activities) revision(ctx context.Context, repository, name string) (revision.Revision, error) {
	if a.Revisions == nil {
		return revision.Revision{}, permanent(errors.New("this orchestrator reads no repositories"))
	}
	rev, err := a.Revisions.Resolve(ctx, repository, name)
	switch {
	case errors.Is(err, revision.ErrNoRepository), errors.Is(err, revision.ErrNoRevision), errors.Is(err, revision.ErrNoGit):
		return rev, permanent(err)
	case errors.Is(err, revision.ErrUnreachable) && activity.IsActivity(ctx) && activity.GetInfo(ctx).Attempt >= repositoryTries:
		return rev, permanent(fmt.Errorf("tried %d times: %w", repositoryTries, err))
	}
	return rev, err
}

// pruneBuilds keeps the stored builds within their budget. It is part of each
// reconciliation.
func (a *Activities) pruneBuilds(ctx context.Context) error {
	if a.BuildBudget <= 0 {
		return nil
	}
	removed, err := a.Store.PruneBuilds(ctx, a.BuildBudget)
	for _, b := range removed {
		a.Log.InfoContext(ctx, "removed an unused build", "project", b.Project, "build", b.Key, "bytes", b.Size, "last_used", b.LastUsed)
	}
	return err
}
