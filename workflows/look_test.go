package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/workflows"
)

// verify asks for the progress of a request's looks.
var verify = protocol.ProgressInput{Request: ref, Stage: bench.StageVerify}

// lookAt is an open look with one job.
func lookAt(n int, job bench.JobKey) protocol.LookResult {
	return protocol.LookResult{
		Look: n, Looks: 5, Rows: 3, Suspects: "sort, parse", Baseline: "1.25.0", HandedOut: []protocol.JobInput{input(job)},
		Counts: protocol.JobCounts{Total: n, Open: 1, Success: n - 1},
	}
}

// answerLooks lets NextLook answer with these results, one after the other.
func answerLooks(env *testsuite.TestWorkflowEnvironment, looks ...protocol.LookResult) {
	for _, l := range looks {
		env.OnActivity(protocol.NextLook, mock.Anything, ref).Return(l, nil).Once()
	}
}

// order notes the order in which activities are called.
func order(env *testsuite.TestWorkflowEnvironment) *[]string {
	var names []string
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(func(context.Context, protocol.RequestRef) error {
		names = append(names, protocol.JobsDone)
		return nil
	}).Once()
	env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref}).Return(func(context.Context, protocol.CompleteInput) (protocol.CompleteResult, error) {
		names = append(names, protocol.Complete)
		return protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success, Baseline: "1.25.0"}}, nil
	}).Once()
	return &names
}

// A request frees its slot as soon as its own jobs have ended. Then it measures look after
// look, says which it waits for, and completes when there are verdicts.
func TestARequestFreesItsSlotBeforeItsLooks(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1, Success: 1}}, nil).Once()
	names := order(env)
	answerLooks(env, lookAt(1, jobA), lookAt(2, jobB), protocol.LookResult{Decided: true})
	started := startedJobs(env)
	done := 0
	env.OnActivity(protocol.Progress, mock.Anything, verify).Return(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: done, Success: done}}, nil
	})
	for i, text := range []string{"look 1 of at most 5 at sort, parse, in turns with 1.25.0", "look 2 of at most 5"} {
		env.RegisterDelayedCallback(func() {
			s := status[protocol.RequestStatus](t, env)
			require.Equal(t, protocol.RequestVerifying, s.Phase)
			require.Contains(t, s.Waits, text)
			require.Equal(t, []string{protocol.JobsDone}, *names)
			done++
			env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobA, Status: bench.JobSuccess})
		}, time.Duration(i+1)*time.Second)
	}
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, map[bench.JobKey]int{jobA: 1, jobB: 1}, started)
	require.Equal(t, []string{protocol.JobsDone, protocol.Complete}, *names)
}

// A run that begins after the request's jobs have ended goes on with its looks.
func TestARunThatBeginsLateGoesOnWithTheLooks(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true, JobsDone: true}), nil)
	names := order(env)
	answerLooks(env, lookAt(3, jobA), protocol.LookResult{Decided: true})
	started := startedJobs(env)
	env.OnActivity(protocol.Progress, mock.Anything, verify).Return(protocol.ProgressResult{Counts: protocol.JobCounts{Total: 3, Success: 3}}, nil)
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, map[bench.JobKey]int{jobA: 1}, started)
	require.Equal(t, []string{protocol.JobsDone, protocol.Complete}, *names)
}

// A request that failed, and one that a person asked for to look at values, have nothing to
// decide.
func TestWhatHasNothingToDecideHasNoLooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   bench.RequestType
		failed string
	}{
		"failed": {bench.Release, "no collector is registered"},
		"ad hoc": {bench.AdHoc, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := environment(t)
			env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: c.kind, Admitted: true}), nil)
			env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Failed: c.failed}, nil).Once()
			env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
			env.OnActivity(protocol.NextLook, mock.Anything, ref).Return(protocol.LookResult{Decided: true}, nil).Never()
			env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref, Failed: c.failed}).Return(protocol.CompleteResult{}, nil).Once()
			env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
			require.NoError(t, env.GetWorkflowError())
		})
	}
}

// A request that is cancelled while it waits for a look ends as its row says.
func TestARequestIsCancelledDuringALook(t *testing.T) {
	t.Parallel()
	env := environment(t)
	cancelled := false
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(func(context.Context, protocol.RequestRef) (protocol.RequestFacts, error) {
		f := facts(protocol.RequestFacts{Type: bench.Release, Admitted: true, JobsDone: true})
		if cancelled {
			f.Status, f.End = bench.Completed, end(bench.Cancelled)
		}
		return f, nil
	})
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	answerLooks(env, lookAt(1, jobA))
	env.OnActivity(protocol.Progress, mock.Anything, verify).Return(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: 1, Cancelled: 1}, Cancelled: cancelled}, nil
	})
	env.OnActivity(protocol.CancelRequest, mock.Anything, mock.Anything).Return(protocol.RequestResult{Outcome: bench.Cancelled}, nil).Once()
	started := startedJobs(env)
	env.RegisterDelayedCallback(func() {
		cancelled = true
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobA, Status: bench.JobCancelled})
	}, time.Second)
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	require.Equal(t, protocol.RequestCancelled, status[protocol.RequestStatus](t, env).Phase)
	require.Equal(t, map[bench.JobKey]int{jobA: 1}, started)
}

// A run of v0.1.0 that has passed the end of its jobs goes on as it began: without looks.
func TestARunOfAnEarlierVersionHasNoLooks(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnGetVersion(workflows.ChangeLooks, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1, Success: 1}}, nil).Once()
	env.OnActivity(protocol.NextLook, mock.Anything, ref).Return(protocol.LookResult{Decided: true}, nil).Never()
	names := order(env)
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{protocol.JobsDone, protocol.Complete}, *names)
}
