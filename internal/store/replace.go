package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// ConstrainedJobs are waiting jobs that are alike for placement: of one target and
// size class, with the same constraints, in the same task queue.
type ConstrainedJobs struct {
	Target    bench.Target
	SizeClass bench.SizeClass
	TaskQueue string
	// Set are those who take jobs from there where they are not all of a pool.
	Set         []string
	Constraints bench.Constraints
	// AcrossPools: collectors of several pools may share them.
	AcrossPools bool
	// Pool is that to which their results belong; empty with AcrossPools.
	Pool string
	// Affine: they wait for collectors that have their caches; Over: they have done
	// so for long enough.
	Affine, Over bool
	Jobs         int
}

// Wish is what each of them needs.
func (g ConstrainedJobs) Wish() placement.Wish {
	w := placement.Wish{Target: g.Target, Class: g.SizeClass, Pool: g.Pool, Constraints: g.Constraints, AcrossPools: g.AcrossPools}
	if !g.Affine || g.Over {
		w.Constraints.CacheDirs = nil
	}
	return w
}

const constrainedColumns = `j.target, j.size_class, j.task_queue, j.constraints, j.kind = 'command' as across_pools,
	case when j.kind = 'command' then '' else j.pool end as pool,
	j.affinity_until is not null as affine, coalesce(j.affinity_until <= now(), false) as over`

// ConstrainedWaiting lists the open jobs with constraints that nobody is carrying
// out, grouped.
func (s *Store) ConstrainedWaiting(ctx context.Context) ([]ConstrainedJobs, error) {
	groups, err := all[ConstrainedJobs](ctx, s.pool, `
		select g.*, count(*) as jobs, (select ws.collectors from collector_set ws where ws.task_queue = g.task_queue) as set from (
			select `+constrainedColumns+` from job_queue j where j.constraints is not null and `+unattended+`
		) g group by g.target, g.size_class, g.task_queue, g.constraints, g.across_pools, g.pool, g.affine, g.over
		order by g.task_queue, g.constraints, g.pool, g.affine, g.over`)
	return groups, wrap("grouping the waiting jobs with constraints", err)
}

// maxReplaced bounds how many jobs one statement moves: what is left comes with
// the next reconciliation.
const maxReplaced = 20000

// Replace lets a group of waiting jobs wait at another place of its size class, and
// tells how many have moved. Those that have begun or moved meanwhile stay. Jobs
// that wait for caches no longer do so when their time is over. Of a set that was
// forgotten it is enough to give the place where they wait already.
func (s *Store) Replace(ctx context.Context, g ConstrainedJobs, to bench.Place) (int, error) {
	moved := 0
	err := s.inTx(ctx, "placing the jobs of task queue "+g.TaskQueue+" anew", func(tx pgx.Tx) error {
		if err := recordSet(ctx, tx, to); err != nil {
			return err
		}
		// What only is a row has nowhere been before.
		tag, err := tx.Exec(ctx, `
			with chosen as (
				select j.id from job_queue j
				cross join lateral (select `+constrainedColumns+`) g
				where j.task_queue = @from and j.constraints = @constraints and j.target = @target and `+unattended+`
					and g.across_pools = @across_pools and g.pool = @pool and g.affine = @affine and g.over = @over
				order by j.id limit @limit for update of j
			)
			update job_queue j set task_queue = @task_queue, pool = @to,
				moved_from = case when j.status = 'queued' or @from = @task_queue then j.moved_from else @from end,
				moved_at = case when j.status = 'queued' or @from = @task_queue then j.moved_at else now() end,
				affinity_until = case when @affine and not @over then j.affinity_until end
			from chosen where j.id = chosen.id and j.task_queue = @from and `+unattended,
			pgx.NamedArgs{
				"from": g.TaskQueue, "constraints": g.Constraints, "target": g.Target, "across_pools": g.AcrossPools, "pool": g.Pool,
				"affine": g.Affine, "over": g.Over, "limit": maxReplaced, "task_queue": to.TaskQueue(), "to": to.Name,
			})
		moved = int(tag.RowsAffected())
		return err
	})
	if err != nil {
		return 0, err
	}
	return moved, nil
}
