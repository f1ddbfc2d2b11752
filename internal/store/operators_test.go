package store_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

var (
	byAda  = store.Act{Who: "ada", Reason: "for a test"}
	cancel = store.EndOptions{Outcome: bench.Cancelled}
	expire = store.EndOptions{Outcome: bench.Expired}
)

// key returns an act of ada's with an idempotency key.
func key(k string) store.Act { return store.Act{Who: "ada", Reason: "for a test", Key: k} }

func (r record) complete(request bench.Request, outcome bench.Outcome) {
	r.t.Helper()
	require.NoError(r.t, r.CompleteRequest(r.t.Context(), request.ID, outcome, "", nil, string(outcome)))
}

// measure runs a job once, with these results.
func (r record) measure(job bench.Job, attempt int, c bench.Collector, results ...bench.TestCaseResult) {
	r.t.Helper()
	plan := r.start(job, attempt, c)
	r.block(plan.Run.ID, results...)
	require.NoError(r.t, r.FinishRun(r.t.Context(), plan.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
	_, err := r.FinishJob(r.t.Context(), job.Key, 0, "gave up")
	require.NoError(r.t, err)
}

// values returns an artifact's wall times by benchmark.
func (r record) values(tag string) map[string][]float64 {
	r.t.Helper()
	samples, err := r.SamplesOf(r.t.Context(), project, tag)
	require.NoError(r.t, err)
	out := make(map[string][]float64)
	for _, s := range samples {
		if s.Metric == bench.WallTime {
			out[s.TestCase.Benchmark] = s.Values
		}
	}
	return out
}

// openJobs lists a request's open jobs.
func (r record) openJobs(id bench.RequestID) []bench.Job {
	r.t.Helper()
	jobs, err := r.RequestJobs(r.t.Context(), id)
	require.NoError(r.t, err)
	var open []bench.Job
	for _, j := range jobs {
		if j.Status.Open() {
			open = append(open, j)
		}
	}
	return open
}

func (r record) admit() []bench.RequestID {
	r.t.Helper()
	admitted, err := r.Admit(r.t.Context(), project, 1, func(open []bench.Request, _ map[string]bool) (store.Admission, error) {
		var a store.Admission
		for _, o := range open {
			a.Next = append(a.Next, o.ID)
		}
		return a, nil
	})
	require.NoError(r.t, err)
	return admitted
}

func (r record) handedOut() []bench.JobKey {
	r.t.Helper()
	handed, err := r.HandOut(r.t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(r.t, err)
	var keys []bench.JobKey
	for _, h := range handed {
		keys = append(keys, h.Job)
	}
	return keys
}

func TestOperationsAreAuditedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.create(release(t, "1.1.0"))

	// A dry run leaves no trace, not even of its key.
	dry := key("k")
	dry.DryRun = true
	done, _, err := r.EndRequest(t.Context(), request.ID, cancel, dry)
	require.NoError(t, err)
	require.True(t, done.Result.Changed)
	require.Zero(t, done.ID)
	require.Equal(t, bench.ArtifactsReady, r.request(request.ID).Status)

	// Of ten concurrent calls with one key one takes effect, and all get its answer.
	answers := make([]store.Operation, 10)
	errs := together(len(answers), func(i int) (err error) {
		answers[i], _, err = r.EndRequest(t.Context(), request.ID, cancel, key("k"))
		return err
	})
	require.NoError(t, errors.Join(errs...))
	first := 0
	for _, a := range answers {
		if !a.Repeated {
			first++
		}
		a.Repeated = false
		require.Equal(t, store.Operation{
			ID: a.ID, At: a.At, Who: "ada", Action: "request cancel", Project: project, Subject: string(request.ID), Reason: "for a test",
			IdempotencyKey: "k", Detail: json.RawMessage(`{}`),
			Result: store.OperationResult{Changed: true, Message: "it was artifacts ready", Requests: []bench.RequestID{request.ID}},
		}, a)
	}
	require.Equal(t, 1, first)

	// The same key for another operation is refused; another person's key is independent.
	_, err = r.PauseQueue(t.Context(), project, key("k"))
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "request cancel "+string(request.ID))
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, store.Act{Who: "bob", Key: "k"})
	require.NoError(t, err)

	// Failed operations are not in the audit; the newest is first.
	_, err = r.PurgeArtifact(t.Context(), project, "9.9.9", byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
	entries, err := r.Audit(t.Context(), store.AuditFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "bob", entries[0].Who)
	require.False(t, entries[0].Result.Changed)
	for name, f := range map[string]store.AuditFilter{
		"who": {Who: "ada"}, "before": {Before: entries[0].ID}, "limit": {Subject: string(request.ID), Project: project, Limit: 1},
	} {
		some, err := r.Audit(t.Context(), f)
		require.NoError(t, err)
		require.Len(t, some, 1, name)
	}
	none, err := r.Audit(t.Context(), store.AuditFilter{Subject: "other"})
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestRequestsAreEndedByOperators(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	waiting := r.create(release(t, "1.1.0"))
	running, job := r.oneJob("1.2.0", "gin")
	r.handedOut()

	_, _, err := r.EndRequest(t.Context(), "rnobody", expire, byAda)
	require.ErrorIs(t, err, store.ErrNotFound)

	// A waiting request expires; expiring it again is no error.
	done, _, err := r.EndRequest(t.Context(), waiting.ID, expire, byAda)
	require.NoError(t, err)
	require.True(t, done.Result.Changed)
	ended := r.request(waiting.ID)
	require.Equal(t, bench.Expired, ended.Outcome)
	require.Equal(t, "expired by ada: for a test", ended.Message)
	done, _, err = r.EndRequest(t.Context(), waiting.ID, expire, byAda)
	require.NoError(t, err)
	require.False(t, done.Result.Changed)
	require.Equal(t, "it had ended before: expired by ada: for a test", done.Result.Message)
	_, _, err = r.EndRequest(t.Context(), waiting.ID, cancel, byAda)
	require.ErrorIs(t, err, store.ErrEnded)

	// A request in progress expires only by force; its jobs end with it.
	_, _, err = r.EndRequest(t.Context(), running.ID, expire, byAda)
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "--force")
	force := store.EndOptions{Outcome: bench.Expired, Force: true}
	for range 2 {
		done, jobs, err := r.EndRequest(t.Context(), running.ID, force, key("force"))
		require.NoError(t, err)
		require.Equal(t, 1, done.Result.Jobs)
		require.Equal(t, []bench.JobRef{job.Ref()}, jobs, "a repetition cancels their workflows again")
	}
	require.Equal(t, bench.JobCancelled, r.job(job.Key).Status)
}

func TestARetryMeasuresMissingResults(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	request := r.inProgress(release(t, "1.1.0"))
	whole, part := newJob(request, "gin"), newJob(request, "kit", "sort")
	r.expand(request, whole, part)
	_, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.ErrorIs(t, err, store.ErrConflict, "it has not ended")
	r.measure(whole, 1, c, measured("gin", 1))
	r.measure(part, 1, c, measured("kit", 2))
	require.NoError(t, r.MarkWorkflowStarted(t.Context(), request.ID))
	r.complete(request, bench.Failure)
	r.create(release(t, "1.0.0"))

	done, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{Present: &store.Present{SuiteHash: part.SuiteHash, Has: func(tc bench.TestCase) bool {
		require.Equal(t, testCases("sort")[0], tc)
		return true
	}}}, key("again"))
	require.NoError(t, err)
	require.Equal(t, "retrigger", done.Action)
	require.Equal(t, store.OperationResult{
		Changed: true, Message: "1 job, 1 test case", Requests: []bench.RequestID{request.ID}, Jobs: 1, TestCases: 1,
	}, done.Result)
	again, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, key("again"))
	require.NoError(t, err)
	require.True(t, again.Repeated)

	// The request starts again, needs a workflow, and its job waits for admission.
	opened := r.request(request.ID)
	require.Equal(t, bench.ArtifactsReady, opened.Status)
	require.Empty(t, opened.Outcome)
	require.Nil(t, opened.AdmittedAt)
	require.Nil(t, opened.JobsDoneAt)
	require.NotNil(t, opened.ReopenedAt)
	require.NotNil(t, opened.ExpandedAt)
	require.Equal(t, "opened again by ada: for a test", opened.Message)
	open, err := r.OpenRequests(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Contains(t, open, store.OpenRequest{RequestRef: request.Ref()}, "its workflow is not confirmed any more")
	jobs := r.openJobs(request.ID)
	require.Len(t, jobs, 1)
	require.Equal(t, testCases("sort"), jobs[0].TestCases)
	require.Equal(t, 1, jobs[0].Generation)
	require.Equal(t, part.TaskQueue, jobs[0].TaskQueue)
	require.Empty(t, r.handedOut(), "it is not its turn yet")

	require.Equal(t, []bench.RequestID{request.ID}, r.admit())
	require.Equal(t, []bench.JobKey{jobs[0].Key}, r.handedOut())
	progress, err := r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: 2, Success: 1, HandedOut: 1, TestCases: 3, TestCasesDone: 2}, progress)
	require.Equal(t, testCases("sort"), r.start(jobs[0], 1, c).Missing)
	r.measure(jobs[0], 1, c, measured("sort", 3))
	require.Equal(t, map[string][]float64{"gin": {1}, "kit": {2}, "sort": {3}}, r.values("1.1.0"))
	progress, err = r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: 2, Success: 2, TestCases: 3, TestCasesDone: 3}, progress)
	failed, err := r.ErrorsOf(t.Context(), request.ID, r.jobIDs(request.ID))
	require.NoError(t, err)
	require.Empty(t, failed)

	r.complete(request, bench.Success)
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.ErrorIs(t, err, store.ErrNothingToMeasure)
}

// Part of a job has a shape of its own: its needs say nothing about the whole.
func TestARetryOfAPartHasItsOwnShape(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	request := r.inProgress(release(t, "1.1.0"))
	whole := newJob(request, "kit", "sort")
	whole.Shape = string(whole.SuiteShape())
	r.expand(request, whole)
	r.measure(whole, 1, c, measured("kit", 2))
	r.complete(request, bench.Failure)
	_, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	jobs := r.openJobs(request.ID)
	require.Len(t, jobs, 1)
	require.Equal(t, testCases("sort"), jobs[0].TestCases)
	require.NotEqual(t, whole.Shape, jobs[0].Shape)
	require.Equal(t, string(jobs[0].SuiteShape()), jobs[0].Shape, "that of a job that never had the other test case")
}

func TestARetryOfARequestWithoutJobsWritesThemAfterAdmission(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.create(release(t, "1.1.0"))
	_, _, err := r.EndRequest(t.Context(), request.ID, expire, byAda)
	require.NoError(t, err)
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Remeasure: true}, byAda)
	require.ErrorIs(t, err, store.ErrNothingToMeasure)
	done, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	require.Equal(t, "its jobs are written when it is its turn", done.Result.Message)
	require.Equal(t, []bench.RequestID{request.ID}, r.admit())
	require.Nil(t, r.request(request.ID).ExpandedAt)

	// A try build whose artifact never came waits for it again.
	build := bench.Request{ID: newID(t), Project: project, Type: bench.Try, Submission: bench.Submission{Submitter: "ada"}, Origin: bench.Origin{PR: 7}, Standing: bench.Standing{Status: bench.WaitingForArtifacts}}
	r.create(build)
	_, _, err = r.EndRequest(t.Context(), build.ID, expire, byAda)
	require.NoError(t, err)
	_, err = r.Reopen(t.Context(), build.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	require.Equal(t, bench.WaitingForArtifacts, r.request(build.ID).Status)
	r.execute(`update benchmark_request set created_at = created_at - interval '1 day'`)
	expired, err := r.ExpireArtifacts(t.Context(), build.ID, time.Hour)
	require.NoError(t, err)
	require.False(t, expired, "it has waited anew since it was opened again")
}

func TestACancelledRequestIsRetriedWithAllItsJobs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, job := r.oneJob("1.1.0", "gin", "kit")
	_, _, err := r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	for generation := 1; generation < 3; generation++ {
		_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
		require.NoError(t, err)
		jobs := r.openJobs(request.ID)
		require.Len(t, jobs, 1)
		require.NotEqual(t, job.Key, jobs[0].Key)
		require.Equal(t, generation, jobs[0].Generation)
		require.Equal(t, job.TestCases, jobs[0].TestCases)
		_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
		require.NoError(t, err)
	}
}

func TestABuildRetryIsSharedByAllRequests(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, job := r.buildOf("v1", "a")
	_, err := r.FinishJob(t.Context(), job.Key, 0, "the compiler failed")
	require.NoError(t, err)
	r.complete(request, bench.Failure)
	done, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	require.Equal(t, 1, done.Result.Jobs)
	jobs := r.openJobs(request.ID)
	require.Len(t, jobs, 1)
	require.Equal(t, job.Build, jobs[0].Build)
	generation, err := r.BuildGeneration(t.Context(), request.ID, project, job.Build.Key)
	require.NoError(t, err)
	require.Equal(t, plan.Later(job, newID(t), generation).Key, jobs[0].Key)

	// The build belongs to all artifacts of the same tree: a purge keeps it.
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	_, err = r.PurgeArtifact(t.Context(), project, "v1", byAda)
	require.NoError(t, err)
	require.Equal(t, bench.JobCancelled, r.job(jobs[0].Key).Status)
}

func TestRemeasuringKeepsTheFormerResults(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	request, job := r.oneJob("1.1.0", "gin", "kit")
	r.measure(job, 1, c, measured("gin", 1), measured("kit", 2))
	r.complete(request, bench.Success)

	_, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{Remeasure: true, Benchmarks: []string{"none"}}, byAda)
	require.ErrorIs(t, err, store.ErrNothingToMeasure)
	done, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{Remeasure: true, Benchmarks: []string{"kit"}}, byAda)
	require.NoError(t, err)
	require.Equal(t, "retrigger", done.Action)
	require.JSONEq(t, `{"benchmarks": ["kit"]}`, string(done.Detail))
	r.admit()
	jobs := r.openJobs(request.ID)
	require.Len(t, jobs, 1)
	require.Equal(t, testCases("kit"), jobs[0].TestCases)
	progress, err := r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: 1, Queued: 1, TestCases: 2, TestCasesDone: 1}, progress)

	r.measure(jobs[0], 1, c, measured("kit", 5))
	require.Equal(t, map[string][]float64{"gin": {1}, "kit": {5}}, r.values("1.1.0"))
	require.Equal(t, 3, r.count(`select count(*) from test_result`), "the former one stays")

	// Each test case is retried by its latest job.
	r.complete(request, bench.Success)
	_, err = r.InvalidateResults(t.Context(), store.ResultFilter{Project: project}, byAda)
	require.NoError(t, err)
	done, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	require.Equal(t, "2 jobs, 2 test cases", done.Result.Message)
}

func TestAJobIsRetried(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	request := r.inProgress(release(t, "1.1.0"))
	bad, slow := newJob(request, "gin"), newJob(request, "kit")
	r.expand(request, bad, slow)
	other := r.inProgress(release(t, "1.2.0"))
	require.NoError(t, r.ExpandRequest(t.Context(), other.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(bad)}))
	again := store.ReopenOptions{Job: bad.Key}

	_, err := r.JobRequest(t.Context(), "nosuchjobnosuchj")
	require.ErrorIs(t, err, store.ErrNotFound)
	of, err := r.JobRequest(t.Context(), bad.Key)
	require.NoError(t, err)
	require.Equal(t, request.ID, of.ID, "it measures its artifact")
	_, err = r.Reopen(t.Context(), request.ID, again, byAda)
	require.ErrorIs(t, err, store.ErrConflict, "it has not ended")

	// While its request is open, the next job replaces it in all requests that wait for
	// it.
	_, err = r.FinishJob(t.Context(), bad.Key, 0, "broken")
	require.NoError(t, err)
	done, err := r.Reopen(t.Context(), request.ID, again, byAda)
	require.NoError(t, err)
	require.Equal(t, "retrigger", done.Action)
	require.Equal(t, string(bad.Key), done.Subject)
	require.Equal(t, bench.InProgress, r.request(request.ID).Status)
	mine, others := r.openJobs(request.ID), r.openJobs(other.ID)
	require.Len(t, mine, 2)
	require.Len(t, others, 1)
	next := mine[1]
	require.Equal(t, next.Key, others[0].Key)
	_, err = r.Reopen(t.Context(), request.ID, again, byAda)
	require.ErrorIs(t, err, store.ErrNotFound, "it was replaced")
	_, err = r.JobRequest(t.Context(), bad.Key)
	require.ErrorIs(t, err, store.ErrNotFound)

	// Not while its request is being completed.
	_, err = r.FinishJob(t.Context(), next.Key, 0, "broken again")
	require.NoError(t, err)
	require.NoError(t, r.FinishJobsOf(t.Context(), request.ID))
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Job: next.Key}, byAda)
	require.ErrorIs(t, err, store.ErrConflict)

	// After its end the request is reopened. A job that still waits is kept.
	r.complete(request, bench.Failure)
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Job: next.Key}, byAda)
	require.NoError(t, err)
	require.Equal(t, bench.ArtifactsReady, r.request(request.ID).Status)
	require.Len(t, r.openJobs(request.ID), 2)

	// A job with all its results is measured again only with Remeasure.
	r.measure(slow, 1, c, measured("kit", 1))
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Job: slow.Key}, byAda)
	require.ErrorIs(t, err, store.ErrNothingToMeasure)
}

func TestInvalidResultsStayAndCountNowhere(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	good, bad := r.register("c1"), r.register("c2")
	request := r.inProgress(release(t, "1.1.0"))
	one, two := newJob(request, "gin"), newJob(request, "kit", "sort")
	r.expand(request, one, two)
	r.measure(one, 1, good, measured("gin", 1))
	r.measure(two, 1, bad, measured("kit", 2), bench.TestCaseResult{TestCase: testCase("sort"), Skipped: "too new"})
	r.complete(request, bench.Success)
	filter := store.ResultFilter{Collector: "c2"}

	for name, f := range map[string]store.ResultFilter{
		"nothing": {}, "tag alone": {Tag: "1.1.0"}, "no time": {Since: &measuredAt, Until: &measuredAt},
	} {
		_, err := r.InvalidateResults(t.Context(), f, byAda)
		require.ErrorIs(t, err, bench.ErrInvalid, name)
	}
	dry := byAda
	dry.DryRun = true
	done, err := r.InvalidateResults(t.Context(), filter, dry)
	require.NoError(t, err)
	want := store.OperationResult{
		Changed: true, Message: "2 results of 2 test cases of 1 artifact", Requests: []bench.RequestID{request.ID}, Results: 2, TestCases: 2,
	}
	require.Equal(t, want, done.Result)
	require.Len(t, r.values("1.1.0"), 2, "a dry run")

	done, err = r.InvalidateResults(t.Context(), filter, byAda)
	require.NoError(t, err)
	require.Equal(t, want, done.Result)
	require.JSONEq(t, `{"collector": "c2"}`, string(done.Detail))
	require.Equal(t, map[string][]float64{"gin": {1}}, r.values("1.1.0"))
	require.Equal(t, 3, r.count(`select count(*) from test_result`))
	require.Equal(t, 2, r.count(`select count(*) from test_result where invalid_reason = 'for a test'`))
	require.Zero(t, r.job(two.Key).Done)
	lacking, err := r.MissingResults(t.Context(), project, "1.1.0")
	require.NoError(t, err)
	require.Equal(t, []bench.MissingResult{
		{TestCase: testCase("kit"), Reason: "its result is invalid: for a test"}, {TestCase: testCase("sort"), Reason: "its result is invalid: for a test"},
	}, lacking)
	var exported []string
	require.NoError(t, r.ExportCollections(t.Context(), project, nil, func(row bench.ExportedCollection) error {
		exported = append(exported, row.TestCase.Benchmark)
		return nil
	}))
	require.Equal(t, []string{"gin"}, exported)

	// A repetition finds nothing.
	done, err = r.InvalidateResults(t.Context(), filter, byAda)
	require.NoError(t, err)
	require.False(t, done.Result.Changed)

	// A retry measures them again.
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	r.admit()
	jobs := r.openJobs(request.ID)
	require.Len(t, jobs, 1)
	require.Equal(t, testCases("kit", "sort"), jobs[0].TestCases)
	r.measure(jobs[0], 1, good, measured("kit", 7), measured("sort", 8))
	require.Equal(t, map[string][]float64{"gin": {1}, "kit": {7}, "sort": {8}}, r.values("1.1.0"))
	lacking, err = r.MissingResults(t.Context(), project, "1.1.0")
	require.NoError(t, err)
	require.Empty(t, lacking)
}

func TestResultsAreChosenByTimeAndArtifact(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	for _, tag := range []string{"1.1.0", "1.2.0"} {
		request, job := r.oneJob(tag, "gin")
		r.measure(job, 1, c, measured("gin", 1, 2)) // the last collection is a second after measuredAt
		r.complete(request, bench.Success)
	}
	last := measuredAt.Add(time.Second)
	later := last.Add(time.Second)
	dry := byAda
	dry.DryRun = true
	for name, test := range map[string]struct {
		filter store.ResultFilter
		want   int
	}{
		"since":         {store.ResultFilter{Since: &last}, 2},
		"since later":   {store.ResultFilter{Since: &later}, 0},
		"until":         {store.ResultFilter{Until: &last}, 0},
		"until later":   {store.ResultFilter{Until: &later}, 2},
		"project":       {store.ResultFilter{Project: project}, 2},
		"other project": {store.ResultFilter{Project: "rust"}, 0},
		"tag":           {store.ResultFilter{Project: project, Tag: "1.2.0", Since: &last, Until: &later, Collector: "c1"}, 1},
		"no collector":  {store.ResultFilter{Collector: "c9"}, 0},
	} {
		done, err := r.InvalidateResults(t.Context(), test.filter, dry)
		require.NoError(t, err)
		require.Equal(t, test.want, done.Result.Results, name)
	}
}

func TestAnOpenJobMeasuresInvalidResultsAgain(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	_, job := r.oneJob("1.1.0", "gin", "kit")
	plan := r.start(job, 1, c)
	r.block(plan.Run.ID, measured("gin", 1))
	_, err := r.InvalidateResults(t.Context(), store.ResultFilter{Project: project, Tag: "1.1.0"}, byAda)
	require.NoError(t, err)

	// Repeating the block does not restore the result.
	r.block(plan.Run.ID, measured("gin", 1))
	require.Empty(t, r.values("1.1.0"))

	// The next run measures it.
	next := r.start(job, 2, c)
	require.Equal(t, testCases("gin", "kit"), next.Missing)
	require.Equal(t, bench.BlockReceipt{Accepted: 2}, r.block(next.Run.ID, measured("gin", 3), measured("kit", 4)))
	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)
}

func TestAChildMeasuresInvalidResultsOfItsParentAgain(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	parent, job := r.oneJob("1.1.0", "gin")
	r.measure(job, 1, c, measured("gin", 1))
	r.complete(parent, bench.Success)
	backfill := store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}

	// A job that has succeeded is shared as it is.
	before := r.inProgress(release(t, "1.2.0"))
	require.NoError(t, r.ExpandRequest(t.Context(), before.ID, backfill))
	require.Empty(t, r.openJobs(before.ID))

	// With an invalid result the job is not enough.
	_, err := r.InvalidateResults(t.Context(), store.ResultFilter{Project: project, Tag: "1.1.0"}, byAda)
	require.NoError(t, err)
	child := r.inProgress(release(t, "1.3.0"))
	require.NoError(t, r.ExpandRequest(t.Context(), child.ID, backfill))
	jobs := r.openJobs(child.ID)
	require.Len(t, jobs, 1)
	r.measure(jobs[0], 1, c, measured("gin", 4))
	require.Equal(t, map[string][]float64{"gin": {4}}, r.values("1.1.0"))
}

func TestAPurgedArtifactLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	kept, keptJob := r.oneJob("1.0.0", "gin")
	r.measure(keptJob, 1, c, measured("gin", 9))
	r.complete(kept, bench.Success)
	request, job := r.oneJob("1.1.0", "gin")
	child := r.inProgress(release(t, "1.2.0"))
	require.NoError(t, r.ExpandRequest(t.Context(), child.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))

	// Not while a job runs or has a waiting request.
	_, err := r.PurgeArtifact(t.Context(), project, "1.1.0", byAda)
	require.ErrorIs(t, err, store.ErrInUse)
	require.ErrorContains(t, err, string(request.ID)+" for it is in_progress")
	_, _, err = r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	_, err = r.PurgeArtifact(t.Context(), project, "1.1.0", byAda)
	require.ErrorIs(t, err, store.ErrInUse)
	require.ErrorContains(t, err, string(child.ID)+" waits for it")
	r.measure(job, 1, c, measured("gin", 1))

	dry := byAda
	dry.DryRun = true
	want := store.OperationResult{
		Changed: true, Message: "1 request, 1 job, 1 run, 1 result", Requests: []bench.RequestID{request.ID}, Jobs: 1, Runs: 1, Results: 1,
	}
	done, err := r.PurgeArtifact(t.Context(), project, "1.1.0", dry)
	require.NoError(t, err)
	require.Equal(t, want, done.Result)
	require.NotEmpty(t, r.values("1.1.0"))

	done, err = r.PurgeArtifact(t.Context(), project, "1.1.0", key("purge"))
	require.NoError(t, err)
	require.Equal(t, want, done.Result)
	_, err = r.Request(t.Context(), request.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.Job(t.Context(), job.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Empty(t, r.values("1.1.0"))
	require.Equal(t, map[string][]float64{"gin": {9}}, r.values("1.0.0"))
	require.Equal(t, 1, r.count(`select count(*) from collection`))
	require.Equal(t, 1, r.count(`select count(distinct collection_id) from pstat`))

	// A repetition returns the first answer. The artifact is unknown now, and can be
	// requested again.
	done, err = r.PurgeArtifact(t.Context(), project, "1.1.0", key("purge"))
	require.NoError(t, err)
	require.True(t, done.Repeated)
	require.Equal(t, want, done.Result)
	_, err = r.PurgeArtifact(t.Context(), project, "1.1.0", byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
	anew, former := r.oneJob("1.1.0", "gin")
	require.Equal(t, job.Key, former.Key)
	jobs := r.openJobs(anew.ID)
	require.Len(t, jobs, 1)
	require.NotEqual(t, job.Key, jobs[0].Key, "the former one's workflow ID was used")
	require.Equal(t, 1, jobs[0].Generation)
}

func TestAPausedQueueAdmitsAndHandsOutNothing(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	running := r.inProgress(release(t, "1.1.0"))
	first, second := newJob(running, "gin"), newJob(running, "kit")
	r.expand(running, first)
	require.Equal(t, []bench.JobKey{first.Key}, r.handedOut())
	waiting := r.create(release(t, "1.2.0"))

	_, err := r.PauseQueue(t.Context(), "none", byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.ResumeQueue(t.Context(), "none", byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
	pause, err := r.QueuePause(t.Context(), project)
	require.NoError(t, err)
	require.Nil(t, pause)

	done, err := r.PauseQueue(t.Context(), project, byAda)
	require.NoError(t, err)
	require.True(t, done.Result.Changed)
	pause, err = r.QueuePause(t.Context(), project)
	require.NoError(t, err)
	require.Equal(t, "ada", pause.By)
	require.Contains(t, pause.String(), "the queue is paused by ada since ")
	require.Contains(t, pause.String(), " UTC: for a test")
	done, err = r.PauseQueue(t.Context(), project, store.Act{Who: "bob", Reason: "me too"})
	require.NoError(t, err)
	require.False(t, done.Result.Changed)
	require.Equal(t, pause.String(), done.Result.Message, "the first one's pause stays")

	// Jobs handed out before go on; no others follow.
	r.expand(running, second)
	require.Empty(t, r.handedOut())
	queues, err := r.WaitingTaskQueues(t.Context())
	require.NoError(t, err)
	require.Empty(t, queues)
	r.measure(first, 1, c, measured("gin", 1))
	require.NoError(t, r.FinishJobsOf(t.Context(), running.ID))
	require.Empty(t, r.admit())

	done, err = r.ResumeQueue(t.Context(), project, byAda)
	require.NoError(t, err)
	require.True(t, done.Result.Changed)
	done, err = r.ResumeQueue(t.Context(), project, byAda)
	require.NoError(t, err)
	require.False(t, done.Result.Changed)
	require.Equal(t, []bench.JobKey{second.Key}, r.handedOut())
	require.Equal(t, []bench.RequestID{waiting.ID}, r.admit())
}
