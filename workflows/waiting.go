package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// The waits of a request before its jobs are written. Each reads the row, waits for a
// nudge, and reads again; a lost nudge costs one recheck.

// validArtifacts refuses an update that names no artifact.
func validArtifacts(in protocol.ArtifactsReady) error {
	if in.Tag == "" {
		return temporal.NewApplicationError("the update names no artifact; give its tag", protocol.ErrTypePermanent)
	}
	return nil
}

// artifactsReady handles the update: the row was written first, so it only has to be
// read again.
func (r *request) artifactsReady(_ workflow.Context, _ protocol.ArtifactsReady) error {
	r.notices++
	return nil
}

// awaitArtifacts waits until the row says that the artifacts are ready.
func (r *request) awaitArtifacts(ctx workflow.Context) error {
	if r.facts.Status != bench.WaitingForArtifacts {
		return nil
	}
	if err := r.enter(ctx, protocol.RequestWaitsForArtifacts, "waits for a notification that its artifacts are ready: `benchloom request artifacts-ready "+string(r.in.ID)+" --tag TAG`"); err != nil {
		return err
	}
	for seen := 0; r.facts.Status == bench.WaitingForArtifacts; {
		if err := r.renew(ctx); err != nil {
			return err
		}
		atMost := artifactsRecheck
		if left := time.Duration(r.facts.ArtifactsWithin) * time.Second; left > 0 {
			atMost = min(atMost, left)
		}
		notified, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: atMost, TimerOptions: workflow.TimerOptions{Summary: "look again if no notification came"}},
			func() bool { return r.notices > seen })
		if err != nil {
			return err
		}
		seen = r.notices // notices that arrive during the read lead to another
		if !notified {
			if err := call(ctx, recordActivity("give up if its artifacts are overdue"), protocol.ExpireRequest, r.ref, nil); err != nil {
				return err
			}
		}
		if err := r.rereadRow(ctx); err != nil {
			return err
		}
	}
	return workflow.UpsertTypedSearchAttributes(ctx, r.tagAttribute()...)
}

// awaitParent waits until the jobs of the parent, or of another ancestor that the
// request waits for, are done.
func (r *request) awaitParent(ctx workflow.Context) error {
	for first := true; r.facts.WaitsFor != "" && !r.facts.ParentDone && !r.facts.Admitted; first = false {
		if first {
			if err := r.enter(ctx, protocol.RequestWaitsForParent, fmt.Sprintf("waits for the jobs of `%s`, with which it is to be compared", r.facts.WaitsFor)); err != nil {
				return err
			}
		}
		if err := r.renew(ctx); err != nil {
			return err
		}
		if err := wait(ctx, "look again if the parent's signal was lost", parentRecheck, r.parentDone, r.admitted); err != nil {
			return err
		}
		drain(r.parentDone)
		drain(r.admitted) // the row says whether it is
		if err := r.rereadRow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitAdmission asks the project's queue for a slot and waits for it. Ad-hoc
// requests need none.
func (r *request) awaitAdmission(ctx workflow.Context) error {
	if !r.facts.Type.Tracked() || r.facts.Admitted {
		return nil
	}
	if err := r.enter(ctx, protocol.RequestWaitsForAdmission, "waits for a slot of the queue `"+bench.QueueWorkflowID(r.in.Project)+"`: requests of a project run in order, see that workflow for who is before it"); err != nil {
		return err
	}
	for !r.facts.Admitted {
		if err := r.renew(ctx); err != nil {
			return err
		}
		if err := call(ctx, recordActivity("ask the project's queue for a slot"), protocol.AskAdmission, r.ref, nil); err != nil {
			return err
		}
		if err := wait(ctx, "ask again if no answer came", admissionRecheck, r.admitted); err != nil {
			return err
		}
		drain(r.admitted)
		if err := r.rereadRow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// errEnded reports that the row was completed elsewhere: nothing is left to do.
var errEnded = errors.New("the request has ended")

// rereadRow reads the row while the request waits: it may have been cancelled or may
// have expired.
func (r *request) rereadRow(ctx workflow.Context) error {
	if err := r.readRow(ctx); err != nil {
		return err
	}
	switch {
	case r.facts.End == nil:
		return nil
	case r.facts.End.Outcome == bench.Cancelled:
		return temporal.NewCanceledError("the request was cancelled while it waited")
	}
	return errEnded
}
