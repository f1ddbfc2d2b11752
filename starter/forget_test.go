package starter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/starter"
)

// Of the workflows that a Schedule starts, and of its own runs, nothing accumulates: one
// closed workflow stays, to be looked at.
func TestOnlyTheNewestPassStays(t *testing.T) {
	t.Parallel()
	c := temporal(t)
	s := starter.New(c, namespace)
	w := worker.New(c, protocol.OrchestratorTaskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: protocol.ReconcileWorkflow})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	list := func(query string) (ids []string) {
		t.Helper()
		found, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		require.NoError(t, err)
		for _, e := range found.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		return ids
	}
	passes := func() []string {
		t.Helper()
		return list(`WorkflowType = "Reconcile" AND ExecutionStatus = "Completed"`)
	}
	schedules := func() []string {
		t.Helper()
		return list(`TemporalNamespaceDivision = "TemporalScheduler" AND ExecutionStatus = "ContinuedAsNew"`)
	}

	_, err := s.EnsureReconcile(t.Context()) // runs at once
	require.NoError(t, err)
	handle := c.ScheduleClient().GetHandle(t.Context(), protocol.ReconcileScheduleID)
	require.Eventually(t, func() bool { // their names differ by the second
		require.NoError(t, s.TriggerReconcile(t.Context()))
		return len(passes()) >= 4
	}, bound, 500*time.Millisecond)
	require.NoError(t, handle.Pause(t.Context(), client.SchedulePauseOptions{}))
	require.NoError(t, c.SignalWorkflow(t.Context(), "temporal-sys-scheduler:"+protocol.ReconcileScheduleID, "", "force-continue-as-new", nil))
	require.Eventually(t, func() bool { return len(schedules()) == 1 }, bound, 50*time.Millisecond)
	newest := "" // of all that are seen: one may still have been on its way
	see := func() []string {
		t.Helper()
		ids := passes()
		newest = slices.Max(append(ids, newest))
		return ids
	}
	see()

	forget := func(most int) int {
		t.Helper()
		deleted, err := s.ForgetPasses(t.Context(), most)
		require.NoError(t, err)
		return deleted
	}
	require.Equal(t, 2, forget(1), "of each list no more than was asked for")
	// Temporal's lists lose a deleted workflow when its own queues have advanced, which they
	// note once a minute.
	require.Eventually(t, func() bool {
		forget(100)
		return len(see()) == 1 && len(schedules()) == 0
	}, 10*bound, 500*time.Millisecond)
	kept := see()
	require.Equal(t, []string{newest}, kept)
	_, err = handle.Describe(t.Context())
	require.NoError(t, err, "the Schedule lives on")
}
