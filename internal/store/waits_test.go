package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/waittime"
)

// ago moves what the record knows of a job into the past: it was written, and its request
// admitted, that long ago.
func (r record) ago(job bench.Job, since time.Duration) {
	r.t.Helper()
	r.execute(`update job_queue set created_at = now() - make_interval(secs => $2) where key = $1`, job.Key, since.Seconds())
	r.execute(`update benchmark_request set admitted_at = now() - make_interval(secs => $1) where admitted_at is not null`, since.Seconds()+60)
}

// present replaces what is known of a collector's presence: it could take jobs between these
// times ago; until 0: it still can.
func (r record) present(name string, periods ...[2]time.Duration) {
	r.t.Helper()
	r.execute(`delete from collector_presence where collector = $1`, name)
	for _, p := range periods {
		r.execute(`
			insert into collector_presence (collector, target, size_class, task_queue, since, until)
			select name, target, size_class, 'bench/' || target || '/' || size_class || '/' || pool, now() - make_interval(secs => $2),
				case when $3 > 0 then now() - make_interval(secs => $3) end
			from collector_config where name = $1`, name, p[0].Seconds(), p[1].Seconds())
	}
}

// waits reads the waiting times of a day, in all places together.
func (r record) waits(filter store.WaitFilter) (waittime.Level, []waittime.Level) {
	r.t.Helper()
	read, err := r.Waits(r.t.Context(), 24*time.Hour, filter)
	require.NoError(r.t, err)
	require.Equal(r.t, 24*time.Hour, read.Until.Sub(read.From))
	return waittime.Sum(read.Samples, waittime.Query{From: read.From, Block: waittime.ShortBlock, Objective: read.Objective})
}

// minutes checks durations to within one: time goes on while the test runs.
func minutes(t *testing.T, want int, got time.Duration, what string) {
	t.Helper()
	require.InDelta(t, float64(want), got.Minutes(), 1, what)
}

const ever = 100 * time.Hour

// A job is written an hour ago. Its project is paused for 20 minutes, then the only collector
// is away for ten, during the last five of which another project is paused.
func TestWhatKeepsAJobFromRunningIsNoWaiting(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	_, job := r.oneJob("v1", "gin")
	r.ago(job, time.Hour)
	r.present("one", [2]time.Duration{ever, 30 * time.Minute}, [2]time.Duration{20 * time.Minute, 0})
	_, err := r.PauseQueue(t.Context(), project, store.Act{Who: "ada", Reason: "why"})
	require.NoError(t, err)
	_, err = r.ResumeQueue(t.Context(), project, store.Act{Who: "ada"})
	require.NoError(t, err)
	require.Equal(t, 1, r.count(`select count(*) from queue_pause_past where project = $1 and until > since`, project))
	r.execute(`update queue_pause_past set since = now() - interval '2 hours', until = now() - interval '40 minutes'`)
	r.execute(`insert into queue_pause_past (project, since, until) values ('other', now() - interval '25 minutes', now())`)

	// It waits: so far.
	all, places := r.waits(store.WaitFilter{})
	require.Equal(t, []int{0, 1, 1, 0}, []int{all.Started, all.Waiting, all.Overdue, all.Within})
	minutes(t, 30, all.Longest, "without what kept it from running")
	require.Equal(t, waittime.Place{Pool: small.TaskQueue(), Queue: "project:go"}, places[0].Place)
	minutes(t, 20, all.Blocked[waittime.Pause], "paused")
	minutes(t, 10, all.Blocked[waittime.Collector], "no collector")

	plan := r.start(job, 1, c)
	require.Equal(t, []any{small.TaskQueue(), "project:go", waittime.DefaultObjective}, []any{plan.Wait.Pool, plan.Wait.Queue, plan.Wait.Objective})
	minutes(t, 30, plan.Wait.Waited, "waited")
	minutes(t, 20, plan.Wait.Blocked[waittime.Pause], "paused")
	minutes(t, 10, plan.Wait.Blocked[waittime.Collector], "no collector")
	minutes(t, 40, plan.Run.StartedAt.Sub(plan.Wait.Runnable), "it could run when the pause ended")
	require.Zero(t, plan.Wait.Blocked[waittime.Turn]+plan.Wait.Blocked[waittime.Limit])

	all, _ = r.waits(store.WaitFilter{})
	require.Equal(t, []int{1, 0, 0, 0}, []int{all.Started, all.Waiting, all.Overdue, all.Within})
	minutes(t, 30, all.Longest, "as told when it began")
	minutes(t, 20, all.Blocked[waittime.Pause], "paused")

	// It is judged by the objective of its queue, which may change.
	_, err = r.ApplyQueues(t.Context(), fairshare.Config{Queues: []fairshare.Queue{{Name: "project:go", Class: fairshare.Weighted, Weight: 1, Level: 3, WaitObjective: 45 * time.Minute}}}, false, store.Act{Who: "ada"})
	require.NoError(t, err)
	all, places = r.waits(store.WaitFilter{})
	require.Equal(t, []any{1, 45 * time.Minute}, []any{all.Within, places[0].Objective})
	_, known, err := r.Queue(t.Context(), "project:go")
	require.NoError(t, err)
	require.True(t, known)
	states, err := r.Queues(t.Context())
	require.NoError(t, err)
	for _, q := range states {
		if q.Name == "project:go" {
			require.Equal(t, 45*time.Minute, q.Objective())
		}
	}

	// Filters.
	for _, f := range []store.WaitFilter{{Project: project}, {Queue: "project:go"}, {Pool: small.TaskQueue()}, {Pool: small.Name}, {Project: project, Queue: "project:go", Pool: small.Name}} {
		all, _ := r.waits(f)
		require.Equal(t, 1, all.Started, "%+v", f)
	}
	for _, f := range []store.WaitFilter{{Project: "other"}, {Queue: "user:ada"}, {Pool: "large"}, {Pool: "bench/" + small.Name}, {Project: project, Queue: "vip"}} {
		_, places := r.waits(f)
		require.Empty(t, places, "%+v", f)
	}

	// A second run is ready when the first one has ended, and only the last day counts.
	require.NoError(t, r.CloseLostRuns(t.Context(), job.Key, 0, "gone"))
	r.execute(`update job_run set finished_at = now() - interval '5 minutes'`)
	plan = r.start(job, 2, c)
	minutes(t, 5, plan.Wait.Waited, "since the end of the first run")
	all, _ = r.waits(store.WaitFilter{})
	require.Equal(t, 2, all.Started)
	r.execute(`update run_wait set runnable_at = runnable_at - interval '1 day'`)
	all, _ = r.waits(store.WaitFilter{})
	require.Zero(t, all.Started)

	// They go with their runs.
	r.execute(`delete from job_run`)
	require.Zero(t, r.count(`select count(*) from run_wait`))
}

// Jobs of an account that has as much under way as it may could not run meanwhile, whether a
// hand-out has looked at them or not.
func TestJobsOfAnAccountAtItsLimitDoNotWait(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	r.present("one", [2]time.Duration{ever, 0})
	request := r.inProgress(release(t, "v1"))
	r.waiting(request, "user:ada", "ada", 3)
	r.waiting(request, "night", "ada", 1)
	r.execute(`update job_queue set created_at = now() - interval '1 hour'`)
	r.execute(`update benchmark_request set admitted_at = now() - interval '2 hours'`)
	_, err := r.ApplyQueues(t.Context(), fairshare.Config{Limits: fairshare.Limits{{Account: "ada", Branch: fairshare.Any, MaxRunning: ptr(1), FirstLevel: 1}}}, false, byAda)
	require.NoError(t, err)
	require.Len(t, r.handOutUpTo(10), 1)
	require.Equal(t, 1, r.count(`select count(*) from account_limited where account = 'ada' and until is null`))
	r.execute(`update account_limited set since = now() - interval '50 minutes'`)
	r.execute(`update job_queue set held_since = now() - interval '50 minutes' where held <> ''`)
	r.execute(`update job_queue set handed_out_at = now() - interval '50 minutes' where status = 'handed_out'`)
	all, _ := r.waits(store.WaitFilter{})
	require.Equal(t, map[waittime.Reason]int{waittime.Limit: 3}, all.BlockedNow)
	require.Equal(t, []int{1, 1}, []int{all.Waiting, all.Overdue}, "the one that was handed out; the others had waited for ten minutes")
	minutes(t, 150, all.Blocked[waittime.Limit], "of three together")

	// A job ends, and the next one is handed out: it is at its limit all the time.
	end := func() {
		t.Helper()
		r.execute(`update job_queue set status = 'cancelled', completed_at = now() where status = 'handed_out'`)
		_, err := r.ReleaseLimited(t.Context(), "ada")
		require.NoError(t, err)
	}
	end()
	require.Zero(t, r.count(`select count(*) from account_limited where until is null`))
	require.Len(t, r.handOutUpTo(10), 1)
	require.Equal(t, 1, r.count(`select count(*) from account_limited where until is null and since < now() - interval '49 minutes'`))
	require.Equal(t, 1, r.count(`select count(*) from account_limited`))

	// The limit is lifted: they wait again.
	_, err = r.ApplyQueues(t.Context(), fairshare.Config{}, true, byAda)
	require.NoError(t, err)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	all, _ = r.waits(store.WaitFilter{})
	require.Equal(t, []int{3, 0}, []int{all.Waiting, len(all.BlockedNow)})
	minutes(t, 150, all.Blocked[waittime.Limit], "as before")

	// Periods that ended long ago are removed by what follows.
	r.execute(`update account_limited set since = since - interval '1 year', until = until - interval '91 days'`)
	_, err = r.ApplyQueues(t.Context(), fairshare.Config{Limits: fairshare.Limits{{Account: "ada", Branch: fairshare.Any, MaxRunning: ptr(2), FirstLevel: 1}}}, false, byAda)
	require.NoError(t, err)
	require.Len(t, r.handOutUpTo(10), 1)
	require.Equal(t, 1, r.count(`select count(*) from account_limited`))
}

func ptr[T any](v T) *T { return &v }

// What hand-outs put aside is remembered.
func TestHoldsAreRemembered(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	r.present("one", [2]time.Duration{ever, 0})
	r.waiting(r.inProgress(release(t, "v1")), "user:ada", "ada", 2)
	r.execute(`update job_queue set created_at = now() - interval '1 hour'`)
	r.execute(`update benchmark_request set admitted_at = now() - interval '2 hours'`)
	_, err := r.PauseQueue(t.Context(), project, byAda)
	require.NoError(t, err)
	require.Empty(t, r.handOutUpTo(10))
	require.Equal(t, 2, r.count(`select count(*) from job_queue where held = 'pause' and held_since is not null`))
	r.execute(`update job_queue set held_since = now() - interval '30 minutes'`)
	r.execute(`delete from queue_pause`) // and its history: only what was put aside is known
	r.execute(`delete from queue_pause_past`)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Equal(t, 2, r.count(`select count(*) from job_queue where held = '' and held_since is null and jsonb_array_length(holds) = 1`))
	all, _ := r.waits(store.WaitFilter{})
	minutes(t, 60, all.Blocked[waittime.Pause], "of two")
	minutes(t, 30, all.Longest, "each")

	// One that is put aside again at once could not run in between; the hundred last times
	// are kept.
	r.execute(`update job_queue set held = 'pause'`)
	r.execute(`update job_queue set held_since = now() - interval '1 second'`)
	r.execute(`update job_queue set held = ''`)
	require.Equal(t, 2, r.count(`select count(*) from job_queue where jsonb_array_length(holds) = 1`))
	r.execute(`do $$ begin
		for i in 1..150 loop
			update job_queue set held = case when i % 2 = 0 then 'pause' else 'turn' end;
			update job_queue set held_since = now() - interval '1 minute';
			update job_queue set held = '';
		end loop; end $$`)
	require.Equal(t, 2, r.count(`select count(*) from job_queue where jsonb_array_length(holds) = 100`))
	_, err = r.Waits(t.Context(), time.Hour, store.WaitFilter{})
	require.NoError(t, err)
}

// A job that was written before its request's turn could not run before that, although no
// hand-out has looked at it.
func TestAJobBeforeItsTurnDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	r.present("one", [2]time.Duration{ever, 0})
	_, job := r.oneJob("v1", "gin")
	r.ago(job, time.Hour)
	r.execute(`update benchmark_request set status = 'artifacts_ready', admitted_at = null`)
	all, _ := r.waits(store.WaitFilter{})
	require.Equal(t, []any{0, 0, map[waittime.Reason]int{waittime.Turn: 1}}, []any{all.Waiting, all.Overdue, all.BlockedNow})
	r.execute(`update benchmark_request set status = 'in_progress', admitted_at = now() - interval '10 minutes'`)
	plan := r.start(job, 1, c)
	minutes(t, 10, plan.Wait.Waited, "since its turn")
	minutes(t, 50, plan.Wait.Blocked[waittime.Turn], "before")
}

// A pause does not stop what was handed out.
func TestAPauseKeepsNobodyFromRunningWhoWasHandedOut(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	r.present("one", [2]time.Duration{ever, 0})
	_, job := r.oneJob("v1", "gin")
	require.Len(t, r.handOutUpTo(5), 1)
	r.ago(job, time.Hour)
	r.execute(`update job_queue set handed_out_at = now() - interval '55 minutes'`)
	r.execute(`insert into queue_pause (project, paused_by, paused_at, reason) values ($1, 'ada', now() - interval '57 minutes', 'why')`, project)
	plan := r.start(job, 1, c)
	minutes(t, 58, plan.Wait.Waited, "but for two minutes")
	minutes(t, 2, plan.Wait.Blocked[waittime.Pause], "until it was handed out")
}

// A job that moves waits where it is: in its first pool, without a collector, it could not run.
func TestAMovedJobWaitsWhereItIs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	r.present("one", [2]time.Duration{ever, 50 * time.Minute})
	r.silent("one", 50*time.Minute)
	c := r.registerIn("two", large, "zen5")
	r.present("two", [2]time.Duration{ever, 0})
	_, job := r.oneJob("v1", "gin")
	r.ago(job, time.Hour)
	require.True(t, r.move(job.Key, small, large))
	r.execute(`update job_queue set moved_at = now() - interval '20 minutes'`)
	plan := r.start(job, 1, c)
	minutes(t, 30, plan.Wait.Waited, "ten minutes in the first pool, 20 in the other")
	minutes(t, 30, plan.Wait.Blocked[waittime.Collector], "in the first pool")
	require.Equal(t, large.TaskQueue(), plan.Wait.Pool)
}

// Periods in which collectors could take jobs follow from their heartbeats.
func TestPresenceFollowsHeartbeats(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	beat := func() {
		t.Helper()
		_, err := r.Heartbeat(t.Context(), "one", c.Epoch, "", nil)
		require.NoError(t, err)
	}
	periods := func() int { return r.count(`select count(*) from collector_presence where collector = 'one'`) }
	beat()
	r.silent("one", 20*time.Second)
	beat()
	require.Equal(t, 1, periods(), "it was live all the time")
	r.present("one", [2]time.Duration{ever, 0})
	r.silent("one", time.Hour)
	require.Equal(t, 1, periods())
	known, err := r.PoolKnown(t.Context(), small.Name)
	require.NoError(t, err)
	require.True(t, known)
	beat()
	require.Equal(t, 2, periods())
	require.Equal(t, 1, r.count(`select count(*) from collector_presence where until between now() - interval '61 minutes' and now() - interval '59 minutes'`))

	// Drained, it takes none, though it is heard of.
	require.NoError(t, r.SetActive(t.Context(), "one", false))
	r.execute(`update collector_config set available_at = available_at - interval '10 minutes'`)
	r.execute(`update collector_presence set since = since - interval '20 minutes' where until is null`)
	beat()
	require.Equal(t, 2, periods())
	require.NoError(t, r.SetActive(t.Context(), "one", true))
	beat()
	require.Equal(t, 3, periods())

	// In another pool it serves another task queue; removed, none.
	moved := collector("one")
	moved.Pool = "other"
	c, err = r.RegisterCollector(t.Context(), moved, offline)
	require.NoError(t, err)
	require.Equal(t, 1, r.count(`select count(*) from collector_presence where until is null and task_queue = $1`,
		bench.Pool{Target: target, SizeClass: small.SizeClass, Name: "other"}.TaskQueue()))
	require.NoError(t, r.RemoveCollector(t.Context(), "one"))
	require.Zero(t, r.count(`select count(*) from collector_presence where until is null`))
	require.Equal(t, 4, periods())

	// What ended long ago is removed by what follows.
	r.execute(`update collector_presence set since = since - interval '1 year', until = until - interval '91 days'`)
	r.register("one")
	r.silent("one", time.Hour)
	c = r.collector("one")
	beat()
	require.Equal(t, 2, periods())
	known, err = r.PoolKnown(t.Context(), "none-such")
	require.NoError(t, err)
	require.False(t, known)
}

// The wait of a job that only some collectors can run ends with the presence of one of these.
func TestASetIsServedByItsMembers(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	r.present("one", [2]time.Duration{ever, 0})
	c := r.registerCard("two")
	r.present("two", [2]time.Duration{20 * time.Minute, 0})
	_, job := r.command("v1", bench.Place{Pool: small, Set: []string{"two"}}, bench.Constraints{Devices: []string{"gpu"}}, 0)
	r.ago(job, time.Hour)
	plan := r.start(job, 1, c)
	minutes(t, 20, plan.Wait.Waited, "since its machine was there")
	minutes(t, 40, plan.Wait.Blocked[waittime.Collector], "the other cannot run it")
	require.Equal(t, small.TaskQueue(), plan.Wait.Pool, "it counts for the pool in which it ran")
}

// Reading the waits of a day reads those of a day, and jobs of a batch as one sample.
func TestWaitsReadOnlyTheirPeriod(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	_, job := r.oneJob("v1", "gin")
	run := r.start(job, 1, c).Run
	r.execute(`
		insert into job_run (id, job_id, number, reason, size_class, pool, collector, epoch, version, hardware_id, co_located, facts, outcome, started_at, finished_at)
		select 'old-' || i, job_id, 10 + i, reason, size_class, pool, collector, epoch, version, hardware_id, co_located, facts, 'lost', now(), now()
		from job_run, generate_series(1, 5000) i where id = $1`, run.ID)
	r.execute(`
		insert into run_wait select n.id, w.project, w.queue, w.pool, w.ready_at, now() - interval '2 days' - n.number * interval '1 minute', 1, 0, 0, 0, 0
		from job_run n, run_wait w where n.id like 'old-%'`)
	r.execute(`analyze run_wait`)
	before := r.reads("run_wait")
	r.counted(func(s *store.Store) {
		w, err := s.Waits(t.Context(), 24*time.Hour, store.WaitFilter{})
		require.NoError(t, err)
		require.Len(t, w.Samples, 1)
	})
	require.Less(t, r.reads("run_wait")-before, 50)

	many := batch(t, 2)
	many.Deferred = true
	r.waiting(r.inProgress(many), "user:ada", "ada", 3000)
	w, err := r.Waits(t.Context(), 24*time.Hour, store.WaitFilter{Queue: "user:ada"})
	require.NoError(t, err)
	require.Len(t, w.Samples, 1)
	require.Equal(t, 3000, w.Samples[0].Jobs)
}

func TestRequestsAreTimedFromTheirCause(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ended := func(tag, submitter, times string) {
		t.Helper()
		request := release(t, tag)
		request.Type, request.Submitter = bench.Master, submitter
		r.complete(r.inProgress(request), bench.Success)
		r.execute(`update benchmark_request set `+times+` where tag = $1`, tag)
	}
	const now = `completed_at = now(), created_at = now() - interval '30 minutes', admitted_at = now() - interval '20 minutes'`
	ended("a", bench.CommitSubmitter, now+`, commit_date = now() - interval '90 minutes'`) // 90, turn after 70
	ended("b", bench.CommitSubmitter, now+`, commit_date = now() + interval '1 day'`)      // a commit's clock is wrong: 30, turn after 10
	ended("c", "ada", now+`, commit_date = now() - interval '1 year'`)                     // an old commit that somebody asks for: 30, turn after 10
	ended("d", "ada", now+`, reopened_at = now() - interval '25 minutes'`)                 // opened again: 25, turn after 5
	ended("e", "ada", now+`, outcome = 'cancelled'`)
	ended("f", "ada", `completed_at = now() - interval '25 hours', created_at = now() - interval '30 hours'`)
	found, err := r.EndToEnd(t.Context(), 24*time.Hour, "")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, []any{project, bench.Master, 4}, []any{found[0].Project, found[0].Type, found[0].Requests})
	for _, c := range []struct {
		want int
		got  float64
		what string
	}{{30, found[0].Median, "median"}, {90, found[0].Ninth, "nine tenths"}, {90, found[0].Longest, "longest"}, {10, *found[0].Admission, "until its turn"}} {
		minutes(t, c.want, time.Duration(c.got*float64(time.Second)), c.what)
	}
	found, err = r.EndToEnd(t.Context(), 24*time.Hour, "other")
	require.NoError(t, err)
	require.Empty(t, found)
}
