package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// goesOn is a run of job A that Temporal lost sight of.
var goesOn = protocol.Adopted{Run: "aaaaaaaaaaaaaaaa-00000000", Number: 1, Collector: "bench-1"}

// timesOut lets the dispatch of job A end with a timeout, and returns the job's input. The
// test environment retries timeouts whatever the policy says: the job has one attempt.
func timesOut(env *testsuite.TestWorkflowEnvironment, kind enumspb.TimeoutType) protocol.JobInput {
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(protocol.RunJobResult{}, temporal.NewTimeoutError(kind, nil)).Once()
	in := input(jobA)
	in.Attempts = 1
	return in
}

// assessed sets the record's answer to a question about job A.
func assessed(env *testsuite.TestWorkflowEnvironment, in protocol.AssessInput, out protocol.Assessment) {
	in.Project, in.Key = project, jobA
	env.OnActivity(protocol.AssessJob, mock.Anything, in).Return(out, nil).Once()
}

// awaited sets what the record sees of the adopted run, and when.
func awaited(env *testsuite.TestWorkflowEnvironment, doubted bool, after time.Duration, out protocol.AwaitResult) {
	env.OnActivity(protocol.AwaitRun, mock.Anything, protocol.AwaitInput{Project: project, Run: goesOn.Run, Doubted: doubted}).
		Return(out, nil).After(after).Once()
}

// ends expects that job A is recorded as ended with success.
func ends(env *testsuite.TestWorkflowEnvironment) {
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: input(jobA).TaskQueue}).
		Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once()
}

const heartbeatTimeout = "the collector was silent: Heartbeat timeout"

// No heartbeat came through, but the collector still tells the API that it measures: its
// run is awaited, and its details say so.
func TestAJobAdoptsARunThatGoesOn(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := timesOut(env, enumspb.TIMEOUT_TYPE_HEARTBEAT)
	assessed(env, protocol.AssessInput{Kind: bench.FailInfrastructure, Message: heartbeatTimeout, Unseen: true}, protocol.Assessment{Adopt: goesOn})
	awaited(env, false, time.Hour, protocol.AwaitResult{Sight: protocol.RunEnded, Outcome: bench.RunSuccess})
	env.RegisterDelayedCallback(func() {
		s := status[protocol.JobStatus](t, env)
		require.Equal(t, protocol.JobBenchmarking, s.Phase)
		require.Equal(t, goesOn.Run, s.Run)
		require.Equal(t, "run 1 (`aaaaaaaaaaaaaaaa-00000000`) goes on at collector `bench-1`; Temporal had lost sight of it", s.Waits)
	}, time.Minute)
	ends(env)
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 1, status[protocol.JobStatus](t, env).Dispatches)
}

// A collector that was given the job while another one is at it is refused at the fence.
func TestAJobAdoptsTheRunThatStandsInTheWay(t *testing.T) {
	t.Parallel()
	env := environment(t)
	refused := temporal.NewNonRetryableApplicationError("not taken: another collector is at the job", protocol.ErrTypeUnderWay, nil)
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(protocol.RunJobResult{}, refused).Once()
	assessed(env, protocol.AssessInput{Kind: bench.FailNotTaken, Message: "not taken: another collector is at the job", Unseen: true}, protocol.Assessment{Adopt: goesOn})
	awaited(env, false, time.Minute, protocol.AwaitResult{Sight: protocol.RunEnded, Outcome: bench.RunSuccess})
	ends(env)
	env.ExecuteWorkflow(protocol.JobWorkflow, input(jobA))
	require.NoError(t, env.GetWorkflowError())
}

// A run whose own timeout has passed is not adopted: nobody waits for it any longer.
func TestOnlyARunWithoutHeartbeatsMayBeAdopted(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := timesOut(env, enumspb.TIMEOUT_TYPE_START_TO_CLOSE)
	assessed(env, protocol.AssessInput{Kind: bench.FailInfrastructure, Message: "the collector was silent: StartToClose timeout"}, protocol.Assessment{})
	ends(env)
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
}

// A workflow that was started for a run that goes on awaits it first. Its collector seems
// to be gone and comes back, fails, and is assessed like any other.
func TestAnAdoptedRunIsAssessedByItsEnd(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	in.Adopt = goesOn
	awaited(env, false, 0, protocol.AwaitResult{Sight: protocol.RunDoubtful})
	awaited(env, true, 0, protocol.AwaitResult{Sight: protocol.RunGoesOn})
	awaited(env, false, 0, protocol.AwaitResult{Sight: protocol.RunEnded, Outcome: bench.RunFailure, Message: "run 1 ended with failure: exit 1"})
	assessed(env, protocol.AssessInput{Kind: bench.FailInfrastructure, Message: "run 1 ended with failure: exit 1", Awaited: goesOn.Run},
		protocol.Assessment{Again: true, Attempts: 2, Reason: bench.Retry})
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Retry}).
		Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).Once()
	ends(env)
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 1, status[protocol.JobStatus](t, env).Dispatches)
}

// A collector that is found gone twice has lost its run: the job is dispatched again.
func TestAnAdoptedRunIsLostWithItsCollector(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	in.Adopt = goesOn
	awaited(env, false, 0, protocol.AwaitResult{Sight: protocol.RunDoubtful})
	awaited(env, true, 0, protocol.AwaitResult{Sight: protocol.RunGone, Message: "run 1 was lost: collector bench-1 is silent"})
	assessed(env, protocol.AssessInput{Kind: bench.FailInfrastructure, Message: "run 1 was lost: collector bench-1 is silent", Awaited: goesOn.Run},
		protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry})
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).Once()
	ends(env)
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
}

// While an adopted run goes on, the look at it is repeated without an event. (The test
// environment gives an activity no more than ten attempts.)
func TestAnAdoptedRunIsLookedAtAgainAndAgain(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	in.Adopt = goesOn
	looks := 0
	env.OnActivity(protocol.AwaitRun, mock.Anything, mock.Anything).Return(func(context.Context, protocol.AwaitInput) (protocol.AwaitResult, error) {
		if looks++; looks < 10 {
			return protocol.AwaitResult{}, temporal.NewApplicationError("run 1 goes on", protocol.ErrTypeGoesOn)
		}
		return protocol.AwaitResult{Sight: protocol.RunEnded, Outcome: bench.RunSuccess}, nil
	})
	ends(env)
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 10, looks)
}

// Cancelling a job that awaits a run records it as cancelled; the record tells the
// collector.
func TestAJobIsCancelledWhileItAwaitsARun(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	in.Adopt = goesOn
	env.OnActivity(protocol.AwaitRun, mock.Anything, mock.Anything).Return(protocol.AwaitResult{}, errors.New("it goes on"))
	env.RegisterDelayedCallback(env.CancelWorkflow, 10*time.Second)
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: in.TaskQueue, GaveUp: "cancelled", Cancelled: true}).
		Return(protocol.JobEndResult{Status: bench.JobCancelled}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.Error(t, env.GetWorkflowError())
	require.Equal(t, protocol.JobCancelled, status[protocol.JobStatus](t, env).Phase)
}

// A collector whose heartbeats come and go does not let the history grow without bound:
// the next run of the workflow awaits the same run.
func TestAJobContinuesAsNewWithItsAdoptedRun(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	in.Adopt = goesOn
	env.SetContinueAsNewSuggested(true)
	awaited(env, false, 0, protocol.AwaitResult{Sight: protocol.RunDoubtful})
	awaited(env, true, 0, protocol.AwaitResult{Sight: protocol.RunGoesOn})
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var next protocol.JobInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	require.Equal(t, goesOn, next.Adopt)
}
