package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// hasOptional matches a completed request r with open optional jobs.
const hasOptional = `r.outcome in ('success', 'failure') and exists (
	select from request_job w join job_queue j on j.id = w.job_id
	where w.request_id = r.id and w.optional and j.status in ('queued', 'handed_out', 'in_progress'))`

// OpenRequest is a request whose workflow has work left, as the reconciliation needs it.
type OpenRequest struct {
	bench.RequestRef
	// Confirmed reports that the workflow was seen to start, or should have started long
	// ago.
	Confirmed bool
}

// deferredStill matches a request r that needs no workflow yet, as its first handed-out
// job starts one. It does not match once all jobs have ended while waiting, or if a job
// was handed out more than $1 seconds ago without a start.
const deferredStill = `(r.deferred and r.workflow_started_at is null
	and case when r.reopened_at is null then exists (select from job_queue j where j.submitted_with = r.id and j.status = 'queued')
		else exists (select from request_job w join job_queue j on j.id = w.job_id where w.request_id = r.id and j.status = 'queued') end
	and not exists (select from job_queue h where h.handed_out_to = r.id and h.status = 'handed_out'
		and h.handed_out_at <= now() - make_interval(secs => $1)))`

// OpenRequests lists the requests that are not completed or have open optional jobs, the
// oldest first, without those that need no workflow yet. A request whose workflow's start
// was not confirmed counts as confirmed after startBound.
func (s *Store) OpenRequests(ctx context.Context, startBound time.Duration) ([]OpenRequest, error) {
	rs, err := all[OpenRequest](ctx, s.pool, `
		select `+requestRefColumns("r")+`, workflow_started_at is not null or created_at <= now() - make_interval(secs => $1) as confirmed
		from benchmark_request r where (status <> 'completed' and not `+deferredStill+`)
			or id in (select w.request_id from job_queue j join request_job w on w.job_id = j.id and w.optional
				join benchmark_request o on o.id = w.request_id and o.outcome in ('success', 'failure')
				where j.status in ('queued', 'handed_out', 'in_progress'))
		order by created_at, id`, startBound.Seconds())
	return rs, wrap("listing the open requests", err)
}

// InFlightJob is a job that was handed out and has not ended.
type InFlightJob struct {
	// HandOut says how to start the job's workflow. Its Request is the open request that
	// has waited longest for the job; empty if none waits.
	bench.HandOut
	Status bench.JobStatus
}

// InFlight lists the jobs that were handed out longer than olderThan ago and have not
// ended, the oldest first. Each should have a running workflow.
func (s *Store) InFlight(ctx context.Context, olderThan time.Duration) ([]InFlightJob, error) {
	type row struct {
		handOutRow
		Status bench.JobStatus
	}
	rows, err := all[row](ctx, s.pool, `
		select `+handOutColumns("coalesce(("+firstWaiter+"), '')")+`, j.status
		from job_queue j where j.status in ('handed_out', 'in_progress') and j.handed_out_at <= now() - make_interval(secs => $1)
		order by j.request_created, j.id`, olderThan.Seconds())
	out := make([]InFlightJob, len(rows))
	for i, r := range rows {
		out[i] = InFlightJob{HandOut: r.described(), Status: r.Status}
	}
	return out, wrap("listing the jobs in flight", err)
}

// Requeue takes back a handed-out job without a workflow for which no open request waits,
// so that it no longer counts as in Temporal. Its open runs are closed as lost. A job
// that has a waiter by now, or has ended, does not change.
func (s *Store) Requeue(ctx context.Context, key bench.JobKey, message string) error {
	return s.inTx(ctx, "taking job "+string(key)+" back", func(tx pgx.Tx) error {
		job, err := lockJob(ctx, tx, key)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update job_queue j set status = 'queued', handed_out_at = null, handed_out_to = null
			where j.id = $1 and j.status in ('handed_out', 'in_progress') and not exists (`+openWaiter+`)`, job.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return closeRuns(ctx, tx, job.ID, bench.RunLost, message)
	})
}

// EndedRequests returns those of the given requests that ended, with their optional jobs,
// longer than olderThan ago, or are not in the record.
func (s *Store) EndedRequests(ctx context.Context, ids []bench.RequestID, olderThan time.Duration) ([]bench.RequestID, error) {
	ended, err := column[bench.RequestID](ctx, s.pool, `
		select id from unnest($1::text[]) as id
		where not exists (select from benchmark_request r where r.id = id.id
			and (r.status <> 'completed' or r.completed_at > now() - make_interval(secs => $2) or (`+hasOptional+`)))
		order by id`, ids, olderThan.Seconds())
	return ended, wrap("looking for requests that have ended", err)
}

// EndedJobs returns those of the given jobs that ended longer than olderThan ago, or are
// not in the record.
func (s *Store) EndedJobs(ctx context.Context, keys []bench.JobKey, olderThan time.Duration) ([]bench.JobKey, error) {
	ended, err := column[bench.JobKey](ctx, s.pool, `
		select key from unnest($1::text[]) as key
		where not exists (select from job_queue j where j.key = key.key
			and (j.completed_at is null or j.completed_at > now() - make_interval(secs => $2)))
		order by key`, keys, olderThan.Seconds())
	return ended, wrap("looking for jobs that have ended", err)
}

// Repair records that the reconciliation started a workflow again.
type Repair struct {
	WorkflowID string
	Project    string
	// Found is the protocol.WorkflowStatus found instead.
	Found string
	// Done describes the repair in words.
	Done string
	At   time.Time
	// Ago is the repair's age when it was read, by the database's clock.
	Ago time.Duration
}

// repairsKept bounds the age of kept repairs.
const repairsKept = 30 * 24 * time.Hour

// RecordRepair records a repair; the database sets its time.
func (s *Store) RecordRepair(ctx context.Context, r Repair) error {
	_, err := s.pool.Exec(ctx, `
		with old as (delete from workflow_repair where at < now() - make_interval(secs => @kept))
		insert into workflow_repair (workflow_id, project, found, done) values (@workflow, @project, @found, @done)`,
		pgx.NamedArgs{
			"workflow": r.WorkflowID, "project": r.Project, "found": r.Found, "done": cleanText(r.Done), "kept": repairsKept.Seconds(),
		})
	return wrap("recording a repair of "+r.WorkflowID, err)
}

// Repairs lists the repairs of a workflow within the given time, the newest first, at
// most 100.
func (s *Store) Repairs(ctx context.Context, workflowID string, within time.Duration) ([]Repair, error) {
	rs, err := all[Repair](ctx, s.pool, `
		select workflow_id, project, found, done, at, (extract(epoch from now() - at) * 1e9)::bigint as ago from workflow_repair
		where workflow_id = $1 and at > now() - make_interval(secs => $2) order by at desc, id desc limit 100`, workflowID, within.Seconds())
	return rs, wrap("listing the repairs of "+workflowID, err)
}
