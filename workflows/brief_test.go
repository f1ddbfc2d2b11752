package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/workflows"
)

// shownStates starts the workflow as the starter does, and collects the states that it
// shows from then on.
func shownStates(t *testing.T, env *testsuite.TestWorkflowEnvironment, in protocol.JobInput) *[]string {
	t.Helper()
	require.NoError(t, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(protocol.JobAttributes(in)...)))
	var shown []string
	env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		state, ok := args.Get(0).(temporal.SearchAttributes).GetKeyword(protocol.AttrState)
		require.True(t, ok)
		shown = append(shown, state)
	}).Return(nil)
	return &shown
}

// durable counts the activities that go through a task queue, by name.
func durable(env *testsuite.TestWorkflowEnvironment) map[string]int {
	started := make(map[string]int)
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		started[info.ActivityType.Name]++
	})
	return started
}

// A job that is over before anybody looks shows nothing but its end, which names the run
// that was never announced.
func TestAShortJobShowsItsEnd(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	shown, activities := shownStates(t, env, in), durable(env)
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).Once()
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: in.TaskQueue}).
		Return(protocol.JobEndResult{Status: bench.JobSuccess, Run: "aaaaaaaaaaaaaaaa-00000000", Collector: "bench-1"}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"success"}, *shown)
	require.Equal(t, map[string]int{protocol.RunJob: 1}, activities)
	var returned protocol.JobResult
	require.NoError(t, env.GetWorkflowResult(&returned))
	require.Equal(t, protocol.JobResult{Status: bench.JobSuccess, Run: "aaaaaaaaaaaaaaaa-00000000", Dispatches: 1}, returned)
	s := status[protocol.JobStatus](t, env)
	require.Equal(t, bench.RunID("aaaaaaaaaaaaaaaa-00000000"), s.Run)
	require.Equal(t, "bench-1", s.Collector)
}

// A job whose record does not answer shows that its end is being recorded, however long.
func TestAnEndThatCannotBeRecordedIsShown(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	shown, activities := shownStates(t, env, in), durable(env)
	env.OnActivity(protocol.RunJob, mock.Anything, mock.Anything).Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).Once()
	begun, answers := env.Now(), 0
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, mock.Anything).Return(func(context.Context, protocol.JobEndInput) (protocol.JobEndResult, error) {
		if answers++; answers < 10 {
			return protocol.JobEndResult{}, errors.New("the database is away")
		}
		return protocol.JobEndResult{Status: bench.JobSuccess}, nil
	})
	seen := false
	env.RegisterDelayedCallback(func() {
		s := status[protocol.JobStatus](t, env)
		seen = s.Phase == protocol.JobRecording && s.Waits == "its end is being recorded"
	}, 5*time.Second)
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	require.True(t, seen)
	require.Equal(t, []string{"recording", "success"}, *shown)
	require.Equal(t, 10, answers)
	require.Positive(t, activities[protocol.RecordJobEnd])
	require.Greater(t, env.Now().Sub(begun), 5*time.Second)
}

// States that last are shown, each once: a repeated announcement changes nothing, and a
// second dispatch waits again.
func TestALongJobShowsItsStates(t *testing.T) {
	t.Parallel()
	env := environment(t)
	in := input(jobA)
	shown := shownStates(t, env, in)
	lost := temporal.NewNonRetryableApplicationError("collector gone", protocol.ErrTypeInfrastructure, nil)
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Scheduled}).
		Return(protocol.RunJobResult{}, lost).After(time.Minute).Once()
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Retry}).
		Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).After(time.Minute).Once()
	for _, at := range []time.Duration{time.Second, 2 * time.Second} {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(protocol.SignalRunStarted, protocol.RunStarted{Run: "aaaaaaaaaaaaaaaa-00000000", Number: 1, Collector: "bench-1"})
		}, at)
	}
	env.OnActivity(protocol.AssessJob, mock.Anything, mock.Anything).Return(protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry}, nil).Once()
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, mock.Anything).Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, in)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"benchmarking", "waiting_for_collector", "success"}, *shown)
}

// The request of a person whose record answers at once shows what lasts, and its own
// attributes with the first of it.
func TestARequestOfAPersonShowsWhatLasts(t *testing.T) {
	t.Parallel()
	env := environment(t)
	var updates []temporal.SearchAttributes
	env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		update, ok := args.Get(0).(temporal.SearchAttributes)
		require.True(t, ok)
		updates = append(updates, update)
	}).Return(nil)
	activities := durable(env)
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(facts(protocol.RequestFacts{Type: bench.AdHoc}), nil)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{
		Counts: protocol.JobCounts{Total: 1, Open: 1}, HandedOut: []protocol.JobInput{input(jobA)},
	}, nil).Once()
	startedJobs(env)
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobA, Status: bench.JobSuccess})
	}, time.Minute)
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(protocol.ProgressResult{Counts: protocol.JobCounts{Total: 1, Success: 1}}, nil)
	env.OnActivity(protocol.Complete, mock.Anything, mock.Anything).Return(*end(bench.Success), nil).Once()
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput(ref))
	require.NoError(t, env.GetWorkflowError())
	var states []string
	for _, update := range updates {
		state, ok := update.GetKeyword(protocol.AttrState)
		require.True(t, ok)
		states = append(states, state)
	}
	require.Equal(t, []string{"in_progress", "completed"}, states)
	for name, want := range map[temporal.SearchAttributeKeyKeyword]string{
		protocol.AttrProject: project, protocol.AttrRequest: string(request), protocol.AttrUser: "ada", protocol.AttrTag: "1.26.0",
	} {
		got, ok := updates[0].GetKeyword(name)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	require.Empty(t, activities, "nothing waits in a task queue")
}

// The revision of the code that began a run of a workflow is read from its worker's name.
func TestTheNameOfAWorkerTellsItsRevision(t *testing.T) {
	t.Parallel()
	require.Equal(t, workflows.Revision, workflows.RevisionOf(workflows.Identity("v1.2.3")))
	require.Equal(t, workflows.Revision, workflows.RevisionOf(workflows.Identity("dev, workflows of its own")))
	for _, older := range []string{"benchloom v0.9.0", "656e01c14703fc084dd32530e23ca8da", "benchloom dev, workflows x"} {
		require.Equal(t, 1, workflows.RevisionOf(older), older)
	}
	require.Equal(t, 7, workflows.RevisionOf("benchloom v3.0.0, workflows 7"))
}
