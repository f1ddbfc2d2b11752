package orchestration_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uber-go/tally/v4"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// older lets time pass for everything that was written.
func (b *bundle) older() {
	b.t.Helper()
	b.execute(`update benchmark_request set created_at = created_at - interval '1 minute', completed_at = completed_at - interval '1 minute'`)
	b.execute(`update job_queue set handed_out_at = handed_out_at - interval '1 minute', completed_at = completed_at - interval '1 minute'`)
}

// calls of a reconciliation, in any order: it does several things at a time.
func (b *bundle) reconciled() []string {
	b.t.Helper()
	b.workflows.taken()
	_, err := b.Reconcile(b.t.Context())
	require.NoError(b.t, err)
	return b.workflows.taken()
}

func (b *bundle) requestID(ref protocol.RequestRef) string { return b.request(ref).Ref().WorkflowID() }
func (b *bundle) jobID(key bench.JobKey) string            { return b.job(key).Ref().WorkflowID() }

func TestReconcilingStartsMissingWorkflowsAndHandsOut(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	one := b.running("1.1.0")
	missing, started, ended := b.create(bench.Release, "1.2.0", 1), b.create(bench.Release, "1.3.0", 1), b.create(bench.Release, "1.4.0", 1)
	b.workflows.is(b.requestID(one), protocol.WorkflowRunning)
	b.workflows.is(b.requestID(started), protocol.WorkflowPaused)
	require.NoError(t, b.store.CompleteRequest(t.Context(), ended.ID, bench.Cancelled, "", nil, ""))
	b.older()
	b.create(bench.Release, "1.5.0", 1) // just created: its workflow is on its way

	// Temporal is away: nothing is taken for started, and what can be done is done.
	b.workflows.err = errors.New("no Temporal")
	_, err := b.Reconcile(t.Context())
	require.ErrorContains(t, err, "no Temporal")
	require.Nil(t, b.request(missing).WorkflowStartedAt)
	b.workflows.err = nil

	jobs := b.jobs(one)
	require.Equal(t, bench.JobHandedOut, jobs[0].Status)
	b.execute(`update job_queue set status = 'queued', handed_out_at = null, handed_out_to = null`)
	require.ElementsMatch(t, []string{
		"restart " + b.requestID(missing), "queue " + project, startJob(one.ID, jobs[0].Key), startJob(one.ID, jobs[1].Key),
	}, b.reconciled())
	require.NotNil(t, b.request(missing).WorkflowStartedAt)

	b.workflows.is(bench.QueueWorkflowID(project), protocol.WorkflowRunning)
	require.Empty(t, b.reconciled())

	// A list that lags makes nobody act: each workflow is looked at first.
	b.workflows.lagging = true
	require.Empty(t, b.reconciled())
}

// However a workflow of an open row ended, it is started again.
func TestWorkflowsOfOpenRowsAreStartedAgain(t *testing.T) {
	t.Parallel()
	for _, status := range []protocol.WorkflowStatus{
		protocol.WorkflowMissing, protocol.WorkflowCompleted, protocol.WorkflowFailed, protocol.WorkflowCanceled, protocol.WorkflowTerminated, protocol.WorkflowTimedOut,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`)
			scope := tally.NewTestScope("", nil)
			b.Scope = scope
			c := b.register("c1")
			ref := b.running("1.1.0")
			b.handOut(ref)
			b.workflows.is(b.requestID(ref), protocol.WorkflowRunning)
			waiting, measuring := b.jobs(ref)[0], b.jobs(ref)[1]
			run := b.start(measuring.Key, c, 1)
			require.Equal(t, []string{"queue " + project}, b.reconciled(), "what was handed out just now is being started")
			b.older()
			b.register("c1") // the process that measured is gone
			for _, id := range []string{b.requestID(ref), b.jobID(waiting.Key), b.jobID(measuring.Key)} {
				b.workflows.is(id, status)
			}
			b.workflows.is(bench.QueueWorkflowID(project), protocol.WorkflowRunning)
			b.execute(`delete from workflow_repair`)
			again := "restart %s for %s"
			if status == protocol.WorkflowMissing { // its request is to start it
				again = "hand %s to %s again"
			}
			require.ElementsMatch(t, []string{
				"restart " + b.requestID(ref),
				fmt.Sprintf(again+", 0 runs, 3 attempts left", b.jobID(waiting.Key), ref.ID),
				fmt.Sprintf(again+", 1 runs, 3 attempts left", b.jobID(measuring.Key), ref.ID),
			}, b.reconciled())

			// The lost run is closed; what its collector has spooled counts.
			ended, err := b.store.Run(t.Context(), run)
			require.NoError(t, err)
			require.Equal(t, bench.RunLost, ended.Outcome)
			require.Contains(t, ended.Message, string(status))
			b.measureAs(run, measuring)
			require.Equal(t, len(measuring.TestCases), b.job(measuring.Key).Done)

			repairs, err := b.store.Repairs(t.Context(), b.requestID(ref), time.Hour)
			require.NoError(t, err)
			require.Len(t, repairs, 1)
			require.Equal(t, string(status), repairs[0].Found)
			counter := scope.Snapshot().Counters()["reconcile_repairs_total+found="+string(status)+",workflow=job"]
			require.NotNil(t, counter)
			require.EqualValues(t, 2, counter.Value())
			require.Empty(t, b.reconciled())
		})
	}
}

// measureAs stores results of a run that began before.
func (b *bundle) measureAs(run bench.RunID, job bench.Job) {
	b.t.Helper()
	var results []bench.TestCaseResult
	for _, tc := range job.TestCases {
		results = append(results, bench.TestCaseResult{TestCase: tc, Collections: []bench.Collection{
			{Iteration: 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Values: map[bench.Metric]float64{bench.WallTime: 1}},
		}})
	}
	_, err := b.store.StoreBlock(b.t.Context(), run, results, nil)
	require.NoError(b.t, err)
}

// A job whose results are all there lacks only its end: nothing is dispatched.
func TestAJobThatLacksOnlyItsEndIsEnded(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	job := b.jobs(ref)[0]
	b.measureAs(b.start(job.Key, c, 1), job)
	b.register("c1") // its process is gone
	b.older()
	for _, id := range []string{b.requestID(ref), b.jobID(b.jobs(ref)[1].Key), bench.QueueWorkflowID(project)} {
		b.workflows.is(id, protocol.WorkflowRunning)
	}
	require.Equal(t, []string{fmt.Sprintf("ended %s/%s %s success", project, ref.ID, job.Key)}, b.reconciled())
	require.Equal(t, bench.JobSuccess, b.job(job.Key).Status)
}

// A job that used up its attempts before its workflow was lost is not tried
// again.
func TestAJobWithoutAttemptsLeftIsEnded(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"max_job_fails": 1}`)
	c := b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	job := b.jobs(ref)[0]
	require.NoError(t, b.store.FinishRun(t.Context(), b.start(job.Key, c, 1), bench.RunEnd{Outcome: bench.RunFailure, Message: "exit 1"}))
	b.older()
	for _, id := range []string{b.requestID(ref), b.jobID(b.jobs(ref)[1].Key), bench.QueueWorkflowID(project)} {
		b.workflows.is(id, protocol.WorkflowRunning)
	}
	require.Equal(t, []string{fmt.Sprintf("ended %s/%s %s failure", project, ref.ID, job.Key)}, b.reconciled())
	require.Contains(t, b.job(job.Key).Message, "it failed 1 times")
}

// A job for which nobody waits any more holds no place in its task queue.
func TestAJobWithoutWaitersIsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	job := b.jobs(ref)[0]
	run := b.start(job.Key, c, 1)
	require.NoError(t, b.store.CompleteRequest(t.Context(), ref.ID, bench.Failure, "", nil, ""))
	b.older()
	require.Empty(t, b.reconciled())
	require.Equal(t, bench.JobQueued, b.job(job.Key).Status)
	require.Empty(t, b.job(job.Key).HandedOutTo)
	ended, err := b.store.Run(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, bench.RunLost, ended.Outcome)
}

// A workflow that ends by its own error each time is not started in a circle.
func TestAWorkflowThatFailsAgainIsStartedLater(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	ref := b.create(bench.Release, "1.1.0", 1)
	b.workflows.is(bench.QueueWorkflowID(project), protocol.WorkflowRunning)
	b.older()
	restart := []string{"restart " + b.requestID(ref)}
	fails := func() { b.workflows.is(b.requestID(ref), protocol.WorkflowFailed) }
	passes := func(span string) { b.execute(`update workflow_repair set at = at - $1::interval`, span) }
	fails()
	require.Equal(t, restart, b.reconciled(), "at once, the first time")
	fails()
	require.Empty(t, b.reconciled())
	passes("31 seconds")
	require.Equal(t, restart, b.reconciled())
	fails()
	passes("31 seconds")
	require.Empty(t, b.reconciled(), "a minute, the second time")
	passes("31 seconds")
	require.Equal(t, restart, b.reconciled())

	// Somebody who terminates it is not punished for that.
	b.workflows.is(b.requestID(ref), protocol.WorkflowTerminated)
	require.Equal(t, restart, b.reconciled())
}

// Workflows whose rows have ended, or were lost with a restored backup, end too.
func TestWorkflowsWithoutAnOpenRowAreCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	jobs := b.jobs(ref)
	unknown := protocol.RequestRef{Project: project, ID: "raaaaaaaaaa"}
	lostRequest := bench.RequestRef{Project: project, ID: unknown.ID, Type: bench.Release, Tag: "0.9"}.WorkflowID()
	lostJob := bench.JobRef{Project: project, Key: "aaaaaaaaaaaaaaaa", Kind: bench.KindRuntime, Tag: "0.9", TestCases: 2}.WorkflowID()
	for _, id := range []string{b.requestID(ref), b.jobID(jobs[0].Key), lostRequest, lostJob, bench.QueueWorkflowID("other"), "somebody's own"} {
		b.workflows.is(id, protocol.WorkflowRunning)
	}
	_, err := b.store.CancelRequest(t.Context(), ref.ID, "ada", "")
	require.NoError(t, err)
	lost := []string{"cancel " + lostRequest, "cancel " + lostJob}
	require.ElementsMatch(t, lost, b.reconciled(), "what ended just now ends by itself")
	b.older()
	b.workflows.states[b.jobID(jobs[0].Key)] = protocol.WorkflowState{Status: protocol.WorkflowRunning, Started: time.Now()}
	require.ElementsMatch(t, append(lost, "cancel "+b.requestID(ref)), b.reconciled(), "what was reset just now ends by itself")
	b.workflows.is(b.jobID(jobs[0].Key), protocol.WorkflowRunning)
	require.ElementsMatch(t, append(lost, "cancel "+b.requestID(ref), "cancel "+b.jobID(jobs[0].Key)), b.reconciled())

	_, err = b.LoadRequest(t.Context(), unknown)
	require.ErrorContains(t, err, "reading request raaaaaaaaaa: not found; rows are written before workflows start, so the record was restored from an older backup")
	_, err = b.RecordJobEnd(t.Context(), protocol.JobEndInput{Project: project, Key: "aaaaaaaaaaaaaaaa", TaskQueue: pool.TaskQueue()})
	require.ErrorContains(t, err, "aaaaaaaaaaaaaaaa: not found; rows are written before workflows start")
}

// A build has no test cases; that none is missing does not mean that it is done.
func TestABuildWithoutAWorkflowIsStartedAgain(t *testing.T) {
	t.Parallel()
	b, _, c := setupBuilds(t)
	ref := b.admitted("1.1.0")
	builds := b.build(ref)
	require.Len(t, builds, 1)
	b.start(builds[0].Key, c, 1)
	b.register(c.Name) // its process is gone
	b.older()
	b.workflows.is(b.requestID(ref), protocol.WorkflowRunning)
	b.workflows.is(bench.QueueWorkflowID(project), protocol.WorkflowRunning)
	require.Equal(t, []string{fmt.Sprintf("hand %s to %s again, 1 runs, 3 attempts left", b.jobID(builds[0].Key), ref.ID)}, b.reconciled())
	require.True(t, b.job(builds[0].Key).Status.Open())
}
