package orchestration_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// begun is a job whose first run is under way at a collector.
func (b *bundle) begun() (ref protocol.RequestRef, job bench.Job, run bench.RunID, c bench.Collector) {
	b.t.Helper()
	c = b.register("c1")
	ref = b.running("1.26.0")
	b.handOut(ref)
	job = b.jobs(ref)[0]
	return ref, job, b.start(job.Key, c, 1), c
}

// silence lets a collector be silent for twice the time that makes it offline.
func (b *bundle) silence() {
	b.t.Helper()
	b.execute(`update collector_config set last_heartbeat = now() - $1::interval`, (2 * offline).String())
}

// unseen asks what to do after a dispatch without heartbeats.
func (b *bundle) unseen(job bench.Job) protocol.Assessment {
	b.t.Helper()
	in := protocol.AssessInput{Project: project, Key: job.Key, Kind: bench.FailInfrastructure, Message: "the collector was silent", Unseen: true}
	out, err := b.AssessJob(b.t.Context(), in)
	require.NoError(b.t, err)
	repeated, err := b.AssessJob(b.t.Context(), in)
	require.NoError(b.t, err)
	require.Equal(b.t, out, repeated)
	return out
}

// Temporal has lost sight of a run. The record says what became of it.
func TestAFailureThatSaysNothingIsAnsweredByTheRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		then func(b *bundle, run bench.RunID, c bench.Collector)
		// adopted: the run is awaited. Otherwise: how it is recorded.
		adopted bool
		outcome bench.RunOutcome
		answer  protocol.Assessment
	}{
		{name: "its collector beats", then: func(*bundle, bench.RunID, bench.Collector) {}, adopted: true},
		{name: "nobody could beat: the API was away, too", then: func(b *bundle, _ bench.RunID, _ bench.Collector) { b.silence() }, adopted: true},
		{
			name: "its collector alone is silent", then: func(b *bundle, _ bench.RunID, _ bench.Collector) { b.silence(); b.register("c2") },
			outcome: bench.RunLost, answer: protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry},
		},
		{
			name: "its collector was started again", then: func(b *bundle, _ bench.RunID, _ bench.Collector) { b.register("c1") },
			outcome: bench.RunLost, answer: protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry},
		},
		{
			name: "its collector does something else", then: func(b *bundle, _ bench.RunID, c bench.Collector) {
				_, err := b.store.Heartbeat(b.t.Context(), c.Name, c.Epoch, "", nil)
				require.NoError(b.t, err)
			},
			outcome: bench.RunLost, answer: protocol.Assessment{Again: true, Attempts: 3, Reason: bench.Retry},
		},
		{
			name: "it has ended well", then: func(b *bundle, run bench.RunID, _ bench.Collector) {
				require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
			},
			outcome: bench.RunSuccess,
		},
		{
			name: "it has failed", then: func(b *bundle, run bench.RunID, _ bench.Collector) {
				require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunPermanent, Message: "no such artifact"}))
			},
			outcome: bench.RunPermanent, answer: protocol.Assessment{GaveUp: "no repetition can mend it: no such artifact"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`)
			_, job, run, collector := b.begun()
			c.then(b, run, collector)
			got := b.unseen(job)
			recorded, err := b.store.Run(t.Context(), run)
			require.NoError(t, err)
			require.Equal(t, c.outcome, recorded.Outcome)
			if c.adopted {
				require.Equal(t, protocol.Assessment{Adopt: protocol.Adopted{Run: run, Number: 1, Collector: "c1"}}, got)
				return
			}
			require.Equal(t, c.answer.Again, got.Dispatch != "", "only what is dispatched again needs a secret")
			got.Moved, got.Level, got.Unbegun, got.Dispatch = protocol.Moved{}, 0, protocol.Unbegun{}, ""
			require.Equal(t, c.answer, got)
		})
	}
}

// A dispatch that has begun no run is not taken for the one before it.
func TestAFormerRunIsNotAssessedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	_, job, run, _ := b.begun()
	require.NoError(t, b.store.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunPermanent}))
	in := protocol.AssessInput{Project: project, Key: job.Key, Kind: bench.FailInfrastructure, Message: "the collector was silent", Unseen: true, Unbegun: protocol.Unbegun{Runs: 1}}
	out, err := b.AssessJob(t.Context(), in)
	require.NoError(t, err)
	require.True(t, out.Again)
}

// An adopted run is awaited until it ends, or its collector is gone.
func TestAnAdoptedRunIsAwaited(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	_, job, run, c := b.begun()
	await := func(doubted bool) protocol.AwaitResult {
		t.Helper()
		out, err := b.AwaitRun(t.Context(), protocol.AwaitInput{Project: project, Run: run, Doubted: doubted})
		require.NoError(t, err)
		return out
	}
	goesOn := func() {
		t.Helper()
		_, err := b.AwaitRun(t.Context(), protocol.AwaitInput{Project: project, Run: run})
		var repeat *temporal.ApplicationError
		require.ErrorAs(t, err, &repeat)
		require.Equal(t, protocol.ErrTypeGoesOn, repeat.Type())
		require.False(t, repeat.NonRetryable())
		require.ErrorContains(t, err, "run 1 goes on at collector c1")
	}
	beat := func(current bench.RunID) {
		t.Helper()
		_, err := b.store.Heartbeat(t.Context(), c.Name, c.Epoch, current, nil)
		require.NoError(t, err)
	}
	goesOn()

	// Silent, or at something else: doubtful first, then gone, unless it comes back.
	b.silence()
	silent := "run 1 was lost: collector c1 is silent"
	require.Equal(t, protocol.AwaitResult{Sight: protocol.RunDoubtful, Message: silent}, await(false))
	require.Equal(t, protocol.AwaitResult{Sight: protocol.RunGone, Message: silent}, await(true))
	beat(run)
	require.Equal(t, protocol.AwaitResult{Sight: protocol.RunGoesOn}, await(true))
	goesOn()
	beat("")
	require.Equal(t, protocol.RunDoubtful, await(false).Sight)
	require.Equal(t, protocol.RunGone, await(true).Sight)
	beat(run)
	goesOn()

	// Gone at the second look, it is lost, and the job is dispatched again.
	out, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: job.Key, Kind: bench.FailInfrastructure, Message: silent, Awaited: run})
	require.NoError(t, err)
	require.True(t, out.Again)
	require.Equal(t, protocol.AwaitResult{Sight: protocol.RunEnded, Outcome: bench.RunLost, Message: "run 1 ended with lost: " + silent}, await(false))

	// Another process of the collector has not got it, and a run that nobody knows is gone.
	run = b.start(job.Key, c, 2)
	b.register("c1")
	require.Equal(t, protocol.AwaitResult{Sight: protocol.RunGone, Message: "run 2 was lost: collector c1 was started again, or removed"}, await(false))
	run = bench.NewRunID(job.Key, "workflow", "activity", 3)
	require.Equal(t, protocol.RunGone, await(false).Sight)
}

// The end of an adopted run decides what follows, as if Temporal had seen it.
func TestTheEndOfAnAdoptedRunIsAssessed(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"max_job_fails": 1}`)
	_, job, run, _ := b.begun()
	require.NoError(t, b.store.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunFailure, Message: "exit 1"}))
	out, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: job.Key, Kind: bench.FailInfrastructure, Message: "run 1 ended", Awaited: run})
	require.NoError(t, err)
	require.Equal(t, protocol.Assessment{GaveUp: "it failed 1 times: exit 1"}, out)
}

// A job without a workflow gets one that awaits its live run: Temporal's database was
// lost, or somebody terminated the workflow.
func TestAWorkflowThatIsStartedAgainAdoptsALiveRun(t *testing.T) {
	t.Parallel()
	for status, again := range map[protocol.WorkflowStatus]string{
		protocol.WorkflowTerminated: "restart %s for %s, 1 runs, 3 attempts left, adopts run 1",
		protocol.WorkflowMissing:    "hand %s to %s again, 1 runs, 3 attempts left, adopts run 1",
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`)
			ref, job, run, _ := b.begun()
			b.older()
			for _, id := range []string{b.requestID(ref), b.jobID(b.jobs(ref)[1].Key), bench.QueueWorkflowID(project)} {
				b.workflows.is(id, protocol.WorkflowRunning)
			}
			b.workflows.is(b.jobID(job.Key), status)
			require.Equal(t, []string{fmt.Sprintf(again, b.jobID(job.Key), ref.ID)}, b.reconciled())
			live, err := b.store.Run(t.Context(), run)
			require.NoError(t, err)
			require.True(t, live.Open())
		})
	}
}
