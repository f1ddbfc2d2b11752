package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Queue admits a project's requests in order. It lives as long as the project
// and holds no state: each change makes it read the record again.
func Queue(ctx workflow.Context, in protocol.QueueInput) error {
	q := &queue{in: in, status: protocol.QueueStatus{Project: in.Project}, changed: workflow.GetSignalChannel(ctx, protocol.SignalQueueChanged)}
	if err := workflow.SetQueryHandler(ctx, protocol.StatusQuery, func() (protocol.QueueStatus, error) { return q.status, nil }); err != nil {
		return err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrProject.ValueSet(in.Project)); err != nil {
		return err
	}
	return q.run(ctx)
}

type queue struct {
	in      protocol.QueueInput
	status  protocol.QueueStatus
	changed workflow.ReceiveChannel
}

func (q *queue) run(ctx workflow.Context) error {
	for {
		drain(q.changed)
		if err := q.admit(ctx); err != nil {
			return err
		}
		// Nothing is pending here, and a later signal reaches the next run.
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && q.changed.Len() == 0 {
			return workflow.NewContinueAsNewError(ctx, Queue, q.in)
		}
		if err := wait(ctx, "look again if no signal came", queueRecheck, q.changed); err != nil {
			return err
		}
	}
}

func (q *queue) admit(ctx workflow.Context) error {
	if err := call(ctx, recordActivity("admit the next requests"), protocol.Admit, q.in, &q.status.Queue); err != nil {
		return err
	}
	phase := protocol.QueueIdle
	switch {
	case q.status.Queue.Paused != "":
		phase = protocol.QueuePaused
	case q.status.Queue.Waiting > 0:
		phase = protocol.QueueFull
	case len(q.status.Queue.InProgress) > 0:
		phase = protocol.QueueAdmitting
	}
	workflow.SetCurrentDetails(ctx, queueDetails(q.status))
	if phase == q.status.Phase {
		return nil
	}
	q.status.Phase = phase
	return workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(string(phase)))
}
