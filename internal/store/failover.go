package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
)

// WaitingJob is an open job without an open run.
type WaitingJob struct {
	bench.JobRef
	Target    bench.Target
	SizeClass bench.SizeClass
	Pool      string
	// TaskQueue names the task queue in which the job waits. Set lists the collectors
	// that take jobs from it; empty: all of the pool.
	TaskQueue string
	Set       []string
	Status    bench.JobStatus
	// MinClass is the smallest size class allowed; 0: any.
	MinClass bench.SizeClass
	// Constraints narrow the collectors that can run the job; nil: none.
	Constraints *bench.Constraints
	// Pinned reports that a person has chosen the size class.
	Pinned bool
}

// At returns where the job waits.
func (w WaitingJob) At() bench.Place {
	return bench.Place{Pool: bench.Pool{Target: w.Target, SizeClass: w.SizeClass, Name: w.Pool}, Set: w.Set}
}

// Requirements returns what the job demands of a collector, apart from size class and
// pool.
func (w WaitingJob) Requirements() placement.Requirements {
	return plan.Needs{Target: w.Target, Command: w.Kind == bench.KindCommand, MinClass: w.MinClass, Constraints: w.Constraints}.Requirements()
}

// unattended matches an open job j without an open run: it waits as a row, in its task
// queue, or for its next attempt.
const unattended = `j.status in ('queued', 'handed_out', 'in_progress')
	and not exists (select from job_run u where u.job_id = j.id and u.outcome = '')`

const waitingColumns = jobRefColumns + `, j.target, j.size_class, j.pool, j.task_queue, j.status, j.min_class, j.constraints,
	(select ws.collectors from collector_set ws where ws.task_queue = j.task_queue) as set,
	` + pinned + ` as pinned`

// StrandedJobs lists waiting jobs of open requests whose task queue has no live
// collector, those of the oldest requests first. Keys restrict the list to those jobs.
func (s *Store) StrandedJobs(ctx context.Context, keys ...bench.JobKey) ([]WaitingJob, error) {
	used, among := `select task_queue from job_tally group by task_queue having sum(jobs) > 0`, ``
	if len(keys) > 0 { // and no others are read: there may be very many
		among = ` and j.key = any($2)`
		used = `select distinct j.task_queue from job_queue j where j.status in ('queued', 'handed_out', 'in_progress')` + among
	}
	jobs, err := all[WaitingJob](ctx, s.pool, `
		with used as materialized (
			`+used+`
		), dead as materialized ( -- looked at once, not for each job
			select q.task_queue from used q
			where not exists (select from collector_config c where c.active and c.`+heardOf("$1")+` and `+serves("q.task_queue")+`)
		)
		select `+waitingColumns+` from job_queue j
		where j.task_queue in (select task_queue from dead) and `+unattended+` and exists (`+openWaiter+`)
			and (cardinality($2::text[]) is null or j.key = any($2))`+among+`
		order by j.request_created, j.id`, liveWithin.Seconds(), keys)
	return jobs, wrap("listing the jobs at pools without a live collector", err)
}

// MoveJob moves a waiting job to another task queue, and reports whether it did. A job
// that has begun, ended or moved meanwhile stays.
//
// The job keeps its key. On another size class its progress is determined again, as only
// results of the same class compare, and selections made for the former class are
// dropped. A command that has not begun gets a new class selected from the live ones.
func (s *Store) MoveJob(ctx context.Context, key bench.JobKey, from string, to bench.Place) (bool, error) {
	moved := false
	err := s.inTx(ctx, "moving job "+string(key), func(tx pgx.Tx) error {
		job, err := lockJob(ctx, tx, key)
		if err != nil {
			return err
		}
		if err := recordSet(ctx, tx, to); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update job_queue j set pool = @pool, size_class = @size_class, task_queue = @task_queue, moved_from = @from, moved_at = now(),
				`+selectedFor("@size_class")+`,
				selected_at = case when j.command is not null and j.status = 'queued' and j.started_at is null and not `+pinned+` then null else j.selected_at end
			where j.id = @id and j.task_queue = @from and `+unattended,
			pgx.NamedArgs{
				"id": job.ID, "pool": to.Name, "size_class": to.SizeClass, "task_queue": to.TaskQueue(), "from": from,
			})
		moved = tag.RowsAffected() > 0
		return err
	})
	if err != nil {
		return false, err
	}
	return moved, nil
}

// selectedFor drops selections made for a job's size class when the job moves to another.
func selectedFor(class string) string {
	return fmt.Sprintf(`timeout_seconds = case when size_class = %[1]s then timeout_seconds else 0 end, probe = probe and size_class = %[1]s`, class)
}

// MovedWaiting lists the handed-out jobs that have moved and wait for a collector. In
// Temporal they must move to the task queue of their row.
func (s *Store) MovedWaiting(ctx context.Context, limit int) ([]WaitingJob, error) {
	jobs, err := all[WaitingJob](ctx, s.pool, `
		select `+waitingColumns+` from job_queue j
		where j.moved_at is not null and j.status in ('handed_out', 'in_progress') and `+unattended+` and exists (`+openWaiter+`)
		order by j.moved_at, j.id limit $1`, limit)
	return jobs, wrap("listing the jobs that have moved", err)
}

// settle updates the row of a job whose run began elsewhere: a collector of the pool that
// the job was leaving took it first. A job of a set's task queue settles in the pool of
// the collector that took it.
func settle(ctx context.Context, tx pgx.Tx, job bench.Job, c bench.Collector) error {
	at := bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool}
	if at.TaskQueue() == job.TaskQueue {
		return nil
	}
	if bench.IsSet(job.TaskQueue) {
		member, err := value[bool](ctx, tx, `select `+serves("$2::text")+` from collector_config c where c.name = $1`, c.Name, job.TaskQueue)
		if err != nil {
			return err
		}
		if member {
			_, err := tx.Exec(ctx, `update job_queue set pool = $2, size_class = $3, `+selectedFor("$3")+` where id = $1`, job.ID, at.Name, at.SizeClass)
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		update job_queue set pool = $2, size_class = $3, task_queue = $4, `+selectedFor("$3")+`,
			moved_from = case when moved_from = $4 then null else coalesce(moved_from, task_queue) end,
			moved_at = case when moved_from = $4 then null else coalesce(moved_at, now()) end
		where id = $1`, job.ID, at.Name, at.SizeClass, at.TaskQueue())
	return err
}
