package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// The position is that in hand-out order.
func TestAJobsPositionInItsQueue(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.randomWork(300)
	conn, err := pgx.Connect(t.Context(), r.url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	type row struct {
		Key              bench.JobKey
		TaskQueue, Queue string
	}
	rows, err := conn.Query(t.Context(), `select key, task_queue, queue from job_queue where status = 'queued'
		order by task_queue, queue, started_at is null, request_created, id`)
	require.NoError(t, err)
	waiting, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	count := make(map[row]int)
	for _, w := range waiting {
		count[row{TaskQueue: w.TaskQueue, Queue: w.Queue}]++
	}
	seen := make(map[row]int)
	for _, w := range waiting {
		where := row{TaskQueue: w.TaskQueue, Queue: w.Queue}
		place, err := r.QueuePosition(t.Context(), w.Key)
		require.NoError(t, err)
		require.Equal(t, seen[where], place.Before, w.Key)
		require.Equal(t, count[where], place.Waiting, w.Key)
		require.Equal(t, w.Queue == "vip", place.Entitled == nil)
		const open = ` from job_queue where task_queue = $1 and status in ('queued', 'handed_out', 'in_progress') and `
		vips, others := r.count(`select count(distinct queue)`+open+`queue = 'vip'`, w.TaskQueue), r.count(`select count(distinct queue)`+open+`queue <> 'vip'`, w.TaskQueue)
		if w.Queue == "vip" {
			require.Empty(t, place.Earlier)
			require.Empty(t, place.Beside)
		} else {
			require.Len(t, place.Earlier, vips)
			require.Len(t, place.Beside, others-1)
		}
		seen[where]++
	}
	require.Greater(t, len(waiting), 30)
	_, err = r.QueuePosition(t.Context(), "nothing")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestAccountLimitsDecideAQueuesPosition(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	q := r.inProgress(release(t, "v1"))
	r.waiting(q, "user:ada", "ada", 3)
	r.waiting(q, "user:bob", "bob", 3)
	r.execute(`insert into account_limit (account, first_level, updated_by) values ('ada', 4, 'ops')`)
	standing := func() (levels map[string]int, shares map[string]float64) {
		levels, shares = map[string]int{}, map[string]float64{}
		found, err := r.Shares(t.Context(), store.ByQueue, time.Hour)
		require.NoError(t, err)
		for _, s := range found {
			if levels[s.Name] = s.Level; s.Entitled != nil {
				shares[s.Name] = *s.Entitled
			}
		}
		return levels, shares
	}
	levels, shares := standing()
	handed := map[string]int{}
	for _, h := range r.handOutUpTo(1) {
		handed[h.Queue] = h.Priority
	}
	require.Equal(t, map[string]int{"user:ada": 4, "user:bob": 3}, handed)
	require.Equal(t, handed, levels, "as they are handed out")
	require.Empty(t, shares, "bob's go first, all of them")
	of := func(queue string) store.QueuePosition {
		jobs, err := r.RequestJobs(t.Context(), q.ID)
		require.NoError(t, err)
		i := slices.IndexFunc(jobs, func(j bench.Job) bool { return j.Queue == queue })
		place, err := r.QueuePosition(t.Context(), jobs[i].Key)
		require.NoError(t, err)
		return place
	}
	require.Equal(t, store.QueuePosition{Class: "weighted", Weight: 1, OwnLevel: 3, Level: 4, Waiting: 2, HandedOut: 1, Earlier: []string{"user:bob"}, Beside: []string{}}, of("user:ada"))
	require.Equal(t, store.QueuePosition{Class: "weighted", Weight: 1, OwnLevel: 3, Level: 3, Waiting: 2, HandedOut: 1, Earlier: []string{}, Beside: []string{}}, of("user:bob"))

	r.execute(`update account_limit set account = '*'`)
	levels, shares = standing()
	require.Equal(t, map[string]int{"user:ada": 4, "user:bob": 4}, levels)
	require.Equal(t, map[string]float64{"user:ada": 0.5, "user:bob": 0.5}, shares)
	require.Equal(t, []string{"user:bob"}, of("user:ada").Beside)
}

func TestRequestsThatWaitForAJob(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	first, job := r.oneJob("v1", "gin")
	second := r.create(bench.Request{
		ID: newID(t), Project: project, Type: bench.Master, Tag: "c2",
		Submission: bench.Submission{Submitter: "ada"},
		Origin:     bench.Origin{Parent: "v1"},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	})
	r.execute(`insert into request_job (request_id, job_id, stage) select $1, id, 'parent' from job_queue where key = $2`, second.ID, job.Key)
	waiters, err := r.JobWaiters(t.Context(), job.Key)
	require.NoError(t, err)
	require.Equal(t, []store.JobWaiter{{ID: first.ID, InTurn: true}, {ID: second.ID}}, waiters)
	require.NoError(t, r.CompleteRequest(t.Context(), first.ID, bench.Cancelled, "", nil, ""))
	waiters, err = r.JobWaiters(t.Context(), job.Key)
	require.NoError(t, err)
	require.Equal(t, []store.JobWaiter{{ID: second.ID}}, waiters)

	members, err := r.SetMembers(t.Context(), job.TaskQueue)
	require.NoError(t, err)
	require.Empty(t, members, "a pool's task queue")
	r.execute(`insert into collector_set (task_queue, target, size_class, collectors) values ('bench/set', $1, 1, '{c2,c1}')`, target)
	members, err = r.SetMembers(t.Context(), "bench/set")
	require.NoError(t, err)
	require.Equal(t, []string{"c1", "c2"}, members)
}

func TestLimitsInForceForAnAccount(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	state := func(account, branch string) store.AccountHold {
		t.Helper()
		a, err := r.AccountHold(t.Context(), account, branch)
		require.NoError(t, err)
		return a
	}
	require.Equal(t, store.AccountHold{FirstLevel: 1}, state("ada", "main"))
	r.execute(`insert into account_limit (account, branch, max_running, first_level, updated_by)
		values ('*', '*', 7, 2, 'root'), ('ada', '*', 2, 1, 'root'), ('*', 'wip', null, 4, 'root')`)
	r.oneJob("v1", "gin")
	r.execute(`update job_queue set submitter = 'ada', status = 'handed_out'`)
	two, seven := 2, 7
	require.Equal(t, store.AccountHold{MaxRunning: &two, Stranded: 1, FirstLevel: 1}, state("ada", "main"), "there is nobody who could take it")
	r.register("c1")
	require.Equal(t, store.AccountHold{MaxRunning: &two, UnderWay: 1, FirstLevel: 1}, state("ada", "main"))
	require.Equal(t, store.AccountHold{MaxRunning: &two, UnderWay: 1, FirstLevel: 4}, state("ada", "wip"))
	require.Equal(t, store.AccountHold{MaxRunning: &seven, FirstLevel: 2}, state("eve", ""))
}
