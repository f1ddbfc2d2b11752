package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// partitionsAhead is the time for which there are partitions: without an orchestrator, the API makes the next ones.
const partitionsAhead = 8 * 7 * 24 * time.Hour

// keptAttempt matches an attempt a, with its k in [kept], that has not expired. An attempt of a run under way has
// not expired.
const keptAttempt = `(k.before is null or a.began_at >= k.before or exists (select from job_run n where n.id = a.run_id and n.outcome = ''))`

// expiredWeeks lists the partitions of weeks that are over and of which nothing is kept. It follows [kept].
const expiredWeeks = `, expired_week as materialized (
	select w.* from (
		select name, week::timestamp at time zone 'utc' as first, (week + 7)::timestamp at time zone 'utc' as last from (
			-- Guarded, because the planner may look at other relations first.
			select c.relname::text as name, case when c.relname ~ '^profile_batch_[0-9]{8}$' then to_date(right(c.relname, 8), 'YYYYMMDD') end as week
			from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'profile_batch'::regclass
		) p
	) w
	where w.last < now() - interval '1 day' and not exists (
		select from profile_attempt a left join kept k on k.project = a.project
		where a.began_at >= w.first and a.began_at < w.last and ` + keptAttempt + `)
)`

// dueAttempts matches the attempts a that are removed: with their week or, if something of that is kept for longer, one by one when a week has
// passed. Removing rows one by one leaves holes, dropping a partition does not.
const dueAttempts = ` from profile_attempt a join kept k on k.project = a.project
	where not ` + keptAttempt + ` and (a.began_at < k.before - interval '7 days'
		or exists (select from expired_week w where a.began_at >= w.first and a.began_at < w.last))`

// attemptBytes is the size of attempt a and of its samples.
const attemptBytes = `a.bytes + pg_column_size(a.*)`

// removeSamples makes the partitions of the next weeks, drops those that have expired, and removes attempts of others.
func (s *Store) removeSamples(ctx context.Context, keep Keep) (removed Removed, more bool, err error) {
	if _, err := s.pool.Exec(ctx, `select make_profile_partitions($1)`, partitionsAhead); err != nil {
		return removed, false, err
	}
	type week struct {
		Name        string
		First, Last time.Time
	}
	weeks, err := all[week](ctx, s.pool, `with `+kept+expiredWeeks+` select name, first, last from expired_week order by first`, keep.args(0))
	if err != nil {
		return removed, false, err
	}
	for _, w := range weeks {
		part, err := s.dropWeek(ctx, w.Name, w.First, w.Last)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" {
			continue // somebody reads: the next pass drops it
		}
		if err != nil {
			return removed, false, err
		}
		removed.add(part)
	}
	part, err := s.removeAttempts(ctx, keep)
	removed.add(part)
	return removed, part.Rows == removedAtOnce, err
}

// dropWeek drops the partition of a week, with the attempts of that week. Nothing is added to a week that is over.
func (s *Store) dropWeek(ctx context.Context, name string, first, last time.Time) (removed Removed, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Readers and writers of samples queue behind whichever transaction waits for the table.
		if _, err := tx.Exec(ctx, `select set_config('lock_timeout', '500ms', true)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `drop table `+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
		var err error
		removed, err = one[Removed](ctx, tx, `
			with gone as (delete from profile_attempt a where a.began_at >= $1 and a.began_at < $2 returning `+attemptBytes+` as bytes)
			select count(*) as rows, coalesce(sum(bytes), 0)::bigint as bytes from gone`, first, last)
		return err
	})
	if err != nil {
		return Removed{}, fmt.Errorf("dropping %s: %w", name, err)
	}
	return removed, nil
}

// removeAttempts removes attempts with their samples, row by row.
func (s *Store) removeAttempts(ctx context.Context, keep Keep) (removed Removed, err error) {
	type attempt struct {
		ID      int64
		BeganAt time.Time
		Bytes   int64
	}
	err = s.inTx(ctx, "removing samples", func(tx pgx.Tx) error {
		gone, err := all[attempt](ctx, tx, `
			with `+kept+expiredWeeks+`, due as (select a.id `+dueAttempts+` limit @most)
			delete from profile_attempt a using due where a.id = due.id returning a.id, a.began_at, `+attemptBytes+` as bytes`, keep.args(removedAtOnce))
		if err != nil {
			return err
		}
		for _, a := range gone {
			if _, err := tx.Exec(ctx, `delete from profile_batch where began_at = $1 and attempt = $2`, a.BeganAt, a.ID); err != nil {
				return err
			}
			removed.add(Removed{Rows: 1, Bytes: a.Bytes})
		}
		return nil
	})
	if err != nil {
		return Removed{}, err
	}
	return removed, nil
}
