package store

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// takeBack lets hand-outs look again at jobs j that were put aside, those for which
// the condition holds; $1 is its argument. They are locked in the order of their
// IDs, as everywhere.
func takeBack(ctx context.Context, tx pgx.Tx, condition string, argument any) error {
	_, err := tx.Exec(ctx, `
		update job_queue set held = '' where id in (
			select j.id from job_queue j where j.status = 'queued' and `+condition+` order by j.id for update)`, argument)
	return wrap("looking again at jobs that were put aside", err)
}

// requestHasTurn takes back the jobs of a request that could not go because no
// request that waited for them had its turn.
func requestHasTurn(ctx context.Context, tx pgx.Tx, id bench.RequestID) error {
	return takeBack(ctx, tx, `j.held = 'turn' and j.id in (select job_id from request_job where request_id = $1)`, id)
}

// TakeBack lets hand-outs look again at every job that was put aside and may go by
// now: what the events that should have done it have missed.
func (s *Store) TakeBack(ctx context.Context) error {
	err := s.inTx(ctx, "sweeping", func(tx pgx.Tx) error {
		return takeBack(ctx, tx, `j.held = any($1) and `+mayGo, []string{heldByTurn, heldByPause})
	})
	if err != nil {
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
		return wrap("listing the accounts at their limit", err)
	}
	for _, account := range accounts {
		if err := s.takeBackCapped(ctx, account); err != nil {
			return err
		}
	}
	return nil
}

// Room lists the task queues in which jobs of an account wait, when a limit kept
// them from going and one of its jobs has ended; none for an account without one.
func (s *Store) Room(ctx context.Context, account string) ([]string, error) {
	limits, err := limitsOf(ctx, s.pool, []string{account})
	if err != nil || limits.Of(account).MaxRunning == nil {
		return nil, wrap("reading the limits of "+account, err)
	}
	if err := s.takeBackCapped(ctx, account); err != nil {
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
	return queues, wrap("listing where jobs of "+account+" wait", err)
}

// takeBackCapped takes back as many jobs of an account as it may begin now, of each
// task queue and queue the first ones.
func (s *Store) takeBackCapped(ctx context.Context, account string) error {
	return s.inTx(ctx, "looking again at the jobs of "+account, func(tx pgx.Tx) error {
		limits, err := limitsOf(ctx, tx, []string{account})
		if err != nil {
			return err
		}
		free := math.MaxInt32
		if most := limits.Of(account).MaxRunning; most != nil {
			load, err := underWay(ctx, tx, account)
			if err != nil {
				return err
			}
			free = load.free(*most)
		}
		ids, err := column[int64](ctx, tx, `
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
				order by (j.started_at is null), j.request_created, j.id limit $2) f`, account, free)
		if err != nil || len(ids) == 0 {
			return err
		}
		return takeBack(ctx, tx, `j.id = any($1)`, ids)
	})
}
