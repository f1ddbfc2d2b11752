package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// liveWithin is how recent a collector's heartbeat must be for it to count at
// hand-out: ten beats of 3 s.
const liveWithin = 30 * time.Second

// firstWaiter selects the request that has waited longest for job j.
const firstWaiter = `
	select w.request_id from request_job w join benchmark_request wr on wr.id = w.request_id
	where w.job_id = j.id and ` + inItsTurn + `
	order by wr.created_at, wr.id limit 1`

// inItsTurn narrows [stillWaits] to requests whose turn has come: one that was
// opened again has jobs before.
const inItsTurn = `wr.status in ('in_progress', 'completed') and ` + stillWaits

// activeWaiter selects the requests whose turn has come and that wait for job j.
const activeWaiter = `
	select from request_job w join benchmark_request wr on wr.id = w.request_id
	where w.job_id = j.id and ` + inItsTurn

// orphaned holds for a job j that was handed out to a request which ended before
// its workflow was seen to run.
const orphaned = `j.status = 'handed_out' and not exists (
	select from request_job w join benchmark_request wr on wr.id = w.request_id
	where w.job_id = j.id and w.request_id = j.handed_out_to and ` + stillWaits + `)`

// handOutColumns are a job's, with an expression for the request that it is
// handed out to.
func handOutColumns(request string) string {
	return request + ` as request, j.project, j.key as job, coalesce(j.tag, '') as tag, j.target, j.task_queue,
	j.queue, j.weight, j.priority, j.size_class, '' as summary, coalesce(j.versus, '') as versus, j.kind, j.backend, j.profile, j.command,
	jsonb_array_length(j.test_cases) as test_cases`
}

type handOutRow struct {
	HandOut
	Versus    string
	Kind      bench.JobKind
	Backend   string
	Profile   string
	Command   *Command
	TestCases int
}

// HandOut hands out waiting jobs of a task queue: of each queue (fairness key)
// the oldest, until depth(live collectors) of its jobs are in Temporal. Jobs of
// requests that ended are handed out again to another one that waits. Jobs that
// no request waits for in its turn stay, and so do those of projects whose queue
// is paused.
func (s *Store) HandOut(ctx context.Context, taskQueue string, depth func(liveCollectors int) int) ([]HandOut, error) {
	var out []HandOut
	err := s.inTx(ctx, "handing out jobs of task queue "+taskQueue, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "hand-out "+taskQueue); err != nil {
			return err
		}
		live, err := liveCollectors(ctx, tx, taskQueue)
		if err != nil {
			return err
		}
		// Jobs are locked in the order of their IDs, as everywhere.
		jobs, err := column[int64](ctx, tx, `
			with in_temporal as (
				select queue, count(*) as jobs from job_queue
				where task_queue = $1 and status in ('handed_out', 'in_progress') group by queue
			), waiting as (
				select j.id, j.queue, row_number() over (partition by j.queue order by j.request_created, j.id) as place
				from job_queue j where j.task_queue = $1 and j.status = 'queued' and exists (`+activeWaiter+`) and `+unpaused+`
			), chosen as (
				select w.id from waiting w left join in_temporal t on t.queue = w.queue where w.place <= $2 - coalesce(t.jobs, 0)
				union all
				select j.id from job_queue j where j.task_queue = $1 and `+orphaned+` and exists (`+activeWaiter+`) and `+unpaused+`
			)
			select id from job_queue where id in (select id from chosen) and status in ('queued', 'handed_out') order by id for update`,
			taskQueue, depth(live))
		if err != nil || len(jobs) == 0 {
			return err
		}
		rows, err := all[handOutRow](ctx, tx, `
			with handed as (
				update job_queue j set status = 'handed_out', handed_out_at = now(), handed_out_to = (`+firstWaiter+`)
				where j.id = any($1) and (j.status = 'queued' or `+orphaned+`) and exists (`+activeWaiter+`) and `+unpaused+`
				returning j.*
			)
			select `+handOutColumns("j.handed_out_to")+` from handed j order by j.request_created, j.id`, jobs)
		out = summaries(rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// liveCollectors counts the collectors that take jobs from the task queue now.
func liveCollectors(ctx context.Context, tx pgx.Tx, taskQueue string) (int, error) {
	pools, err := livePools(ctx, tx, liveWithin)
	if err != nil {
		return 0, err
	}
	live := 0
	for _, p := range pools {
		if p.TaskQueue() == taskQueue {
			live += p.Live
		}
	}
	return live, nil
}

// HandedOutTo lists the jobs that were handed out to a request and have not begun:
// what its workflow is to start, in case it did not hear of it.
func (s *Store) HandedOutTo(ctx context.Context, request bench.RequestID) ([]HandOut, error) {
	rows, err := all[handOutRow](ctx, s.pool, `
		select `+handOutColumns("j.handed_out_to")+` from job_queue j where j.handed_out_to = $1 and j.status = 'handed_out'
		order by j.request_created, j.id`, request)
	return summaries(rows), wrap("listing the jobs handed out to request "+string(request), err)
}

// WaitingTaskQueues lists the task queues for which jobs wait to be handed out.
func (s *Store) WaitingTaskQueues(ctx context.Context) ([]string, error) {
	queues, err := column[string](ctx, s.pool, `
		select distinct j.task_queue from job_queue j
		where (j.status = 'queued' or `+orphaned+`) and exists (`+activeWaiter+`) and `+unpaused+`
		order by j.task_queue`)
	return queues, wrap("listing the task queues with waiting jobs", err)
}

func summaries(rows []handOutRow) []HandOut {
	out := make([]HandOut, len(rows))
	for i, r := range rows {
		out[i] = r.HandOut
		out[i].Summary = r.summary()
	}
	return out
}

// maxSummary bounds a summary in bytes: Temporal keeps at most 400.
const maxSummary = 200

// summary is what the job is, in words.
func (r handOutRow) summary() string {
	if r.Command != nil {
		text := strings.ToValidUTF8(strings.Join(r.Command.Argv, " "), "")
		if len(text) > maxSummary {
			text = strings.ToValidUTF8(text[:maxSummary-len("…")], "") + "…"
		}
		return text
	}
	if r.Kind == bench.KindBuild {
		return fmt.Sprintf("%s: build for %s", r.Tag, r.Target)
	}
	parts := []string{r.Tag, string(r.Kind)}
	if r.Versus != "" {
		parts[0] += " in turns with " + r.Versus
	}
	for _, p := range []string{r.Profile, r.Backend} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	cases := "test cases"
	if r.TestCases == 1 {
		cases = "test case"
	}
	return fmt.Sprintf("%s: %d %s on %s", strings.Join(parts, " "), r.TestCases, cases, r.Target)
}
