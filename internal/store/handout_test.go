package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// perCollector keeps as many jobs of each queue in Temporal as there are live collectors,
// and one more.
func perCollector(live int) int { return live + 1 }

func (r record) handOut() []bench.HandOut {
	r.t.Helper()
	out, err := r.HandOut(r.t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: perCollector})
	require.NoError(r.t, err)
	return out
}

func keys(out []bench.HandOut) []bench.JobKey {
	var ks []bench.JobKey
	for _, h := range out {
		ks = append(ks, h.Job)
	}
	return ks
}

// jobsOf creates a request in progress with n jobs in a queue.
func (r record) jobsOf(tag, queue string, n int) (bench.Request, []bench.Job) {
	r.t.Helper()
	q := r.inProgress(release(r.t, tag))
	var jobs []bench.Job
	for _, b := range names(n) {
		j := newJob(q, b)
		j.Queue = queue
		jobs = append(jobs, j)
	}
	r.expand(q, jobs...)
	return q, jobs
}

func TestEachQueueGetsItsShareInTemporal(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	older, ada := r.jobsOf("v1", "user:ada", 5)
	_, bob := r.jobsOf("v2", "user:bob", 5)
	r.jobsOf("v3", "user:bob", 1)
	queues, err := r.WaitingTaskQueues(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{small.TaskQueue()}, queues)

	// Without a live collector: one job of each queue, in the order of their requests.
	out := r.handOut()
	require.Equal(t, []bench.JobKey{ada[0].Key, bob[0].Key}, keys(out))
	require.Equal(t, bench.HandOut{
		Request: older.ID, Project: project, Job: ada[0].Key, Kind: bench.KindCompileTime, Tag: "v1", Target: target, TaskQueue: small.TaskQueue(), Queue: "user:ada",
		Weight: 1, Priority: 3, SizeClass: 2, Dispatch: out[0].Dispatch, Summary: "v1 compiletime build: 1 test case on x86_64-unknown-linux-gnu",
		Ref: bench.JobRef{Project: project, Key: ada[0].Key, Kind: bench.KindCompileTime, Tag: "v1", Profile: "build", Benchmark: "bench0", TestCases: 1},
	}, out[0])
	require.NotEmpty(t, out[0].Dispatch)
	require.Equal(t, bench.JobHandedOut, r.job(ada[0].Key).Status)
	require.Equal(t, older.ID, r.job(ada[0].Key).HandedOutTo)

	// Enough jobs wait in Temporal: nothing more is handed out.
	require.Empty(t, r.handOut())

	// Two live collectors; a third one of the pool is silent, a fourth inactive, and a
	// fifth in another pool.
	one, _ := r.register("one"), r.register("two")
	r.register("silent")
	r.execute(`update collector_config set last_heartbeat = now() - interval '31 seconds' where name = 'silent'`)
	r.register("inactive")
	require.NoError(t, r.SetActive(t.Context(), "inactive", false))
	large := collector("large")
	large.Pool = "large"
	_, err = r.RegisterCollector(t.Context(), large, offline)
	require.NoError(t, err)
	require.Equal(t, []bench.JobKey{ada[1].Key, ada[2].Key, bob[1].Key, bob[2].Key}, keys(r.handOut()))

	// A running job no longer waits, so the next one is handed out.
	r.start(ada[0], 1, one)
	require.Equal(t, []bench.JobKey{ada[3].Key}, keys(r.handOut()))
	_, err = r.FinishJob(t.Context(), ada[0].Key, 0, "enough")
	require.NoError(t, err)
	require.Empty(t, r.handOut())

	other, err := r.HandOut(t.Context(), "bench/other", store.HandOutOptions{Depth: perCollector})
	require.NoError(t, err)
	require.Empty(t, other)
}

func TestConcurrentHandOutsNeverExceedTheShare(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.jobsOf("v1", "user:ada", 12)
	r.jobsOf("v2", "user:bob", 12)
	handed := make(chan int, 8)
	for _, err := range together(8, func(int) error {
		out, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 3 }})
		handed <- len(out)
		return err
	}) {
		require.NoError(t, err)
	}
	total := 0
	for range 8 {
		total += <-handed
	}
	require.Equal(t, 6, total)
	require.Equal(t, 6, r.count(`select count(*) from job_queue where status = 'handed_out'`))
}

func TestConcurrentHandOutsRunInSequence(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, jobs := r.jobsOf("v1", "user:ada", 3)
	var second []bench.HandOut
	var wait func()
	first, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int {
		wait = r.whileWaiting(func() (err error) {
			second, err = r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 2 }})
			return err
		})
		return 1
	}})
	require.NoError(t, err)
	wait()
	require.Equal(t, []bench.JobKey{jobs[0].Key}, keys(first))
	require.Equal(t, []bench.JobKey{jobs[1].Key}, keys(second))
}

// Temporal charges a queue for jobs that are cancelled while they wait there, so the
// queue's next job uses another fairness key. While jobs of the queue wait there the key
// stays; otherwise a queue that keeps cancelling would never be charged.
func TestJobsCancelledInTemporalLeaveNoDebt(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	cancel := func(q bench.Request) {
		t.Helper()
		_, err := r.CancelRequest(t.Context(), q.ID, "ada", "")
		require.NoError(t, err)
	}
	turns := func(depth int) (turns []int) {
		t.Helper()
		out, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return depth }})
		require.NoError(t, err)
		for _, h := range out {
			turns = append(turns, h.Turn)
		}
		return turns
	}
	many, _ := r.jobsOf("v1", "user:ada", 5)
	require.Equal(t, []int{0, 0, 0}, turns(3))
	cancel(many)
	one, _ := r.jobsOf("v2", "user:ada", 1)
	two, _ := r.jobsOf("v3", "user:ada", 2)
	r.jobsOf("v4", "user:bob", 1)
	require.Equal(t, []int{3, 3, 0}, turns(2), "three of ada's were cancelled there, none of bob's")
	cancel(one)
	require.Equal(t, []int{3}, turns(2), "another one of it waits")
	cancel(two)
	_, jobs := r.jobsOf("v5", "user:ada", 2)
	require.Equal(t, []int{6}, turns(1))
	r.start(jobs[0], 1, r.register("one"))
	require.Equal(t, []int{6}, turns(1), "nothing was cancelled since")
}

func TestAHandedOutJobOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	first, job := r.oneJob("v1", "gin")
	second := r.inProgress(release(t, "v2"))
	require.NoError(t, r.ExpandRequest(t.Context(), second.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))
	require.Equal(t, first.ID, r.handOut()[0].Request, "the oldest one starts it")

	cancelled, err := r.CancelRequest(t.Context(), first.ID, "ada", "")
	require.NoError(t, err)
	require.Empty(t, cancelled, "somebody else waits for it")
	require.Equal(t, bench.JobHandedOut, r.job(job.Key).Status, "its workflow runs, whoever it was started for")
	require.Empty(t, r.handOut())

	// A queued job without a waiting request stays where it is.
	third, waiting := r.jobsOf("v3", "user:ada", 3)
	require.NoError(t, r.CompleteRequest(t.Context(), third.ID, bench.Failure, "", nil, ""))
	require.Empty(t, r.handOut())
	require.Equal(t, bench.JobQueued, r.job(waiting[0].Key).Status)
	queues, err := r.WaitingTaskQueues(t.Context())
	require.NoError(t, err)
	require.Empty(t, queues)

	// It does not displace jobs with a waiting request.
	_, wanted := r.jobsOf("v4", "user:bob", 1)
	r.execute(`update job_queue set queue = 'user:bob' where status = 'queued'`)
	require.Equal(t, []bench.JobKey{wanted[0].Key}, keys(r.handOut()))
}

func TestCommandsAreSummarizedByTheirArguments(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Submission: bench.Submission{Submitter: "ada"}, Commands: bench.Commands{Command: &bench.Command{Argv: []string{"x"}}}})
	short, long := newCommand(q, 1, "sleep", "1"), newCommand(q, 2, "echo", strings.Repeat("ä", 500))
	for i, j := range []*bench.Job{&short, &long} {
		j.Queue = fmt.Sprint("q", i)
	}
	r.expand(q, short, long)
	out := r.handOut()
	require.Equal(t, "sleep 1", out[0].Summary)
	require.LessOrEqual(t, len(out[1].Summary), 200)
	require.True(t, strings.HasSuffix(out[1].Summary, "ä…"))
}

func TestCancellingARequestSparesSharedJobs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q, jobs := r.jobsOf("v1", "user:ada", 5)
	other := r.inProgress(release(t, "v2"))
	require.NoError(t, r.ExpandRequest(t.Context(), other.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(jobs[3:4]...)}))
	c := r.register("one")
	r.handOut()
	run := r.start(jobs[0], 1, c).Run
	r.start(jobs[4], 1, c)
	_, err := r.FinishJob(t.Context(), jobs[4].Key, 0, "broken")
	require.NoError(t, err)

	// The first two are handed out and running, the third is queued, the fourth shared,
	// the fifth ended.
	want := []bench.JobRef{jobs[0].Ref(), jobs[1].Ref()}
	for range 2 { // the second time is a repetition, and names the same workflows
		cancelled, err := r.CancelRequest(t.Context(), q.ID, "ada", "wrong tag")
		require.NoError(t, err)
		require.Equal(t, want, cancelled)
	}
	stored := r.request(q.ID)
	require.Equal(t, bench.Completed, stored.Status)
	require.Equal(t, bench.Cancelled, stored.Outcome)
	require.Equal(t, "cancelled by ada: wrong tag", stored.Message)
	require.NotNil(t, stored.JobsDoneAt)
	var statuses []bench.JobStatus
	for _, j := range jobs {
		statuses = append(statuses, r.job(j.Key).Status)
	}
	require.Equal(t, []bench.JobStatus{bench.JobCancelled, bench.JobCancelled, bench.JobCancelled, bench.JobQueued, bench.JobFailure}, statuses)
	p, err := r.JobProgress(t.Context(), q.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: 5, Queued: 1, Failure: 1, Cancelled: 3, TestCases: 5}, p)

	// No job of it starts any more; the open run ends by itself.
	_, err = r.StartRun(t.Context(), r.runStart(runID(jobs[0], 2), c))
	require.ErrorIs(t, err, store.ErrJobClosed)
	require.Equal(t, bench.RunRunning, r.run(run.ID).Outcome)
	require.NoError(t, r.FinishRun(t.Context(), run.ID, bench.RunEnd{Outcome: bench.RunCancelled}))
	require.Equal(t, bench.RunCancelled, r.run(run.ID).Outcome)

	_, err = r.CancelRequest(t.Context(), "rnobody", "ada", "")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestAJobIsCancelledOrSharedNeverBoth(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for i := range 6 {
		q, jobs := r.jobsOf(fmt.Sprint("v", i), "user:ada", 3)
		other := r.inProgress(release(t, fmt.Sprint("other", i)))
		for _, err := range together(2, func(who int) error {
			if who == 0 {
				_, err := r.CancelRequest(t.Context(), q.ID, "ada", "")
				return err
			}
			return r.ExpandRequest(t.Context(), other.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(jobs...)})
		}) {
			require.NoError(t, err)
		}
		// The transaction that was first decided for all three.
		p, err := r.JobProgress(t.Context(), other.ID)
		require.NoError(t, err)
		require.Contains(t, []bench.JobProgress{
			{Total: 3, Queued: 3, TestCases: 3}, {Total: 3, Cancelled: 3, TestCases: 3},
		}, p)
	}
}
