package starter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	temporalsdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack/devstacktest"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/up"
	"github.com/benchloom/benchloom/starter"
)

const (
	namespace = "bench"
	project   = "go"
)

// temporal starts the embedded Temporal for one test.
func temporal(t *testing.T) client.Client {
	t.Helper()
	return devstacktest.Temporal(t, up.Namespace(namespace))
}

// orchestrator is a worker whose workflows wait for a signal, and cannot decide
// while they are broken.
func orchestrator(t *testing.T, c client.Client, broken *atomic.Bool) {
	t.Helper()
	w := worker.New(c, protocol.OrchestratorTaskQueue, worker.Options{})
	waits := func(ctx workflow.Context) error {
		if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
		if broken.Load() {
			panic("not what it was")
		}
		workflow.GetSignalChannel(ctx, protocol.SignalAdmitted).Receive(ctx, nil)
		return ctx.Err()
	}
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ protocol.RequestInput) error { return waits(ctx) }, workflow.RegisterOptions{Name: protocol.RequestWorkflow})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ protocol.JobInput) error { return waits(ctx) }, workflow.RegisterOptions{Name: protocol.JobWorkflow})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

const bound = time.Minute

var (
	request = bench.RequestRef{Project: project, ID: "raaaaaaaaaa", Type: bench.Release, Tag: "1.26.0"}
	aJob    = bench.JobRef{Project: project, Key: "aaaaaaaaaaaaaaaa", Kind: bench.KindRuntime, Tag: "1.26.0", TestCases: 2}
)

func TestEndedWorkflowsAreRestartedAndRunningOnesLeftAlone(t *testing.T) {
	t.Parallel()
	c := temporal(t)
	s := starter.New(c, namespace)
	orchestrator(t, c, new(atomic.Bool))
	job := protocol.JobInput{Project: project, Key: "aaaaaaaaaaaaaaaa", Workflow: aJob.WorkflowID(), Request: request.ID, RequestWorkflow: request.WorkflowID(), User: "ada", Target: "x86_64-unknown-linux-gnu", Summary: "a job"}
	for id, restart := range map[string]func() error{
		request.WorkflowID(): func() error { return s.RestartRequest(t.Context(), request) },
		job.Workflow:         func() error { return s.RestartJob(t.Context(), job) },
	} {
		look := func() protocol.WorkflowState {
			t.Helper()
			state, err := s.Explain(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, id, state.ID)
			return state
		}
		require.Equal(t, protocol.WorkflowMissing, look().Status)
		require.NoError(t, restart())
		first := look()
		require.Equal(t, protocol.WorkflowRunning, first.Status)
		require.NoError(t, restart())
		require.Equal(t, first.Run, look().Run)
		require.Eventually(t, func() bool {
			running, err := s.Running(t.Context())
			return err == nil && len(running) == 1 && running[0] == id
		}, bound, 20*time.Millisecond)

		require.NoError(t, c.TerminateWorkflow(t.Context(), id, "", "a mistake"))
		terminated := look()
		require.Equal(t, protocol.WorkflowTerminated, terminated.Status)
		require.Contains(t, terminated.Ended, "a mistake")
		require.NoError(t, restart())
		second := look()
		require.Equal(t, protocol.WorkflowRunning, second.Status)
		require.NotEqual(t, first.Run, second.Run)
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", protocol.SignalAdmitted, nil))
		require.Eventually(t, func() bool { return look().Status == protocol.WorkflowCompleted }, bound, 20*time.Millisecond)
		require.Eventually(t, func() bool {
			running, err := s.Running(t.Context())
			return err == nil && len(running) == 0
		}, bound, 20*time.Millisecond)
	}
}

func TestAStuckWorkflowIsResetToItsBeginning(t *testing.T) {
	t.Parallel()
	c := temporal(t)
	s := starter.New(c, namespace)
	var broken atomic.Bool
	broken.Store(true)
	orchestrator(t, c, &broken)
	id := request.WorkflowID()
	require.NoError(t, s.StartRequest(t.Context(), request))
	var state protocol.WorkflowState
	require.Eventually(t, func() bool {
		var err error
		state, err = s.Explain(t.Context(), id)
		require.NoError(t, err)
		return state.TaskAttempt > 1
	}, bound, 50*time.Millisecond)
	require.Contains(t, state.TaskFailure, "not what it was")

	broken.Store(false)
	require.NoError(t, s.ResetToStart(t.Context(), id, "a test"))
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", protocol.SignalAdmitted, nil))
	require.Eventually(t, func() bool {
		now, err := s.Explain(t.Context(), id)
		require.NoError(t, err)
		return now.Run != state.Run && now.Status == protocol.WorkflowCompleted
	}, bound, 20*time.Millisecond)
}

// The Schedule may be asked for at any time: there is one. So it is with requests,
// which the first hand-out starts.
func TestWorkflowsAreStartedOnce(t *testing.T) {
	t.Parallel()
	c := temporal(t)
	s := starter.New(c, namespace)
	ensure := func() bool {
		t.Helper()
		made, err := s.EnsureReconcile(t.Context())
		require.NoError(t, err)
		return made
	}
	require.True(t, ensure())
	require.False(t, ensure())
	handle := c.ScheduleClient().GetHandle(t.Context(), protocol.ReconcileScheduleID)
	d, err := handle.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6*time.Hour, d.Schedule.Spec.Intervals[0].Every)

	// One of an earlier version gets its interval, and stays paused if it is.
	require.NoError(t, handle.Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		there := in.Description.Schedule
		there.Spec = &client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 30 * time.Second}}}
		return &client.ScheduleUpdate{Schedule: &there}, nil
	}}))
	require.NoError(t, handle.Pause(t.Context(), client.SchedulePauseOptions{}))
	require.False(t, ensure())
	d, err = handle.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6*time.Hour, d.Schedule.Spec.Intervals[0].Every)
	paused := func() bool {
		t.Helper()
		paused, err := s.ReconcilePaused(t.Context())
		require.NoError(t, err)
		return paused
	}
	require.True(t, paused())
	require.NoError(t, handle.Unpause(t.Context(), client.ScheduleUnpauseOptions{}))
	require.False(t, paused())

	require.NoError(t, handle.Delete(t.Context()))
	require.False(t, paused(), "what is not there is about to be made")
	require.Error(t, s.TriggerReconcile(t.Context()))
	require.True(t, ensure())
	require.NoError(t, s.TriggerReconcile(t.Context()))

	// A job is started once, however often it is handed out: also when its workflow
	// has ended, for then the record decides.
	job := protocol.JobInput{Project: project, Key: "aaaaaaaaaaaaaaaa", Workflow: aJob.WorkflowID(), Request: "raaaaaaaaaa"}
	id := job.Workflow
	started := func() protocol.WorkflowState {
		t.Helper()
		require.NoError(t, s.StartJob(t.Context(), job))
		state, err := s.Look(t.Context(), id)
		require.NoError(t, err)
		return state
	}
	first := started()
	require.Equal(t, protocol.WorkflowRunning, first.Status)
	require.Equal(t, first.Run, started().Run)
	require.NoError(t, c.TerminateWorkflow(t.Context(), id, "", "a test"))
	require.Equal(t, protocol.WorkflowTerminated, started().Status)
}

// A job that starts with the name of its worker has what Temporal adds to any other after its
// first task, and is not given it again.
func TestAJobNamesItsWorkerAsTheServerWould(t *testing.T) {
	t.Parallel()
	c := temporal(t)
	s := starter.New(c, namespace)
	job := func(key bench.JobKey) protocol.JobInput {
		return protocol.JobInput{Project: project, Key: key, Workflow: bench.JobRef{Project: project, Key: key, Kind: bench.KindRuntime}.WorkflowID(), Request: request.ID}
	}
	workers := func(in protocol.JobInput) []string {
		t.Helper()
		described, err := c.DescribeWorkflowExecution(t.Context(), in.Workflow, "")
		require.NoError(t, err)
		var names []string
		if payload := described.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()["BuildIds"]; payload != nil {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}}, &names))
		}
		return names
	}
	unnamed, named := job("aaaaaaaaaaaaaaaa"), job("bbbbbbbbbbbbbbbb")
	require.NoError(t, s.StartJob(t.Context(), unnamed))
	require.NoError(t, s.WorksAs(workerName).StartJob(t.Context(), named))
	require.Empty(t, workers(unnamed))
	before := workers(named)
	require.NotEmpty(t, before)

	orchestrator(t, c, new(atomic.Bool))
	require.Eventually(t, func() bool { return len(workers(unnamed)) > 0 }, bound, 20*time.Millisecond)
	require.Equal(t, workers(unnamed), before)
	for _, in := range []protocol.JobInput{unnamed, named} {
		require.NoError(t, c.SignalWorkflow(t.Context(), in.Workflow, "", protocol.SignalAdmitted, nil))
		require.NoError(t, c.GetWorkflow(t.Context(), in.Workflow, "").Get(t.Context(), nil))
	}
	require.Equal(t, before, workers(named))
}

// strict is a client of a server that takes no attribute of its own from others.
type strict struct {
	client.Client
	refused atomic.Int32
}

func (s *strict) ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error) {
	if options.TypedSearchAttributes.ContainsKey(temporalsdk.NewSearchAttributeKeyKeywordList("BuildIds")) {
		s.refused.Add(1)
		return nil, serviceerror.NewInvalidArgument("BuildIds attribute can't be set in SearchAttributes")
	}
	return s.Client.ExecuteWorkflow(ctx, options, workflow, args...)
}

func TestAJobStartsWhereOnlyTheServerNamesWorkers(t *testing.T) {
	t.Parallel()
	c := &strict{Client: temporal(t)}
	s := starter.New(c, namespace).WorksAs(workerName)
	for _, key := range []bench.JobKey{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"} {
		in := protocol.JobInput{Project: project, Key: key, Workflow: bench.JobRef{Project: project, Key: key, Kind: bench.KindRuntime}.WorkflowID(), Request: request.ID}
		require.NoError(t, s.StartJob(t.Context(), in))
		state, err := s.Look(t.Context(), in.Workflow)
		require.NoError(t, err)
		require.Equal(t, protocol.WorkflowRunning, state.Status)
	}
	require.EqualValues(t, 1, c.refused.Load(), "asked once")
}
