package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// SeriesName names a series of a project: one metric of one test case.
type SeriesName struct {
	TestCase bench.TestCase `json:"test_case"`
	Metric   bench.Metric   `json:"metric"`
}

// Center is the median of the values of a series on one artifact.
type Center struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	Tag      string
	bench.Surrounding
	Value float64
}

// Centers reads the medians of series on the artifacts of these tags, by series, then by
// surrounding: those of the latest results, without what was measured in turns. One
// statement reads them all, in a time linear in the number of values.
func (s *Store) Centers(ctx context.Context, project string, tags []string, of []SeriesName) ([]Center, error) {
	if len(of) == 0 {
		return nil, nil
	}
	type series struct{ ID, TestCaseID int64 }
	known, err := all[series](ctx, s.reports, `
		select se.id, tc.id as test_case_id from jsonb_to_recordset($2::jsonb) as w (test_case jsonb, metric text)
		join test_case tc on tc.project = $1 and tc.benchmark = coalesce(w.test_case ->> 'benchmark', '') and tc.profile = coalesce(w.test_case ->> 'profile', '')
			and tc.scenario = coalesce(w.test_case ->> 'scenario', '') and tc.backend = coalesce(w.test_case ->> 'backend', '') and tc.target = coalesce(w.test_case ->> 'target', '')
		join pstat_series se on se.test_case_id = tc.id and se.metric = w.metric`, project, of)
	if err != nil || len(known) == 0 {
		return nil, wrap("looking series up", err)
	}
	artifacts, err := column[int64](ctx, s.reports, `select id from artifact where project = $1 and tag = any($2)`, project, tags)
	if err != nil {
		return nil, wrap("looking artifacts up", err)
	}
	var ids, cases []int64
	for _, k := range known {
		ids, cases = append(ids, k.ID), append(cases, k.TestCaseID)
	}
	slices.Sort(cases)
	centers, err := all[Center](ctx, s.reports, `
		with result as materialized (
			select id, artifact_id, test_case_id, size_class, hardware_id, co_located from latest_result
			where artifact_id = any(@artifacts::bigint[]) and test_case_id = any(@cases::bigint[]) and status = 'ok'
		), center as (
			select p.series_id, r.id as result_id, percentile_cont(0.5) within group (order by p.value) as value
			from result r join collection c on c.result_id = r.id
			join `+statistics+` p on p.collection_id = c.id and p.series_id = any(@series::bigint[])
			group by p.series_id, r.id
		)
		select `+testCaseDocument+` as test_case, se.metric, a.tag, r.size_class, r.hardware_id, r.co_located, m.value
		from center m join result r on r.id = m.result_id join artifact a on a.id = r.artifact_id
		join pstat_series se on se.id = m.series_id join test_case tc on tc.id = se.test_case_id
		order by se.id, r.size_class, r.hardware_id, r.co_located, a.id`,
		pgx.NamedArgs{"artifacts": artifacts, "cases": slices.Compact(cases), "series": ids})
	return centers, wrap("reading the history of series of project "+project, err)
}
