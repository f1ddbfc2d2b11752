package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

// EscalateJob moves the unfinished part of an open job from the size class on which its
// last run failed to a larger one, and reports whether it did. A job that has ended, has
// moved, or lacks no result stays.
//
// Test cases with a result stay done where they were measured; only the others move. A
// job that measures in turns moves as a whole.
func (s *Store) EscalateJob(ctx context.Context, key bench.JobKey, from bench.SizeClass, to SizeChoice) (bool, error) {
	escalated := false
	err := s.inTx(ctx, "escalating job "+string(key), func(tx pgx.Tx) error {
		escalated = false
		job, err := lockJob(ctx, tx, key)
		if err != nil || !job.Status.Open() || job.SizeClass != from {
			return err
		}
		if job.Versus == "" && job.Build == nil {
			if _, err := tx.Exec(ctx, `
				update job_test_case jt set done_class = $2, done_pool = $3
				from job_test_case_state s
				where jt.job_id = $1 and s.job_id = jt.job_id and s.test_case_id = jt.test_case_id and s.artifact_id = jt.artifact_id
					and s.done and jt.done_class is null`, job.ID, job.SizeClass, job.Pool); err != nil {
				return err
			}
			left, err := value[bool](ctx, tx, `select exists (select from job_test_case where job_id = $1 and done_class is null)`, job.ID)
			if err != nil || !left {
				return err
			}
		}
		if err := recordSet(ctx, tx, to.Place); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			update job_queue set size_class = @size_class, pool = @pool, task_queue = @task_queue, timeout_seconds = @timeout, probe = false, moved_from = null, moved_at = null
			where id = @id`,
			pgx.NamedArgs{
				"id": job.ID, "size_class": to.Place.SizeClass, "pool": to.Place.Name, "task_queue": to.Place.TaskQueue(),
				"timeout": to.TimeoutSeconds,
			})
		escalated = err == nil
		return err
	})
	if err != nil {
		return false, err
	}
	return escalated, nil
}

// pinned matches a job j whose size class was chosen by a person; otherwise that of a
// command is learned.
const pinned = `((j.command is not null and j.shape = '') or exists (select from request_job pw join benchmark_request pr on pr.id = pw.request_id
	where pw.job_id = j.id and pr.size_class <> 0))`

// MeasuredParts divides a stage's jobs by where their test cases run. Of a job that has
// ended, only test cases with a result are included, unless it never changed its class and
// was not replaced: a test case that failed on the larger class as well runs nowhere.
func (s *Store) MeasuredParts(ctx context.Context, id bench.RequestID, stage bench.Stage) ([]plan.MeasuredPart, error) {
	parts, err := all[plan.MeasuredPart](ctx, s.pool, `
		select j.key, coalesce(t.done_class, j.size_class) as size_class, coalesce(t.done_pool, j.pool) as pool,
			jsonb_agg(`+testCaseDocument+` order by t.place) as test_cases
		from request_job rj join job_queue j on j.id = rj.job_id
		join job_test_case_state t on t.job_id = j.id and t.artifact_id = j.artifact_id
		join test_case tc on tc.id = t.test_case_id
		where rj.request_id = $1 and rj.stage = $2
			and (t.done or j.status in ('queued', 'handed_out', 'in_progress')
				or not rj.superseded and not exists (select from job_run n where n.job_id = j.id and n.size_class <> j.size_class))
		group by j.id, 2, 3
		order by j.id, 2, 3`, id, string(stage))
	return parts, wrap("reading where the jobs of request "+string(id)+" were measured", err)
}
