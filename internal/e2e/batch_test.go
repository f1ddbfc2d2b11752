package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// inTemporal is the number of jobs of one queue that wait in Temporal for one collector.
const inTemporal = 4

// A batch runs in order, each job once. Its failed jobs can be retried alone. A batch
// cancelled while it waits runs nothing and leaves nothing behind.
func TestABatchRunsInItsOrder(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	const n = 40
	jobs := make([]apiclient.NewJob, n)
	for i := range jobs {
		jobs[i].Argv = []string{"true"}
	}
	jobs[17].Name, jobs[17].Argv = "broken", []string{"false"}
	r, err := s.api.CreateBatch(t.Context(), apiclient.NewRequest{}, slices.Values(jobs))
	require.NoError(t, err)
	behind, err := s.api.CreateBatch(t.Context(), apiclient.NewRequest{}, slices.Values(jobs))
	require.NoError(t, err)
	_, err = s.api.CancelRequest(t.Context(), string(behind.ID), apiclient.Act{Reason: "changed my mind"})
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		d, err := s.api.Request(t.Context(), string(r.ID))
		return err == nil && d.Progress.JobsDone > 5
	}, ended, 20*time.Millisecond)
	s.record(t, s.temporal(t), "Request", r.WorkflowID, "in_progress_with_many_jobs")

	d := s.await(t, r.ID, patience)
	require.Equal(t, bench.Failure, d.Outcome)
	require.Contains(t, d.Message, fmt.Sprintf("1 of %d jobs failed", n))
	require.Equal(t, apiclient.Progress{Jobs: n, JobsDone: n, JobsFailed: 1, TestCases: n, TestCasesDone: n - 1}, d.Progress)
	all, err := s.api.RequestJobs(t.Context(), string(r.ID), apiclient.JobQuery{Limit: 1000})
	require.NoError(t, err)
	for i, j := range all.Jobs {
		require.Equal(t, i+1, j.Place)
	}
	// The order in which jobs start shows less: on a busy machine, one that was handed out may wait
	// for its workflow while several others come and go.
	rows, err := s.database(t).Query(t.Context(), `select place from job_queue where submitted_with = $1 order by handed_out_at`, r.ID)
	require.NoError(t, err)
	places, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.Len(t, places, n)
	for i, place := range places {
		require.InDelta(t, i+1, place, inTemporal, "only those that are handed out together may pass each other")
	}
	rows, err = s.database(t).Query(t.Context(), `
		select count(*) from job_run n join job_queue j on j.id = n.job_id where j.submitted_with = $1 and j.name = '' group by j.id having count(*) <> 1`, r.ID)
	require.NoError(t, err)
	require.False(t, rows.Next(), "each job ran once")
	rows.Close()
	cancelled := s.await(t, behind.ID, patience)
	require.Equal(t, bench.Cancelled, cancelled.Outcome)
	require.Equal(t, apiclient.Progress{Jobs: n, JobsDone: n, TestCases: n}, cancelled.Progress)

	again := apiclient.Retrigger{Act: apiclient.Act{Reason: "once more"}, Select: "stage=own"}
	whole, err := s.api.Retrigger(t.Context(), string(r.ID), again, true)
	require.NoError(t, err)
	require.Equal(t, n, whole.Operation.Jobs, "all of them can run again, though they are no graph")
	again.Select, again.Lacking = "", true
	_, err = s.api.Retrigger(t.Context(), string(r.ID), again, false)
	require.NoError(t, err)
	d = s.await(t, r.ID, patience)
	require.Equal(t, bench.Failure, d.Outcome)
	require.Equal(t, n+1, d.JobsTotal, "only the failed jobs ran again")
}
