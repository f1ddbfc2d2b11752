package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
	// Iterations counts its collections, of which the first and the last were taken then.
	Iterations  int
	First, Last time.Time
	// InTurns is set if it was measured in turns with the other artifact.
	InTurns bool
}

// Origins lists the results of an artifact that a comparison with another one reads: the
// latest of each test case and surrounding, and those measured in turns with the other one,
// by test case, the older runs first. It returns none if there are none.
func (s *Store) Origins(ctx context.Context, project, tag, other string) ([]Origin, error) {
	artifact, err := s.artifact(ctx, project, tag)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, wrap("looking up artifact "+tag, err)
	}
	rows, err := s.reports.Query(ctx, `
		select r.test_case_id, r.size_class, r.hardware_id, r.co_located, n.segment, n.pool, n.collector, coalesce(j.suite_hash, ''),
			n.id, c.iterations, c.first, c.last, r.in_turns
		from (
			select id, test_case_id, size_class, hardware_id, co_located, run_id, false as in_turns from latest_result
			where artifact_id = @artifact and status = 'ok'
			union all
			select r.id, r.test_case_id, r.size_class, r.hardware_id, r.co_located, r.run_id, true
			from test_result r join job_run n on n.id = r.run_id join job_queue j on j.id = n.job_id
			where r.artifact_id = @artifact and r.in_turns and r.status = 'ok' and r.invalid_at is null and not r.probe
				and (j.tag = @other or j.versus = @other)
		) r
		join job_run n on n.id = r.run_id
		join job_queue j on j.id = n.job_id
		join lateral (select count(*) as iterations, min(collected_at) as first, max(collected_at) as last from collection where result_id = r.id) c
			on c.iterations > 0
		order by n.started_at, r.id`, pgx.NamedArgs{"artifact": artifact, "other": other})
	if err != nil {
		return nil, wrap("reading where "+tag+" was measured", err)
	}
	var found []Origin
	var cases []int64
	var testCase int64
	var o Origin
	if _, err := pgx.ForEachRow(rows, []any{
		&testCase, &o.SizeClass, &o.HardwareID, &o.CoLocated, &o.Segment, &o.Pool, &o.Collector, &o.Suite, &o.Run, &o.Iterations, &o.First, &o.Last, &o.InTurns,
	}, func() error {
		found, cases = append(found, o), append(cases, testCase)
		return nil
	}); err != nil {
		return nil, wrap("reading where "+tag+" was measured", err)
	}
	names, err := s.testCases(ctx, s.reports, cases)
	if err != nil {
		return nil, wrap("reading where "+tag+" was measured", err)
	}
	for i, id := range cases {
		found[i].TestCase = names[id]
	}
	slices.SortStableFunc(found, func(a, b Origin) int { return bench.CompareTestCases(a.TestCase, b.TestCase) })
	return found, nil
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
