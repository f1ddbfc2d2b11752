package store_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
)

// batch returns an ad-hoc request for many commands.
func batch(t *testing.T, n int) bench.Request {
	t.Helper()
	return bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Submission: bench.Submission{Submitter: "ada"}, Commands: bench.Commands{Batch: n, Digest: fmt.Sprint("of ", n)}}
}

// lines returns the jobs of a request for commands.
func lines(request bench.Request, n int) iter.Seq2[bench.PlannedJob, error] {
	return func(yield func(bench.PlannedJob, error) bool) {
		for i := 1; i <= n; i++ {
			if !yield(bench.PlannedJob{Job: lineJob(request, i)}, nil) {
				return
			}
		}
	}
}

func lineJob(request bench.Request, place int) bench.Job {
	j := bench.Job{
		Project:  project,
		Work:     bench.Work{Kind: bench.KindCommand, Target: target, TestCases: []bench.TestCase{{Benchmark: "command", Target: target}}, Iterations: 1, Command: &bench.Command{Argv: []string{"./x", fmt.Sprint(place)}, Env: map[string]string{"QUOTED": `"a", {b}`}, TimeoutSeconds: 60, Iterations: 1}, Line: place, Name: fmt.Sprint("line ", place)},
		Location: bench.Location{SizeClass: small.SizeClass, Pool: small.Name, TaskQueue: small.TaskQueue()},
		Turn:     bench.Turn{Queue: "user:ada", Weight: 1, Priority: 3, Submitter: "ada", Branch: "dev"},
		JobState: bench.JobState{Status: bench.JobQueued},
	}
	if place%2 == 0 {
		j.Constraints = &bench.Constraints{Devices: []string{"gpu"}}
	}
	j.Key = bench.JobIdentity{Request: request.ID, Project: project, Target: target, Kind: j.Kind, TestCases: j.TestCases, SizeClass: j.SizeClass, Line: place}.Key()
	return j
}

func TestThousandsOfCommandsAreWrittenWithTheirRequest(t *testing.T) {
	t.Parallel()
	writeCommands(t, 2500)
}

func TestLongTenThousandCommandsAreWrittenWithTheirRequest(t *testing.T) {
	t.Parallel()
	writeCommands(t, 10_000)
}

// writeCommands writes a request for commands, and looks at each.
func writeCommands(t *testing.T, n int) {
	t.Helper()
	r := newRecord(t)
	request := batch(t, n)
	stored, created, err := r.CreateCommands(t.Context(), request, lines(request, n))
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, bench.InProgress, stored.Status)
	require.True(t, stored.Deferred)
	require.NotNil(t, stored.ExpandedAt)
	require.Nil(t, stored.WorkflowStartedAt)
	require.Equal(t, n, stored.Batch)

	jobs, err := r.RequestJobs(t.Context(), request.ID)
	require.NoError(t, err)
	require.Len(t, jobs, n)
	for i, j := range jobs {
		want := lineJob(request, i+1)
		want.ID, want.CreatedAt, want.RequestCreated = j.ID, j.CreatedAt, stored.CreatedAt
		require.Equal(t, want, j)
	}
	require.Equal(t, n, r.count(`select count(distinct artifact_id) from job_test_case`), "each has results of its own")

	r.register("c1")
	handed, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 3 }})
	require.NoError(t, err)
	require.Equal(t, []bench.JobKey{jobs[0].Key, jobs[1].Key, jobs[2].Key}, []bench.JobKey{handed[0].Job, handed[1].Job, handed[2].Job}, "in the order of the batch")
}

// A batch is open until the last of its jobs has ended. The end of each names the batch.
func TestABatchIsOpenUntilItsLastJobEnds(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := batch(t, 3)
	_, _, err := r.CreateCommands(t.Context(), request, lines(request, 3))
	require.NoError(t, err)
	jobs, err := r.RequestJobs(t.Context(), request.ID)
	require.NoError(t, err)
	for i, j := range jobs {
		for range 2 { // a repetition tells the same
			end, err := r.CancelJob(t.Context(), j.Key, 0, "not needed")
			require.NoError(t, err)
			require.Equal(t, request.ID, end.Batch)
			require.Equal(t, i < 2, end.BatchOpen, "%d have ended", i+1)
		}
	}
}

func TestABatchIsWrittenAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := batch(t, 1500)
	unreadable := errors.New("line 1200 is none")
	_, created, err := r.CreateCommands(t.Context(), request, func(yield func(bench.PlannedJob, error) bool) {
		for j := range lines(request, 1200) {
			if !yield(j, nil) {
				return
			}
		}
		yield(bench.PlannedJob{}, unreadable)
	})
	require.ErrorIs(t, err, unreadable)
	require.False(t, created)
	_, err = r.Request(t.Context(), request.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Zero(t, r.count(`select count(*) from job_queue`))

	unknown := request
	unknown.Project = "nobody"
	_, _, err = r.CreateCommands(t.Context(), unknown, lines(request, 1))
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestABatchWithAKeyIsWrittenOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ids := make(chan bench.RequestID, 8)
	made := make(chan bool, 8)
	requests := make([]bench.Request, 8)
	for i := range requests {
		requests[i] = batch(t, 1100)
		requests[i].IdempotencyKey = "nightly"
	}
	for _, err := range together(len(requests), func(i int) error {
		stored, created, err := r.CreateCommands(t.Context(), requests[i], lines(requests[i], 1100))
		ids <- stored.ID
		made <- created
		return err
	}) {
		require.NoError(t, err)
	}
	first, creations := <-ids, 0
	for range len(requests) - 1 {
		require.Equal(t, first, <-ids)
	}
	for range requests {
		if <-made {
			creations++
		}
	}
	require.Equal(t, 1, creations)
	require.Equal(t, 1100, r.count(`select count(*) from job_queue`))

	other := batch(t, 2)
	other.IdempotencyKey = "nightly"
	stored, _, err := r.CreateCommands(t.Context(), other, lines(other, 2))
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "another set of jobs")
	require.Equal(t, first, stored.ID)
}

func TestShownJobsOfAVeryLargeRequest(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	const n = 500
	request := batch(t, n)
	_, _, err := r.CreateCommands(t.Context(), request, lines(request, n))
	require.NoError(t, err)
	r.execute(`update job_queue set status = 'success', completed_at = now() + place * interval '1 second' where place <= 300`)
	r.execute(`update job_queue set status = 'failure', completed_at = now(), message = 'failed ' || place where place in (7, 8)`)
	r.execute(`update job_queue set status = 'in_progress', completed_at = null where place in (250, 301)`)

	p, err := r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: n, Queued: 199, InProgress: 2, Success: 297, Failure: 2, TestCases: n, TestCasesDone: 297}, p)
	own, err := r.StageProgress(t.Context(), request.ID, bench.StageOwn, false)
	require.NoError(t, err)
	cases, done, err := r.StageTestCases(t.Context(), request.ID, bench.StageOwn)
	require.NoError(t, err)
	require.Equal(t, []int{p.TestCases, p.TestCasesDone}, []int{cases, done})
	own.TestCases, own.TestCasesDone = cases, done
	require.Equal(t, p, own)
	optional, err := r.StageProgress(t.Context(), request.ID, "", true)
	require.NoError(t, err)
	require.Zero(t, optional)
	why, err := r.FirstFailure(t.Context(), request.ID, bench.StageOwn)
	require.NoError(t, err)
	require.Equal(t, "failed 7", why)

	shown, total, err := r.ShownJobs(t.Context(), request.ID, 10)
	require.NoError(t, err)
	require.Equal(t, n, total)
	require.Equal(t, []int{7, 8, 250, 295, 296, 297, 298, 299, 300, 301}, places(shown), "those that run and failed, then the last to end")
	everything, total, err := r.ShownJobs(t.Context(), request.ID, n+1)
	require.NoError(t, err)
	require.Equal(t, n, total)
	require.Len(t, everything, n)

	failed, err := r.RequestJobPage(t.Context(), request.ID, store.JobPage{Status: bench.JobFailure, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []int{7, 8}, places(failed))
	open, err := r.RequestJobPage(t.Context(), request.ID, store.JobPage{Open: true, Limit: 3})
	require.NoError(t, err)
	require.Equal(t, []int{250, 301, 302}, places(open))
	open, err = r.RequestJobPage(t.Context(), request.ID, store.JobPage{Open: true, Limit: 2, After: open[2].ID})
	require.NoError(t, err)
	require.Equal(t, []int{303, 304}, places(open))
}

// What pages ask of a request for commands is read from a few rows each, and is what all of
// its rows say.
func TestAFewRowsSayWhatAllOfAVeryLargeRequestDo(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	const n = 60
	request := batch(t, n)
	_, _, err := r.CreateCommands(t.Context(), request, lines(request, n))
	require.NoError(t, err)
	type said struct {
		stages       []store.StageTimes
		first        *time.Time
		inFlight     bool
		open, listed []int
		after        []int
		progress     bench.JobProgress
		shown        []int
		total        int
	}
	ask := func() (s said) {
		t.Helper()
		var err error
		s.stages, err = r.StagesOf(t.Context(), request.ID)
		require.NoError(t, err)
		s.first, err = r.FirstStart(t.Context(), request.ID)
		require.NoError(t, err)
		s.inFlight, err = r.InFlightOf(t.Context(), request.ID)
		require.NoError(t, err)
		open, err := r.OpenJobsOf(t.Context(), request.ID, 7)
		require.NoError(t, err)
		for _, j := range open {
			s.open = append(s.open, j.Line)
		}
		listed, err := r.RequestJobPage(t.Context(), request.ID, store.JobPage{Open: true, Limit: 12})
		require.NoError(t, err)
		s.listed = places(listed)
		if len(listed) > 0 {
			after, err := r.RequestJobPage(t.Context(), request.ID, store.JobPage{Open: true, Limit: 5, After: listed[0].ID})
			require.NoError(t, err)
			s.after = places(after)
		}
		s.progress, err = r.JobProgress(t.Context(), request.ID)
		require.NoError(t, err)
		shown, total, err := r.ShownJobs(t.Context(), request.ID, 100)
		require.NoError(t, err)
		s.shown, s.total = places(shown), total
		return s
	}
	var last said
	for _, change := range []string{
		``,
		`update job_queue set status = 'handed_out', handed_out_at = now() where place in (1, 2, 4)`,
		`update job_queue set status = 'in_progress', started_at = now() where place in (2, 4)`,
		`update job_queue set status = 'success', completed_at = now() + interval '2 seconds' where place = 2`,
		`update job_queue set status = 'failure', started_at = now() - interval '1 second', completed_at = now() + interval '1 second' where place = 3`,
		`update job_queue set status = 'queued', started_at = now() where place in (40, 41)`, // to be tried again
		`update job_queue set status = 'cancelled', completed_at = now() + interval '3 seconds' where status in ('queued', 'handed_out') and place > 2`,
		`update job_queue set status = 'success', completed_at = now() where completed_at is null`,
	} {
		if change != "" {
			r.execute(change)
		}
		few := ask()
		require.NotEqual(t, last, few, change)
		r.execute(`update benchmark_request set reopened_at = now()`) // then all are read
		all := ask()
		all.progress.TestCases, all.progress.TestCasesDone = few.progress.TestCases, few.progress.TestCasesDone // by results, of which there are none here
		require.Equal(t, all, few, change)
		r.execute(`update benchmark_request set reopened_at = null`)
		last = few
	}
	require.False(t, last.inFlight)
	require.Empty(t, last.open)
	require.Len(t, last.stages, 1)
	require.Equal(t, n, last.stages[0].Jobs)
}

func places(jobs []bench.Job) []int {
	out := make([]int, len(jobs))
	for i, j := range jobs {
		out[i] = j.Line
	}
	return out
}

func TestOnlyFailedCommandsOfABatchAreRetried(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := batch(t, 5)
	_, _, err := r.CreateCommands(t.Context(), request, lines(request, 5))
	require.NoError(t, err)
	c := r.registerCard("c1")
	handed, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 5 }})
	require.NoError(t, err)
	for i, h := range handed {
		plan := r.start(bench.Job{Key: h.Job}, 1, c)
		if i != 1 && i != 3 {
			result := measured("command", 1)
			result.TestCase = bench.TestCase{Benchmark: "command", Target: target}
			r.block(plan.Run.ID, result)
		}
		_, err := r.FinishJob(t.Context(), h.Job, 0, "")
		require.NoError(t, err)
	}
	require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Failure, "", nil, "2 of 5 jobs failed"))

	again, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, store.Act{Who: "ada", Reason: "again"})
	require.NoError(t, err)
	require.Equal(t, 2, again.Result.Jobs)
	require.Equal(t, bench.InProgress, r.request(request.ID).Status, "nobody has to admit it")
	p, err := r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: 5, Queued: 2, Success: 3, TestCases: 5, TestCasesDone: 3}, p)
	handed, err = r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 5 }})
	require.NoError(t, err)
	require.Len(t, handed, 2)
	require.Equal(t, "line 2: ./x 2", handed[0].Summary)
	require.Equal(t, "line 4: ./x 4", handed[1].Summary)
}

// Nobody has to decide anything of a command that has succeeded: its job ends with its run, and the
// workflow finds it so.
func TestASuccessfulCommandEndsWithItsRun(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := batch(t, 5)
	_, _, err := r.CreateCommands(t.Context(), request, lines(request, 5))
	require.NoError(t, err)
	jobs, err := r.RequestJobs(t.Context(), request.ID)
	require.NoError(t, err)
	c := r.registerCard("c1")
	result := bench.TestCaseResult{TestCase: jobs[0].TestCases[0], Collections: []bench.Collection{{CollectedAt: measuredAt, Values: map[bench.Metric]float64{bench.WallTime: 1}}}}
	run := func(j bench.Job, outcome bench.RunOutcome, results ...bench.TestCaseResult) bench.RunID {
		t.Helper()
		id := r.start(j, 1, c).Run.ID
		_, err := r.FinishRunWith(t.Context(), id, bench.RunEnd{Outcome: outcome}, store.RunRest{RunRest: bench.RunRest{Block: &bench.RunBlock{Results: results}}})
		require.NoError(t, err)
		return id
	}
	status := func(j bench.Job) bench.JobStatus { return r.job(j.Key).Status }

	first := run(jobs[0], bench.RunSuccess, result)
	ended := r.job(jobs[0].Key)
	require.Equal(t, bench.JobSuccess, ended.Status)
	require.NotNil(t, ended.CompletedAt)
	for range 2 {
		end, err := r.FinishJob(t.Context(), jobs[0].Key, 0, "its workflow heard of no end")
		require.NoError(t, err)
		require.Equal(t, bench.JobSuccess, end.Status)
		require.Equal(t, first, end.Run)
		require.Len(t, end.Waiters, 1)
		require.True(t, end.BatchOpen)
	}
	end, err := r.CancelJob(t.Context(), jobs[0].Key, 0, "too late")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)

	run(jobs[1], bench.RunFailure)
	require.Equal(t, bench.JobInProgress, status(jobs[1]), "a failure may be tried again")
	run(jobs[2], bench.RunSuccess)
	require.Equal(t, bench.JobInProgress, status(jobs[2]), "it has no result")
	r.execute(`update job_queue set again = 1 where key = $1`, jobs[3].Key)
	run(jobs[3], bench.RunSuccess, result)
	require.Equal(t, bench.JobInProgress, status(jobs[3]), "it is to run once more")
	r.start(jobs[4], 1, c)
	_, err = r.CancelJob(t.Context(), jobs[4].Key, 0, "not needed")
	require.NoError(t, err)
	require.NoError(t, r.FinishRun(t.Context(), runID(jobs[4], 1), bench.RunEnd{Outcome: bench.RunSuccess}))
	require.Equal(t, bench.JobCancelled, status(jobs[4]))
}

// The end of a job tells whether its task queue has to be filled: while enough of each queue
// waits in Temporal, it has not.
func TestAnEndTellsWhetherTheTaskQueueIsFilled(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("c1")
	const n = 60
	request := batch(t, n)
	_, _, err := r.CreateCommands(t.Context(), request, lines(request, n))
	require.NoError(t, err)
	handOut := func(depth int) []bench.HandOut {
		t.Helper()
		handed, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return depth }})
		require.NoError(t, err)
		return handed
	}
	end := func(job bench.JobKey) bench.JobEnd {
		t.Helper()
		r.execute(`update job_queue set started_at = now() + interval '1 minute' where key = $1`, job) // however slow this machine is
		end, err := r.CancelJob(t.Context(), job, 0, "not needed")
		require.NoError(t, err)
		require.True(t, end.Brief)
		require.True(t, end.Unlimited)
		require.True(t, end.OneClass)
		return end
	}
	depth := fairshare.Depth(1)
	handed, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: fairshare.Depth, Spare: func(int) int { return 1 }})
	require.NoError(t, err)
	require.Len(t, handed, depth+1)
	require.True(t, end(handed[0].Job).Filled, "%d are left", depth)
	require.False(t, end(handed[1].Job).Filled, "%d are left", depth-1)
	handed = handOut(depth)
	require.Len(t, handed, 1)

	// A strict queue needs more.
	r.execute(`update job_queue set queue = 'vip'`)
	require.False(t, end(handed[0].Job).Filled)
	handed = handOut(fairshare.StrictDepth(1) + 1)
	require.True(t, end(handed[0].Job).Filled)
	// One of several queues is enough.
	r.execute(`update job_queue set queue = 'user:bob' where id = (select max(id) from job_queue where status = 'queued')`)
	require.False(t, end(handed[1].Job).Filled)
	two, err := r.HandOut(t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 0 }, Spare: fairshare.Spare})
	require.NoError(t, err)
	require.Empty(t, two, "queues that share have nothing to spare")
	// Nothing else waits: nothing can be filled.
	r.execute(`update job_queue set held = 'pause' where status = 'queued'`)
	require.True(t, end(handed[2].Job).Filled)
	// After a job that took longer, nobody looks.
	r.execute(`update job_queue set started_at = now() - interval '1 second' where key = $1`, handed[4].Job)
	long, err := r.CancelJob(t.Context(), handed[4].Job, 0, "not needed")
	require.NoError(t, err)
	require.False(t, long.Brief)
	require.False(t, long.Filled)

	r.execute(`insert into account_limit (account, max_running, updated_by) values ('ada', 3, 'root')`)
	large := collector("c2")
	large.SizeClass = small.SizeClass * 2
	_, err = r.RegisterCollector(t.Context(), large, offline)
	require.NoError(t, err)
	last, err := r.CancelJob(t.Context(), handed[3].Job, 0, "not needed")
	require.NoError(t, err)
	require.False(t, last.Unlimited)
	require.False(t, last.OneClass)
}
