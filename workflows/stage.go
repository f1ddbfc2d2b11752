package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// stagePhases maps each stage to the phase that shows it.
//
//exhaustive:enforce
var stagePhases = map[bench.Stage]protocol.RequestPhase{
	bench.StageBuild:  protocol.RequestBuilding,
	bench.StageParent: protocol.RequestBackfilling,
	bench.StageOwn:    protocol.RequestInProgress,
	bench.StageVerify: protocol.RequestInProgress, // of a run that v0.1.0 began
}

// runStage writes the jobs of a stage and waits for their end. It returns the reason
// why the request cannot continue; empty: it can.
func (r *request) runStage(ctx workflow.Context, stage bench.Stage) (failed string, err error) {
	jobs, failed, err := r.expand(ctx, stage)
	if err != nil || failed != "" {
		return failed, err
	}
	r.status.Shared, r.recheck = jobs.Shared, time.Duration(jobs.RecheckSeconds)*time.Second
	if jobs.Counts.Open == 0 && (stage != bench.StageBuild || jobs.Counts.Failure == 0) {
		return "", r.startChildren(ctx, jobs.HandedOut) // optional ones: nothing to wait for
	}
	r.status.Progress = jobs.Counts
	if err := r.enter(ctx, stagePhases[stage], jobsText(jobs.Counts)); err != nil {
		return "", err
	}
	if err := r.startChildren(ctx, jobs.HandedOut); err != nil {
		return "", err
	}
	// A job that has already failed sends no further signal.
	await := r.awaitJobs
	if jobs.Counts.Open == 0 {
		await = r.count
	}
	end, err := await(ctx, protocol.ProgressInput{Request: r.ref, Stage: stage})
	if err != nil {
		return "", err
	}
	if stage == bench.StageBuild && end.Counts.Failure > 0 {
		return "its artifact could not be built: " + end.Failure, nil
	}
	if end.ParentLacks { // it was measured where the request's jobs were expected to run
		return r.runStage(ctx, bench.StageParent)
	}
	return "", nil
}

// expand writes the jobs of a stage.
func (r *request) expand(ctx workflow.Context, stage bench.Stage) (jobs protocol.ExpandResult, failed string, err error) {
	show := func() error {
		return r.enter(ctx, protocol.RequestExpanding, "the jobs of its stage '"+string(stage)+"' are being written")
	}
	input := protocol.ExpandInput{Request: r.ref, Stage: stage}
	switch {
	case r.brief:
		err = r.record(ctx, show, expandActivity(), protocol.Expand, input, &jobs)
	case r.facts.Type.Tracked():
		if err = show(); err == nil {
			err = call(ctx, expandActivity(), protocol.Expand, input, &jobs)
		}
	default:
		if err = show(); err == nil {
			err = quick(ctx, expandActivity(), protocol.Expand, input, &jobs)
		}
	}
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.Type() == protocol.ErrTypePermanent {
		return jobs, application.Message(), nil
	}
	return jobs, jobs.Failed, err
}

// awaitJobs waits until no job of the stage is open. The counts are in
// r.status.Progress.
func (r *request) awaitJobs(ctx workflow.Context, ask protocol.ProgressInput) (protocol.ProgressResult, error) {
	for {
		if err := r.awaitEnd(ctx); err != nil {
			return protocol.ProgressResult{}, err
		}
		progress, err := r.count(ctx, ask)
		if err != nil {
			return progress, err
		}
		if progress.Cancelled && !ask.Optional {
			// A person ended the request, or its own workflow before a reset did.
			if err := r.rereadRow(ctx); err != nil {
				return progress, err
			}
		}
		if progress.Counts.Open == 0 {
			return progress, nil
		}
		if err := r.spare(ctx, progress.Counts); err != nil {
			return progress, err
		}
	}
}

// spare pauses between two counts of very many jobs: each count reads them all, and
// jobs end every second. Jobs handed out meanwhile start at once.
func (r *request) spare(ctx workflow.Context, counts protocol.JobCounts) error {
	pause := countPause(counts)
	if pause == 0 {
		return nil
	}
	over := workflow.Now(ctx).Add(pause)
	for {
		left := over.Sub(workflow.Now(ctx))
		if left <= 0 {
			return nil
		}
		if err := wait(ctx, "count at most once in this time", left, r.handOut); err != nil {
			return err
		}
		if _, err := r.startSignalled(ctx); err != nil {
			return err
		}
	}
}

// awaitEnd waits for a reason to count: the end of a job, or silence. Jobs handed out
// meanwhile start at once.
func (r *request) awaitEnd(ctx workflow.Context) error {
	for {
		if err := r.renew(ctx); err != nil {
			return err
		}
		atMost := progressRecheck
		if r.recheck > 0 {
			atMost = min(atMost, r.recheck)
		}
		if err := wait(ctx, "count again if no signal came", atMost, r.handOut, r.jobEnded); err != nil {
			return err
		}
		handedOut, err := r.startSignalled(ctx)
		if err != nil {
			return err
		}
		if drain(r.jobEnded) > 0 || handedOut == 0 {
			return nil
		}
	}
}

// renew continues as new when the history has become long or the children many.
// Nothing is lost: jobs named by signals are started, all else is in the record.
func (r *request) renew(ctx workflow.Context) error {
	if !workflow.GetInfo(ctx).GetContinueAsNewSuggested() && r.children < maxChildren {
		return nil
	}
	if err := r.readSignals(ctx); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, Request, r.in)
}

func (r *request) count(ctx workflow.Context, ask protocol.ProgressInput) (protocol.ProgressResult, error) {
	var p protocol.ProgressResult
	count := call
	if r.brief {
		count = quick
	}
	if err := count(ctx, recordActivity("count the request's jobs"), protocol.Progress, ask, &p); err != nil {
		return p, err
	}
	r.recheck = time.Duration(p.RecheckSeconds) * time.Second
	if p.Counts != r.status.Progress || p.Shared.Total != r.status.Shared.Total {
		r.status.Progress, r.status.Shared = p.Counts, p.Shared
		r.status.Waits = r.waits(p.Counts)
		r.describe(ctx)
	}
	return p, nil
}
