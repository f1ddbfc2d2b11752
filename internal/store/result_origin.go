package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
)

// Origin holds the machine, the run and the time of a test case's result.
type Origin struct {
	TestCase bench.TestCase
	bench.Surrounding
	Segment   bench.Segment
	Pool      string
	Collector string
	// Suite is the content hash of the suite; empty: it had none.
	Suite string
	Run   bench.RunID
	// Iterations counts its collections; First and Last are the times of the first and the last.
	Iterations  int
	First, Last time.Time
	// InTurns is set if it was measured in turns with the other artifact.
	InTurns bool
}

// Origins lists the results of an artifact that a comparison with another one reads: the
// latest of each test case and surrounding, and those measured in turns with the other one,
// by test case, the older ones first. An empty list is no error. Callers must not
// change them.
func (s *Store) Origins(ctx context.Context, project, tag, other string) ([]Origin, error) {
	artifact, err := s.artifact(ctx, project, tag)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, wrap("looking up artifact "+tag, err)
	}
	doing := "reading where " + tag + " was measured"
	own, err := s.ownOrigins(ctx, artifact)
	if err != nil {
		return nil, wrap(doing, err)
	}
	inTurns, err := s.originsOf(ctx, s.reports, true, `
		select r.id, r.test_case_id, r.size_class, r.hardware_id, r.co_located, r.run_id, r.iterations, r.first_collected_at, r.last_collected_at
		from test_result r join job_run n on n.id = r.run_id join job_queue j on j.id = n.job_id
		where r.artifact_id = $1 and r.in_turns and r.status = 'ok' and r.invalid_at is null and not r.probe and (j.tag = $2 or j.versus = $2)`, artifact, other)
	if err != nil || len(inTurns) == 0 {
		return own, wrap(doing, err)
	}
	found := slices.Concat(own, inTurns)
	slices.SortStableFunc(found, func(a, b Origin) int {
		return cmp.Or(bench.CompareTestCases(a.TestCase, b.TestCase), a.First.Compare(b.First))
	})
	return found, nil
}

// keptOriginsBytes bounds the origins that a process keeps.
const (
	keptOriginsBytes = 2 << 20
	bytesPerOrigin   = 320
)

// versionedOrigins are the results of an artifact that were not measured in turns, in a version.
type versionedOrigins struct {
	version string
	origins []Origin
}

func newKeptOrigins() *ttlcache.Cache[int64, versionedOrigins] {
	return ttlcache.New(ttlcache.WithMaxCost(keptOriginsBytes, func(item ttlcache.CostItem[int64, versionedOrigins]) uint64 {
		return uint64(bytesPerOrigin * len(item.Value.origins)) //nolint:gosec // it is positive
	}))
}

// originsVersion changes with the results of an artifact, and with what their sheets, or what
// will be their sheets, say of runs.
const originsVersion = `
	select concat_ws('|',
		(select string_agg(concat_ws(',', m.ctid, m.xmin), ';' order by m.ctid) from stale_result m where m.artifact_id = $1),
		(select string_agg(s.xmin::text, ',' order by s.metric, s.size_class, s.hardware_id, s.co_located) from sheet s where s.artifact_id = $1),
		(select concat_ws(',', count(*), sum(hashtextextended(concat_ws(',', r.id, r.xmin), 0))) from test_result r where r.artifact_id = $1))`

// ownOrigins returns where an artifact was measured, without what was measured in turns.
// Callers share it and must not change it.
func (s *Store) ownOrigins(ctx context.Context, artifact int64) (found []Origin, err error) {
	if kept := s.origins.Get(artifact); kept != nil {
		version, err := value[string](ctx, s.reports, originsVersion, artifact)
		if err != nil || version == kept.Value().version {
			return kept.Value().origins, err
		}
	}
	err = s.reading(ctx, func(tx pgx.Tx) error {
		version, err := value[string](ctx, tx, originsVersion, artifact)
		if err != nil {
			return err
		}
		if found, err = s.originsOf(ctx, tx, false, `
			select id, test_case_id, size_class, hardware_id, co_located, run_id, iterations, first_collected_at, last_collected_at from latest_result where artifact_id = $1 and status = 'ok'`, artifact); err != nil {
			return err
		}
		if len(found) > 0 {
			s.origins.Set(artifact, versionedOrigins{version, found}, ttlcache.NoTTL)
		}
		return nil
	})
	return found, err
}

// originsOf reads where some results were measured, by test case, those of older runs first.
func (s *Store) originsOf(ctx context.Context, q querier, inTurns bool, results string, args ...any) ([]Origin, error) {
	rows, err := q.Query(ctx, `
		with result as materialized (`+results+`), run as materialized (
			select n.id, n.segment, n.pool, n.collector, n.started_at, coalesce(j.suite_hash, '') as suite
			from (select distinct run_id from result) r join job_run n on n.id = r.run_id join job_queue j on j.id = n.job_id
		)
		select r.test_case_id, r.size_class, r.hardware_id, r.co_located, n.segment, n.pool, n.collector, n.suite, n.id,
			coalesce(r.iterations, c.iterations), coalesce(r.first_collected_at, c.first), coalesce(r.last_collected_at, c.last)
		from result r join run n on n.id = r.run_id
		join lateral ( -- of results that do not say it themselves
			select count(*) as iterations, min(collected_at) as first, max(collected_at) as last from collection where result_id = r.id and r.iterations is null) c
			on coalesce(r.iterations, c.iterations) > 0
		order by n.started_at, r.id`, args...)
	if err != nil {
		return nil, err
	}
	var found []Origin
	var cases []int64
	var testCase int64
	o := Origin{InTurns: inTurns}
	shared := make(map[string]string) // all results of a run share its texts
	if _, err := pgx.ForEachRow(rows, []any{
		&testCase, &o.SizeClass, &o.HardwareID, &o.CoLocated, &o.Segment, &o.Pool, &o.Collector, &o.Suite, &o.Run, &o.Iterations, &o.First, &o.Last,
	}, func() error {
		one := o
		share(shared, &one.HardwareID)
		share(shared, &one.Segment)
		share(shared, &one.Pool)
		share(shared, &one.Collector)
		share(shared, &one.Suite)
		share(shared, &one.Run)
		found, cases = append(found, one), append(cases, testCase)
		return nil
	}); err != nil {
		return nil, err
	}
	names, err := s.testCases(ctx, q, cases)
	if err != nil {
		return nil, err
	}
	for i, id := range cases {
		found[i].TestCase = names[id]
	}
	slices.SortStableFunc(found, func(a, b Origin) int { return bench.CompareTestCases(a.TestCase, b.TestCase) })
	return found, nil
}

// share replaces a text by an equal one that was met before.
func share[T ~string](texts map[string]string, text *T) {
	if known, there := texts[string(*text)]; there {
		*text = T(known)
		return
	}
	texts[string(*text)] = string(*text)
}

// NextCompared returns the first release or merged commit whose request was compared with an
// artifact; empty if there is none.
func (s *Store) NextCompared(ctx context.Context, project, tag string) (string, error) {
	next, err := value[string](ctx, s.pool, `
		select r.tag from benchmark_request r
		where r.project = $1 and r.baseline = $2 and r.type in ('release', 'master') and r.tag is not null
		order by r.created_at, r.id limit 1`, project, tag)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return next, wrap("looking for what was compared with "+tag, err)
}
