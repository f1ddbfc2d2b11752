package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

const (
	// disturbedRuns is the number of disturbed runs in a row after which a collector is
	// set aside.
	disturbedRuns = 3
	// quietFor is the time for which a collector that was set aside must report a quiet
	// machine before it takes jobs again.
	quietFor = 5 * time.Minute
)

// JudgeCollector decides, after a run, whether to set its collector aside: if its last three
// runs with results are disturbed, that is, more than a fifth of their collections are.
// Commands do not count. It then takes no jobs until its machine is quiet (see
// [Store.Reconsider]) or a person activates it. If no other live collector of its pool is
// better, or its machine does other work by configuration (co-located), it only gets the
// reason. A run that is not disturbed removes the reason. A collector that waits for a canary
// to pass (see [Store.EndCanary]) stays as it is.
//
// It returns the collector, unless the run is a command's, and whether this call has set it
// aside; ErrNotFound if the run is unknown or its collector was removed. Repeating it changes
// nothing.
func (s *Store) JudgeCollector(ctx context.Context, run bench.RunID, offlineAfter time.Duration) (c bench.Collector, setAside bool, err error) {
	err = s.inTx(ctx, "judging the collector of run "+string(run), func(tx pgx.Tx) error {
		name, command, err := ranOn(ctx, tx, run)
		if err != nil {
			return err
		}
		if command { // looking for the last runs that count could read all commands before it
			return nil
		}
		var others int
		if c, others, err = lockPool(ctx, tx, name, offlineAfter); err != nil || c.SetAsideAt != nil || c.CanaryFailed {
			return err
		}
		by, last, err := lastRuns(ctx, tx, c)
		if err != nil || !last && c.DisturbedBy == "" || last && by == "" {
			return err
		}
		aside := by != "" && c.Active && others > 0 && !c.CoLocated
		c, err = one[bench.Collector](ctx, tx, `
			update collector_config c set disturbed_by = @by, quiet_from = null,
				active = c.active and not @aside, set_aside_at = case when @aside then now() end
			where c.name = @name returning `+collectorColumns, pgx.NamedArgs{"name": name, "by": by, "aside": aside})
		setAside = aside
		return err
	})
	return c, setAside, err
}

// ranOn names the collector of a run, and reports whether the run is a command's.
func ranOn(ctx context.Context, tx pgx.Tx, run bench.RunID) (collector string, command bool, err error) {
	type row struct {
		Collector string
		Command   bool
	}
	r, err := one[row](ctx, tx, `select n.collector, j.kind = 'command' as command `+fromRuns+`where n.id = $1`, run)
	return r.Collector, r.Command, err
}

// lockPool locks the collectors of a collector's pool and returns it, with the number of
// others that can take jobs and are not disturbed themselves.
func lockPool(ctx context.Context, tx pgx.Tx, name string, offlineAfter time.Duration) (c bench.Collector, others int, err error) {
	type row struct {
		bench.Collector
		Heard bool
	}
	pool, err := all[row](ctx, tx, `
		select `+collectorColumns+`, c.`+heardOf("$2")+` as heard from collector_config c
		where (c.target, c.size_class, c.pool) = (select target, size_class, pool from collector_config where name = $1)
		order by c.name for update of c`, name, offlineAfter.Seconds())
	if err != nil {
		return c, 0, err
	}
	at := slices.IndexFunc(pool, func(r row) bool { return r.Name == name })
	if at < 0 {
		return c, 0, ErrNotFound
	}
	for i, r := range pool {
		if i != at && r.Active && r.Heard && r.DisturbedBy == "" {
			others++
		}
	}
	return pool[at].Collector, others, nil
}

// lastRuns tells why the last three runs of a collector are disturbed; by is empty
// if one is not. last reports whether the last one is.
func lastRuns(ctx context.Context, tx pgx.Tx, c bench.Collector) (by string, last bool, err error) {
	type row struct {
		Disturbed, Collections int
		By                     string
	}
	runs, err := all[row](ctx, tx, `
		select r.disturbed, r.collections, coalesce(r.by, '') as by from job_run n
		join job_queue j on j.id = n.job_id and j.kind <> 'command'
		cross join lateral (
			select count(c.id) as collections, count(c.id) filter (where c.disturbed <> '') as disturbed,
				mode() within group (order by nullif(split_part(c.disturbed, ':', 1), '')) as by
			from test_result t join collection c on c.result_id = t.id where t.run_id = n.id) r
		where n.collector = $1 and n.outcome <> '' and r.collections > 0
			and n.started_at >= coalesce((select judged_from from collector_config where name = $1), '-infinity')
		order by n.started_at desc, n.id limit $2`, c.Name, disturbedRuns)
	if err != nil || len(runs) == 0 {
		return "", false, err
	}
	last = bench.SessionDisturbed(runs[0].Disturbed, runs[0].Collections)
	if len(runs) < disturbedRuns {
		return "", last, nil
	}
	for _, r := range runs {
		if !bench.SessionDisturbed(r.Disturbed, r.Collections) {
			return "", last, nil
		}
	}
	return fmt.Sprintf("its last %d runs were disturbed, mostly by %s", disturbedRuns, runs[0].By), last, nil
}

// Reconsider lets a collector that was set aside take jobs again once its machine has been
// quiet for five minutes, unless a canary has failed, or no better collector of its pool
// is left. quiet is its report; nil: it has none. It returns ErrFenced like a heartbeat.
func (s *Store) Reconsider(ctx context.Context, name string, epoch int64, quiet *bool, offlineAfter time.Duration) (bench.Collector, error) {
	var c bench.Collector
	err := s.inTx(ctx, "reconsidering collector "+name, func(tx pgx.Tx) error {
		var others int
		var err error
		c, others, err = lockPool(ctx, tx, name, offlineAfter)
		if errors.Is(err, ErrNotFound) || err == nil && c.Epoch != epoch {
			return ErrFenced
		}
		if err != nil || c.SetAsideAt == nil {
			return err
		}
		c, err = one[bench.Collector](ctx, tx, `
			with judged as (
				select case when @quiet::boolean then coalesce(quiet_from, now()) when @quiet::boolean is null then quiet_from end as quiet_from
				from collector_config where name = @name
			), ended as (
				select quiet_from, quiet, @others = 0 or quiet as over
				from (
					select quiet_from, not @canary::boolean and coalesce(quiet_from <= now() - make_interval(secs => @seconds), false) as quiet
					from judged
				) q
			)
			update collector_config c set active = ended.over, available_at = case when ended.over then now() else c.available_at end,
				set_aside_at = case when not ended.over then c.set_aside_at end,
				quiet_from = case when not ended.over then ended.quiet_from end,
				disturbed_by = case when ended.quiet then '' else c.disturbed_by end,
				judged_from = case when ended.quiet then now() else c.judged_from end
			from ended where c.name = @name returning `+collectorColumns,
			pgx.NamedArgs{"name": name, "quiet": quiet, "others": others, "canary": c.CanaryFailed, "seconds": quietFor.Seconds()})
		return err
	})
	return c, err
}

// SetStuck sets aside a collector that can measure nothing until it is started anew, whatever else its pool has. Its next
// registration ends that. It returns the collector, unchanged if it is drained, and ErrFenced like a heartbeat.
func (s *Store) SetStuck(ctx context.Context, name string, epoch int64, why string) (bench.Collector, error) {
	const taking = `(c.active or c.set_aside_at is not null)`
	c, err := one[bench.Collector](ctx, s.pool, `
		update collector_config c set active = false,
			set_aside_at = case when `+taking+` then coalesce(c.set_aside_at, now()) end,
			quiet_from = case when `+taking+` then 'infinity' else c.quiet_from end,
			disturbed_by = case when `+taking+` then $3 else c.disturbed_by end
		where c.name = $1 and c.epoch = $2 returning `+collectorColumns, name, epoch, cleanText(why))
	if errors.Is(err, ErrNotFound) {
		err = ErrFenced
	}
	return c, wrap("setting collector "+name+" aside", err)
}
