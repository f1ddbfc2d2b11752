package store_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// fiveQueues configures queues of all levels, and the earliest levels of bob and eve.
func (r record) fiveQueues() {
	r.t.Helper()
	r.execute(`insert into queue_config (name, class, weight, level, updated_by) values
		('urgent', 'strict', 1, 1, 'ops'), ('soon', 'strict', 1, 2, 'ops'), ('fair', 'weighted', 1, 3, 'ops'), ('later', 'strict', 1, 4, 'ops'), ('idle', 'strict', 1, 5, 'ops')`)
	r.execute(`insert into account_limit (account, branch, first_level, updated_by) values ('bob', '*', 3, 'ops'), ('eve', '*', 2, 'ops'), ('eve', 'try', 4, 'ops')`)
}

// submitted is a request of an account in progress with one job for each benchmark.
func (r record) submitted(account, branch, tag string, benchmarks ...string) (bench.Request, []bench.Job) {
	r.t.Helper()
	request := release(r.t, tag)
	request.Submitter, request.Branch = account, branch
	request = r.inProgress(request)
	var jobs []bench.Job
	for _, b := range benchmarks {
		j := newJob(request, b)
		j.Queue, j.Submitter, j.Branch = "later", account, branch
		jobs = append(jobs, j)
	}
	require.NoError(r.t, r.ExpandRequest(r.t.Context(), request.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(jobs...), Queue: "later"}))
	return request, jobs
}

func by(account string) store.Act { return store.Act{Who: account, Reason: "for a test"} }

func TestJobsArePutIntoAnotherQueue(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.fiveQueues()
	request, jobs := r.submitted("ada", "", "b", "gin", "kit")
	done, err := r.SetQueue(t.Context(), request.ID, "urgent", nil, by("ada"))
	require.NoError(t, err)
	require.Equal(t, []any{true, 2, "2 jobs put into queue urgent, where its later jobs will wait, too"}, []any{done.Result.Changed, done.Result.Jobs, done.Result.Message})
	require.Equal(t, "urgent", r.request(request.ID).Queue)
	again, err := r.SetQueue(t.Context(), request.ID, "urgent", nil, by("ada"))
	require.NoError(t, err)
	require.False(t, again.Result.Changed)
	handed, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 1 }})
	require.NoError(t, err)
	require.Equal(t, []any{"urgent", 1}, []any{handed[0].Queue, handed[0].Priority})

	// One alone, also while it waits in Temporal; what runs stays.
	one, err := r.SetQueue(t.Context(), request.ID, "idle", []bench.JobKey{handed[0].Job}, by("ada"))
	require.NoError(t, err)
	require.Equal(t, "1 job put into queue idle", one.Result.Message)
	require.Equal(t, "urgent", r.request(request.ID).Queue, "the request's own stays")
	r.execute(`update job_queue set status = 'handed_out' where key = $1`, string(jobs[1].Key))
	c := r.register("bench-1")
	r.start(jobs[0], 1, c)
	kept, err := r.SetQueue(t.Context(), request.ID, "soon", []bench.JobKey{jobs[0].Key}, by("ada"))
	require.NoError(t, err)
	require.False(t, kept.Result.Changed)

	_, err = r.SetQueue(t.Context(), request.ID, "soon", []bench.JobKey{"aaaaaaaaaaaaaaaa"}, by("ada"))
	require.ErrorIs(t, err, store.ErrNotFound)
	r.complete(request, bench.Success)
	_, err = r.SetQueue(t.Context(), request.ID, "soon", nil, by("ada"))
	require.ErrorIs(t, err, store.ErrConflict)
}

// A job that another request waits for is not made to wait longer.
func TestASharedJobChangesOnlyToAnEarlierLevel(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.fiveQueues()
	request, jobs := r.submitted("ada", "", "b", "gin")
	other := r.inProgress(release(t, "c"))
	r.stage(other, bench.StageParent, r.job(jobs[0].Key))
	done, err := r.SetQueue(t.Context(), request.ID, "idle", jobsOf(jobs), by("ada"))
	require.NoError(t, err)
	require.Equal(t, []any{false, "0 jobs put into queue idle; jobs for which other requests wait change only to an earlier level"}, []any{done.Result.Changed, done.Result.Message})
	require.Equal(t, "later", r.job(jobs[0].Key).Queue)
	done, err = r.SetQueue(t.Context(), request.ID, "soon", jobsOf(jobs), by("ada"))
	require.NoError(t, err)
	require.Equal(t, 1, done.Result.Jobs)
	require.Equal(t, "soon", r.job(jobs[0].Key).Queue)
}

func jobsOf(jobs []bench.Job) []bench.JobKey {
	var keys []bench.JobKey
	for _, j := range jobs {
		keys = append(keys, j.Key)
	}
	return keys
}

// Nobody gets past a limit in two steps: not by two changes, not by asking for the work of
// somebody without a limit, and not by having somebody else ask for one's own.
func TestAPriorityIsNotRaisedPastACapInSteps(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.fiveQueues()
	bobs, jobs := r.submitted("bob", "", "b", "gin")
	adas, _ := r.submitted("ada", "", "c", "kit")
	var early *fairshare.TooEarly
	refused := func(id bench.RequestID, queue, who string) {
		t.Helper()
		_, err := r.SetQueue(t.Context(), id, queue, nil, by(who))
		require.ErrorAs(t, err, &early)
	}
	moves := func(id bench.RequestID, queue, who string) {
		t.Helper()
		_, err := r.SetQueue(t.Context(), id, queue, nil, by(who))
		require.NoError(t, err)
	}
	refused(adas.ID, "urgent", "bob")
	moves(adas.ID, "fair", "bob")
	refused(adas.ID, "soon", "bob")
	moves(bobs.ID, "fair", "bob")
	// Bob's own jobs never go before level 3, so that the earliest queue gives him nothing.
	moves(bobs.ID, "urgent", "bob")
	handed, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(t, err)
	for _, h := range handed {
		if h.Job == jobs[0].Key {
			require.Equal(t, []any{"urgent", 3}, []any{h.Queue, h.Priority})
		}
	}
	moves(bobs.ID, "urgent", "ada")
	rules := fairshare.Rules{Queues: fairshare.Queues{"urgent": {Name: "urgent", Class: fairshare.Strict, Level: 1}}, Limits: fairshare.Limits{{Account: "bob", Branch: "*", FirstLevel: 3}}}
	require.Equal(t, 3, rules.Level(fairshare.Job{Queue: r.job(jobs[0].Key).Queue, Submitter: "bob"}))
}

// Whatever accounts ask for, in whatever order: what one of them changes never goes earlier
// than that account may, nor than the job's submitter may.
func TestNoSequenceOfChangesPassesACap(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.fiveQueues()
	first := map[string]map[string]int{"ada": {"": 1, "try": 1}, "bob": {"": 3, "try": 3}, "eve": {"": 2, "try": 4}}
	level := map[string]int{"urgent": 1, "soon": 2, "fair": 3, "later": 4, "idle": 5}
	accounts, branches, queues := []string{"ada", "bob", "eve"}, []string{"", "try"}, []string{"urgent", "soon", "fair", "later", "idle"}
	var requests []bench.Request
	for i, account := range accounts {
		for k, branch := range branches {
			request, _ := r.submitted(account, branch, "v"+string(rune('a'+2*i+k)), "gin")
			requests = append(requests, request)
		}
	}
	random := rand.New(rand.NewPCG(3, 16))
	refusals := 0
	for range 150 {
		request, who, queue := requests[random.IntN(len(requests))], accounts[random.IntN(3)], queues[random.IntN(5)]
		_, err := r.SetQueue(t.Context(), request.ID, queue, nil, by(who))
		goes := max(level[queue], first[request.Submitter][request.Branch])
		if goes < first[who][request.Branch] {
			var early *fairshare.TooEarly
			require.ErrorAs(t, err, &early, "%s puts %s's work on %q to %s", who, request.Submitter, request.Branch, queue)
			refusals++
			continue
		}
		require.NoError(t, err, "%s puts %s's work on %q to %s", who, request.Submitter, request.Branch, queue)
	}
	require.Greater(t, refusals, 10)
	handed, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(t, err)
	require.Len(t, handed, len(requests))
	for _, h := range handed {
		j := r.job(h.Job)
		require.GreaterOrEqual(t, h.Priority, first[j.Submitter][j.Branch])
	}
}
