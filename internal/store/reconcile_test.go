package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func TestInFlightListsHandedOutOpenJobs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	first, shared := r.oneJob("v1", "gin")
	second := r.inProgress(release(t, "v2"))
	r.expand(second, shared, newJob(second, "sort"))
	require.Empty(t, r.inFlight(0), "nothing is handed out yet")
	r.handOut()
	require.Len(t, r.inFlight(0), 2)
	require.Empty(t, r.inFlight(time.Hour))
	r.start(shared, 1, c)

	mine := r.inFlight(0)
	require.Equal(t, shared.Key, mine[0].Job)
	require.Equal(t, bench.JobInProgress, mine[0].Status)
	require.Equal(t, first.ID, mine[0].Request)
	require.Contains(t, mine[0].Summary, "v1 compiletime")
	require.Equal(t, bench.JobHandedOut, mine[1].Status)

	// After its request's end the job belongs to the next waiting request, and then to
	// none.
	require.NoError(t, r.CompleteRequest(t.Context(), first.ID, bench.Failure, "", nil, ""))
	require.Equal(t, second.ID, r.inFlight(0)[0].Request)
	require.NoError(t, r.Requeue(t.Context(), shared.Key, "lost"))
	require.Equal(t, bench.JobInProgress, r.job(shared.Key).Status, "somebody waits")
	require.NoError(t, r.CompleteRequest(t.Context(), second.ID, bench.Failure, "", nil, ""))
	require.Empty(t, r.inFlight(0)[0].Request)
	twice(t, func() error { return r.Requeue(t.Context(), shared.Key, "lost") })
	require.Equal(t, bench.JobQueued, r.job(shared.Key).Status)
	require.Equal(t, bench.RunLost, r.run(runID(shared, 1)).Outcome)
	require.Len(t, r.inFlight(0), 1)
	require.ErrorIs(t, r.Requeue(t.Context(), "nothing", ""), store.ErrNotFound)
}

func (r record) inFlight(olderThan time.Duration) []store.InFlightJob {
	r.t.Helper()
	jobs, err := r.InFlight(r.t.Context(), olderThan)
	require.NoError(r.t, err)
	return jobs
}

// A completed request with open optional jobs still needs its workflow.
func TestOptionalJobsKeepARequestOpen(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.inProgress(release(t, "v1"))
	job := newJob(request, "gin")
	require.NoError(t, r.ExpandRequest(t.Context(), request.ID, store.Expansion{
		Stage: bench.StageOwn, Jobs: storetest.Planned(job), Optional: map[bench.Target]bool{target: true},
	}))
	require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Success, "", nil, ""))
	ids := []bench.RequestID{request.ID, "rnobody"}
	state := func(olderThan time.Duration) (open int, ended []bench.RequestID) {
		t.Helper()
		all, err := r.OpenRequests(t.Context(), 0)
		require.NoError(t, err)
		ended, err = r.EndedRequests(t.Context(), ids, olderThan)
		require.NoError(t, err)
		return len(all), ended
	}
	open, ended := state(0)
	require.Equal(t, 1, open)
	require.Equal(t, []bench.RequestID{"rnobody"}, ended)

	_, err := r.FinishJob(t.Context(), job.Key, 0, "given up")
	require.NoError(t, err)
	open, ended = state(0)
	require.Zero(t, open)
	require.ElementsMatch(t, ids, ended)
	_, ended = state(time.Hour)
	require.Equal(t, []bench.RequestID{"rnobody"}, ended, "it ended just now")

	gone, err := r.EndedJobs(t.Context(), []bench.JobKey{job.Key, "nothing"}, 0)
	require.NoError(t, err)
	require.ElementsMatch(t, []bench.JobKey{job.Key, "nothing"}, gone)
	gone, err = r.EndedJobs(t.Context(), []bench.JobKey{job.Key, "nothing"}, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []bench.JobKey{"nothing"}, gone)
}

func TestRepairsAreRemembered(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	const id = "request/go/r1"
	for _, done := range []string{"first", "second"} {
		require.NoError(t, r.RecordRepair(t.Context(), store.Repair{WorkflowID: id, Project: project, Found: "terminated", Done: done}))
	}
	require.NoError(t, r.RecordRepair(t.Context(), store.Repair{WorkflowID: "other", Project: project, Found: "missing"}))
	repairs, err := r.Repairs(t.Context(), id, time.Hour)
	require.NoError(t, err)
	require.Len(t, repairs, 2)
	require.Equal(t, "second", repairs[0].Done)
	require.Equal(t, "terminated", repairs[0].Found)
	require.Less(t, repairs[0].Ago, time.Minute)

	r.execute(`update workflow_repair set at = at - interval '2 hours' where done = 'first'`)
	repairs, err = r.Repairs(t.Context(), id, time.Hour)
	require.NoError(t, err)
	require.Len(t, repairs, 1)

	// Recording a repair removes old ones.
	r.execute(`update workflow_repair set at = at - interval '31 days'`)
	require.NoError(t, r.RecordRepair(t.Context(), store.Repair{WorkflowID: id, Project: project, Found: "missing"}))
	require.Equal(t, 1, r.count(`select count(*) from workflow_repair`))
}
