package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// ComparedValue is a single value of a series, and what is known of its iteration.
type ComparedValue struct {
	// Tag names the artifact.
	Tag       string
	Value     float64
	Iteration int
	// CollectedAt is the beginning of the iteration, by the collector's clock.
	CollectedAt time.Time
	Run         bench.RunID
	Collector   string
	bench.Surrounding
	Segment bench.Segment
	// InTurns is set if it was measured in turns with the other artifact.
	InTurns bool
	// Disturbed says why the iteration is disturbed; empty: it is not.
	Disturbed string
	// Facts describe the machine meanwhile, as its collector reported them.
	Facts json.RawMessage
}

// maxComparedValues bounds the values of one series that are read at once. A result has
// at most [bench.MaxIterations].
const maxComparedValues = 5000

// ComparedValues reads the values that a comparison of two artifacts may use of one metric
// of a test case, in the order of measuring: those of the latest results of both, and those
// measured in turns with each other. An empty list is no error; complete is false if there
// are more.
func (s *Store) ComparedValues(ctx context.Context, project string, tags [2]string, tc bench.TestCase, metric bench.Metric) (values []ComparedValue, complete bool, err error) {
	series, err := value[int64](ctx, s.pool, `
		select se.id from pstat_series se join test_case tc on tc.id = se.test_case_id
		where tc.project = @project and tc.benchmark = @benchmark and tc.profile = @profile and tc.scenario = @scenario
			and tc.backend = @backend and tc.target = @target and se.metric = @metric`, pgx.NamedArgs{
		"project": project, "benchmark": tc.Benchmark, "profile": tc.Profile, "scenario": tc.Scenario, "backend": tc.Backend, "target": string(tc.Target), "metric": string(metric),
	})
	if errors.Is(err, ErrNotFound) {
		return nil, true, nil
	} else if err != nil {
		return nil, false, wrap("looking up a series", err)
	}
	artifacts, err := column[int64](ctx, s.pool, `select id from artifact where project = $1 and tag = any($2)`, project, tags[:])
	if err != nil {
		return nil, false, wrap("looking artifacts up", err)
	}
	values, err = all[ComparedValue](ctx, s.reports, `
		with result as (
			select r.id, r.artifact_id, r.run_id, r.size_class, r.hardware_id, r.co_located, false as in_turns
			from latest_result r join pstat_series se on se.id = @series and se.test_case_id = r.test_case_id
			where r.artifact_id = any(@artifacts::bigint[]) and r.status = 'ok'
			union all
			select r.id, r.artifact_id, r.run_id, r.size_class, r.hardware_id, r.co_located, true
			from test_result r join pstat_series se on se.id = @series and se.test_case_id = r.test_case_id
			join job_run n on n.id = r.run_id join job_queue j on j.id = n.job_id
			where r.artifact_id = any(@artifacts::bigint[]) and r.in_turns and r.status = 'ok' and r.invalid_at is null and not r.probe
				and (j.tag, j.versus) in ((@a, @b), (@b, @a))
		)
		select a.tag, p.value, c.iteration, c.collected_at, n.id as run, n.collector, r.size_class, r.hardware_id, r.co_located, n.segment, r.in_turns, c.disturbed, c.facts
		from result r
		join artifact a on a.id = r.artifact_id
		join job_run n on n.id = r.run_id
		join collection c on c.result_id = r.id
		join `+statistics+` p on p.collection_id = c.id and p.series_id = @series
		order by c.collected_at, c.id limit @limit`, pgx.NamedArgs{
		"series": series, "artifacts": artifacts, "a": tags[0], "b": tags[1], "limit": maxComparedValues + 1,
	})
	if err != nil {
		return nil, false, wrap("reading the values of "+tags[0]+" and "+tags[1], err)
	}
	return values[:min(len(values), maxComparedValues)], len(values) <= maxComparedValues, nil
}
