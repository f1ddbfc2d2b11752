package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// Where all that is left of a stage is optional, its jobs are started at once: no
// silence has to pass before somebody looks.
func TestOptionalJobsAreStartedWithoutWaiting(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{HandedOut: []protocol.JobInput{input(jobA)}}, nil).Once()
	started := startedJobs(env)
	succeeds(env)
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, map[bench.JobKey]int{jobA: 1}, started)
}

// What is handed out while the request records its end is started before it ends.
func TestJobsHandedOutLastAreStarted(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{}, nil).Once()
	started := startedJobs(env)
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	env.OnActivity(protocol.Complete, mock.Anything, mock.Anything).Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success}}, nil).After(10 * time.Second).Once()
	env.RegisterDelayedCallback(func() {
		require.Equal(t, protocol.RequestCompleting, phaseOf(t, env))
		env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: []protocol.JobInput{input(jobA)}})
	}, 5*time.Second)
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, map[bench.JobKey]int{jobA: 1}, started)
}

// Of a cancelled request nothing starts any more.
func TestACancelledRequestStartsNothing(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1, Open: 1}}, nil)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Second)
	env.OnActivity(protocol.CancelRequest, mock.Anything, mock.Anything).Return(protocol.RequestResult{Outcome: bench.Cancelled}, nil).After(10 * time.Second).Once()
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: []protocol.JobInput{input(jobA)}})
	}, 5*time.Second)
	run(env)
	require.Equal(t, protocol.RequestCancelled, phaseOf(t, env))
}

// A job may run already, as after a reset: the request starts the others and goes on.
func TestAStartedJobIsJoined(t *testing.T) {
	t.Parallel()
	env := environment(t)
	seen := options{running: input(jobA).Workflow}
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&seen}})
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{HandedOut: []protocol.JobInput{input(jobA), input(jobB)}}, nil).Once()
	started := startedJobs(env)
	succeeds(env)
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, map[bench.JobKey]int{jobB: 1}, started)
	require.Len(t, seen.children, 2)
}

// Other requests may wait for the jobs of a cancelled one.
func TestJobsOutliveTheirRequest(t *testing.T) {
	t.Parallel()
	env := environment(t)
	var seen options
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&seen}})
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).
		Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1, Open: 1}, HandedOut: []protocol.JobInput{input(jobA)}}, nil).Once()
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).After(time.Minute).Once()
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: input(jobA).TaskQueue}).
		Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once() // not cancelled
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(protocol.ProgressResult{Counts: protocol.JobCounts{Total: 1, Open: 1}}, nil).Maybe()
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Second)
	env.OnActivity(protocol.CancelRequest, mock.Anything, mock.Anything).Return(protocol.RequestResult{Outcome: bench.Cancelled}, nil).After(2 * time.Minute).Once()
	run(env)
	require.Equal(t, protocol.RequestCancelled, phaseOf(t, env))
	require.Len(t, seen.children, 1)
	require.Equal(t, enumspb.PARENT_CLOSE_POLICY_ABANDON, seen.children[0].ParentClosePolicy)
}

// A run of a request's workflow starts some hundred children at most. The next one goes
// on, and what was handed out in between is started by the run that was told.
func TestManyChildrenContinueAsNew(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true}), nil)
	const total = 700
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: total, Open: total}}, nil).Once()
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(protocol.ProgressResult{Counts: protocol.JobCounts{Total: total, Open: total}}, nil).Maybe()
	started := startedJobs(env)
	for i := range 5 {
		env.RegisterDelayedCallback(func() {
			var jobs []protocol.JobInput
			for n := range 100 {
				jobs = append(jobs, input(bench.JobKey(fmt.Sprint("job", 100*i+n))))
			}
			env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: jobs})
			if i == 4 { // arrives with the last
				env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: []protocol.JobInput{input(jobA)}})
			}
		}, time.Duration(i+1)*time.Second)
	}
	run(env)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	require.Len(t, started, 501)
	require.Equal(t, 1, started[jobA])
}

// currentDetails returns the details that the Temporal Web UI shows.
func currentDetails(t *testing.T, env *testsuite.TestWorkflowEnvironment) string {
	t.Helper()
	value, err := env.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	return metadata.GetCurrentDetails()
}

// Jobs that another request has started are linked, the first of them by name.
func TestSharedJobsAreLinked(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.Release, Admitted: true}), nil)
	shared := protocol.SharedJobs{Workflows: []string{input(jobB).Workflow}, Total: 1}
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 3, Open: 3}, Shared: shared}, nil).Once()
	open, more := 3, protocol.SharedJobs{Workflows: shared.Workflows, Total: 3}
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: 3, Open: open}, Shared: more}, nil
	})
	details := func() string { return currentDetails(t, env) }
	env.RegisterDelayedCallback(func() {
		require.Equal(t, shared, status[protocol.RequestStatus](t, env).Shared)
		require.Contains(t, details(), "started by other requests: 1\n\n* [job/go/1.26.0/2-test-cases/bbbbbbbbbbbbbbbb](/namespaces/default-test-namespace/workflows/job%2Fgo%2F1.26.0%2F2-test-cases%2Fbbbbbbbbbbbbbbbb)\n")
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobB, Status: bench.JobSuccess})
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		require.Contains(t, details(), "* and 2 more\n")
		open = 0
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobB, Status: bench.JobSuccess})
	}, 2*time.Second)
	succeeds(env)
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Contains(t, details(), "* and 2 more\n", "also after its end")
}
