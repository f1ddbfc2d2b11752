package orchestration

import (
	"context"
	"errors"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Expand writes the jobs of one stage of a request and hands out those that can run,
// once however often it is called.
func (a *Activities) Expand(ctx context.Context, in protocol.ExpandInput) (protocol.ExpandResult, error) {
	r, err := a.Store.Request(ctx, in.Request.ID)
	if err != nil {
		return protocol.ExpandResult{}, found(err, "reading the request")
	}
	a.Points.Reach(ctx, failpoint.Expanding)
	if err := a.writeStage(ctx, r, in.Stage); err != nil {
		switch {
		case plan.Unplaceable(err) == nil:
			return protocol.ExpandResult{}, err
		case in.Stage != bench.StageParent: // a parent that cannot be measured does not fail its child
			return protocol.ExpandResult{Failed: err.Error()}, nil
		}
	}
	var out protocol.ExpandResult
	if out.RecheckSeconds, err = a.walk(ctx, r); err != nil {
		return protocol.ExpandResult{}, err
	}
	// Jobs written with the request were handed out then, before there was a workflow.
	if !r.Deferred || r.ReopenedAt != nil {
		if out.HandedOut, err = a.handOutTo(ctx, r, in.Stage); err != nil {
			return protocol.ExpandResult{}, err
		}
	}
	if out.Shared, err = a.shared(ctx, r); err != nil {
		return protocol.ExpandResult{}, err
	}
	p, err := a.Store.StageProgress(ctx, r.ID, in.Stage, false)
	out.Counts = counts(p)
	return out, err
}

// handOutTo hands out jobs at the task queues of a request's stage, and returns the inputs
// of those that the request has to start. These are read from the record rather than from
// this hand-out: a retry must name the jobs that the first attempt handed out.
func (a *Activities) handOutTo(ctx context.Context, r bench.Request, stage bench.Stage) ([]protocol.JobInput, error) {
	queues, err := a.Store.OpenTaskQueues(ctx, r.ID, stage)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if err := a.dispatcher().FillFor(ctx, q, r.ID); err != nil {
			return nil, err
		}
	}
	jobs, err := a.dispatcher().HandedOutTo(ctx, r.ID)
	return jobs, classify(err, "reading what was handed out")
}

func (a *Activities) writeStage(ctx context.Context, r bench.Request, stage bench.Stage) error {
	// A workflow begun by v0.1.0 has a stage for measuring again: looks now do that once the
	// request's jobs have ended.
	if stage == bench.StageVerify || stage == bench.StageOwn && r.ExpandedAt != nil {
		return nil
	}
	if r.Template != nil {
		return unwritable(a.writeTemplate(ctx, r))
	}
	f, err := a.facts(ctx, r, stage)
	if err != nil {
		return err
	}
	for range rewrites {
		err = a.writeJobs(ctx, f, stage)
		if !errors.Is(err, store.ErrStale) {
			break
		}
	}
	return unwritable(err)
}

// unwritable makes those errors of writing jobs permanent that a retry does not cure: the
// request has ended, has another job with the same key, or has too many jobs.
func unwritable(err error) error {
	var tooMany *graph.SizeError
	if errors.Is(err, store.ErrConflict) || errors.As(err, &tooMany) {
		return permanent(err)
	}
	return err
}

// rewrites bounds the immediate retries of planning a stage after other requests have
// written, ended or cancelled jobs meanwhile. After that Temporal retries the activity.
const rewrites = 5

func (a *Activities) writeJobs(ctx context.Context, f plan.Facts, stage bench.Stage) error {
	var wanted store.Expansion
	var err error
	switch stage {
	case bench.StageBuild:
		wanted, err = a.buildStage(ctx, f)
	case bench.StageParent:
		wanted, err = a.parentJobs(ctx, f)
	case bench.StageOwn:
		wanted, err = a.ownJobs(ctx, f)
	default:
		return permanent(errors.New("there is no stage " + string(stage)))
	}
	if err != nil {
		return err
	}
	wanted.Queue = f.Queue()
	if !f.Request.Type.Tracked() {
		if err := a.Store.StartAdHoc(ctx, f.Request.ID); err != nil {
			return err // also if cancelled meanwhile
		}
	}
	return a.Store.ExpandRequest(ctx, f.Request.ID, wanted)
}

// ownJobs returns the request's jobs without stored test cases.
func (a *Activities) ownJobs(ctx context.Context, f plan.Facts) (store.Expansion, error) {
	out := store.Expansion{Stage: bench.StageOwn, Optional: f.Optional()}
	jobs, err := f.Own()
	if err != nil {
		return out, planned(err)
	}
	if !f.Request.Type.Tracked() { // a person's own measurement repeats stored results
		out.Jobs = jobs
		return out, nil
	}
	return a.lacking(ctx, f, out, jobs)
}

// parentJobs returns the jobs that measure the test cases of the request that its parent
// lacks, where the request measures them.
func (a *Activities) parentJobs(ctx context.Context, f plan.Facts) (store.Expansion, error) {
	out := store.Expansion{Stage: bench.StageParent, Optional: f.Optional()}
	if !f.Backfills() {
		return out, nil
	}
	own, err := a.measuredJobs(ctx, f)
	if err != nil {
		return out, err
	}
	jobs, err := f.Parent(own)
	if err != nil {
		return out, planned(err)
	}
	return a.lacking(ctx, f, out, jobs)
}

// measuredJobs returns the request's own jobs as they were measured or, before they are
// written, as they are expected to be.
func (a *Activities) measuredJobs(ctx context.Context, f plan.Facts) ([]bench.PlannedJob, error) {
	if f.Request.ExpandedAt == nil {
		jobs, err := f.Own()
		return jobs, planned(err)
	}
	jobs, err := a.Store.StageJobs(ctx, f.Request.ID, bench.StageOwn)
	if err != nil {
		return nil, err
	}
	parts, err := a.Store.MeasuredParts(ctx, f.Request.ID, bench.StageOwn)
	return plan.AsMeasured(jobs, parts), err
}

// lacking reduces the jobs of a stage to what is not measured yet, and adds the open jobs
// that measure the rest.
func (a *Activities) lacking(ctx context.Context, f plan.Facts, out store.Expansion, jobs []bench.PlannedJob) (store.Expansion, error) {
	covered := make(map[plan.CoverageQuery]plan.Coverage)
	var err error
	for _, j := range jobs {
		of := plan.QueryOf(j.Job)
		if _, known := covered[of]; known {
			continue
		}
		if covered[of], err = a.Store.CoverageOf(ctx, f.Request.Project, of); err != nil {
			return out, err
		}
	}
	out.OnlyMissing = true
	out.Jobs, out.Shared = f.Uncovered(out.Stage, jobs, covered)
	for i, j := range out.Jobs {
		// A job never runs twice: one that was cancelled, or has lost its results since,
		// is replaced by one of the next generation.
		generation, err := a.Store.GenerationFor(ctx, f.Request.ID, j.Job)
		if err != nil {
			return out, err
		}
		out.Jobs[i] = f.Generation(j, generation)
	}
	return out, nil
}
