package orchestration_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func TestAHandOutStartsJobsInTheOrderOfTheirRequests(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"max_job_fails": 5}`)
	one, two, three := b.unhanded()
	jobs1, jobs2 := b.jobs(one), b.jobs(two)

	// One live collector: four jobs of the project's queue stand in Temporal. The
	// second request asks; the first one's are older and go first.
	out, err := b.Expand(t.Context(), own(two))
	require.NoError(t, err)
	require.Equal(t, protocol.JobCounts{Total: 2, Open: 2}, out.Counts)
	require.Equal(t, []bench.JobKey{jobs2[0].Key, jobs2[1].Key}, keysOf(out.HandedOut))
	require.Equal(t, []string{
		startJob(one.ID, jobs1[0].Key), startJob(one.ID, jobs1[1].Key), startJob(two.ID, jobs2[0].Key), startJob(two.ID, jobs2[1].Key),
	}, b.workflows.taken())
	require.Equal(t, protocol.JobInput{
		Project: project, Key: jobs2[0].Key, Workflow: jobs2[0].Ref().WorkflowID(), Request: two.ID, RequestWorkflow: b.requestID(two), Tag: "1.2.0", Target: target, User: "ada",
		Summary: "1.2.0 compiletime build gc: 1 test case on x86_64-unknown-linux-gnu", TaskQueue: pool.TaskQueue(), SizeClass: 2,
		Priority: protocol.Priority{Level: 3, Queue: "project:go", Weight: 0.01}, Attempts: 5, Dispatch: b.workflows.jobs[jobs2[0].Key].Dispatch,
	}, b.workflows.jobs[jobs2[0].Key])

	// Asked again: nothing new.
	for _, r := range []protocol.RequestRef{one, two, three} {
		b.handOut(r)
	}
	require.Empty(t, b.workflows.taken())
	require.Empty(t, b.handedOut(three))

	progress, err := b.Progress(t.Context(), protocol.ProgressInput{Request: one, Stage: bench.StageOwn})
	require.NoError(t, err)
	require.Equal(t, protocol.ProgressResult{Counts: protocol.JobCounts{Total: 2, Open: 2}}, progress)
}

// unhanded is three requests with two jobs each, none handed out, and one
// collector, which is live.
func (b *bundle) unhanded() (one, two, three protocol.RequestRef) {
	b.t.Helper()
	b.register("c1")
	one, two, three = b.running("1.1.0"), b.running("1.2.0"), b.running("1.3.0")
	b.execute(`update job_queue set status = 'queued', handed_out_at = null, handed_out_to = null`)
	b.workflows.taken()
	b.workflows.jobs = nil
	return one, two, three
}

func TestTheEndOfAJobSignalsItsWaitersAndHandsOutTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	one, two, three := b.unhanded()
	b.handOut(one)
	b.workflows.taken()
	job, next := b.jobs(one)[0], b.jobs(three)[0]
	// The second request waits for it as well.
	require.NoError(t, b.store.ExpandRequest(t.Context(), two.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))

	end := protocol.JobEndInput{Project: project, Key: job.Key, TaskQueue: pool.TaskQueue(), GaveUp: "it failed 3 times"}
	out, err := b.RecordJobEnd(t.Context(), end)
	require.NoError(t, err)
	require.Equal(t, protocol.JobEndResult{Status: bench.JobFailure, Message: "1 of 1 test cases have no result: it failed 3 times"}, out)
	told := []string{
		"ended go/" + string(one.ID) + " " + string(job.Key) + " failure",
		"ended go/" + string(two.ID) + " " + string(job.Key) + " failure",
	}
	require.Equal(t, append([]string{startJob(three.ID, next.Key)}, told...), b.workflows.taken(), "an idle collector waits for the next job: it goes first")
	require.Equal(t, bench.JobHandedOut, b.job(next.Key).Status)

	// Repeated, for its answer was lost: the waiters are told again.
	again, err := b.RecordJobEnd(t.Context(), end)
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Equal(t, told, b.workflows.taken())

	// Cancelled afterwards: the job has ended already and stays what it was.
	end.Cancelled = true
	again, err = b.RecordJobEnd(t.Context(), end)
	require.NoError(t, err)
	require.Equal(t, out, again)
	b.workflows.taken()

	// A message that fails fails the activity, so that it is repeated.
	b.workflows.err = errors.New("no Temporal")
	_, err = b.RecordJobEnd(t.Context(), end)
	require.ErrorContains(t, err, "no Temporal")
}

func TestTheRecordDecidesHowAJobEnded(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.running("1.26.0")
	b.handOut(ref)
	jobs := b.jobs(ref)

	// Given up, but everything was measured: a success.
	b.measure(jobs[0], c, 1)
	end := b.recordEnd(jobs[0].Key, "lost its collector")
	require.Equal(t, protocol.JobEndResult{Status: bench.JobSuccess, Run: end.Run, Collector: "c1"}, end)
	require.Equal(t, jobs[0].Key, end.Run.Job())
	// Not given up, but nothing was measured: a failure.
	require.Equal(t, bench.JobFailure, b.recordEnd(jobs[1].Key, "").Status)

	// Cancelled.
	other := b.running("1.27.0")
	out, err := b.RecordJobEnd(t.Context(), protocol.JobEndInput{
		Project: project, Key: b.jobs(other)[0].Key, TaskQueue: pool.TaskQueue(), GaveUp: "cancelled", Cancelled: true,
	})
	require.NoError(t, err)
	require.Equal(t, protocol.JobEndResult{Status: bench.JobCancelled, Message: "cancelled"}, out)
}

func TestAssessmentCountsTheRunsOfTheRecord(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"max_job_fails": 2}`)
	c := b.register("c1")
	ref := b.running("1.26.0")
	b.handOut(ref)
	job := b.jobs(ref)[0]
	attempt := int32(0)
	// run is one more run, that its collector closes with an outcome or not at all.
	run := func(outcome bench.RunOutcome) bench.RunID {
		t.Helper()
		attempt++
		id := b.start(job.Key, c, attempt)
		if outcome != bench.RunRunning {
			require.NoError(t, b.store.FinishRun(t.Context(), id, bench.RunEnd{Outcome: outcome}))
		}
		return id
	}
	assess := func(kind bench.FailureKind) protocol.Assessment {
		t.Helper()
		out, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: job.Key, Kind: kind, Message: "why"})
		require.NoError(t, err)
		return out
	}

	// Never began: tried again at once; no attempt of its own is spent.
	a := assess(bench.FailInfrastructure)
	require.True(t, a.Again)
	require.Zero(t, a.PauseSeconds)
	require.Equal(t, 2, a.Attempts)
	require.Equal(t, bench.Scheduled, a.Reason, "the next run is the first one still")

	// Lost runs never count as the job's failures, but pauses grow. What the
	// collector could not close is closed.
	run(bench.RunLost)
	a = assess(bench.FailInfrastructure)
	require.Zero(t, a.PauseSeconds)
	require.Equal(t, bench.Retry, a.Reason)
	lost := run(bench.RunRunning)
	a = assess(bench.FailInfrastructure)
	require.True(t, a.Again)
	require.Equal(t, 2, a.Attempts)
	require.Equal(t, 1, a.PauseSeconds)
	runs, err := b.store.JobRuns(t.Context(), job.Key)
	require.NoError(t, err)
	require.Equal(t, lost, runs[1].ID)
	require.Equal(t, bench.RunLost, runs[1].Outcome)
	require.Equal(t, "why", runs[1].Message)
	require.Equal(t, a, assess(bench.FailInfrastructure), "repeated")

	// Its own failures do count.
	run(bench.RunFailure)
	a = assess(bench.FailJob)
	require.True(t, a.Again)
	require.Equal(t, 1, a.Attempts)
	require.Zero(t, a.PauseSeconds)
	run(bench.RunFailure)
	a = assess(bench.FailJob)
	require.False(t, a.Again)
	require.Equal(t, "it failed 2 times: why", a.GaveUp)

	// More attempts are allowed from now on.
	b.apply(`{}`)
	require.True(t, assess(bench.FailJob).Again)
	require.Equal(t, "no repetition can mend it: why", assess(bench.FailPermanent).GaveUp)
	require.Equal(t, "it was cancelled: why", assess(bench.FailCancelled).GaveUp)

	// Somebody else ended the job.
	_, err = b.store.CancelJob(t.Context(), job.Key, 0, "cancelled by ada")
	require.NoError(t, err)
	a = assess(bench.FailInfrastructure)
	require.False(t, a.Again)
	require.Equal(t, "the job has ended: cancelled by ada", a.GaveUp)
}

// Dispatches that begin no run leave none to be counted: what the workflow brings along
// says how many there were in a row. What was given back is none of them.
func TestDispatchesWithoutRunsPause(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	key := b.jobs(b.running("1.26.0"))[0].Key
	var unbegun protocol.Unbegun
	assess := func(kind bench.FailureKind) int {
		t.Helper()
		in := protocol.AssessInput{Project: project, Key: key, Kind: kind, Message: "why", Unbegun: unbegun}
		out, err := b.AssessJob(t.Context(), in)
		require.NoError(t, err)
		repeated, err := b.AssessJob(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, out, repeated)
		require.True(t, out.Again)
		unbegun = out.Unbegun
		return out.PauseSeconds
	}
	for range 3 {
		require.Zero(t, assess(bench.FailNotTaken))
	}
	for _, pause := range []int{0, 1, 2, 4, 8, 16, 30, 30} {
		require.Equal(t, pause, assess(bench.FailInfrastructure))
	}
	// A run begins, and is lost. What follows is counted anew.
	b.start(key, c, 1)
	require.Zero(t, assess(bench.FailInfrastructure))
	require.Zero(t, assess(bench.FailInfrastructure))
	require.Equal(t, 1, assess(bench.FailInfrastructure))
}

// A level that has changed while a job ran is that of its next dispatch, also when it
// was known before, and the record says so.
func TestARetriedJobHasTheCurrentLevel(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	key := b.jobs(b.running("1.26.0"))[0].Key
	assess := func() int {
		t.Helper()
		out, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: key, Kind: bench.FailInfrastructure, Message: "lost"})
		require.NoError(t, err)
		return out.Level
	}
	require.Equal(t, 3, assess())
	b.execute(`insert into account_limit (account, first_level, updated_by) values ('*', 4, 'ops')`)
	require.Equal(t, 4, assess())
	require.Equal(t, 4, b.job(key).Priority)
	require.Equal(t, 4, assess())
	b.execute(`insert into queue_config (name, class, weight, level, updated_by) values ('project:go', 'strict', 1, 5, 'ops')`)
	require.Equal(t, 5, assess())
}

func TestARetriedJobHasNotGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	ref := b.running("1.26.0")
	out, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: b.jobs(ref)[0].Key, Kind: bench.FailInfrastructure, Message: "lost"})
	require.NoError(t, err)
	require.True(t, out.Again)
	require.Empty(t, out.GaveUp)
}

// A failure below the largest class is answered by a larger one and is not
// counted; there the job has all its attempts.
func TestAFailureEscalatesToTheLargestClass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		passes []bench.SizeClass
	}{
		"straight":        {`{"size": {"class": 0}}`, []bench.SizeClass{8}},
		"stepwise":        {`{"size": {"stepwise": true}}`, []bench.SizeClass{4, 8}},
		"a pinned class":  {`{"size": {"class": 2}}`, nil},
		"a benchmark set": {`{"benchmark_sets": [{"name": "all", "pool": "main", "benchmarks": ["gin", "sort"]}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.config)
			collectors := map[bench.SizeClass]bench.Collector{2: b.register("c2")}
			ref := b.running("1.26.0")
			b.handOut(ref)
			for _, class := range []bench.SizeClass{4, 8} {
				collectors[class] = b.registerAt(bench.Pool{Target: target, SizeClass: class, Name: "large"})
			}
			job := b.jobs(ref)[0]
			attempt := int32(0)
			fail := func(at bench.SizeClass, outcome bench.RunOutcome) protocol.Assessment {
				t.Helper()
				attempt++
				require.NoError(t, b.store.FinishRun(t.Context(), b.start(job.Key, collectors[at], attempt), bench.RunEnd{Outcome: outcome}))
				ask := protocol.AssessInput{Project: project, Key: job.Key, Kind: bench.FailTooSmall, Message: "why"}
				a, err := b.AssessJob(t.Context(), ask)
				require.NoError(t, err)
				again, err := b.AssessJob(t.Context(), ask)
				require.NoError(t, err)
				require.Equal(t, a, again, "repeated")
				return a
			}
			at := bench.SizeClass(2)
			for i, next := range c.passes {
				a := fail(at, []bench.RunOutcome{bench.RunOutOfMemory, bench.RunTimeout}[i])
				require.True(t, a.Again)
				require.Equal(t, bench.Escalation, a.Reason)
				require.Equal(t, next, a.Moved.SizeClass)
				require.Equal(t, bench.Pool{Target: target, SizeClass: next, Name: "large"}.TaskQueue(), a.Moved.TaskQueue)
				require.Equal(t, map[bool]int{true: 3, false: 1}[next == 8], a.Attempts)
				at = next
			}
			for left := range 3 {
				a := fail(at, bench.RunFailure)
				require.Equal(t, left < 2, a.Again)
				require.NotEqual(t, bench.Escalation, a.Reason)
			}
		})
	}
}

// Each further dispatch has a secret of its own, and asking again draws no other.
func TestEachFurtherDispatchHasItsSecret(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	key := b.handOut(b.running("1.2.0"))[0]
	first := b.workflows.jobs[key].Dispatch
	require.NotEmpty(t, first)
	lost := protocol.AssessInput{Project: project, Key: key, Kind: bench.FailInfrastructure, Message: "silent", Dispatch: first}
	again, err := b.AssessJob(t.Context(), lost)
	require.NoError(t, err)
	require.True(t, again.Again)
	require.NotEqual(t, first, again.Dispatch)
	repeated, err := b.AssessJob(t.Context(), lost)
	require.NoError(t, err)
	require.Equal(t, again.Dispatch, repeated.Dispatch)

	start := store.RunStart{
		Run: bench.NewRunID(key, "workflow", "activity", 1), Reason: bench.Retry, Collector: "c1", Epoch: c.Epoch, Dispatch: first, TaskQueue: pool.TaskQueue(),
	}
	_, err = b.store.StartRun(t.Context(), start)
	require.ErrorIs(t, err, store.ErrStaleDispatch)
	start.Dispatch = again.Dispatch
	_, err = b.store.StartRun(t.Context(), start)
	require.NoError(t, err)
}
