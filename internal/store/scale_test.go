package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// A hundred thousand jobs wait, and a thousand collectors are registered: a hand-out, a start,
// an end, a sweep and an explanation read what they do and what is in Temporal, of which there
// is some for each collector and queue; they read nothing of what waits.
func TestLongManyJobsAndManyCollectors(t *testing.T) {
	t.Parallel()
	const jobs, queues, collectors = 100_000, 20, 1000
	r := newRecord(t)
	request := r.inProgress(release(t, "v1"))
	for i := range queues {
		name := fmt.Sprint("user", i)
		r.waiting(request, "user:"+name, name, jobs/queues)
	}
	first := r.register("bench-0")
	r.execute(`
		insert into collector_config (name, target, size_class, pool, machine_id, epoch, version, hardware_id, facts, co_located)
		select 'bench-' || n, c.target, c.size_class, c.pool, 'machine ' || n, c.epoch, c.version, c.hardware_id, c.facts, c.co_located
		from collector_config c, generate_series(1, $1::int) as n`, collectors-1)
	r.execute(`analyze`)
	require.Equal(t, jobs, r.count(`select count(*) from job_queue where status = 'queued'`))
	keepBeating := func() { r.execute(`update collector_config set last_heartbeat = now(), available_at = now()`) }
	reads := func(most int, doing string, do func(s *store.Store)) {
		t.Helper()
		keepBeating()
		before := r.reads("job_queue")
		r.counted(do)
		require.LessOrEqual(t, r.reads("job_queue")-before, most, doing)
	}

	var out []bench.HandOut
	full := store.HandOutOptions{Depth: fairshare.Depth, Strict: fairshare.StrictDepth}
	reads(12*queues*fairshare.Depth(collectors), "a hand-out reads each job that it hands out some times", func(s *store.Store) {
		var err error
		out, err = s.HandOut(t.Context(), small.TaskQueue(), full)
		require.NoError(t, err)
	})
	require.Len(t, out, queues*fairshare.Depth(collectors))

	// Jobs start and end all over, and each end hands out the next.
	const ended = 10
	inTemporal := queues * fairshare.Depth(collectors)
	began := time.Now()
	reads(ended*inTemporal*5/2, "an end, which looks whether enough wait in Temporal, and the hand-out after it", func(s *store.Store) {
		for i, h := range out[:ended] {
			keepBeating() // a collector that is silent for half a minute takes nothing
			task, err := storetest.Dispatched(t.Context(), r.url, bench.NewRunID(h.Job, "w", "a", 1), first.Name)
			require.NoError(t, err)
			_, err = s.StartRun(t.Context(), store.RunStart{Run: bench.NewRunID(h.Job, "w", "a", 1), Reason: bench.Scheduled, Collector: first.Name, Epoch: first.Epoch, Dispatch: task.Dispatch, TaskQueue: task.TaskQueue})
			require.NoError(t, err)
			end, err := s.FinishJob(t.Context(), h.Job, 0, "gave up")
			require.NoError(t, err)
			next, err := s.HandOut(t.Context(), end.TaskQueue, full)
			require.NoError(t, err)
			require.Len(t, next, 1, "after %d", i)
		}
	})
	t.Logf("a start, an end and a hand-out take %s", time.Since(began)/ended)
	reads(2*inTemporal+5000, "a sweep without anything to do", func(s *store.Store) {
		require.NoError(t, s.ReleaseHeld(t.Context()))
		next, err := s.HandOut(t.Context(), small.TaskQueue(), full)
		require.NoError(t, err)
		require.Empty(t, next)
		_, err = s.WaitingTaskQueues(t.Context())
		require.NoError(t, err)
	})
	reads(5000, "where a job stands", func(s *store.Store) {
		last := r.text(`select key from job_queue where status = 'queued' order by id desc limit 1`)
		at, err := s.QueuePosition(t.Context(), bench.JobKey(last))
		require.NoError(t, err)
		require.Equal(t, store.MaxBefore, at.Before)
		require.Len(t, at.Beside, queues-1)
	})
	keepBeating()
	fleet, err := r.Fleet(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, fleet, collectors)
}
