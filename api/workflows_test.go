package api_test

import (
	"context"
	"errors"

	"github.com/benchloom/benchloom/internal/bench"
)

// What operators ask of workflows.

func (w *workflows) SettleRequest(context.Context, string, bench.RequestID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled++
	return w.unsettled
}

func (w *workflows) RestartRequest(_ context.Context, project string, id bench.RequestID) error {
	w.mu.Lock()
	w.restarted = append(w.restarted, id)
	w.mu.Unlock()
	return errors.Join(w.repair("restart "+bench.RequestWorkflowID(project, id)), w.err)
}

func (w *workflows) QueueChanged(_ context.Context, project string) error {
	w.mu.Lock()
	w.queues = append(w.queues, project)
	w.mu.Unlock()
	return errors.Join(w.repair("start "+bench.QueueWorkflowID(project)), w.err)
}

func (w *workflows) TriggerReconcile(context.Context) error {
	w.mu.Lock()
	w.reconciled++
	w.mu.Unlock()
	return errors.Join(w.repair("trigger"), w.err)
}

// operators is what operators asked of workflows.
type operators struct {
	settled, reconciled int
	unsettled           error // what settling answers
	restarted           []bench.RequestID
	queues              []string
}
