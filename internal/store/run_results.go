package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// RunAside holds what [Store.Run] does not read of a run.
type RunAside struct {
	Segment bench.Segment
	// OutputRemovedAt is when its output was removed for its age; nil: it is kept.
	OutputRemovedAt *time.Time
	// Results counts its results.
	Results int
}

// RunAside reads the rest of a run; ErrNotFound if the run is unknown.
func (s *Store) RunAside(ctx context.Context, id bench.RunID) (RunAside, error) {
	found, err := one[RunAside](ctx, s.pool, `
		select n.segment, n.output_removed_at, (select count(*) from test_result r where r.run_id = n.id) as results
		from job_run n where n.id = $1`, id)
	return found, wrap("reading run "+string(id), err)
}

// RunErrors lists at most limit failures of a run, the first ones first.
func (s *Store) RunErrors(ctx context.Context, id bench.RunID, limit int) ([]bench.RunError, error) {
	found, err := all[bench.RunError](ctx, s.pool, `
		select e.run_id as run, case when tc.id is not null then `+testCaseDocument+` end as test_case,
			e.kind, e.message, e.output_tail, e.created_at
		from error e left join test_case tc on tc.id = e.test_case_id
		where e.run_id = $1 order by e.id limit $2`, id, limit)
	return found, wrap("reading the errors of run "+string(id), err)
}

// RunResult sums up a run's measurements of a test case of one artifact.
type RunResult struct {
	ID       int64
	TestCase bench.TestCase
	Tag      string
	// Skipped is the reason for leaving the test case out; empty: it was measured.
	Skipped string
	// Invalid is the reason for which it no longer counts; nil: it does.
	Invalid *string
	Probe   bool
	// Disturbed counts its iterations that were disturbed, mostly by DisturbedBy.
	Disturbed   int
	DisturbedBy string
	// TooDisturbed is set when no model and no verdict uses it.
	TooDisturbed bool
	Values       []MetricValues
}

// MetricValues are the values of a metric in one result.
type MetricValues struct {
	Metric bench.Metric `json:"metric"`
	// Count is the number of iterations; Median, Least and Most are of all of them.
	Count  int     `json:"count"`
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	// Values of the first iterations, at most 100, in their order.
	Values []float64 `json:"values"`
}

// RunResults lists at most limit results of a run in the order in which they were stored,
// after the one with the given ID; 0: from the first.
func (s *Store) RunResults(ctx context.Context, id bench.RunID, after int64, limit int) ([]RunResult, error) {
	found, err := all[RunResult](ctx, s.reports, `
		select r.id, `+testCaseDocument+` as test_case, a.tag, case when r.status = 'skipped' then r.message else '' end as skipped,
			case when r.invalid_at is not null then r.invalid_reason end as invalid, r.probe,
			r.disturbed, r.disturbed_by, r.disturbed_session as too_disturbed, coalesce(v.values, '[]') as values
		from (select * from test_result where run_id = @run and id > @after order by id limit @limit) r
		join test_case tc on tc.id = r.test_case_id
		join artifact a on a.id = r.artifact_id
		left join lateral (
			select jsonb_agg(jsonb_build_object('metric', m.metric, 'count', m.count, 'median', m.median, 'least', m.least, 'most', m.most,
				'values', m.values) order by m.metric) as values
			from (
				select se.metric, count(*), percentile_cont(0.5) within group (order by p.value) as median, min(p.value) as least, max(p.value) as most,
					(array_agg(p.value order by c.iteration))[1:100] as values
				from collection c join `+statistics+` p on p.collection_id = c.id join pstat_series se on se.id = p.series_id
				where c.result_id = r.id group by se.metric
			) m
		) v on true
		order by r.id`, pgx.NamedArgs{"run": id, "after": after, "limit": limit})
	return found, wrap("reading the results of run "+string(id), err)
}
