package api_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func TestExplainAJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "bench-1")
	b.register(t, "bench-2")
	j := b.submit(t, "1.26.0")
	b.past(t, `update job_queue set submitter = 'wanda'`)
	b.past(t, `insert into account_limit (account, max_running, first_level, updated_by) values ('wanda', 1, 4, 'ada')`)

	e, err := b.reader.ExplainJob(t.Context(), j.key)
	require.NoError(t, err)
	require.Equal(t, bench.JobHandedOut, e.Status)
	require.Equal(t, []bench.RequestID{j.request.ID}, e.Requests)
	require.Contains(t, e.Summary, "it waits: it was handed out to task queue "+c.TaskQueue)
	require.Equal(t, "no job of account wanda gets a level before 4", e.Waits[1])
	require.Equal(t, 4, e.Queue.Level)
	require.Equal(t, 1.0, *e.Queue.Share)
	require.Equal(t, 1, e.Queue.HandedOut)
	require.Len(t, e.Collectors, 2)
	for _, v := range e.Collectors {
		require.True(t, v.Able)
		require.Empty(t, v.WhyNot, "it takes it with its next poll")
	}

	// Back to a row, behind a limit and a pause, at a pool that nobody serves.
	b.past(t, `update job_queue set status = 'queued', handed_out_at = null, handed_out_to = null`)
	b.past(t, `insert into job_queue (project, key, artifact_id, kind, target, test_cases, iterations, size_class, pool, task_queue, queue, submitter, status, request_created)
		select project, other.key, artifact_id, kind, target, test_cases, iterations, size_class, pool, task_queue, other.queue, other.submitter, 'handed_out', now()
		from job_queue cross join (values ('zzzzzzzzzzzzzzzz', 'user:wanda', 'wanda'), ('yyyyyyyyyyyyyyyy', 'vip', 'root')) as other (key, queue, submitter)`)
	b.past(t, `insert into queue_pause (project, paused_by, reason) values ('go', 'ada', 'new disks')`)
	require.NoError(t, b.store.SetActive(t.Context(), "bench-1", false))
	b.past(t, `update collector_config set last_heartbeat = now() - interval '1 hour', available_at = now() - interval '1 hour' where name = 'bench-2'`)
	e, err = b.reader.ExplainJob(t.Context(), j.key)
	require.NoError(t, err)
	require.Equal(t, 1, e.Queue.Position)
	require.Equal(t, []string{"vip"}, e.Queue.Earlier)
	require.Len(t, e.Waits, 6)
	for i, word := range []string{"paused by ada: new disks", "has had no live collector for", "limit max_running 1", "next of its queue", "jobs of vip go first", "level before 4"} {
		require.Contains(t, e.Waits[i], word)
	}
	require.Equal(t, []string{"it is inactive; 'benchloom collector activate bench-1' lets it take jobs again"}, e.Collectors[0].WhyNot)
	require.Contains(t, e.Collectors[1].WhyNot[0], "it is offline, and was last heard of 1h0m")

	// What it needs and a collector does not have is said by collector.
	b.past(t, `update job_queue set constraints = '{"devices": ["gpu"], "labels": {"rack": "2"}}', size_class = 4`)
	e, err = b.reader.ExplainJob(t.Context(), j.key)
	require.NoError(t, err)
	require.False(t, e.Collectors[0].Able)
	require.Equal(t, []string{"its size class is 2, not 4", "it has no device gpu", "it has no label rack"}, e.Collectors[0].WhyNot[:3])

	_, err = b.reader.ExplainJob(t.Context(), "aaaaaaaaaaaaaaaa")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}

func TestExplainARequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "bench-1")
	waiting, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.Release, Tag: "1.27.0"})
	require.NoError(t, err)
	e, err := b.reader.ExplainRequest(t.Context(), "go:1.27.0")
	require.NoError(t, err)
	require.Equal(t, waiting.ID, e.Request.ID)
	require.Equal(t, 1, e.Place.Position)
	require.Nil(t, e.Next)
	require.True(t, e.Findings[0].Stuck, "its workflow is missing, as a request's that is unstuck")
	require.Contains(t, e.Findings[len(e.Findings)-1].What, "it waits for its turn")

	j := b.submit(t, "1.26.0")
	e, err = b.reader.ExplainRequest(t.Context(), string(j.request.ID))
	require.NoError(t, err)
	require.Equal(t, 1, e.Progress.Jobs)
	require.Len(t, e.Open, 1)
	require.Equal(t, j.key, e.Next.Job)
	require.Equal(t, "an idle collector of pool "+e.Next.TaskQueue, e.Open[0].Waits)
	for _, f := range e.Findings {
		require.True(t, f.Stuck || f.Subject != string(j.key), "jobs are explained by themselves: %+v", f)
	}

	// Without Temporal, the record says what it knows.
	b.workflows.err = errors.New("connection refused")
	e, err = b.reader.ExplainRequest(t.Context(), string(j.request.ID))
	require.NoError(t, err)
	require.Len(t, e.Findings, 1)
	require.Contains(t, e.Findings[0].What, "Temporal cannot be asked")
	require.Equal(t, j.key, e.Next.Job)
}
