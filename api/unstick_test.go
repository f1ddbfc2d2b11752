package api_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

func (w *workflows) Explain(_ context.Context, id string) (protocol.WorkflowState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looked != nil {
		w.looked(id)
	}
	state, ok := w.states[id]
	if !ok {
		state.Status = protocol.WorkflowMissing
	}
	state.ID = id
	return state, w.err
}

func (w *workflows) repair(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repairs = append(w.repairs, what)
	return w.repairErr
}

func (w *workflows) ResetToStart(_ context.Context, id, _ string) error {
	return w.repair("reset " + id)
}

// taken are the repairs since it was last asked.
func (w *workflows) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.repairs
	w.repairs = nil
	return out
}

func TestUnstickFindsAndRepairsMissingWorkflows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.Release, Tag: "1.26.0"})
	require.NoError(t, err)
	request, queue := r.WorkflowID, bench.QueueWorkflowID("go")

	_, err = b.reader.UnstickRequest(t.Context(), string(r.ID), apiclient.Unstick{})
	require.Error(t, err, "who only reads mends nothing")

	looked, err := b.writer.UnstickRequest(t.Context(), "go:1.26.0", apiclient.Unstick{DryRun: true})
	require.NoError(t, err)
	require.Empty(t, b.workflows.taken())
	require.Equal(t, r.ID, looked.Request.ID)
	require.Len(t, looked.Findings, 3)
	require.Equal(t, request, looked.Findings[0].Subject)
	require.True(t, looked.Findings[0].Stuck)
	require.False(t, looked.Findings[0].Repaired)
	require.Equal(t, "restart-request", looked.Findings[0].Repair)
	require.Equal(t, "start-queue", looked.Findings[1].Repair)
	require.False(t, looked.Findings[2].Stuck)
	require.Contains(t, looked.Findings[2].What, "it waits for its turn")

	mended, err := b.writer.UnstickRequest(t.Context(), string(r.ID), apiclient.Unstick{})
	require.NoError(t, err)
	require.True(t, mended.Findings[0].Repaired)
	require.Equal(t, []string{"restart " + request, "start " + queue}, b.workflows.taken())

	// A workflow that cannot decide is reset only by who wants it.
	b.workflows.states = map[string]protocol.WorkflowState{
		request: {Status: protocol.WorkflowRunning, TaskAttempt: 7, TaskFailure: "nondeterminism"},
		queue:   {Status: protocol.WorkflowRunning},
	}
	kept, err := b.writer.UnstickRequest(t.Context(), string(r.ID), apiclient.Unstick{})
	require.NoError(t, err)
	require.False(t, kept.Findings[0].Repaired)
	require.Contains(t, kept.Findings[0].What, "attempt 7: nondeterminism")
	require.Empty(t, b.workflows.taken())
	b.workflows.repairErr = errors.New("no such event")
	forced, err := b.writer.UnstickRequest(t.Context(), string(r.ID), apiclient.Unstick{Force: true})
	require.NoError(t, err)
	require.Equal(t, "no such event", forced.Findings[0].RepairError)
	require.Equal(t, []string{"reset " + request}, b.workflows.taken())

	b.workflows.err = errors.New("connection refused")
	_, err = b.writer.UnstickRequest(t.Context(), string(r.ID), apiclient.Unstick{})
	require.ErrorContains(t, err, "Temporal cannot be asked: connection refused")
}

// Record and Temporal are asked one after the other: a job whose workflow starts or
// ends in between is healthy.
func TestWorkflowsStartingOrEndingAreNotStuck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	workflow := b.jobRef(t, j.key).WorkflowID()
	b.workflows.states = map[string]protocol.WorkflowState{
		j.request.WorkflowID: {Status: protocol.WorkflowRunning}, bench.QueueWorkflowID("go"): {Status: protocol.WorkflowRunning},
	}
	about := func() []apiclient.Finding {
		found, err := b.writer.UnstickRequest(t.Context(), string(j.request.ID), apiclient.Unstick{DryRun: true})
		require.NoError(t, err)
		return slices.DeleteFunc(found.Findings, func(f apiclient.Finding) bool { return f.Subject != workflow })
	}

	// It was handed out just now, and its workflow is not there yet.
	b.past(t, `update job_queue set handed_out_at = now() - interval '2 seconds'`)
	starting := about()
	require.Len(t, starting, 1)
	require.False(t, starting[0].Stuck)
	require.Contains(t, starting[0].What, "is being started")

	// Later, that is a workflow that is missing.
	b.past(t, `update job_queue set handed_out_at = now() - interval '1 minute'`)
	require.True(t, about()[0].Stuck)

	// It ends between the two.
	b.workflows.looked = func(id string) {
		if id == workflow {
			b.past(t, `update job_queue set status = 'success', completed_at = now()`)
		}
	}
	require.Empty(t, about())
}
