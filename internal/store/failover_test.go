package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

var large = bench.Pool{Target: target, SizeClass: 8, Name: "large"}

func (r record) registerIn(name string, pool bench.Pool, hardware string) bench.Collector {
	r.t.Helper()
	c := collector(name)
	c.SizeClass, c.Pool, c.HardwareID = pool.SizeClass, pool.Name, hardware
	c, err := r.RegisterCollector(r.t.Context(), c, offline)
	require.NoError(r.t, err)
	return c
}

// silent makes a collector look as if it had died some time ago.
func (r record) silent(name string, since time.Duration) {
	r.t.Helper()
	r.execute(`update collector_config set last_heartbeat = now() - make_interval(secs => $2), available_at = now() - make_interval(secs => $2) where name = $1`,
		name, since.Seconds())
}

func (r record) stranded() []bench.JobKey {
	r.t.Helper()
	jobs, err := r.StrandedJobs(r.t.Context())
	require.NoError(r.t, err)
	var keys []bench.JobKey
	for _, j := range jobs {
		keys = append(keys, j.Key)
	}
	return keys
}

func (r record) move(key bench.JobKey, from, to bench.Pool) bool {
	r.t.Helper()
	moved, err := r.MoveJob(r.t.Context(), key, from.TaskQueue(), bench.Place{Pool: to})
	require.NoError(r.t, err)
	return moved
}

func (r record) pools(offlineAfter time.Duration) []bench.PoolCount {
	r.t.Helper()
	q, err := r.AdmissionSnapshot(r.t.Context(), project, offlineAfter)
	require.NoError(r.t, err)
	return q.Pools
}

func (r record) poolOf(p bench.Pool) bench.PoolCount {
	r.t.Helper()
	pools := r.pools(offline)
	for _, c := range pools {
		if c.Pool == p {
			return c
		}
	}
	r.t.Fatalf("no pool %v among %v", p, pools)
	return bench.PoolCount{}
}

// A pool is away since one of its collectors could last take a job: a drained collector
// sends heartbeats, but does not count.
func TestAPoolIsAwaySinceItsLastCollectorWasAvailable(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	require.Zero(t, r.poolOf(small).Away)

	r.silent("one", 10*time.Minute)
	require.Zero(t, r.poolOf(small).Away, "the other one lives")
	require.NoError(t, r.SetActive(t.Context(), "two", false))
	r.execute(`update collector_config set available_at = now() - interval '4 minutes' where name = 'two'`)
	_, err := r.Heartbeat(t.Context(), two.Name, two.Epoch, "", nil)
	require.NoError(t, err)
	p := r.poolOf(small)
	require.Zero(t, p.Live)
	require.InDelta(t, 4*time.Minute, p.Away, float64(time.Minute), "a drained collector's heartbeat is none of a pool's")

	_, err = r.Heartbeat(t.Context(), one.Name, one.Epoch, "", nil)
	require.NoError(t, err)
	require.Zero(t, r.poolOf(small).Away)
	require.NoError(t, r.SetActive(t.Context(), "one", false))
	require.Less(t, r.poolOf(small).Away, time.Minute, "its heartbeat counted")

	// A drained collector that restarts is still not available.
	r.execute(`update collector_config set available_at = now() - interval '4 minutes'`)
	r.register("two")
	require.InDelta(t, 4*time.Minute, r.poolOf(small).Away, float64(time.Minute))
}

func TestOnlyJobsWithoutARunAreStranded(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	_, running := r.oneJob("v1", "gin")
	_, lost := r.oneJob("v2", "gin")
	_, handedOut := r.oneJob("v3", "gin")
	_, queued := r.oneJob("v4", "gin")
	_, ended := r.oneJob("v5", "gin")
	forgotten, unwanted := r.oneJob("v6", "gin")
	r.execute(`update job_queue set status = 'handed_out', handed_out_at = now() where key = $1`, handedOut.Key)
	r.start(running, 1, one)
	r.start(lost, 1, one)
	require.NoError(t, r.CloseLostRuns(t.Context(), lost.Key, 0, "silent"))
	_, err := r.FinishJob(t.Context(), ended.Key, 0, "broken")
	require.NoError(t, err)
	require.NoError(t, r.CompleteRequest(t.Context(), forgotten.ID, bench.Failure, "", nil, ""))
	require.Equal(t, bench.JobQueued, r.job(unwanted.Key).Status)

	require.Empty(t, r.stranded(), "its collector lives")
	r.silent("one", time.Minute)
	require.Equal(t, []bench.JobKey{lost.Key, handedOut.Key, queued.Key}, r.stranded())
	r.registerIn("other", large, "zen5")
	require.Len(t, r.stranded(), 3, "another pool's collector is none of theirs")
	r.execute(`delete from collector_config where name = 'one'`)
	require.Len(t, r.stranded(), 3, "nor is a pool without any collector")

	require.False(t, r.move(running.Key, small, large), "it runs")
	require.False(t, r.move(ended.Key, small, large))
	require.False(t, r.move(queued.Key, large, small), "it is not there")
	for _, j := range []bench.Job{lost, handedOut, queued} {
		require.True(t, r.move(j.Key, small, large))
		require.False(t, r.move(j.Key, small, large), "repeated")
		moved := r.job(j.Key)
		require.Equal(t, large.TaskQueue(), moved.TaskQueue)
		require.Equal(t, large.Name, moved.Pool)
		require.Equal(t, large.SizeClass, moved.SizeClass)
		require.Equal(t, small.TaskQueue(), moved.MovedFrom)
		require.NotNil(t, moved.MovedAt)
	}
	require.Empty(t, r.stranded())
	inTemporal, err := r.MovedWaiting(t.Context(), 100)
	require.NoError(t, err)
	require.Len(t, inTemporal, 2, "what is queued is in no task queue")
	require.Equal(t, bench.Place{Pool: large}, inTemporal[0].At())

	_, err = r.MoveJob(t.Context(), "aaaaaaaaaaaaaaaa", small.TaskQueue(), bench.Place{Pool: large})
	require.ErrorIs(t, err, store.ErrNotFound)
}

// A moved job is measured and completed on its new pool.
func TestAMovedJobIsDoneByResultsOfItsNewPool(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	_, job := r.oneJob("v1", "gin", "sort")
	first := r.start(job, 1, one)
	r.block(first.Run.ID, measured("gin", 1, 2))
	require.NoError(t, r.CloseLostRuns(t.Context(), job.Key, 0, "silent"))
	require.Equal(t, 1, r.job(job.Key).Done)
	require.Empty(t, r.job(job.Key).MovedFrom)

	require.True(t, r.move(job.Key, small, large))
	require.Zero(t, r.job(job.Key).Done, "of another size class: measured anew")
	big := r.registerIn("big", large, "zen5")
	plan := r.start(job, 2, big)
	require.Equal(t, testCases("gin", "sort"), plan.Missing)
	r.block(plan.Run.ID, measured("gin", 1, 2), measured("sort", 1, 2))
	require.NoError(t, r.FinishRun(t.Context(), plan.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)
	require.Equal(t, small.TaskQueue(), r.job(job.Key).MovedFrom)
}

// A collector of the old pool that takes the job before the move keeps it, and the row
// says so.
func TestTheFenceSettlesAJobWhereItRuns(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	_, job := r.oneJob("v1", "gin")
	require.True(t, r.move(job.Key, small, large))
	plan := r.start(job, 1, one)
	require.Equal(t, small.SizeClass, plan.Job.SizeClass)
	back := r.job(job.Key)
	require.Equal(t, small.TaskQueue(), back.TaskQueue)
	require.Empty(t, back.MovedFrom)
	require.Nil(t, back.MovedAt)
	r.block(plan.Run.ID, measured("gin", 1, 2))
	require.Equal(t, 1, r.job(job.Key).Done)
}

// Of a concurrent move and start, one wins: either the job moves before it begins, or it
// stays.
func TestAMoveAndTheFenceExcludeEachOther(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	_, job := r.oneJob("v1", "gin")
	start := r.runStart(runID(job, 1), one)
	errs := together(2, func(i int) error {
		if i == 0 {
			_, err := r.MoveJob(t.Context(), job.Key, small.TaskQueue(), bench.Place{Pool: large})
			return err
		}
		_, err := r.StartRun(t.Context(), start)
		return err
	})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, small.TaskQueue(), r.job(job.Key).TaskQueue, "it runs there")
	require.Empty(t, r.job(job.Key).MovedFrom)
}

func TestAChosenSizeClassPinsAJob(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	chosen := release(t, "v1")
	chosen.Type, chosen.SizeClass = bench.AdHoc, small.SizeClass
	q := r.inProgress(chosen)
	r.expand(q, newJob(q, "gin"))
	r.oneJob("v2", "gin")
	jobs, err := r.StrandedJobs(t.Context())
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	one, err := r.StrandedJobs(t.Context(), jobs[1].Key)
	require.NoError(t, err)
	require.Equal(t, jobs[1:], one)
	require.True(t, jobs[0].Pinned)
	require.False(t, jobs[1].Pinned)
}
