package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

const elsewhere = "bench/x86_64-unknown-linux-gnu/2/elsewhere"

// A job that is moved while it waits shows where it waits now, and dispatches
// there from then on.
func TestAMovedJobFollows(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Scheduled}).
		Return(protocol.RunJobResult{}, temporal.NewNonRetryableApplicationError("gone", protocol.ErrTypeInfrastructure, nil)).After(time.Minute).Once()
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(protocol.SignalMoved, protocol.Moved{TaskQueue: elsewhere, SizeClass: 2})
		env.SignalWorkflow(protocol.SignalMoved, protocol.Moved{TaskQueue: elsewhere, SizeClass: 2}) // doubled
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		s := status[protocol.JobStatus](t, env)
		require.Equal(t, protocol.JobWaitsForCollector, s.Phase)
		require.Equal(t, elsewhere, s.TaskQueue)
		require.Contains(t, s.Waits, elsewhere)
	}, 2*time.Second)
	env.OnActivity(protocol.AssessJob, mock.Anything, mock.Anything).
		Return(protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry}, nil).Once()
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Retry}).
		Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).Once()
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: elsewhere}).
		Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, input(jobA))
	require.NoError(t, env.GetWorkflowError())
}

// The record's answer after a lost run says where the job is, for the signal may
// have been lost.
func TestTheRecordSaysWhereAJobIsDispatchedAgain(t *testing.T) {
	t.Parallel()
	env := environment(t)
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Scheduled}).
		Return(protocol.RunJobResult{}, temporal.NewNonRetryableApplicationError("gone", protocol.ErrTypeInfrastructure, nil)).Once()
	env.OnActivity(protocol.AssessJob, mock.Anything, mock.Anything).
		Return(protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry, Moved: protocol.Moved{TaskQueue: elsewhere, SizeClass: 4}}, nil).Once()
	env.OnActivity(protocol.RunJob, mock.Anything, protocol.RunJobInput{Project: project, Key: jobA, Reason: bench.Retry}).
		Return(protocol.RunJobResult{Outcome: bench.RunSuccess}, nil).After(time.Minute).Once()
	env.RegisterDelayedCallback(func() {
		require.Contains(t, status[protocol.JobStatus](t, env).Waits, elsewhere)
	}, time.Second)
	env.OnActivity(protocol.RecordJobEnd, mock.Anything, protocol.JobEndInput{Project: project, Key: jobA, TaskQueue: elsewhere}).
		Return(protocol.JobEndResult{Status: bench.JobSuccess}, nil).Once()
	env.ExecuteWorkflow(protocol.JobWorkflow, input(jobA))
	require.NoError(t, env.GetWorkflowError())
}

// The parent of a request whose jobs ran elsewhere than expected is measured
// there, too, before the request completes.
func TestTheParentFollowsItsChild(t *testing.T) {
	t.Parallel()
	env := environment(t)
	stages := []bench.Stage{bench.StageParent, bench.StageOwn}
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).
		Return(facts(protocol.RequestFacts{Type: bench.Master, Admitted: true, Status: bench.InProgress, Stages: stages}), nil)
	var expanded []bench.Stage
	env.OnActivity(protocol.Expand, mock.Anything, mock.Anything).Return(func(_ context.Context, in protocol.ExpandInput) (protocol.ExpandResult, error) {
		expanded = append(expanded, in.Stage)
		if in.Stage == bench.StageParent && len(expanded) == 1 {
			return protocol.ExpandResult{}, nil // there is nothing to measure yet
		}
		return protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1, Open: 1}}, nil
	})
	env.OnActivity(protocol.Progress, mock.Anything, mock.Anything).Return(func(_ context.Context, in protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: 1, Success: 1}, ParentLacks: in.Stage == bench.StageOwn}, nil
	})
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	env.OnActivity(protocol.Complete, mock.Anything, mock.Anything).Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success}}, nil).Once()
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []bench.Stage{bench.StageParent, bench.StageOwn, bench.StageParent}, expanded)
}
