package api_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// What operators ask of workflows.

func (w *workflows) SettleRequest(context.Context, bench.RequestRef) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled++
	return w.unsettled
}

func (w *workflows) RestartRequest(_ context.Context, request bench.RequestRef) error {
	w.mu.Lock()
	w.restarted = append(w.restarted, request.ID)
	w.mu.Unlock()
	return errors.Join(w.repair("restart "+request.WorkflowID()), w.err)
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

func (w *workflows) TriggerRetain(context.Context) error {
	w.mu.Lock()
	w.retained++
	w.mu.Unlock()
	return w.err
}

// operators records the calls of operators to workflows.
type operators struct {
	settled, reconciled, retained int
	unsettled                     error // what settling answers
	restarted                     []bench.RequestID
	queues                        []string
}

// jobRef names a job as the record does.
func (b *bundle) jobRef(t *testing.T, key bench.JobKey) bench.JobRef {
	t.Helper()
	j, err := b.store.Job(t.Context(), key)
	require.NoError(t, err)
	return j.Ref()
}
