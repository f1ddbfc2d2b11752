package api_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

var because = apiclient.Act{Reason: "for a test"}

// failed is a release whose one job has failed.
func (b *bundle) failed(t *testing.T, tag string) job {
	t.Helper()
	j := b.submit(t, tag)
	_, err := b.store.FinishJob(t.Context(), j.key, 0, "broken")
	require.NoError(t, err)
	require.NoError(t, b.store.CompleteRequest(t.Context(), j.request.ID, bench.Failure, "", nil, "broken"))
	return j
}

func TestEndingARequestTwiceSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.0.0")
	b.start(t, j, c, 1)
	ref := string(j.request.ID)

	done, err := b.writer.CancelRequest(t.Context(), ref, apiclient.Act{Reason: "wrong", IdempotencyKey: "k"})
	require.NoError(t, err)
	require.Equal(t, bench.Cancelled, done.Outcome)
	require.True(t, done.Operation.Changed)
	require.Equal(t, "wanda", done.Operation.Who)
	require.Equal(t, "request cancel", done.Operation.Action)
	require.Equal(t, []bench.JobRef{b.jobRef(t, j.key)}, b.workflows.cancelled[j.request.ID])

	again, err := b.writer.CancelRequest(t.Context(), ref, apiclient.Act{})
	require.NoError(t, err)
	require.False(t, again.Operation.Changed)
	require.Equal(t, "it had ended before: cancelled by wanda: wrong", again.Operation.Message)

	// Opened again since: the key's answer is still that of then, and nothing is
	// cancelled.
	_, err = b.writer.RetryRequest(t.Context(), ref, because)
	require.NoError(t, err)
	delete(b.workflows.cancelled, j.request.ID)
	repeated, err := b.writer.CancelRequest(t.Context(), ref, apiclient.Act{Reason: "wrong", IdempotencyKey: "k"})
	require.NoError(t, err)
	require.True(t, repeated.Operation.Repeated)
	require.Equal(t, done.Operation.ID, repeated.Operation.ID)
	require.Equal(t, bench.ArtifactsReady, repeated.Status)
	require.Empty(t, b.workflows.cancelled)
	_, err = b.writer.ExpireRequest(t.Context(), ref, apiclient.Expiry{Act: apiclient.Act{IdempotencyKey: "k"}})
	require.ErrorContains(t, err, "the idempotency key \"k\" was used for 'request cancel "+ref+"'")

	expired, err := b.writer.ExpireRequest(t.Context(), ref, apiclient.Expiry{Act: because})
	require.NoError(t, err)
	require.Equal(t, bench.Expired, expired.Outcome)
	_, err = b.writer.CancelRequest(t.Context(), ref, because)
	require.Equal(t, "urn:benchloom:completed", problemOf(t, err).Type)
}

func TestARetriedRequestGetsAWorkflowAfterTheFormerOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	j := b.failed(t, "1.0.0")
	ref := string(j.request.ID)

	// The former workflow does not end: not now.
	b.workflows.unsettled = errors.New("still running")
	_, err := b.writer.RetryRequest(t.Context(), ref, because)
	p := problemOf(t, err)
	require.Equal(t, http.StatusServiceUnavailable, p.Status)
	require.Contains(t, p.Detail, "request/go/1.0.0/"+ref)
	require.Empty(t, b.workflows.restarted)
	b.workflows.unsettled = nil

	done, err := b.writer.RetryRequest(t.Context(), "go:1.0.0", because)
	require.NoError(t, err)
	require.Equal(t, bench.ArtifactsReady, done.Status)
	require.Equal(t, "1 job, 2 test cases", done.Operation.Message)
	require.Equal(t, []bench.RequestID{j.request.ID}, b.workflows.restarted)
	detail, err := b.nobody.Request(t.Context(), ref)
	require.NoError(t, err)
	require.Len(t, detail.Jobs, 2)
	require.Equal(t, 1, detail.Jobs[1].Generation)
	require.Equal(t, 1, detail.Progress.Jobs)

	// It has not ended now.
	settled := b.workflows.settled
	_, err = b.writer.RetryRequest(t.Context(), ref, because)
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
	_, err = b.writer.RemeasureRequest(t.Context(), ref, apiclient.Remeasurement{})
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
	require.Equal(t, settled, b.workflows.settled)
}

func TestARetryUsesThePresentSuite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	former := b.project(t)
	b.register(t, "c1")
	before, after, single := b.failed(t, "1.0.0"), b.failed(t, "1.1.0"), b.failed(t, "1.2.0")
	newest := func(j job) bench.Job {
		t.Helper()
		jobs, err := b.store.RequestJobs(t.Context(), j.request.ID)
		require.NoError(t, err)
		return jobs[len(jobs)-1]
	}
	_, err := b.writer.RetryRequest(t.Context(), string(before.request.ID), because)
	require.NoError(t, err)
	require.NotEqual(t, before.key, newest(before).Key, "the suite is the same, so the job is written at once")
	require.Equal(t, former.SuiteHash, newest(before).SuiteHash)

	apply := func(text string) string {
		s := packed(t, text)
		_, err := b.writer.PutSuite(t.Context(), s.Hash, s.Archive)
		require.NoError(t, err)
		_, err = b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", SuiteHash: s.Hash}, false)
		require.NoError(t, err)
		return s.Hash
	}
	mended := apply(smallSuite + "# mended\n")
	done, err := b.writer.RetryRequest(t.Context(), string(after.request.ID), because)
	require.NoError(t, err)
	require.Equal(t, "its jobs are planned from the present suite when it is its turn", done.Operation.Message)
	require.Equal(t, after.key, newest(after).Key)
	reopened, err := b.store.Request(t.Context(), after.request.ID)
	require.NoError(t, err)
	require.Nil(t, reopened.ExpandedAt)

	// A single job has the present suite if that has its test cases.
	_, err = b.writer.RetryJob(t.Context(), single.key, because)
	require.NoError(t, err)
	require.Equal(t, mended, newest(single).SuiteHash)
	_, err = b.store.FinishJob(t.Context(), newest(single).Key, 0, "failed again")
	require.NoError(t, err)
	apply(`name: other
artifact: {provider: directory, parameters: {path: "/tmp/{tag}"}}
targets: [x86_64-unknown-linux-gnu]
benchmarks:
  - {name: sort, kind: runtime, measure: {run: [sh, -c, "true"]}}
`)
	_, err = b.writer.RetryJob(t.Context(), newest(single).Key, because)
	require.NoError(t, err)
	require.Equal(t, mended, newest(single).SuiteHash)
}

func TestACompleteRequestIsRemeasuredNotRetried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.measure(t, "1.0.0", 1, c)
	ref := string(j.request.ID)

	_, err := b.writer.RetryRequest(t.Context(), ref, because)
	p := problemOf(t, err)
	require.Equal(t, "urn:benchloom:nothing-lacks", p.Type)
	require.Contains(t, p.Detail, "benchloom retrigger "+ref+" --select stage=own")
	_, err = b.writer.RetryJob(t.Context(), j.key, because)
	require.Equal(t, "urn:benchloom:nothing-lacks", problemOf(t, err).Type)
	_, err = b.writer.RemeasureRequest(t.Context(), ref, apiclient.Remeasurement{Benchmarks: []string{"nosuch"}})
	p = problemOf(t, err)
	require.Equal(t, "urn:benchloom:nothing-to-measure", p.Type)
	require.Contains(t, p.Detail, "nosuch")
	require.Zero(t, b.workflows.settled, "nothing came of it, so its workflow was left alone")

	done, err := b.writer.RemeasureRequest(t.Context(), ref, apiclient.Remeasurement{Act: because, Benchmarks: []string{"gin"}})
	require.NoError(t, err)
	require.Equal(t, 2, done.Operation.TestCases)
	require.Equal(t, []bench.RequestID{j.request.ID}, b.workflows.restarted)
	_, err = b.writer.RetryJob(t.Context(), j.key, because)
	require.Equal(t, "urn:benchloom:replaced", problemOf(t, err).Type)
}

func TestAJobOfAnOpenRequestIsRetriedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	j := b.submit(t, "1.0.0")
	require.NoError(t, b.store.MarkWorkflowStarted(t.Context(), j.request.ID))
	_, err := b.writer.RetryJob(t.Context(), j.key, because)
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status, "it has not ended")
	_, err = b.writer.RetryJob(t.Context(), "abcdefghijklmnop", because)
	require.Equal(t, "urn:benchloom:unknown-job", problemOf(t, err).Type)

	_, err = b.store.FinishJob(t.Context(), j.key, 0, "broken")
	require.NoError(t, err)
	done, err := b.writer.RetryJob(t.Context(), j.key, because)
	require.NoError(t, err)
	require.Equal(t, bench.InProgress, done.Status)
	require.Equal(t, "retrigger", done.Operation.Action)
	require.Equal(t, 1, b.workflows.reconciled, "what waits is handed out now")
	require.Zero(t, b.workflows.settled)
	require.Empty(t, b.workflows.restarted)
}

func TestInvalidResultsLeaveComparisons(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	b.measure(t, "1.0.0", 1, c)
	second := b.measure(t, "1.1.0", 2, c)
	query := apiclient.CompareQuery{Project: "go", A: "1.0.0", B: "1.1.0"}
	before, err := b.nobody.Compare(t.Context(), query)
	require.NoError(t, err)
	require.Empty(t, before.Missing)

	_, err = b.writer.InvalidateResults(t.Context(), apiclient.Invalidation{Act: because, Project: "go"})
	require.Equal(t, http.StatusForbidden, problemOf(t, err).Status)
	_, err = b.admin.InvalidateResults(t.Context(), apiclient.Invalidation{Project: "go"})
	require.Equal(t, "urn:benchloom:no-reason", problemOf(t, err).Type)
	_, err = b.admin.InvalidateResults(t.Context(), apiclient.Invalidation{Act: because})
	require.ErrorContains(t, err, "nothing narrows the results down")
	_, err = b.admin.InvalidateResults(t.Context(), apiclient.Invalidation{Act: because, Project: "none"})
	require.Equal(t, "urn:benchloom:unknown-project", problemOf(t, err).Type)
	future := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	done, err := b.admin.InvalidateResults(t.Context(), apiclient.Invalidation{Act: because, Since: &future})
	require.NoError(t, err)
	require.False(t, done.Changed)

	in := apiclient.Invalidation{Act: because, Project: "go", Tag: "1.1.0", DryRun: true}
	done, err = b.admin.InvalidateResults(t.Context(), in)
	require.NoError(t, err)
	require.True(t, done.DryRun)
	require.Equal(t, 2, done.Results)
	in.DryRun = false
	done, err = b.admin.InvalidateResults(t.Context(), in)
	require.NoError(t, err)
	require.False(t, done.DryRun)
	require.Equal(t, []bench.RequestID{second.request.ID}, done.Requests)

	_, err = b.nobody.Compare(t.Context(), query)
	require.ErrorContains(t, err, `project go has no results of "1.1.0"`)
	retried, err := b.writer.RetryRequest(t.Context(), string(second.request.ID), because)
	require.NoError(t, err)
	require.Equal(t, 2, retried.Operation.TestCases)
}

func TestPurgingWhatRunsIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	j := b.submit(t, "1.0.0")
	purge := apiclient.Purge{Act: because, Project: "go", Tag: "1.0.0"}

	_, err := b.writer.PurgeArtifact(t.Context(), purge)
	require.Equal(t, http.StatusForbidden, problemOf(t, err).Status)
	_, err = b.admin.PurgeArtifact(t.Context(), apiclient.Purge{Project: "go", Tag: "1.0.0"})
	require.Equal(t, "urn:benchloom:no-reason", problemOf(t, err).Type)
	_, err = b.admin.PurgeArtifact(t.Context(), apiclient.Purge{Act: because, Project: "go", Tag: "9.9.9"})
	require.Equal(t, "urn:benchloom:unknown-artifact", problemOf(t, err).Type)
	_, err = b.admin.PurgeArtifact(t.Context(), purge)
	p := problemOf(t, err)
	require.Equal(t, "urn:benchloom:in-use", p.Type)
	require.Contains(t, p.Detail, "request "+string(j.request.ID)+" for it is in_progress; cancel it first")

	_, err = b.writer.CancelRequest(t.Context(), string(j.request.ID), because)
	require.NoError(t, err)
	done, err := b.admin.PurgeArtifact(t.Context(), purge)
	require.NoError(t, err)
	require.Equal(t, "1 request, 1 job, 0 runs, 0 results", done.Message)
	_, err = b.nobody.Request(t.Context(), string(j.request.ID))
	require.Equal(t, http.StatusNotFound, problemOf(t, err).Status)
}

func TestPausingAQueueTellsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	_, err := b.writer.PauseQueue(t.Context(), "go", because)
	require.Equal(t, http.StatusForbidden, problemOf(t, err).Status)
	_, err = b.admin.PauseQueue(t.Context(), "go", apiclient.Act{})
	require.Equal(t, "urn:benchloom:no-reason", problemOf(t, err).Type)
	_, err = b.admin.PauseQueue(t.Context(), "none", because)
	require.Equal(t, "urn:benchloom:unknown-project", problemOf(t, err).Type)

	done, err := b.admin.PauseQueue(t.Context(), "go", because)
	require.NoError(t, err)
	require.Contains(t, done.Message, "the queue is paused by ada since ")
	done, err = b.admin.ResumeQueue(t.Context(), "go", apiclient.Act{})
	require.NoError(t, err)
	require.True(t, done.Changed)
	require.Equal(t, []string{"go", "go"}, b.workflows.queues)
	require.Equal(t, 2, b.workflows.reconciled)
}

// A pause because of the suite ends with the next suite, one by a person does not.
func TestApplyingAnotherSuiteResumesWhatTheSuitePaused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	applied := b.project(t)
	c := b.register(t, "c1")
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		j := b.submit(t, tag)
		plan := b.start(t, j, c, 1)
		var failures apiclient.Block
		for _, tc := range j.cases {
			failures.Errors = append(failures.Errors, apiclient.BlockError{TestCase: &tc, Kind: bench.FailJob, Message: "no unit MB/s"})
		}
		_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, failures)
		require.NoError(t, err)
		require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure}))
		_, err = b.store.FinishJob(t.Context(), j.key, 0, "broken")
		require.NoError(t, err)
		require.NoError(t, b.store.FinishJobsOf(t.Context(), j.request.ID))
		_, err = b.store.PauseForSuite(t.Context(), j.request.ID)
		require.NoError(t, err)
	}
	q, err := b.nobody.Queue(t.Context(), "go")
	require.NoError(t, err)
	require.Contains(t, q.Paused, "paused by benchloom")
	require.Contains(t, q.Paused, "no unit MB/s")

	same, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", SuiteHash: applied.SuiteHash}, false)
	require.NoError(t, err)
	require.False(t, same.Changed)
	require.Empty(t, b.workflows.queues)
	mended := packed(t, smallSuite+"# mended\n")
	_, err = b.writer.PutSuite(t.Context(), mended.Hash, mended.Archive)
	require.NoError(t, err)
	_, err = b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", SuiteHash: mended.Hash}, true)
	require.NoError(t, err)
	require.Empty(t, b.workflows.queues, "a dry run resumes nothing")
	now, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", SuiteHash: mended.Hash}, false)
	require.NoError(t, err)
	require.Contains(t, now.Changes[len(now.Changes)-1], "the project is resumed: it was paused by benchloom since ")
	require.Equal(t, []string{"go"}, b.workflows.queues)

	_, err = b.admin.PauseQueue(t.Context(), "go", because)
	require.NoError(t, err)
	again, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", SuiteHash: applied.SuiteHash}, false)
	require.NoError(t, err)
	require.True(t, again.Changed)
	q, err = b.nobody.Queue(t.Context(), "go")
	require.NoError(t, err)
	require.Contains(t, q.Paused, "paused by ada")
}

func TestTheAuditIsReadPageByPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	for range 3 {
		_, err := b.admin.PauseQueue(t.Context(), "go", because)
		require.NoError(t, err)
	}
	var ids []int64
	query := apiclient.AuditQuery{Project: "go", Who: "ada", Subject: "go", Limit: 2}
	for {
		list, err := b.reader.Audit(t.Context(), query)
		require.NoError(t, err)
		for _, o := range list.Operations {
			if o.Action == "project apply" { // the fixture's
				continue
			}
			require.Equal(t, "queue pause", o.Action)
			require.Equal(t, "for a test", o.Reason)
			ids = append(ids, o.ID)
		}
		if query.Cursor = list.Next; list.Next == "" {
			break
		}
	}
	require.Equal(t, []int64{5, 4, 3}, ids)
	_, err := b.reader.Audit(t.Context(), apiclient.AuditQuery{Cursor: "x"})
	require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status)
}
