package store_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// waiting writes n jobs of a request as waiting rows, without test cases.
func (r record) waiting(request bench.Request, queue, submitter string, n int) {
	r.t.Helper()
	r.execute(`
		with artifact_of as (insert into artifact (project, tag) values ($1, gen_random_uuid()::text) returning id),
		written as (
			insert into job_queue (project, key, artifact_id, kind, target, test_cases, iterations, size_class, pool, task_queue, queue, status, request_created, submitter, command, submitted_with)
			select $1, replace(gen_random_uuid()::text, '-', ''), a.id, 'command', $2::text, jsonb_build_array(jsonb_build_object('benchmark', 'command', 'target', $2::text)), 1, 2, 'small', $3, $4, 'queued', $5, $6, '{"argv": ["x"]}', case when $9 then $8 end from artifact_of a, generate_series(1, $7::int)
			returning id)
		insert into request_job (request_id, job_id, stage) select $8, id, 'own' from written`,
		project, target, small.TaskQueue(), queue, request.CreatedAt, submitter, n, request.ID, request.Deferred)
}

func depth(n int) store.HandOutOptions {
	return store.HandOutOptions{Depth: func(int) int { return n }}
}

// handOutUpTo hands out until nothing remains.
func (r record) handOutUpTo(n int) []bench.HandOut {
	r.t.Helper()
	return handOutAll(r.t, r.Store, n)
}

func handOutAll(t *testing.T, s *store.Store, n int) []bench.HandOut {
	t.Helper()
	var all []bench.HandOut
	for {
		out, err := s.HandOut(t.Context(), small.TaskQueue(), depth(n))
		all = append(all, out...)
		if !errors.Is(err, store.ErrMore) {
			require.NoError(t, err)
			return all
		}
	}
}

func perQueue(out []bench.HandOut) map[string]int {
	n := map[string]int{}
	for _, h := range out {
		n[h.Queue]++
	}
	return n
}

// reads returns how many rows of a table were read so far. Reads of a session are counted
// when it has ended, so reads waits for the test's own sessions.
func (r record) reads(table string) int {
	r.t.Helper()
	conn := r.connect()
	query := func(sql string, args ...any) (n int) {
		require.NoError(r.t, conn.QueryRow(r.t.Context(), sql, args...).Scan(&n))
		return n
	}
	for query(`select count(*) from pg_stat_activity where datname = current_database() and application_name = $1 and pid <> pg_backend_pid()`, aside) > 0 {
		time.Sleep(5 * time.Millisecond)
	}
	n := query(`select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = $1`, table)
	require.NoError(r.t, conn.Close(r.t.Context()))
	return n
}

// counted opens the store for do, and returns when the reads of do are counted.
func (r record) counted(do func(s *store.Store)) {
	r.t.Helper()
	at, err := url.Parse(r.url)
	require.NoError(r.t, err)
	params := at.Query()
	params.Set("application_name", "counted")
	at.RawQuery = params.Encode()
	other, err := store.Open(r.t.Context(), at.String())
	require.NoError(r.t, err)
	do(other)
	other.Close()
	// A session reports its reads before it disappears.
	require.Eventually(r.t, func() bool {
		return r.count(`select count(*) from pg_stat_activity where datname = current_database() and application_name = 'counted'`) == 0
	}, 2*time.Minute, 20*time.Millisecond)
}

// A connection keeps the plans that it made while hardly anything waited.
func TestHandOutReadsNoMoreByOldPlans(t *testing.T) {
	t.Parallel()
	const queues, waiting, most = 20, 1000, 10
	r := newRecord(t)
	r.register("bench-0")
	request := r.inProgress(release(t, "v1"))
	r.waiting(request, "user:first", "first", 1)
	start, written := r.reads("job_queue"), 0
	r.counted(func(s *store.Store) {
		out, err := s.HandOut(t.Context(), small.TaskQueue(), depth(most))
		require.NoError(t, err)
		require.Len(t, out, 1)
		before := r.reads("job_queue")
		for i := range queues {
			name := fmt.Sprint("user", i)
			r.waiting(request, "user:"+name, name, waiting)
		}
		written = r.reads("job_queue") - before // rows that refer to the jobs
		for range 3 {
			out, err = s.HandOut(t.Context(), small.TaskQueue(), depth(most))
			require.NoError(t, err)
		}
		require.Empty(t, out)
	})
	require.LessOrEqual(t, r.reads("job_queue")-start-written, 15*queues*most)
}

func TestManyHeldJobsDelayNoOthers(t *testing.T) {
	t.Parallel()
	holdMany(t, 6000)
}

func TestLongManyHeldJobsDelayNoOthers(t *testing.T) {
	t.Parallel()
	holdMany(t, 10_000)
}

// holdMany hands out beside a backlog of held jobs: more than one call looks at.
func holdMany(t *testing.T, backlog int) {
	t.Helper()
	r := newRecord(t)
	r.waiting(r.inProgress(release(t, "v1")), "user:ada", "ada", backlog)
	_, err := r.ApplyProject(t.Context(), store.Project{Name: "other", Config: []byte(`{}`)})
	require.NoError(t, err)
	_, err = r.PauseQueue(t.Context(), project, store.Act{Who: "ops", Reason: "for a test"})
	require.NoError(t, err)
	late := release(t, "v2")
	late.Type, late.Project = bench.AdHoc, "other"
	later := r.inProgress(late)
	r.waiting(later, "user:ada", "ada", 1)
	r.waiting(later, "vip", "bob", 1)
	r.execute(`update job_queue set project = 'other' where id > (select max(id) - 2 from job_queue)`)
	r.execute(`analyze job_queue`)

	r.counted(func(s *store.Store) {
		out, err := s.HandOut(t.Context(), small.TaskQueue(), depth(4))
		require.ErrorIs(t, err, store.ErrMore, "others may hand out in between")
		require.Equal(t, map[string]int{"vip": 1}, perQueue(out), "it does not wait for what is still to be looked at")
		require.LessOrEqual(t, r.count(`select count(*) from job_queue where held <> ''`), 2500)
		require.Equal(t, map[string]int{"user:ada": 1}, perQueue(handOutAll(t, s, 4)))
	})
	require.Equal(t, backlog, r.count(`select count(*) from job_queue where held = 'pause'`))

	// A sweep does not read jobs that stay held, also when Postgres knows how many they are.
	r.execute(`analyze job_queue`)
	before := r.reads("job_queue")
	r.counted(func(s *store.Store) { require.NoError(t, s.ReleaseHeld(t.Context())) })
	require.Less(t, r.reads("job_queue")-before, 100)

	// Of the jobs held until their request starts a sweep reads some, and the next
	// continues behind them.
	r.execute(`update benchmark_request set status = 'artifacts_ready' where project = $1`, project)
	r.execute(`update job_queue set held = 'turn', status = 'queued'`)
	before = r.reads("request_job")
	r.counted(func(s *store.Store) {
		require.NoError(t, s.ReleaseHeld(t.Context()))
		require.NoError(t, s.ReleaseHeld(t.Context()))
		require.NoError(t, s.ReleaseHeld(t.Context()))
	})
	require.Less(t, r.reads("request_job")-before, 2*backlog)
	require.Equal(t, 2, r.count(`select count(*) from job_queue where held = ''`))
}

func TestHandOutSkipsUnsizedJobs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "idle", "ada", 1500)
	r.waiting(q, "user:ada", "ada", 50)
	r.execute(`update job_queue set shape = 's'`)
	r.execute(`analyze job_queue`)
	unsized, err := r.Unsized(t.Context(), small.TaskQueue(), 4, 16)
	require.NoError(t, err)
	require.Len(t, unsized, 20, "of a strict queue as many as are to wait in Temporal")
	var keys []bench.JobKey
	for _, j := range unsized {
		keys = append(keys, j.Key)
	}
	r.execute(`update job_queue set selected_at = now() where key = any($1) and id <> (select min(id) from job_queue)`, keys)
	before := r.reads("job_queue")
	r.counted(func(s *store.Store) {
		how := depth(4)
		how.Strict, how.Sized = func(int) int { return 16 }, true
		out, err := s.HandOut(t.Context(), small.TaskQueue(), how)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"idle": 15, "user:ada": 4}, perQueue(out))
	})
	require.Less(t, r.reads("job_queue")-before, 500)
}

func TestHandOutSkipsLockedJobs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "user:ada", "ada", 3)
	_, err := r.PauseQueue(t.Context(), project, store.Act{Who: "ops", Reason: "for a test"})
	require.NoError(t, err)
	ids := r.jobIDs(q.ID)
	slices.Sort(ids)
	// The youngest job has the first ID.
	r.execute(`update job_queue set request_created = now() + interval '1 hour' where id = $1`, ids[0])

	conn, err := pgx.Connect(t.Context(), r.url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from job_queue where id = $1 for update`, ids[0])
	require.NoError(t, err)
	handed := make(chan error, 1)
	go func() {
		_, err := r.HandOut(t.Context(), small.TaskQueue(), depth(1))
		handed <- err
	}()
	require.Eventually(t, func() bool {
		return len(handed) > 0 || r.count(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) > 0
	}, 2*time.Minute, 5*time.Millisecond)
	_, err = tx.Exec(t.Context(), `select from job_queue where id = any($1) order by id for update`, ids[1:])
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-handed)
}

func TestHandOutReadsOnlyWhatItHandsOut(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "user:ada", "ada", 5000)
	r.waiting(q, "user:bob", "bob", 5)
	r.waiting(q, "user:eve", "eve", 1)
	// With and without statistics of the table.
	for _, prepare := range []string{`select 1`, `analyze job_queue`} {
		r.execute(prepare)
		before := r.reads("job_queue")
		other, err := store.Open(t.Context(), r.url)
		require.NoError(t, err)
		out, err := other.HandOut(t.Context(), small.TaskQueue(), depth(4))
		require.NoError(t, err)
		require.Equal(t, map[string]int{"user:ada": 4, "user:bob": 4, "user:eve": 1}, perQueue(out))
		again, err := other.HandOut(t.Context(), small.TaskQueue(), depth(4))
		require.NoError(t, err)
		require.Empty(t, again)
		queues, err := other.WaitingTaskQueues(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{small.TaskQueue()}, queues)
		other.Close()
		// A session reports its reads soon after it has ended.
		require.Eventually(t, func() bool { return r.reads("job_queue") > before }, 2*time.Minute, 20*time.Millisecond)
		require.Less(t, r.reads("job_queue")-before, 500)
		r.execute(`update job_queue set status = 'queued' where status = 'handed_out'`)
	}
}

func TestHandOutUsesPresentWeightsAndLevels(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	for queue, submitter := range map[string]string{"user:ada": "ada", "vip": "ada", "idle": "ada", "single-build": "bob", "user:bob": "bob"} {
		r.waiting(q, queue, submitter, 1)
	}
	r.execute(`insert into queue_config (name, class, weight, level, updated_by) values
		('single-build', 'strict', 1, 2, 'ops'), ('user:ada', 'weighted', 50, 3, 'ops')`)
	r.execute(`insert into account_limit (account, first_level, updated_by) values ('bob', 4, 'ops')`)
	got := map[string][2]float64{}
	for _, h := range r.handOutUpTo(4) {
		got[h.Queue] = [2]float64{h.Weight, float64(h.Priority)}
	}
	require.Equal(t, map[string][2]float64{
		"user:ada": {50, 3}, "vip": {1, 1}, "idle": {1, 5}, "single-build": {1, 4}, "user:bob": {1, 4},
	}, got)
	require.Equal(t, 5, r.count(`select count(*) from job_queue j where (j.weight, j.priority) in ((50, 3), (1, 1), (1, 5), (1, 4))`), "for whoever asks later")
}

func TestBegunJobsGoFirst(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "user:ada", "ada", 3)
	r.execute(`update job_queue set started_at = now() where id = (select max(id) from job_queue)`)
	out := r.handOutUpTo(1)
	require.Len(t, out, 1)
	require.Equal(t, 1, r.count(`select count(*) from job_queue where key = $1 and id = (select max(id) from job_queue)`, out[0].Job))
}

func TestAnAccountRunsNoMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "idle", "ada", 5) // the first by name, the last by level
	r.waiting(q, "user:ada", "ada", 5)
	r.waiting(q, "single-build", "ada", 5)
	r.waiting(q, "single-build", "bob", 2)
	r.execute(`insert into account_limit (account, max_running, updated_by) values ('*', 3, 'ops'), ('bob', null, 'ops')`)

	// Bob, who has no limit, overtakes ada's jobs in the same queue.
	out := r.handOutUpTo(6)
	require.Len(t, out, 5)
	require.Equal(t, 3, r.count(`select count(*) from job_queue where submitter = 'ada' and status = 'handed_out'`))
	require.Equal(t, 2, r.count(`select count(*) from job_queue where submitter = 'bob' and status = 'handed_out'`))
	require.Zero(t, r.count(`select count(*) from job_queue where queue = 'idle' and status = 'handed_out'`))
	require.Empty(t, r.handOutUpTo(10))

	// The limit covers all task queues.
	r.execute(`update job_queue set task_queue = 'bench/other' where queue = 'user:ada' and status = 'queued'`)
	other, err := r.HandOut(t.Context(), "bench/other", depth(4))
	require.NoError(t, err)
	require.Empty(t, other)

	// A job's end frees the limit for another one, in any task queue.
	_, err = r.FinishJob(t.Context(), out[0].Job, 0, "enough")
	require.NoError(t, err)
	queues, err := r.ReleaseLimited(t.Context(), "ada")
	require.NoError(t, err)
	require.Equal(t, []string{"bench/other", small.TaskQueue()}, queues)
	require.Len(t, r.handOutUpTo(10), 1)
	none, err := r.ReleaseLimited(t.Context(), "bob")
	require.NoError(t, err)
	require.Empty(t, none, "nothing kept bob from going")

	// Without the limit all are handed out.
	r.execute(`delete from account_limit`)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.NotEmpty(t, r.handOutUpTo(10))
	require.Zero(t, r.count(`select count(*) from job_queue where held <> ''`))
}

// Jobs without a live collector do not count towards a limit: neither in a pool whose
// machine died, nor in the task queue of a set whose only member was removed.
func TestStrandedJobsDoNotCountTowardsALimit(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	q := r.inProgress(release(t, "v1"))
	r.execute(`insert into account_limit (account, max_running, updated_by) values ('ada', 2, 'ops')`)
	at := func(taskQueue string, n int) {
		r.waiting(q, "user:ada", "ada", n)
		r.execute(`update job_queue set task_queue = $1 where id > (select max(id) from job_queue) - $2`, taskQueue, n)
	}
	at("bench/dead", 3)
	at("bench/set", 1)
	r.execute(`insert into collector_set (task_queue, target, size_class, collectors) values ('bench/set', $1, 2, '{gone}')`, target)
	handOut := func(taskQueue string) int {
		out, err := r.HandOut(t.Context(), taskQueue, depth(4))
		require.NoError(t, err)
		return len(out)
	}
	require.Equal(t, 2, handOut("bench/dead"), "never more than the limit, wherever it is")
	require.Zero(t, handOut("bench/set"))

	at(small.TaskQueue(), 4)
	require.Equal(t, 2, handOut(small.TaskQueue()))
	require.Zero(t, handOut(small.TaskQueue()), "these count")
	require.Zero(t, handOut("bench/dead"))

	// A running job counts until its run has ended.
	r.execute(`update job_queue set task_queue = 'bench/dead', status = 'in_progress', started_at = now()
		where id = (select min(id) from job_queue where task_queue = $1 and status = 'handed_out')`, small.TaskQueue())
	r.execute(`insert into job_run (id, job_id, number, reason, size_class, pool, collector, epoch, version, hardware_id, co_located, facts)
		select 'run', id, 1, 'scheduled', 2, 'small', 'gone', 1, '1', 'zen4', false, '{}' from job_queue where status = 'in_progress'`)
	require.Zero(t, handOut(small.TaskQueue()))
	r.execute(`update job_run set outcome = 'lost', finished_at = now()`)
	require.Equal(t, 1, handOut(small.TaskQueue()))

	// Held jobs are released when a machine dies.
	r.execute(`update job_queue set held = 'cap' where status = 'queued'`)
	r.execute(`update collector_config set last_heartbeat = now() - interval '1 hour' where name = $1`, c.Name)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.NotZero(t, r.count(`select count(*) from job_queue where status = 'queued' and held = ''`))
}

func TestAnAccountAtItsLimitDelaysNoOthersInItsQueue(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "user:ada", "ada", 10)
	r.waiting(q, "user:ada", "watch", 1) // a project's, whose queue is ada's
	r.execute(`insert into account_limit (account, max_running, updated_by) values ('ada', 1, 'ops')`)
	require.Len(t, r.handOutUpTo(4), 2)
	require.Equal(t, 1, r.count(`select count(*) from job_queue where status = 'handed_out' and submitter = 'watch'`))
}

func TestACancelledJobThatStillRunsCounts(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	r.execute(`insert into account_limit (account, max_running, updated_by) values ('ada', 1, 'ops')`)
	cancelled, job := r.oneJob("v1", "gin")
	next := r.inProgress(release(t, "v2"))
	r.expand(next, newJob(next, "gin"))
	r.execute(`update job_queue set submitter = 'ada'`)
	require.Len(t, r.handOutUpTo(4), 1)
	plan := r.start(job, 1, one)
	require.Empty(t, r.handOutUpTo(4))
	_, err := r.CancelRequest(t.Context(), cancelled.ID, "ada", "")
	require.NoError(t, err)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Empty(t, r.handOutUpTo(4), "its machine is still ada's")
	r.execute(`update job_run set outcome = 'cancelled', finished_at = now() where id = $1`, plan.Run.ID)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Len(t, r.handOutUpTo(4), 1)
}

func TestConcurrentHandOutsKeepALimit(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	queues := []string{small.TaskQueue(), "bench/b", "bench/c", "bench/d"}
	for _, taskQueue := range queues {
		r.waiting(q, "user:ada", "ada", 4)
		r.execute(`update job_queue set task_queue = $1 where id > (select max(id) - 4 from job_queue)`, taskQueue)
	}
	r.execute(`insert into account_limit (account, max_running, updated_by) values ('ada', 5, 'ops')`)
	for _, err := range together(8, func(i int) error {
		_, err := r.HandOut(t.Context(), queues[i%len(queues)], depth(4))
		return err
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, 5, r.count(`select count(*) from job_queue where status = 'handed_out'`))
}

func TestHeldJobsAreSkippedUntilReleased(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "user:ada", "ada", 2500)
	_, err := r.ApplyProject(t.Context(), store.Project{Name: "other", Config: []byte(`{}`)})
	require.NoError(t, err)
	_, err = r.PauseQueue(t.Context(), project, store.Act{Who: "ops", Reason: "for a test"})
	require.NoError(t, err)

	// A later job of another project, which is not paused.
	late := release(t, "v2")
	late.Type, late.Project = bench.AdHoc, "other"
	second := r.inProgress(late)
	r.waiting(second, "user:ada", "ada", 3)
	r.execute(`update job_queue set project = 'other' where id > (select max(id) - 3 from job_queue)`)
	require.Len(t, r.handOutUpTo(2), 2)
	require.Equal(t, 2500, r.count(`select count(*) from job_queue where held = 'pause'`), "each was looked at once")

	_, err = r.ResumeQueue(t.Context(), project, store.Act{Who: "ops", Reason: "it is over"})
	require.NoError(t, err)
	require.Zero(t, r.count(`select count(*) from job_queue where held <> ''`))
	require.Len(t, r.handOutUpTo(4), 2)

	// Jobs of a reopened request are handed out after its admission.
	r.execute(`update job_queue set status = 'queued' where status = 'handed_out'`)
	r.execute(`update benchmark_request set status = 'artifacts_ready' where id = $1`, q.ID)
	require.Len(t, r.handOutUpTo(4), 3, "only the other's")
	require.Equal(t, 2500, r.count(`select count(*) from job_queue where held = 'turn'`))
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Equal(t, 2500, r.count(`select count(*) from job_queue where held = 'turn'`), "it has none yet")
	admitted, err := r.Admit(t.Context(), project, 1000, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{q.ID}}, nil
	})
	require.NoError(t, err)
	require.Len(t, admitted, 1)
	require.Len(t, r.handOutUpTo(4), 1)

	// A sweep releases jobs whose event was missed.
	r.execute(`update job_queue set held = 'turn' where status = 'queued'`)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Zero(t, r.count(`select count(*) from job_queue where held <> ''`))
}

func TestADeferredRequestNeedsNoWorkflowBeforeItsFirstHandOut(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	deferred := batch(t, 2)
	deferred.Deferred = true
	q := r.inProgress(deferred)
	r.waiting(q, "user:ada", "ada", 2)
	open := func() []bench.RequestID {
		requests, err := r.OpenRequests(t.Context(), time.Second)
		require.NoError(t, err)
		var ids []bench.RequestID
		for _, o := range requests {
			ids = append(ids, o.ID)
		}
		return ids
	}
	require.Empty(t, open())
	require.Len(t, r.handOutUpTo(1), 1)
	require.Empty(t, open(), "its start is under way")
	r.execute(`update job_queue set handed_out_at = now() - interval '1 minute' where status = 'handed_out'`)
	require.Equal(t, []bench.RequestID{q.ID}, open(), "its start got lost")
	require.NoError(t, r.MarkWorkflowStarted(t.Context(), q.ID))
	require.Equal(t, []bench.RequestID{q.ID}, open())

	// Cancelled while its jobs waited, the request still needs a workflow to complete it.
	deferred = batch(t, 2)
	deferred.Deferred = true
	second := r.inProgress(deferred)
	r.waiting(second, "user:ada", "ada", 2)
	require.Equal(t, []bench.RequestID{q.ID}, open())
	r.execute(`update job_queue set status = 'cancelled', completed_at = now() where id in (select job_id from request_job where request_id = $1)`, second.ID)
	require.Equal(t, []bench.RequestID{q.ID, second.ID}, open())
}
