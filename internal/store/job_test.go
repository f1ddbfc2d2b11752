package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func (r record) finish(job bench.Job, gaveUp string) bench.JobEnd {
	r.t.Helper()
	end, err := r.FinishJob(r.t.Context(), job.Key, 0, gaveUp)
	require.NoError(r.t, err)
	return end
}

func (r record) fail(run bench.RunID, benchmark, message string) {
	r.t.Helper()
	e := bench.RunError{Kind: bench.FailJob, Message: message}
	if benchmark != "" {
		tc := testCase(benchmark)
		e.TestCase = &tc
	}
	_, err := r.StoreBlock(r.t.Context(), run, nil, []bench.RunError{e})
	require.NoError(r.t, err)
}

// nothingWaits are the consequences of an end where no job waits, for these requests.
func nothingWaits(waiters []bench.RequestRef) bench.Consequences {
	return bench.Consequences{Waiters: waiters, Unlimited: true, OneClass: true}
}

// timeless is an end without what depends on how quick the machine was.
func timeless(end bench.JobEnd) bench.JobEnd {
	end.Brief, end.Filled = false, false
	return end
}

func TestTheStoredResultsDecideHowAJobEnds(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")

	t.Run("success when all have results, whatever is said", func(t *testing.T) {
		q, job := r.oneJob("v1", "gin", "zip")
		run := r.start(job, 1, c).Run.ID
		r.block(run, measured("gin", 1), bench.TestCaseResult{TestCase: testCase("zip"), Skipped: "needs docker"})
		for range 2 {
			require.Equal(t, bench.JobEnd{Status: bench.JobSuccess, TaskQueue: small.TaskQueue(), Run: run, Collector: "one", Consequences: nothingWaits([]bench.RequestRef{q.Ref()})}, timeless(r.finish(job, "it looked bad")))
		}
		require.Equal(t, bench.RunLost, r.run(run).Outcome, "a run that was still open did not say how it ended")
		require.NotNil(t, r.job(job.Key).CompletedAt)
	})
	t.Run("failure with what gave up", func(t *testing.T) {
		_, job := r.oneJob("v2", "gin", "zip")
		r.block(r.start(job, 1, c).Run.ID, measured("gin", 1))
		end := r.finish(job, "it failed 3 times")
		require.Equal(t, bench.JobFailure, end.Status)
		require.Equal(t, "1 of 2 test cases have no result: it failed 3 times", end.Message)
		require.Equal(t, end.Message, r.job(job.Key).Message)
	})
	t.Run("failure with the last errors that were not mended", func(t *testing.T) {
		_, job := r.oneJob("v3", "gin", "zip", "tar", "sed", "awk", "cut")
		first := r.start(job, 1, c).Run.ID
		for _, b := range []string{"gin", "zip", "tar", "sed", "awk"} {
			r.fail(first, b, "first "+b)
		}
		r.fail(first, "", "first run as a whole")
		second := r.start(job, 2, c).Run.ID
		r.block(second, measured("gin", 1))
		r.fail(second, "zip", "second zip")
		require.Equal(t, "5 of 6 test cases have no result: zip build x86_64-unknown-linux-gnu: second zip; "+
			"awk build x86_64-unknown-linux-gnu: first awk; sed build x86_64-unknown-linux-gnu: first sed; and 1 more", r.finish(job, "").Message)
	})
	t.Run("failure that nobody explained", func(t *testing.T) {
		_, job := r.oneJob("v4", "gin")
		require.Equal(t, "1 of 1 test cases have no result: no run reported why", r.finish(job, "").Message)
	})
	t.Run("results of the pool's other hardware count when it ran the job", func(t *testing.T) {
		_, job := r.oneJob("v5", "gin", "zip")
		other := collector("zen5")
		other.HardwareID = "zen5"
		o, err := r.RegisterCollector(t.Context(), other, offline)
		require.NoError(t, err)
		r.block(r.start(job, 1, c).Run.ID, measured("gin", 1))
		r.block(r.start(job, 2, o).Run.ID, measured("zip", 1))
		require.Equal(t, bench.JobSuccess, r.finish(job, "").Status)
	})
	t.Run("results of another size class do not", func(t *testing.T) {
		q, job := r.oneJob("v6", "gin")
		escalated := job
		escalated.SizeClass, escalated.Key = 8, bench.JobKey("abcdefghabcdefgh")
		escalated.TaskQueue = bench.Pool{Target: target, SizeClass: 8, Name: small.Name}.TaskQueue()
		r.expand(q, escalated)
		large := collector("large")
		large.SizeClass = 8
		l, err := r.RegisterCollector(t.Context(), large, offline)
		require.NoError(t, err)
		r.block(r.start(escalated, 1, l).Run.ID, measured("gin", 1))
		require.Equal(t, bench.JobSuccess, r.finish(escalated, "").Status)
		require.Equal(t, bench.JobFailure, r.finish(job, "").Status)
	})
	t.Run("nor those of an earlier generation", func(t *testing.T) {
		q, job := r.oneJob("v7", "gin")
		r.block(r.start(job, 1, c).Run.ID, measured("gin", 1))
		rerun := job
		rerun.Generation, rerun.Key = 1, bench.JobKey("ijklmnopijklmnop")
		r.expand(q, rerun)
		require.Equal(t, testCases("gin"), r.start(rerun, 1, c).Missing)
		require.Equal(t, bench.JobFailure, r.finish(rerun, "").Status)
	})
	t.Run("results of another job in the same place do", func(t *testing.T) {
		q, job := r.oneJob("v8", "gin", "zip")
		r.block(r.start(job, 1, c).Run.ID, measured("gin", 1))
		part := newJob(q, "gin")
		r.expand(q, part)
		require.Empty(t, r.start(part, 1, c).Missing)
		require.Equal(t, bench.JobSuccess, r.finish(part, "").Status)
	})
}

func TestAnEndedJobReturnsItsWaitersAgain(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q, job := r.oneJob("v1", "gin")
	other := r.inProgress(release(t, "v2"))
	require.NoError(t, r.ExpandRequest(t.Context(), other.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))
	run := r.start(job, 1, r.register("one")).Run.ID

	waiters := []bench.RequestRef{q.Ref(), other.Ref()}
	for range 2 {
		end, err := r.CancelJob(t.Context(), job.Key, 0, "cancelled by ada")
		require.NoError(t, err)
		require.Equal(t, bench.JobEnd{Status: bench.JobCancelled, Message: "cancelled by ada", TaskQueue: small.TaskQueue(), Run: run, Collector: "one", Consequences: nothingWaits(waiters)}, timeless(end))
	}
	require.Equal(t, bench.RunCancelled, r.run(run).Outcome)
	require.NoError(t, r.CompleteRequest(t.Context(), q.ID, bench.Cancelled, "", nil, ""))
	require.Equal(t, bench.JobEnd{Status: bench.JobCancelled, Message: "cancelled by ada", TaskQueue: small.TaskQueue(), Run: run, Collector: "one", Consequences: nothingWaits(waiters[1:])}, timeless(r.finish(job, "later")))

	_, err := r.FinishJob(t.Context(), "nothing", 0, "")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.CancelJob(t.Context(), "nothing", 0, "")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestConcurrentResultsAndJobEnd(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	for _, tag := range names(8) {
		_, job := r.oneJob(tag, "gin")
		run := r.start(job, 1, c).Run.ID
		var receipt bench.BlockReceipt
		var end bench.JobEnd
		for _, err := range together(2, func(who int) (err error) {
			if who == 0 {
				receipt, err = r.StoreBlock(t.Context(), run, []bench.TestCaseResult{measured("gin", 1)}, nil)
			} else {
				end, err = r.FinishJob(t.Context(), job.Key, 0, "gave up")
			}
			return err
		}) {
			require.NoError(t, err)
		}
		// Either the block came in time and the job succeeded, or it was too late.
		require.Equal(t, receipt.Accepted == 1, end.Status == bench.JobSuccess)
	}
}

func TestProgressCountsDoneJobsAndTestCases(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q, jobs := r.jobsOf("v1", "user:ada", 6)
	none, err := r.JobProgress(t.Context(), "rnobody")
	require.NoError(t, err)
	require.Zero(t, none)
	r.handOut()
	c := r.register("one")
	r.start(jobs[1], 1, c)
	r.block(r.start(jobs[2], 1, c).Run.ID, measured("bench2", 1))
	r.finish(jobs[2], "")
	r.finish(jobs[3], "no")
	_, err = r.CancelJob(t.Context(), jobs[4].Key, 0, "no")
	require.NoError(t, err)

	p, err := r.JobProgress(t.Context(), q.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{
		Total: 6, Queued: 1, HandedOut: 1, InProgress: 1, Success: 1, Failure: 1, Cancelled: 1, TestCases: 6, TestCasesDone: 1,
	}, p)
	require.Equal(t, 3, p.Open())
	runs, err := r.RunsOf(t.Context(), r.jobIDs(q.ID))
	require.NoError(t, err)
	require.Equal(t, []bench.RunID{runID(jobs[1], 1), runID(jobs[2], 1)}, []bench.RunID{runs[0].ID, runs[1].ID})
}

func TestResolvedErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q, job := r.oneJob("v1", "gin", "zip", "tar")
	c := r.register("one")
	messages := func() []string {
		errs, err := r.ErrorsOf(t.Context(), q.ID, r.jobIDs(q.ID))
		require.NoError(t, err)
		out := []string{}
		for _, e := range errs {
			what := "job"
			if e.TestCase != nil {
				what = e.TestCase.Benchmark
			}
			out = append(out, what+": "+e.Message)
		}
		return out
	}
	first := r.start(job, 1, c).Run.ID
	r.fail(first, "gin", "one")
	r.fail(first, "zip", "one")
	r.fail(first, "tar", "one")
	r.fail(first, "", "disk full")
	require.Equal(t, []string{"gin: one", "zip: one", "tar: one", "job: disk full"}, messages())

	// gin now has a result, zip fails differently, tar was not reached.
	second := r.start(job, 2, c).Run.ID
	r.block(second, measured("gin", 1))
	r.fail(second, "zip", "two")
	require.Equal(t, []string{"tar: one", "zip: two"}, messages())

	r.block(r.start(job, 3, c).Run.ID, measured("zip", 1), measured("tar", 1))
	require.Empty(t, messages())
}
