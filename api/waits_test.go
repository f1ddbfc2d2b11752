package api_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seconds matches durations, which grow between two answers.
var seconds = regexp.MustCompile(`\b[0-9]+s\b`)

// Whoever reads a job that nobody carries out learns what it waits for.
func TestAWaitingJobSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "bench-1")
	j := b.submit(t, "1.26.0")
	waits := func() string {
		t.Helper()
		d, err := b.nobody.Job(t.Context(), j.key)
		require.NoError(t, err)
		r, err := b.nobody.Request(t.Context(), string(j.request.ID))
		require.NoError(t, err)
		for _, of := range r.Jobs {
			if of.Key == j.key {
				require.Equal(t, seconds.ReplaceAllString(d.Waits, "s"), seconds.ReplaceAllString(of.Waits, "s"))
			}
		}
		return d.Waits
	}
	require.Equal(t, "an idle collector of pool "+c.TaskQueue, waits())
	require.NoError(t, b.store.SetActive(t.Context(), "bench-1", false))
	require.Regexp(t, "^pool "+c.TaskQueue+" has had no live collector for [0-9]+s; no other pool that could take the job has one either", waits())
	require.NoError(t, b.store.SetActive(t.Context(), "bench-1", true))

	// A row that is held says by what, as its explanation does.
	estimated := func() *time.Time {
		t.Helper()
		r, err := b.nobody.Request(t.Context(), string(j.request.ID))
		require.NoError(t, err)
		return r.EstimatedEnd
	}
	same := func() string {
		t.Helper()
		e, err := b.nobody.ExplainJob(t.Context(), j.key)
		require.NoError(t, err)
		request, err := b.nobody.ExplainRequest(t.Context(), string(j.request.ID))
		require.NoError(t, err)
		require.Equal(t, e.Waits[0], request.Open[0].Waits)
		require.Equal(t, e.Waits[0], waits())
		return waits()
	}
	b.past(t, `update job_queue set status = 'queued', handed_out_at = null, handed_out_to = null, submitter = 'wanda'`)
	require.Equal(t, "its turn at pool "+c.TaskQueue, waits())
	require.NotNil(t, estimated())
	b.past(t, `insert into account_limit (account, max_running, updated_by) values ('wanda', 1, 'ada')`)
	b.past(t, `insert into job_queue (project, key, artifact_id, kind, target, test_cases, iterations, size_class, pool, task_queue, queue, submitter, status, request_created)
		select project, 'zzzzzzzzzzzzzzzz', artifact_id, kind, target, test_cases, iterations, size_class, pool, task_queue, queue, submitter, 'in_progress', now() from job_queue`)
	require.Equal(t, "account wanda has 1 job under way, as many as its limit max_running 1 allows", same())
	b.past(t, `insert into queue_pause (project, paused_by, reason) values ('go', 'ada', 'new disks')`)
	require.Equal(t, "project go was paused by ada: new disks; 'benchloom queue resume go' resumes it", same())
	require.Nil(t, estimated(), "nobody can tell")
	b.past(t, `delete from queue_pause; delete from account_limit; delete from job_queue where key = 'zzzzzzzzzzzzzzzz'; update job_queue set status = 'handed_out', handed_out_at = now()`)
	b.start(t, j, c, 1)
	require.Empty(t, waits(), "it runs")
}
