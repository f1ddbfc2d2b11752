package orchestration_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func (b *bundle) admit() protocol.QueueState {
	b.t.Helper()
	state, err := b.Admit(b.t.Context(), protocol.QueueInput{Project: project})
	require.NoError(b.t, err)
	return state
}

func TestRequestsAreAdmittedInOrderWhileSlotsAreFree(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"queue": {"max_in_progress": 2}}`)
	b.register("c1")
	third, first, second := b.create(bench.Release, "1.3.0", 3), b.create(bench.Release, "1.1.0", 1), b.create(bench.Release, "1.2.0", 2)
	fourth := b.create(bench.Release, "1.4.0", 4)
	tell := func(refs ...protocol.RequestRef) (calls []string) {
		for _, ref := range refs {
			calls = append(calls, "admitted go/"+string(ref.ID))
		}
		return calls
	}

	state := b.admit()
	require.Equal(t, 2, state.Slots)
	require.Equal(t, 2, state.Waiting)
	require.Equal(t, []protocol.QueueEntry{{ID: first.ID, Tag: "1.1.0"}, {ID: second.ID, Tag: "1.2.0"}}, state.InProgress)
	require.Len(t, state.Next, 2)
	require.Equal(t, []bench.RequestID{third.ID, fourth.ID}, []bench.RequestID{state.Next[0].ID, state.Next[1].ID})
	require.NotEmpty(t, state.Next[0].Reason)
	require.Equal(t, tell(first, second), b.workflows.taken())
	require.Equal(t, bench.InProgress, b.request(first).Status)
	require.Equal(t, "number 1 of 2 waiting in the queue: "+state.Next[0].Reason, b.request(third).Message)
	require.Equal(t, "number 2 of 2 waiting in the queue: "+state.Next[1].Reason, b.request(fourth).Message)

	// Whoever has not written its jobs yet may not have heard: it is told again,
	// until it has. No further one is admitted.
	require.Equal(t, state, b.admit())
	require.Equal(t, tell(first, second), b.workflows.taken())
	_, err := b.Expand(t.Context(), own(first))
	require.NoError(t, err)
	b.workflows.taken()
	b.admit()
	require.Equal(t, tell(second), b.workflows.taken())
	_, err = b.Expand(t.Context(), own(second))
	require.NoError(t, err)
	b.workflows.taken()
	b.admit()
	require.Empty(t, b.workflows.taken())

	// Its jobs have ended: its slot is free, which wakes the queue. The next one
	// waits no longer, and says so no longer.
	require.NoError(t, b.JobsDone(t.Context(), first))
	require.Equal(t, []string{"queue go"}, b.workflows.taken())
	state = b.admit()
	require.Equal(t, []protocol.QueueEntry{{ID: second.ID, Tag: "1.2.0"}, {ID: third.ID, Tag: "1.3.0"}}, state.InProgress)
	require.Equal(t, tell(third), b.workflows.taken())
	require.Empty(t, b.request(third).Message)
	require.Contains(t, b.request(fourth).Message, "number 1 of 1 waiting")

	// More slots come with a changed configuration.
	b.apply(`{"queue": {"max_in_progress": 3}}`)
	state = b.admit()
	require.Equal(t, 3, state.Slots)
	require.Zero(t, state.Waiting)
	require.Empty(t, state.Next)
	require.Equal(t, tell(third, fourth), b.workflows.taken())
}

func TestAskingForAdmissionWakesTheQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	ref := b.create(bench.Release, "1.26.0", 1)
	facts, err := b.LoadRequest(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, protocol.RequestFacts{Type: bench.Release, Tag: "1.26.0", User: "ada", Status: bench.ArtifactsReady, Stages: []bench.Stage{bench.StageOwn}}, facts)
	require.NoError(t, b.AskAdmission(t.Context(), ref))
	require.Equal(t, []string{"queue go"}, b.workflows.taken())

	b.admit()
	require.NoError(t, b.JobsDone(t.Context(), ref))
	facts, err = b.LoadRequest(t.Context(), ref)
	require.NoError(t, err)
	require.True(t, facts.Admitted)
	require.True(t, facts.JobsDone)
}

func TestAReleaseIsComparedWithTheNextLowerMeasuredVersion(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")

	first := b.released("1.9.0", c, 1)
	require.Equal(t, protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success, Message: "2 of 2 test cases have results", Jobs: protocol.JobCounts{Total: 2, Success: 2}}}, first, "there is nothing lower")
	require.Equal(t, "1.9.0", b.released("1.11.0", c, 1).Baseline)

	// Neither a higher version, nor a lower one without results, nor one that
	// comes first as text.
	failed := b.running("1.10.1")
	for _, j := range b.jobs(failed) {
		b.recordEnd(j.Key, "broken")
	}
	require.Equal(t, bench.Failure, b.complete(failed, "").Outcome)
	ref := b.running("1.10.2")
	for _, j := range b.jobs(ref) {
		b.measure(j, c, 2)
		b.recordEnd(j.Key, "")
	}
	done := b.complete(ref, "")
	require.Equal(t, "1.9.0", done.Baseline)
	row := b.request(ref)
	require.Equal(t, bench.Completed, row.Status)
	require.Equal(t, bench.Success, row.Outcome)
	require.Equal(t, "1.9.0", row.Baseline)
	require.NotEmpty(t, row.Summary)

	// Repeated: what was decided stays, also when a nearer version was measured
	// since.
	b.released("1.10.0", c, 1)
	again, err := b.Complete(t.Context(), protocol.CompleteInput{Request: ref, Failed: "whatever"})
	require.NoError(t, err)
	require.Equal(t, done, again)
	require.Equal(t, "1.11.0", b.released("1.12.0", c, 1).Baseline)
}

func TestTheJobsDecideTheOutcome(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	cancel := func(key bench.JobKey) {
		_, err := b.store.CancelJob(t.Context(), key, 0, "cancelled by ada")
		require.NoError(t, err)
	}

	mixed := b.running("1.1.0")
	b.measure(b.jobs(mixed)[0], c, 1)
	b.recordEnd(b.jobs(mixed)[0].Key, "")
	b.recordEnd(b.jobs(mixed)[1].Key, "broken")
	out := b.complete(mixed, "")
	require.Equal(t, bench.Failure, out.Outcome)
	require.Equal(t, "1 of 2 jobs failed: 1 of 1 test cases have no result: broken; 'benchloom status "+string(mixed.ID)+"' has the rest", out.Message)

	all := b.running("1.2.0")
	for _, j := range b.jobs(all) {
		cancel(j.Key)
	}
	out = b.complete(all, "")
	require.Equal(t, bench.Cancelled, out.Outcome)
	require.Equal(t, "all of its jobs were cancelled", out.Message)

	unable := b.running("1.3.0")
	require.Equal(t, protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Failure, Message: "no such machine", Jobs: protocol.JobCounts{Total: 2, Open: 2}}}, b.complete(unable, "no such machine"))
}

func TestACancellationDuringCompletionDecides(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.running("1.26.0")
	for _, j := range b.jobs(ref) {
		b.measure(j, c, 1)
		b.recordEnd(j.Key, "")
	}
	// Completion is held between its decision and its record.
	dir := t.TempDir()
	hold := filepath.Join(dir, "hold-"+failpoint.Completing)
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	b.Points = failpoint.FromEnvironment(func(string) string { return dir })
	type answer struct {
		result protocol.CompleteResult
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := b.Complete(t.Context(), protocol.CompleteInput{Request: ref})
		answers <- answer{result, err}
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "reached-"+failpoint.Completing))
		return err == nil
	}, 2*time.Minute, 5*time.Millisecond)
	_, err := b.store.CancelRequest(t.Context(), ref.ID, "ada", "not needed")
	require.NoError(t, err)
	require.NoError(t, os.Remove(hold))

	got := <-answers
	require.NoError(t, got.err)
	require.Equal(t, bench.Cancelled, got.result.Outcome)
	require.Equal(t, b.request(ref).Message, got.result.Message)
	require.Contains(t, got.result.Message, "ada")
}

func TestCancellingARequestCancelsItsUnsharedJobs(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	one, two, _ := b.unhanded()
	b.handOut(one)
	b.workflows.taken()
	jobs := b.jobs(one)
	require.NoError(t, b.store.ExpandRequest(t.Context(), two.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(jobs[1])}))
	cancel := protocol.CancelInput{Request: one, Who: "ada", Why: "not needed"}

	// Temporal is away: the rows are cancelled first, and the repetition cancels
	// the workflows.
	b.workflows.err = errors.New("no Temporal")
	_, err := b.CancelRequest(t.Context(), cancel)
	require.ErrorContains(t, err, "no Temporal")
	require.Equal(t, bench.Completed, b.request(one).Status)
	b.workflows.taken()
	b.workflows.err = nil
	for range 2 {
		end, err := b.CancelRequest(t.Context(), cancel)
		require.NoError(t, err)
		require.Equal(t, bench.Cancelled, end.Outcome)
		require.Equal(t, []string{"cancel go/" + string(jobs[0].Key), "queue go"}, b.workflows.taken())
	}
	require.Equal(t, bench.Cancelled, b.request(one).Outcome)
	require.NotNil(t, b.request(one).JobsDoneAt)
	require.Equal(t, bench.JobCancelled, b.job(jobs[0].Key).Status)
	require.True(t, b.job(jobs[1].Key).Status.Open(), "the second request waits for it")
	progress, err := b.Progress(t.Context(), protocol.ProgressInput{Request: one, Stage: bench.StageOwn})
	require.NoError(t, err)
	require.True(t, progress.Cancelled)

	// The shared job goes to the one that waits, with the next hand-out.
	require.Contains(t, b.handOut(two), jobs[1].Key)
}

func TestEveryAdmittedRequestStopsWaiting(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"queue": {"max_in_progress": 12}}`)
	for i := range 14 {
		b.create(bench.Release, fmt.Sprintf("1.%d.0", i), i+1)
	}
	state := b.admit()
	require.Len(t, state.InProgress, 12)
	require.Equal(t, 2, state.Waiting)
	require.Len(t, state.Next, 2)
}
