package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// WaitingJob is a job that nobody is carrying out.
type WaitingJob struct {
	Project   string
	Key       bench.JobKey
	Target    bench.Target
	SizeClass bench.SizeClass
	Pool      string
	Status    bench.JobStatus
	// Pinned: a request that waits for it has chosen the size class.
	Pinned bool
}

// At is the pool at which it waits.
func (w WaitingJob) At() bench.Pool {
	return bench.Pool{Target: w.Target, SizeClass: w.SizeClass, Name: w.Pool}
}

// unattended holds for a job j that is open and has no open run: it waits as a
// row, in its task queue, or for its next try.
const unattended = `j.status in ('queued', 'handed_out', 'in_progress')
	and not exists (select from job_run u where u.job_id = j.id and u.outcome = '')`

const waitingColumns = `j.project, j.key, j.target, j.size_class, j.pool, j.status,
	exists (select from request_job pw join benchmark_request pr on pr.id = pw.request_id
		where pw.job_id = j.id and pr.status <> 'completed' and pr.size_class <> 0) as pinned`

// StrandedJobs lists jobs that an open request waits for, that nobody is carrying
// out, and whose pool has no live collector; the oldest requests' first. With keys only
// those are looked at.
func (s *Store) StrandedJobs(ctx context.Context, keys ...bench.JobKey) ([]WaitingJob, error) {
	jobs, err := all[WaitingJob](ctx, s.pool, `
		select `+waitingColumns+` from job_queue j
		where `+unattended+` and exists (`+openWaiter+`) and not exists (
			select from collector_config c
			where c.target = j.target and c.size_class = j.size_class and c.pool = j.pool
				and c.active and c.`+heardOf("$1")+`)
			and (cardinality($2::text[]) is null or j.key = any($2))
		order by j.request_created, j.id`, liveWithin.Seconds(), keys)
	return jobs, wrap("listing the jobs at pools without a live collector", err)
}

// MoveJob lets a waiting job wait at another pool. It tells whether it has moved:
// one that has begun, has ended or has moved meanwhile stays where it is.
//
// The job's key stays what it is. What is done of it is decided anew when the
// other pool is of another size class, for results compare within one only.
func (s *Store) MoveJob(ctx context.Context, key bench.JobKey, from, to bench.Pool) (bool, error) {
	moved := false
	err := s.inTx(ctx, "moving job "+string(key), func(tx pgx.Tx) error {
		job, err := lockJob(ctx, tx, key)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update job_queue j set pool = @pool, size_class = @size_class, task_queue = @task_queue, moved_from = @from, moved_at = now()
			where j.id = @id and j.task_queue = @from and `+unattended,
			pgx.NamedArgs{
				"id": job.ID, "pool": to.Name, "size_class": to.SizeClass, "task_queue": to.TaskQueue(), "from": from.TaskQueue(),
			})
		moved = tag.RowsAffected() > 0
		return err
	})
	if err != nil {
		return false, err
	}
	return moved, nil
}

// MovedWaiting lists the jobs that have moved, were handed out and wait for a
// collector: Temporal has to have them in the task queue of their row.
func (s *Store) MovedWaiting(ctx context.Context, limit int) ([]WaitingJob, error) {
	jobs, err := all[WaitingJob](ctx, s.pool, `
		select `+waitingColumns+` from job_queue j
		where j.moved_at is not null and j.status <> 'queued' and `+unattended+` and exists (`+openWaiter+`)
		order by j.moved_at, j.id limit $1`, limit)
	return jobs, wrap("listing the jobs that have moved", err)
}

// settle makes a job's row say where its run has begun, when that is not where the
// row has it: a collector of the pool that it was to leave was quicker.
func settle(ctx context.Context, tx pgx.Tx, job Job, c Collector) error {
	at := bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool}
	if at.TaskQueue() == job.TaskQueue {
		return nil
	}
	_, err := tx.Exec(ctx, `
		update job_queue set pool = $2, size_class = $3, task_queue = $4,
			moved_from = case when moved_from = $4 then null else coalesce(moved_from, task_queue) end,
			moved_at = case when moved_from = $4 then null else coalesce(moved_at, now()) end
		where id = $1`, job.ID, at.Name, at.SizeClass, at.TaskQueue())
	return err
}
