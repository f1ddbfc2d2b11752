package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// changeLooks guards the looks. Requests of v0.1.0 measured differences again in a stage
// before they freed their slot.
const changeLooks = "looks-after-jobs-done"

// decide frees the request's slot, and measures again what may have changed until each row
// of its comparison has a verdict. The record knows which look is next, so it goes on
// wherever an earlier run of the workflow ended.
func (r *request) decide(ctx workflow.Context) error {
	if (!r.facts.Type.Tracked() && r.facts.Versus == "") || workflow.GetVersion(ctx, changeLooks, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return nil
	}
	if err := r.enter(ctx, protocol.RequestVerifying, "its jobs have ended; what may have changed is being looked for"); err != nil {
		return err
	}
	if err := r.jobsDone(ctx, func() error { return nil }); err != nil {
		return err
	}
	for {
		var look protocol.LookResult
		if err := call(ctx, lookActivity(), protocol.NextLook, r.ref, &look); err != nil {
			return err
		}
		if look.Decided {
			r.look = ""
			return nil
		}
		r.look, r.status.Progress = look.Text(), look.Counts
		if err := r.enter(ctx, protocol.RequestVerifying, r.waits(look.Counts)); err != nil {
			return err
		}
		if err := r.startChildren(ctx, look.HandedOut); err != nil {
			return err
		}
		if look.Counts.Open == 0 {
			continue
		}
		if _, err := r.awaitJobs(ctx, protocol.ProgressInput{Request: r.ref, Stage: bench.StageVerify}); err != nil {
			return err
		}
	}
}

// jobsDone frees the request's slot and wakes the requests that wait for it, once; see
// [request.record].
func (r *request) jobsDone(ctx workflow.Context, show func() error) error {
	if r.freed {
		return show()
	}
	r.freed = true
	return r.record(ctx, show, recordActivity("free the slot, wake the queue and the children"), protocol.JobsDone, r.ref, nil)
}

// waits says in words what the request's open jobs are for.
func (r *request) waits(c protocol.JobCounts) string {
	if r.look == "" {
		return jobsText(c)
	}
	return r.look + ": " + jobsText(c)
}
