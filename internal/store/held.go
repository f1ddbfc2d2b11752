package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// releaseHeld releases held jobs j that match the condition, whose argument is $1, so
// that hand-outs consider them again. Jobs are locked in the order of their IDs, as
// everywhere. See [fairshare.Held].
func releaseHeld(ctx context.Context, tx pgx.Tx, condition string, argument any) error {
	_, err := tx.Exec(ctx, `
		update job_queue set held = '' where id in (
			select j.id from job_queue j where j.status = 'queued' and `+condition+` order by j.id for update)`, argument)
	return wrap("releasing held jobs", err)
}

// releaseJobsOf releases the jobs of a request that has just started.
func releaseJobsOf(ctx context.Context, tx pgx.Tx, id bench.RequestID) error {
	return releaseHeld(ctx, tx, `j.held = 'turn' and j.id in (select job_id from request_job where request_id = $1)`, id)
}

// ReleaseDependents releases the jobs that waited for the end of a job, and lists the task
// queues in which they wait.
func (s *Store) ReleaseDependents(ctx context.Context, key bench.JobKey) (taskQueues []string, err error) {
	err = s.inTx(ctx, "releasing what waits for job "+string(key), func(tx pgx.Tx) error {
		ended, err := column[int64](ctx, tx, `select id from job_queue where key = $1`, key)
		if err == nil {
			taskQueues, err = releaseAfter(ctx, tx, ended)
		}
		return err
	})
	return taskQueues, err
}

// releaseAfter releases the jobs that waited for the ends of nodes, and lists the task queues
// in which they wait.
func releaseAfter(ctx context.Context, tx pgx.Tx, ended []int64) (taskQueues []string, err error) {
	const dependents = `j.status = 'queued' and j.held = 'input' and j.id in (select e.to_job from graph_edge e where e.from_job = any($1))`
	taskQueues, err = column[string](ctx, tx, `select distinct j.task_queue from job_queue j where `+dependents+` order by j.task_queue`, ended)
	if err != nil || len(taskQueues) == 0 {
		return nil, err
	}
	return taskQueues, releaseHeld(ctx, tx, dependents, ended)
}

// releasedAtOnce bounds how many jobs a sweep reads or releases in one transaction:
// hand-outs wait for those that it changes.
const releasedAtOnce = 5000

// ReleaseHeld releases jobs that are still held because an event was missed. It checks
// each project and account, and what jobs need. Of the jobs held until their request starts
// it reads 5000 per call, and continues behind them in the next.
func (s *Store) ReleaseHeld(ctx context.Context) error {
	if err := s.releaseUnpaused(ctx); err != nil {
		return err
	}
	if err := s.releaseInTurn(ctx); err != nil {
		return err
	}
	if err := s.releaseReady(ctx); err != nil {
		return err
	}
	accounts, err := column[string](ctx, s.pool, `
		with recursive accounts as (
			(select submitter from job_queue where status = 'queued' and held = 'cap' order by submitter limit 1)
			union all
			select (select j.submitter from job_queue j where j.status = 'queued' and j.held = 'cap' and j.submitter > a.submitter order by j.submitter limit 1)
			from accounts a where a.submitter is not null
		)
		select submitter from accounts where submitter is not null`)
	if err != nil {
		return wrap("listing the accounts whose limits hold jobs", err)
	}
	for _, account := range accounts {
		if err := s.releaseLimited(ctx, account); err != nil {
			return err
		}
	}
	return nil
}

// releaseUnpaused releases the jobs of projects whose admission is not paused.
func (s *Store) releaseUnpaused(ctx context.Context) error {
	projects, err := column[string](ctx, s.pool, `
		with recursive held as ( -- each by one step in the index, however many jobs it has
			(select project from job_queue where status = 'queued' and held = 'pause' order by project limit 1)
			union all
			select (select j.project from job_queue j where j.status = 'queued' and j.held = 'pause' and j.project > h.project order by j.project limit 1)
			from held h where h.project is not null
		)
		select project from held h where h.project is not null and not exists (select from queue_pause qp where qp.project = h.project)`)
	if err != nil {
		return wrap("listing the projects with held jobs", err)
	}
	for _, project := range projects {
		for taken := releasedAtOnce; taken == releasedAtOnce; {
			err := s.inTx(ctx, "releasing the jobs of project "+project, func(tx pgx.Tx) error {
				ids, err := column[int64](ctx, tx, `
					select j.id from job_queue j where j.project = $1 and j.status = 'queued' and j.held = 'pause' order by j.id limit $2`, project, releasedAtOnce)
				taken = len(ids)
				return errors.Join(err, releaseHeld(ctx, tx, `j.held = 'pause' and j.id = any($1)`, ids))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseInTurn releases jobs whose requests have started by now.
func (s *Store) releaseInTurn(ctx context.Context) error {
	type row struct {
		ID     int64
		InTurn bool
	}
	looked, err := all[row](ctx, s.pool, `
		select j.id, exists (`+activeWaiter+`) as in_turn
		from (select id from job_queue where status = 'queued' and held = 'turn' and id > $1 order by id limit $2) j order by j.id`,
		s.swept.Load(), releasedAtOnce)
	if err != nil {
		return wrap("looking for jobs that have their turn", err)
	}
	var ids []int64
	for _, r := range looked {
		if r.InTurn {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) > 0 {
		if err := s.inTx(ctx, "releasing jobs in their turn", func(tx pgx.Tx) error { return releaseHeld(ctx, tx, `j.held = 'turn' and j.id = any($1)`, ids) }); err != nil {
			return err
		}
	}
	next := int64(0)
	if len(looked) == releasedAtOnce {
		next = looked[len(looked)-1].ID
	}
	s.swept.Store(next)
	return nil
}

// releaseReady releases jobs of which every input has ended by now, at most
// [releasedAtOnce].
func (s *Store) releaseReady(ctx context.Context) error {
	return s.inTx(ctx, "releasing jobs whose inputs have ended", func(tx pgx.Tx) error {
		ids, err := column[int64](ctx, tx, `
			select j.id from job_queue j where j.status = 'queued' and j.held = 'input' and exists (`+readyWaiter+`) order by j.id limit $1`, releasedAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		return releaseHeld(ctx, tx, `j.held = 'input' and j.id = any($1)`, ids)
	})
}

// ReleaseLimited releases jobs of an account held by its limit, after one of its jobs has
// ended. It lists the task queues in which jobs of the account wait; none for an account
// without a limit.
func (s *Store) ReleaseLimited(ctx context.Context, account string) ([]string, error) {
	limits, err := limitsOf(ctx, s.pool, []string{account})
	if err != nil || limits.Of(account).MaxRunning == nil {
		return nil, wrap("reading the limits of "+account, err)
	}
	if err := s.releaseLimited(ctx, account); err != nil {
		return nil, err
	}
	queues, err := column[string](ctx, s.pool, `
		with recursive queues as (
			(select task_queue from job_queue where submitter = $1 and status = 'queued' order by task_queue limit 1)
			union all
			select (select j.task_queue from job_queue j where j.submitter = $1 and j.status = 'queued' and j.task_queue > q.task_queue
				order by j.task_queue limit 1)
			from queues q where q.task_queue is not null
		)
		select task_queue from queues where task_queue is not null`, account)
	return queues, wrap("listing the task queues of the jobs of "+account, err)
}

// releaseLimited releases the first jobs of an account in each task queue and queue, as
// many as its limit allows; all if it has no limit.
func (s *Store) releaseLimited(ctx context.Context, account string) error {
	for again := true; again; {
		err := s.inTx(ctx, "releasing the jobs of "+account, func(tx pgx.Tx) error {
			limits, err := limitsOf(ctx, tx, []string{account})
			if err != nil {
				return err
			}
			limit, under := limits.Of(account), fairshare.Load{}
			if limit.MaxRunning != nil {
				if under, err = underWay(ctx, tx, account); err != nil {
					return err
				}
			}
			free := limit.Free(under, true)
			ids, err := firstHeldByLimit(ctx, tx, account, min(releasedAtOnce, free))
			again = limit.MaxRunning == nil && len(ids) > 0
			if err == nil && len(ids) > 0 {
				err = releaseHeld(ctx, tx, `j.id = any($1)`, ids)
			}
			if err == nil && free > 0 {
				err = endLimited(ctx, tx, []string{account})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// firstHeldByLimit lists the first jobs of an account held by its limit, at most most of
// each task queue and queue.
func firstHeldByLimit(ctx context.Context, tx pgx.Tx, account string, most int) ([]int64, error) {
	return column[int64](ctx, tx, `
		with recursive places as (
			(select j.task_queue, j.queue from job_queue j where j.status = 'queued' and j.held = 'cap' and j.submitter = $1
				order by j.task_queue, j.queue limit 1)
			union all
			select n.task_queue, n.queue from places p cross join lateral (
				select j.task_queue, j.queue from job_queue j where j.status = 'queued' and j.held = 'cap' and j.submitter = $1
					and (j.task_queue, j.queue) > (p.task_queue, p.queue)
				order by j.task_queue, j.queue limit 1) n
		)
		select f.id from places p cross join lateral (
			select j.id from job_queue j where j.status = 'queued' and j.held = 'cap' and j.submitter = $1
				and j.task_queue = p.task_queue and j.queue = p.queue
			order by (j.started_at is null), j.request_created, j.id limit $2) f`, account, most)
}
