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
)

// reading lets the workflow read what row holds at that moment, and counts.
func reading(env *testsuite.TestWorkflowEnvironment, row *protocol.RequestFacts) *int {
	reads := 0
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(func(context.Context, protocol.RequestRef) (protocol.RequestFacts, error) {
		reads++
		return facts(*row), nil
	})
	return &reads
}

// completes expects the request to go through its stages, none of which has any
// jobs, and to end.
func completes(env *testsuite.TestWorkflowEnvironment) {
	env.OnActivity(protocol.Expand, mock.Anything, mock.Anything).Return(protocol.ExpandResult{}, nil)
	succeeds(env)
}

// succeeds expects the request to end.
func succeeds(env *testsuite.TestWorkflowEnvironment) {
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref}).Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success}}, nil).Once()
}

func run(env *testsuite.TestWorkflowEnvironment) {
	env.ExecuteWorkflow(protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: request})
}

func phaseOf(t *testing.T, env *testsuite.TestWorkflowEnvironment) protocol.RequestPhase {
	t.Helper()
	return status[protocol.RequestStatus](t, env).Phase
}

// A try build waits until the row says that its artifacts are ready, however often
// it is told.
func TestTryWaitsForItsArtifacts(t *testing.T) {
	t.Parallel()
	env := environment(t)
	row := protocol.RequestFacts{Type: bench.Try, Status: bench.WaitingForArtifacts, ArtifactsWithin: 3600}
	reads := reading(env, &row)
	say := func() {
		callback := &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { require.NoError(t, err) },
			OnComplete: func(_ any, err error) { require.NoError(t, err) },
		}
		env.UpdateWorkflow(protocol.UpdateArtifactsReady, "", callback, protocol.ArtifactsReady{Tag: "t1", Parent: "c1"})
	}
	rejected := false
	env.RegisterDelayedCallback(func() {
		require.Equal(t, protocol.RequestWaitsForArtifacts, phaseOf(t, env))
		require.Equal(t, 1, *reads)
		env.UpdateWorkflow(protocol.UpdateArtifactsReady, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(error) { rejected = true }, OnComplete: func(any, error) {},
		}, protocol.ArtifactsReady{})
		say() // too early: the row does not say so
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, protocol.RequestWaitsForArtifacts, phaseOf(t, env))
		require.Equal(t, 2, *reads)
		row.Status, row.Admitted = bench.InProgress, true
		say()
		say()
	}, time.Minute)
	completes(env)
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, protocol.RequestCompleted, phaseOf(t, env))
	require.LessOrEqual(t, *reads, 4)
	require.True(t, rejected, "an update that names no artifact")
}

// A notification that arrives while the row is being read is not lost: the row may
// have been read before it was written.
func TestANotificationDuringAReadIsSeen(t *testing.T) {
	t.Parallel()
	env := environment(t)
	reads := 0
	begin := env.Now()
	say := func() {
		env.UpdateWorkflow(protocol.UpdateArtifactsReady, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(any, error) {},
		}, protocol.ArtifactsReady{Tag: "t1"})
	}
	env.OnActivity(protocol.LoadRequest, mock.Anything, ref).Return(func(context.Context, protocol.RequestRef) (protocol.RequestFacts, error) {
		reads++
		if reads <= 2 {
			return facts(protocol.RequestFacts{Type: bench.Try, Status: bench.WaitingForArtifacts}), nil
		}
		return facts(protocol.RequestFacts{Type: bench.Try, Admitted: true}), nil
	}).After(10 * time.Second)
	env.RegisterDelayedCallback(say, time.Minute)
	env.RegisterDelayedCallback(say, time.Minute+5*time.Second) // while the second read is under way
	completes(env)
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 3, reads)
	require.Less(t, env.Now().Sub(begin), 10*time.Minute, "it does not wait for the hourly look")
}

// A build that nobody announces expires when its time is over.
func TestABuildWithoutArtifactsExpires(t *testing.T) {
	t.Parallel()
	env := environment(t)
	row := protocol.RequestFacts{Type: bench.Try, Status: bench.WaitingForArtifacts, ArtifactsWithin: 5400}
	reading(env, &row)
	asked := 0
	env.OnActivity(protocol.ExpireRequest, mock.Anything, ref).Return(func(context.Context, protocol.RequestRef) error {
		switch asked++; asked {
		case 1:
			row.ArtifactsWithin = 1800 // an hour has passed
		case 2:
			row.Status, row.End = bench.Completed, end(bench.Expired)
		}
		return nil
	})
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 2, asked)
	require.Equal(t, protocol.RequestCompleted, phaseOf(t, env))
}

// The parent's signal wakes its child; where it was lost, an hourly look does.
// Neither starts anything that the row does not allow.
func TestAChildWaitsForItsParent(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"told": false, "not told": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := environment(t)
			row := protocol.RequestFacts{Type: bench.Master, WaitsFor: "c1"}
			reads := reading(env, &row)
			env.OnActivity(protocol.AskAdmission, mock.Anything, ref).Return(func(context.Context, protocol.RequestRef) error {
				row.Admitted = true
				env.SignalWorkflow(protocol.SignalAdmitted, nil)
				return nil
			}).Once()
			env.RegisterDelayedCallback(func() {
				require.Equal(t, protocol.RequestWaitsForParent, phaseOf(t, env))
				require.Contains(t, status[protocol.RequestStatus](t, env).Waits, "c1")
				env.SignalWorkflow(protocol.SignalParentCompleted, nil) // of an earlier parent
				env.SignalWorkflow(protocol.SignalAdmitted, nil)        // meant for a former run
			}, time.Second)
			env.RegisterDelayedCallback(func() {
				require.Equal(t, protocol.RequestWaitsForParent, phaseOf(t, env))
				require.LessOrEqual(t, *reads, 3, "it does not look again and again")
				row.ParentDone = true
				if !lost {
					env.SignalWorkflow(protocol.SignalParentCompleted, nil)
				}
			}, time.Minute)
			completes(env)
			begin := env.Now()
			run(env)
			require.NoError(t, env.GetWorkflowError())
			require.Equal(t, lost, env.Now().Sub(begin) > 30*time.Minute)
		})
	}
}

// Whoever cancels a request while it waits need not reach its workflow.
func TestARequestIsCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	env := environment(t)
	row := protocol.RequestFacts{Type: bench.Master, WaitsFor: "c1"}
	reading(env, &row)
	env.RegisterDelayedCallback(func() { row.Status, row.End = bench.Completed, end(bench.Cancelled) }, time.Second)
	run(env)
	require.Error(t, env.GetWorkflowError())
	require.Equal(t, protocol.RequestCancelled, phaseOf(t, env))
}

// However long a request waits, its history stays bounded.
func TestWaitingContinuesAsNew(t *testing.T) {
	t.Parallel()
	for phase, row := range map[protocol.RequestPhase]protocol.RequestFacts{
		protocol.RequestWaitsForArtifacts: {Type: bench.Try, Status: bench.WaitingForArtifacts},
		protocol.RequestWaitsForParent:    {Type: bench.Master, WaitsFor: "c1"},
		protocol.RequestWaitsForAdmission: {Type: bench.Release},
	} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			env := environment(t)
			reading(env, &row)
			env.RegisterDelayedCallback(func() {
				require.Equal(t, phase, phaseOf(t, env))
				env.SetContinueAsNewSuggested(true)
			}, time.Minute)
			run(env)
			var again *workflow.ContinueAsNewError
			require.ErrorAs(t, env.GetWorkflowError(), &again)
			require.Equal(t, phase, phaseOf(t, env))
		})
	}
}

// An artifact that cannot be built is the end of its request: neither its parent
// nor itself is measured.
func TestABuildThatFailsEndsItsRequest(t *testing.T) {
	t.Parallel()
	env := environment(t)
	row := protocol.RequestFacts{Type: bench.Try, Admitted: true, Stages: []bench.Stage{bench.StageBuild, bench.StageParent, bench.StageOwn}}
	reading(env, &row)
	build := protocol.ExpandInput{Request: ref, Stage: bench.StageBuild}
	env.OnActivity(protocol.Expand, mock.Anything, build).Return(protocol.ExpandResult{Counts: protocol.JobCounts{Total: 1, Open: 1}}, nil).Once()
	env.OnActivity(protocol.Progress, mock.Anything, protocol.ProgressInput{Request: ref, Stage: bench.StageBuild}).
		Return(protocol.ProgressResult{Counts: protocol.JobCounts{Total: 1, Failure: 1}, Failure: "make: exit status 2"}, nil).Once()
	env.RegisterDelayedCallback(func() {
		require.Equal(t, protocol.RequestBuilding, phaseOf(t, env))
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobA, Status: bench.JobFailure})
	}, time.Second)
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref, Failed: "its artifact could not be built: make: exit status 2"}).
		Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Failure}}, nil).Once()
	run(env)
	require.NoError(t, env.GetWorkflowError())
}

// Jobs of optional targets, also those of the parent, keep nobody waiting; the
// workflow stays to start them.
func TestOptionalJobsAreStartedAfterTheEnd(t *testing.T) {
	t.Parallel()
	env := environment(t)
	row := protocol.RequestFacts{Type: bench.Release, Admitted: true}
	reading(env, &row)
	env.OnActivity(protocol.Expand, mock.Anything, own).Return(protocol.ExpandResult{}, nil)
	env.OnActivity(protocol.JobsDone, mock.Anything, ref).Return(nil).Once()
	env.OnActivity(protocol.Complete, mock.Anything, protocol.CompleteInput{Request: ref}).Return(protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success}, OptionalOpen: 1}, nil).Once()
	open := 1
	env.OnActivity(protocol.Progress, mock.Anything, protocol.ProgressInput{Request: ref, Optional: true}).Return(func(context.Context, protocol.ProgressInput) (protocol.ProgressResult, error) {
		return protocol.ProgressResult{Counts: protocol.JobCounts{Total: 1, Open: open}, Cancelled: true}, nil
	})
	started := startedJobs(env)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, protocol.RequestOptionalJobs, phaseOf(t, env))
		env.SignalWorkflow(protocol.SignalHandOut, protocol.HandOut{Jobs: []protocol.JobInput{input(jobA)}})
	}, time.Hour)
	env.RegisterDelayedCallback(func() {
		open = 0
		env.SignalWorkflow(protocol.SignalJobEnded, protocol.JobEnded{Key: jobA, Status: bench.JobSuccess})
	}, 2*time.Hour)
	run(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, map[bench.JobKey]int{jobA: 1}, started)
	require.Equal(t, protocol.RequestCompleted, phaseOf(t, env))
}
