package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
)

// JobGroup describes waiting jobs that placement treats alike: they share target, size
// class, constraints and task queue. Groups without constraints consist of commands:
// other jobs stay in the pool to which their results belong.
type JobGroup struct {
	Target    bench.Target
	SizeClass bench.SizeClass
	TaskQueue string
	// Set lists the collectors that poll the task queue; empty: all of the pool.
	Set         []string
	Constraints bench.Constraints
	// AcrossPools reports that collectors of several pools may run the jobs.
	AcrossPools bool
	// Pool names the pool to which the results belong; empty with AcrossPools.
	Pool string
	// Affine reports that the jobs wait for collectors with their caches, Over that this
	// wait has ended.
	Affine, Over bool
	Jobs         int // number of jobs; 0: not counted
}

// Requirements returns what each job demands of a collector, within its size class and
// pool.
func (g JobGroup) Requirements() placement.Requirements {
	r := plan.Needs{Target: g.Target, Command: g.AcrossPools, Constraints: &g.Constraints}.Requirements().On(g.SizeClass).In(g.Pool)
	if !g.Affine || g.Over {
		return r.WithoutCaches()
	}
	return r
}

const constrainedColumns = `j.target, j.size_class, j.task_queue, j.constraints, j.kind = 'command' as across_pools,
	case when j.kind = 'command' then '' else j.pool end as pool,
	j.affinity_until is not null as affine, coalesce(j.affinity_until <= now(), false) as over`

// unconstrained matches an open command j that any collector of its target and size class
// may run.
const unconstrained = `j.kind = 'command' and j.constraints is null and j.status in ('queued', 'handed_out', 'in_progress')`

// setMembers selects the collectors of the set that task queue q belongs to.
const setMembers = `(select ws.collectors from collector_set ws where ws.task_queue = q.task_queue)`

// WaitingGroups groups the waiting jobs that may belong elsewhere. It reads all jobs with
// constraints, and one command without constraints of each task queue.
func (s *Store) WaitingGroups(ctx context.Context) ([]JobGroup, error) {
	groups, err := all[JobGroup](ctx, s.pool, `
		select q.*, count(*) as jobs, `+setMembers+` as set from (
			select `+constrainedColumns+` from job_queue j where j.constraints is not null and `+unattended+`
		) q group by q.target, q.size_class, q.task_queue, q.constraints, q.across_pools, q.pool, q.affine, q.over
		order by q.task_queue, q.constraints, q.pool, q.affine, q.over`)
	if err != nil {
		return nil, wrap("grouping the waiting jobs with constraints", err)
	}
	commands, err := all[JobGroup](ctx, s.pool, `
		with recursive queues as (
			(select j.task_queue from job_queue j where `+unconstrained+` order by j.task_queue limit 1)
			union all
			select (select j.task_queue from job_queue j where `+unconstrained+` and j.task_queue > q.task_queue order by j.task_queue limit 1)
			from queues q where q.task_queue is not null
		)
		select q.task_queue, first.target, first.size_class, '{}'::jsonb as constraints, true as across_pools, '' as pool, false as affine, false as over,
			0 as jobs, `+setMembers+` as set
		from queues q cross join lateral (
			select j.target, j.size_class from job_queue j where `+unconstrained+` and j.task_queue = q.task_queue order by j.request_created limit 1) first
		order by q.task_queue`)
	return append(groups, commands...), wrap("listing the task queues of commands", err)
}

// maxReplaced bounds how many jobs one statement moves; the next pass moves the rest.
const maxReplaced = 20000

// Replace moves a group of waiting jobs to another task queue of its size class, and
// returns how many have moved. Jobs that have begun or moved meanwhile stay. Jobs whose
// wait for caches is over stop waiting for them. Moving jobs to the task queue where they
// already wait records a removed set again.
func (s *Store) Replace(ctx context.Context, g JobGroup, to bench.Place) (int, error) {
	moved := 0
	err := s.inTx(ctx, "moving the jobs of task queue "+g.TaskQueue, func(tx pgx.Tx) error {
		filter := `j.constraints = @constraints`
		if g.Constraints.IsZero() {
			filter = unconstrained
		}
		// A row that was never handed out needs no move in Temporal.
		tag, err := tx.Exec(ctx, `
			with chosen as (
				select j.id from job_queue j
				cross join lateral (select `+constrainedColumns+`) g
				where j.task_queue = @from and `+filter+` and j.target = @target and `+unattended+`
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
		if err != nil {
			return err
		}
		moved = int(tag.RowsAffected())
		return recordSet(ctx, tx, to)
	})
	if err != nil {
		return 0, err
	}
	return moved, nil
}
