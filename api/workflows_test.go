package api_test

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// What operators ask of workflows.

func (w *workflows) SettleRequest(context.Context, string, bench.RequestID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled++
	return w.unsettled
}

func (w *workflows) RestartRequest(_ context.Context, _ string, id bench.RequestID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarted = append(w.restarted, id)
	return w.err
}

func (w *workflows) QueueChanged(_ context.Context, project string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queues = append(w.queues, project)
	return w.err
}

func (w *workflows) TriggerReconcile(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reconciled++
	return w.err
}

// operators is what operators asked of workflows.
type operators struct {
	settled, reconciled int
	unsettled           error // what settling answers
	restarted           []bench.RequestID
	queues              []string
}
