package orchestration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

var byAda = store.Act{Who: "ada", Reason: "the machines are moved"}

func TestAPausedQueueTellsWaitingRequests(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	running := b.running("1.1.0")
	waiting := b.create(bench.Release, "1.2.0", 2)
	_, err := b.store.PauseQueue(t.Context(), project, byAda)
	require.NoError(t, err)
	p, err := b.store.QueuePause(t.Context(), project)
	require.NoError(t, err)

	state := b.admit()
	require.Equal(t, p.String(), state.Paused)
	require.Equal(t, p.String()+"; jobs that were handed out before go on", b.request(running).Message)
	require.Equal(t, p.String()+"; number 1 of 1 waiting in the queue: "+state.Next[0].Reason, b.request(waiting).Message)
	require.NoError(t, b.JobsDone(t.Context(), running))
	require.Empty(t, b.admit().InProgress, "the slot is free, but nobody is admitted")

	_, err = b.store.ResumeQueue(t.Context(), project, byAda)
	require.NoError(t, err)
	state = b.admit()
	require.Empty(t, state.Paused)
	require.Equal(t, []protocol.QueueEntry{{ID: waiting.ID, Tag: "1.2.0"}}, state.InProgress)
	require.Empty(t, b.request(waiting).Message)
}

func TestARetriedRequestIsAdmittedAndMeasuresWhatFailed(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	good, bad := b.jobs(ref)[0], b.jobs(ref)[1]
	b.measure(good, c, 1)
	require.Equal(t, bench.JobSuccess, b.recordEnd(good.Key, "").Status)
	require.Equal(t, bench.JobFailure, b.recordEnd(bad.Key, "broken").Status)
	require.NoError(t, b.JobsDone(t.Context(), ref))
	require.Equal(t, bench.Failure, b.complete(ref, "").Outcome)
	b.workflows.taken()
	_, err := b.store.Reopen(t.Context(), ref.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)

	// Its new workflow finds that it is not its turn yet; it hears when it is, and
	// until its jobs are done.
	facts, err := b.LoadRequest(t.Context(), ref)
	require.NoError(t, err)
	require.False(t, facts.Admitted)
	require.False(t, facts.JobsDone)
	for range 2 {
		b.admit()
		require.Equal(t, []string{"admitted go/" + string(ref.ID)}, b.workflows.taken())
	}
	out, err := b.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	require.Equal(t, protocol.JobCounts{Total: 2, Open: 1, Success: 1}, out.Counts)
	handedOut := b.handedOut(ref)
	require.Len(t, handedOut, 1)
	again := b.job(handedOut[0])
	require.Equal(t, bad.TestCases, again.TestCases)

	b.measure(again, c, 2)
	require.Equal(t, bench.JobSuccess, b.recordEnd(again.Key, "").Status)
	require.NoError(t, b.JobsDone(t.Context(), ref))
	require.Equal(t, protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success, Message: "2 of 2 test cases have results", Jobs: protocol.JobCounts{Total: 2, Success: 2}}}, b.complete(ref, ""))
}
