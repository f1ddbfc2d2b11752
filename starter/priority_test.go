package starter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/starter"
)

// machine is a collector with one slot, whose runs begin and end as the test says.
type machine struct {
	t      *testing.T
	client client.Client
	starts chan activity.Info
	ends   chan error
}

const lane = "bench/x86_64-unknown-linux-gnu/1/local"

// newMachine starts an orchestrator whose jobs are one activity, tried up to three
// times; start begins to take jobs.
func newMachine(t *testing.T) (m *machine, start func()) {
	t.Helper()
	m = &machine{t: t, client: temporal(t), starts: make(chan activity.Info, 100), ends: make(chan error)}
	w := worker.New(m.client, protocol.OrchestratorTaskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, in protocol.JobInput) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue: lane, StartToCloseTimeout: time.Hour, DisableEagerExecution: true,
			Priority:    sdktemporal.Priority{PriorityKey: in.Priority.Level, FairnessKey: in.Priority.FairnessKey(), FairnessWeight: 1},
			RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: 3},
		}), protocol.RunJob).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: protocol.JobWorkflow})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	collector := worker.New(m.client, lane, worker.Options{MaxConcurrentActivityExecutionSize: 1, MaxConcurrentActivityTaskPollers: 1, DisableWorkflowWorker: true})
	collector.RegisterActivityWithOptions(func(ctx context.Context) error {
		m.starts <- activity.GetInfo(ctx)
		return <-m.ends
	}, activity.RegisterOptions{Name: protocol.RunJob})
	return m, func() {
		require.NoError(t, collector.Start())
		t.Cleanup(func() { close(m.ends); collector.Stop() })
	}
}

// commandRef names a job as a command.
func commandRef(key bench.JobKey) bench.JobRef {
	return bench.JobRef{Project: project, Key: key, Kind: bench.KindCommand, Program: "/bin/true"}
}

// submit starts a job and waits until Temporal has it.
func (m *machine) submit(s *starter.Starter, key bench.JobKey) {
	m.t.Helper()
	require.NoError(m.t, s.StartJob(m.t.Context(), protocol.JobInput{Project: project, Key: key, Workflow: commandRef(key).WorkflowID(), Request: "raaaaaaaaaa", Priority: protocol.Priority{Level: 3, Queue: "user:ada"}}))
	require.Eventually(m.t, func() bool { return m.pending(key) != nil }, bound, 10*time.Millisecond)
}

func (m *machine) pending(key bench.JobKey) *workflowpb.PendingActivityInfo {
	m.t.Helper()
	d, err := m.client.DescribeWorkflowExecution(m.t.Context(), commandRef(key).WorkflowID(), "")
	require.NoError(m.t, err)
	if len(d.GetPendingActivities()) == 0 {
		return nil
	}
	return d.GetPendingActivities()[0]
}

// begins is the job whose run begins next, and which of its attempts that is.
func (m *machine) begins() (key bench.JobKey, attempt int32) {
	m.t.Helper()
	select {
	case info := <-m.starts:
		_, _, name, ours := bench.ParseWorkflowID(info.WorkflowExecution.ID)
		require.True(m.t, ours)
		return bench.JobKey(name), info.Attempt
	case <-time.After(bound):
		require.Fail(m.t, "nothing begins")
		return "", 0
	}
}

// waiting waits until so many jobs stand in the task queue. Temporal counts them every
// few seconds.
func (m *machine) waiting(n int64) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		d, err := m.client.WorkflowService().DescribeTaskQueue(m.t.Context(), &workflowservice.DescribeTaskQueueRequest{
			Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: lane}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true,
		})
		require.NoError(m.t, err)
		return d.GetStats().GetApproximateBacklogCount() == n
	}, bound, 20*time.Millisecond)
}

// A job that fails is tried again before the others of its queue, not behind all of
// them.
func TestAJobThatFailsGoesFirstWithinItsQueue(t *testing.T) {
	t.Parallel()
	m, start := newMachine(t)
	s := starter.New(m.client, namespace)
	for _, key := range []bench.JobKey{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc", "dddddddddddddddd", "eeeeeeeeeeeeeeee"} {
		m.submit(s, key)
	}
	start()
	failed, attempt := m.begins()
	require.EqualValues(t, 1, attempt)
	require.NoError(t, s.GoFirst(t.Context(), commandRef(failed)))
	require.NoError(t, s.GoFirst(t.Context(), commandRef(failed))) // asked again
	m.ends <- sdktemporal.NewApplicationError("it failed", protocol.ErrTypeJobFailure)
	next, attempt := m.begins()
	if next != failed { // the collector was quicker than the retry: nothing idles meanwhile
		m.waiting(4)
		m.ends <- nil
		next, attempt = m.begins()
	}
	require.Equal(t, failed, next)
	require.EqualValues(t, 2, attempt)
	require.Equal(t, "user:ada#again", m.pending(failed).GetPriority().GetFairnessKey())
	require.EqualValues(t, 3, m.pending(failed).GetPriority().GetPriorityKey())
	m.ends <- nil
	require.Eventually(t, func() bool { return m.pending(failed) == nil }, bound, 10*time.Millisecond)
	require.NoError(t, s.GoFirst(t.Context(), commandRef(failed)), "nothing of it is left to be tried")
	require.NoError(t, s.GoFirst(t.Context(), commandRef("ffffffffffffffff")), "it has no workflow")
}

// A new level is given to what waits. What a collector has taken may come back with the
// level that it had: that is not done.
func TestANewLevelAppliesOnlyToWaitingJobs(t *testing.T) {
	t.Parallel()
	m, start := newMachine(t)
	s := starter.New(m.client, namespace)
	const key = bench.JobKey("aaaaaaaaaaaaaaaa")
	set := func(level int) bool {
		t.Helper()
		done, err := s.SetLevel(t.Context(), commandRef(key), level)
		require.NoError(t, err)
		return done
	}
	require.False(t, set(4), "its workflow has not started")
	m.submit(s, key)
	require.True(t, set(4))
	require.EqualValues(t, 4, m.pending(key).GetPriority().GetPriorityKey())
	start()
	m.begins()
	require.Equal(t, enumspb.PENDING_ACTIVITY_STATE_STARTED, m.pending(key).GetState())
	require.False(t, set(5))
	require.True(t, set(4))
	m.ends <- nil
}
