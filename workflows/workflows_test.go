package workflows_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/workflows"
)

func TestMain(m *testing.M) {
	// The SDK's test environment never ends an activity that outlives its
	// workflow.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl).ExecuteActivity.func3"),
		goleak.IgnoreAnyFunction("go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl).ExecuteActivity.func2"))
}

const (
	project = "go"
	request = bench.RequestID("rabcdefghjk")
	jobA    = bench.JobKey("aaaaaaaaaaaaaaaa")
	jobB    = bench.JobKey("bbbbbbbbbbbbbbbb")
)

var ref = protocol.RequestRef{Project: project, ID: request}

// own asks for the jobs of the request itself.
var own = protocol.ExpandInput{Request: ref, Stage: bench.StageOwn}

func input(key bench.JobKey) protocol.JobInput {
	return protocol.JobInput{
		Project: project, Key: key, Request: request, RequestWorkflow: "request/go/1.26.0/" + string(request),
		Workflow: bench.JobRef{Project: project, Key: key, Kind: bench.KindRuntime, Tag: "1.26.0", TestCases: 2}.WorkflowID(), Tag: "1.26.0", Target: "x86_64-unknown-linux-gnu", User: "ada",
		Summary: "1.26.0: 2 test cases", TaskQueue: "bench/x86_64-unknown-linux-gnu/1/local", SizeClass: 1,
		Priority: protocol.Priority{Level: 3, Queue: "project:go", Weight: 1}, Attempts: 3,
	}
}

// environment is a test environment in which every activity is known by its
// name and none has a behaviour yet.
func environment(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	workflows.Register(env)
	name := func(n string) activity.RegisterOptions { return activity.RegisterOptions{Name: n} }
	env.RegisterActivityWithOptions(func(context.Context, protocol.RequestRef) (protocol.RequestFacts, error) {
		return protocol.RequestFacts{}, nil
	}, name(protocol.LoadRequest))
	env.RegisterActivityWithOptions(func(context.Context, protocol.RequestRef) error { return nil }, name(protocol.AskAdmission))
	env.RegisterActivityWithOptions(func(context.Context, protocol.QueueInput) (protocol.QueueState, error) {
		return protocol.QueueState{}, nil
	}, name(protocol.Admit))
	env.RegisterActivityWithOptions(func(context.Context, protocol.ExpandInput) (protocol.ExpandResult, error) {
		return protocol.ExpandResult{}, nil
	}, name(protocol.Expand))
	env.RegisterActivityWithOptions(func(context.Context, protocol.RequestRef) error { return nil }, name(protocol.ExpireRequest))
	env.RegisterActivityWithOptions(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{}, nil
	}, name(protocol.Progress))
	env.RegisterActivityWithOptions(func(context.Context, protocol.RequestRef) error { return nil }, name(protocol.JobsDone))
	env.RegisterActivityWithOptions(func(context.Context, protocol.RequestRef) (protocol.LookResult, error) {
		return protocol.LookResult{Decided: true}, nil
	}, name(protocol.NextLook))
	env.RegisterActivityWithOptions(func(context.Context, protocol.CompleteInput) (protocol.CompleteResult, error) {
		return protocol.CompleteResult{}, nil
	}, name(protocol.Complete))
	env.RegisterActivityWithOptions(func(context.Context, protocol.CancelInput) (protocol.RequestResult, error) {
		return protocol.RequestResult{Outcome: bench.Cancelled}, nil
	}, name(protocol.CancelRequest))
	env.RegisterActivityWithOptions(func(context.Context, protocol.AssessInput) (protocol.Assessment, error) {
		return protocol.Assessment{}, nil
	}, name(protocol.AssessJob))
	env.RegisterActivityWithOptions(func(context.Context, protocol.JobEndInput) (protocol.JobEndResult, error) {
		return protocol.JobEndResult{}, nil
	}, name(protocol.RecordJobEnd))
	env.RegisterActivityWithOptions(func(context.Context, protocol.RunJobInput) (protocol.RunJobResult, error) {
		return protocol.RunJobResult{}, nil
	}, name(protocol.RunJob))
	env.RegisterActivityWithOptions(func(context.Context, protocol.AwaitInput) (protocol.AwaitResult, error) {
		return protocol.AwaitResult{}, nil
	}, name(protocol.AwaitRun))
	env.RegisterActivityWithOptions(func(context.Context) (protocol.ReconcileResult, error) {
		return protocol.ReconcileResult{}, nil
	}, name(protocol.Reconcile))
	env.RegisterActivityWithOptions(func(context.Context) (protocol.RetainResult, error) {
		return protocol.RetainResult{}, nil
	}, name(protocol.Retain))
	t.Cleanup(func() { env.AssertExpectations(t) })
	return env
}

// startedJobs counts how often each job is started as a child; none of them does a thing.
func startedJobs(env *testsuite.TestWorkflowEnvironment) map[bench.JobKey]int {
	started := make(map[bench.JobKey]int)
	env.OnWorkflow(protocol.JobWorkflow, mock.Anything, mock.Anything).Return(func(_ workflow.Context, in protocol.JobInput) (protocol.JobResult, error) {
		started[in.Key]++
		return protocol.JobResult{}, nil
	})
	return started
}

// end is the record of a request that has ended.
func end(outcome bench.Outcome) *protocol.CompleteResult {
	return &protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: outcome}}
}

func status[T any](t *testing.T, env *testsuite.TestWorkflowEnvironment) T {
	t.Helper()
	var out T
	value, err := env.QueryWorkflow(protocol.StatusQuery)
	require.NoError(t, err)
	require.NoError(t, value.Get(&out))
	return out
}

func facts(f protocol.RequestFacts) protocol.RequestFacts {
	if f.Stages == nil {
		f.Stages = []bench.Stage{bench.StageOwn}
	}
	f.Tag, f.User, f.Targets = "1.26.0", "ada", []bench.Target{"x86_64-unknown-linux-gnu"}
	if f.Status == "" {
		f.Status = bench.ArtifactsReady
	}
	return f
}

// An ad-hoc request needs no admission: its jobs are written, those handed out to it
// are started, and when the last has ended it completes. It returns its outcome.
func TestAdHocRequestRunsItsJobs(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil).Once()
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 2, Open: 2}, HandedOut: []protocol.JobInput{input(jobA)}}, nil).Once()
	started := startedJobs(env)
	open := 2
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: 2, Open: open, Success: 2 - open}}, nil
	})
	for i, key := range []bench.JobKey{jobA, jobB} {
		env.RegisterDelayedCallback(func() {
			require.Equal(t, protocol.RequestInProgress, status[protocol.RequestStatus](t, env).Phase)
			if key == jobA {
				env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: []protocol.JobInput{input(jobB)}})
			}
			open--
			env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: key, Status: bench.JobSuccess})
		}, time.Duration(i+1)*time.Second)
	}
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	result := protocol.RequestResult{Outcome: bench.Success, Baseline: "1.25.0", Message: "2 of 2 test cases have results", Jobs: protocol.JobCounts{Total: 2, Success: 2}}
	env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref}).Return(protocol.CompleteResult{RequestResult: result}, nil).Once()

	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})

	require.NoError(t, env.GetWorkflowError())
	var returned protocol.RequestResult
	require.NoError(t, env.GetWorkflowResult(&returned))
	require.Equal(t, result, returned)
	require.Zero(t, open)
	require.Equal(t, map[bench.JobKey]int{jobA: 1, jobB: 1}, started)
	require.Equal(t, protocol.RequestCompleted, status[protocol.RequestStatus](t, env).Phase)
}

// Of a request with very many jobs the ends are not counted one by one, but what
// is handed out to it is started at once.
func TestALargeRequestIsCountedOnceInASecond(t *testing.T) {
	t.Parallel()
	env := environment(t)
	const total = 1000
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil).Once()
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: total, Open: total}}, nil).Once()
	var started []time.Time
	env.OnWorkflow(protocol.JobWorkflow, mock.Anything, mock.Anything).Return(func(ctx workflow.Context, _ protocol.JobInput) (protocol.JobResult, error) {
		started = append(started, workflow.Now(ctx))
		return protocol.JobResult{}, nil
	})
	var open, counted atomic.Int64 // activities run beside the workflow
	open.Store(total)
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		counted.Add(1)
		left := int(open.Load())
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: total, Open: left, Success: total - left}}, nil
	})
	begun := env.Now()
	for i := range 500 { // one job ends every 10 ms, for five seconds
		env.RegisterDelayedCallback(func() {
			open.Add(-1)
			env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobB, Status: bench.JobSuccess})
		}, time.Second+time.Duration(i)*10*time.Millisecond)
	}
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: []protocol.JobInput{input(jobA)}})
	}, 1505*time.Millisecond)
	env.RegisterDelayedCallback(func() {
		require.LessOrEqual(t, counted.Load(), int64(7))
		open.Store(0)
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobB, Status: bench.JobSuccess})
	}, 10*time.Second)
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref}).Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success}}, nil).Once()

	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})

	require.NoError(t, env.GetWorkflowError())
	require.GreaterOrEqual(t, counted.Load(), int64(6))
	require.Len(t, started, 1)
	// In the middle of a pause, which ends at two seconds. The test's clock also moves
	// by what activities take.
	require.WithinDuration(t, begun.Add(1700*time.Millisecond), started[0], 200*time.Millisecond)
}

// A tracked request starts nothing before the record says that it was admitted,
// whatever signals say.
func TestTrackedRequestWaitsForAdmission(t *testing.T) {
	t.Parallel()
	env := environment(t)
	admitted := false
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(func(context.Context, protocol.RequestRef) (protocol.RequestFacts, error) {
		return facts(protocol.RequestFacts{Type: bench.Release, Admitted: admitted}), nil
	})
	env.OnActivity(protocol.AskAdmission, mock.Anything, ref).Return(nil)
	env.RegisterDelayedCallback(func() {
		s := status[protocol.RequestStatus](t, env)
		require.Equal(t, protocol.RequestWaitsForAdmission, s.Phase)
		require.Contains(t, s.Waits, "queue/go")
		env.SignalWorkflow(protocol.SignalAdmitted, nil) // the row says otherwise
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, protocol.RequestWaitsForAdmission, status[protocol.RequestStatus](t, env).Phase)
		admitted = true
		env.SignalWorkflow(protocol.SignalAdmitted, nil)
	}, time.Minute)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1}}, nil).Once()
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref}).Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success, Baseline: "1.25.0"}}, nil).Once()

	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	require.NoError(t, env.GetWorkflowError())
}

// For a request that ended the row decides: a workflow that starts late, or
// again, starts nothing.
func TestRequestThatEndedStartsNothing(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Status: bench.Completed, End: end(bench.Cancelled)}), nil).Once()
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, protocol.RequestCancelled, status[protocol.RequestStatus](t, env).Phase)
}

// A request whose jobs cannot be written fails with the reason.
func TestRequestThatCannotBeExpandedFails(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		result protocol.ExpandResult
		err    error
	}{
		"no collector":     {result: protocol.ExpandResult{Failed: "no collector is registered"}},
		"invalid at depth": {err: temporal.NewNonRetryableApplicationError("no collector is registered", protocol.ErrTypePermanent, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := environment(t)
			env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil)
			env.OnActivity(protocol.Expand, mock.Anything, own).Return(answer.result, answer.err).Once()
			env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
			env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref, Failed: "no collector is registered"}).Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Failure}}, nil).Once()
			env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
			require.NoError(t, env.GetWorkflowError())
		})
	}
}

// Cancelling the workflow cancels the rows, and leaves the jobs' workflows to
// what the rows say.
func TestCancelledRequestCancelsItsRows(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1, Open: 1}, HandedOut: []protocol.JobInput{input(jobA)}}, nil)
	jobCancelled := false
	env.OnWorkflow(protocol.JobWorkflow, mock.Anything, mock.Anything).Return(func(ctx workflow.Context, _ protocol.JobInput) (protocol.JobResult, error) {
		err := workflow.Sleep(ctx, time.Hour)
		jobCancelled = err != nil
		return protocol.JobResult{}, err
	})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Second)
	result := protocol.RequestResult{Outcome: bench.Cancelled, Message: "cancelled by temporal"}
	env.OnActivity(protocol.CancelRequest, mock.Anything, protocol.CancelInput{Request: ref, Who: "temporal", Why: "its workflow was cancelled"}).Return(result, nil).Once()
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, env.GetWorkflowError(), &cancelled)
	var returned protocol.RequestResult
	require.NoError(t, cancelled.Details(&returned))
	require.Equal(t, result, returned)
	require.False(t, jobCancelled)
	require.Equal(t, protocol.RequestCancelled, status[protocol.RequestStatus](t, env).Phase)
}

// A long request continues as new with nothing but its name.
func TestARequestWithALongHistoryContinuesAsNew(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 2, Open: 2}}, nil)
	env.SetContinueAsNewSuggested(true)
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
}

// A job that a collector has carried out is recorded, and its details name the
// collector while it runs.
func TestJobRunsOnce(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Scheduled}).
		Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).After(time.Minute).Once()
	env.RegisterDelayedCallback(func() {
		s := status[protocol.JobStatus](t, env)
		require.Equal(t, protocol.JobWaitsForCollector, s.Phase)
		require.Contains(t, s.Waits, in.TaskQueue)
		env.SignalWorkflow(protocol.SignalRunStarted, protocol.RunStarted{Run: "aaaaaaaaaaaaaaaa-00000000", Number: 1, Collector: "bench-1"})
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		s := status[protocol.JobStatus](t, env)
		require.Equal(t, protocol.JobBenchmarking, s.Phase)
		require.Contains(t, s.Waits, "bench-1")
	}, 2*time.Second)
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: in.TaskQueue}).
		Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	var returned protocol.JobResult
	require.NoError(t, env.GetWorkflowResult(&returned))
	require.Equal(t, protocol.JobResult{Status: bench.JobSuccess, Run: "aaaaaaaaaaaaaaaa-00000000", Dispatches: 1}, returned)
	require.Equal(t, protocol.JobSucceeded, status[protocol.JobStatus](t, env).Phase)
}

// What follows a failed run is the record's to say: here a lost collector, then
// a failure of the job's own, then the end.
func TestJobAsksTheRecordAfterAFailure(t *testing.T) {
	t.Parallel()
	env := environment(t)
	fail := func(kind, message string) error { return temporal.NewNonRetryableApplicationError(message, kind, nil) }
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Scheduled}).
		Return(protocol.RunJobResult{}, fail(protocol.ErrTypeInfrastructure, "collector gone")).Once()
	env.OnActivity(protocol.AssessJob, mock.Anything, protocol.AssessInput{Project: project, Key: jobA, Kind: bench.FailInfrastructure, Message: "collector gone"}).
		Return(protocol.Assessment{Again: true, PauseSeconds: 30, Attempts: 1, Reason: bench.Retry}, nil).Once()
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Retry}).
		Return(protocol.RunJobResult{}, fail(protocol.ErrTypeJobFailure, "exit status 1")).Once()
	env.OnActivity(protocol.AssessJob, mock.Anything, protocol.AssessInput{Project: project, Key: jobA, Kind: bench.FailJob, Message: "exit status 1"}).
		Return(protocol.Assessment{GaveUp: "it failed 3 times: exit status 1"}, nil).Once()
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: input(jobA).TaskQueue, GaveUp: "it failed 3 times: exit status 1"}).
		Return(protocol.JobEndResult{Status: bench.JobFailure, Message: "it failed 3 times: exit status 1"}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, input(jobA))
	require.NoError(t, env.GetWorkflowError())
	s := status[protocol.JobStatus](t, env)
	require.Equal(t, 2, s.Dispatches)
	require.Equal(t, protocol.JobFailed, s.Phase)
}

// A cancelled job is recorded as cancelled once its benchmark is dead.
func TestCancelledJobIsRecorded(t *testing.T) {
	t.Parallel()
	env := environment(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(func(_ context.Context, _ protocol.RunJobInput) (protocol.RunJobResult, error) {
		<-over // the test environment does not end the context of an activity
		return protocol.RunJobResult{}, context.Canceled
	})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Second)
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: input(jobA).TaskQueue, GaveUp: "cancelled", Cancelled: true}).
		Return(protocol.JobEndResult{Status: bench.JobCancelled}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, input(jobA))
	require.Error(t, env.GetWorkflowError())
	require.Equal(t, protocol.JobCancelled, status[protocol.JobStatus](t, env).Phase)
}

// The queue asks the record again at each signal, and says whom it holds up.
func TestQueueAdmitsAtEachChange(t *testing.T) {
	t.Parallel()
	env := environment(t)
	calls := 0
	env.OnActivity(protocol.Admit, mock.Anything, protocol.QueueInput{Project: project}).Return(func(context.Context, protocol.QueueInput) (protocol.QueueState, error) {
		calls++
		return protocol.QueueState{Slots: 1, InProgress: []protocol.QueueEntry{{ID: request, Tag: "1.26.0"}}, Waiting: 1}, nil
	})
	env.RegisterDelayedCallback(func() {
		require.Equal(t, 1, calls)
		env.SignalWorkflow(protocol.SignalQueueChanged, nil)
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, 2, calls)
		require.Equal(t, 1, status[protocol.QueueStatus](t, env).Queue.Waiting)
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(protocol.SignalQueueChanged, nil)
	}, 2*time.Second)
	env.ExecuteWorkflow(protocol.QueueWorkflow, protocol.QueueInput{Project: project})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	require.Equal(t, 3, calls)
}

// The phase of a queue follows what the record answered.
func TestQueueShowsItsPhase(t *testing.T) {
	t.Parallel()
	waiting := []protocol.QueueEntry{{ID: request, Tag: "1.26.0"}}
	for phase, state := range map[protocol.QueuePhase]protocol.QueueState{
		protocol.QueueIdle:      {Slots: 1},
		protocol.QueueAdmitting: {Slots: 2, InProgress: waiting},
		protocol.QueueFull:      {Slots: 1, InProgress: waiting, Waiting: 1, Next: waiting},
		protocol.QueuePaused:    {Slots: 1, Paused: "paused by ada", Waiting: 1, Next: waiting},
	} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			env := environment(t)
			env.OnActivity(protocol.Admit, mock.Anything, mock.Anything).Return(state, nil)
			env.RegisterDelayedCallback(func() {
				require.Equal(t, protocol.QueueStatus{Project: project, Phase: phase, Queue: state}, status[protocol.QueueStatus](t, env))
				env.CancelWorkflow()
			}, time.Second)
			env.ExecuteWorkflow(protocol.QueueWorkflow, protocol.QueueInput{Project: project})
			require.Error(t, env.GetWorkflowError())
		})
	}
}

func TestReconcilePassesOnce(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.Reconcile, mock.Anything).Return(protocol.ReconcileResult{Repairs: 2}, nil).Once()
	env.ExecuteWorkflow(protocol.ReconcileWorkflow)
	require.NoError(t, env.GetWorkflowError())
	var returned protocol.ReconcileResult
	require.NoError(t, env.GetWorkflowResult(&returned))
	require.Equal(t, protocol.ReconcileResult{Repairs: 2}, returned)
	require.Equal(t, protocol.ReconcileCompleted, status[protocol.ReconcileStatus](t, env).Phase)
}

func TestRetainPassesOnce(t *testing.T) {
	t.Parallel()
	env := environment(t)
	removed := protocol.RetainResult{Removed: map[bench.RetentionKind]int64{bench.KeepOutput: 7}, Bytes: 700}
	env.OnActivity(protocol.Retain, mock.Anything).Return(removed, nil).Once()
	env.ExecuteWorkflow(protocol.RetainWorkflow)
	require.NoError(t, env.GetWorkflowError())
	var returned protocol.RetainResult
	require.NoError(t, env.GetWorkflowResult(&returned))
	require.Equal(t, removed, returned)
	require.Equal(t, protocol.RetainCompleted, status[protocol.RetainStatus](t, env).Phase)
}
