package store

import (
	"context"
	"errors"

	"github.com/benchloom/benchloom/internal/bench"
)

// SessionInTurns is a session in which two artifacts were measured in turns: the values of one metric of one test case
// from one run.
type SessionInTurns struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	bench.Surrounding
	// Run measured the session. Comparison is the ID of the comparison whose look it was; 0: of none.
	Run        bench.RunID
	Comparison int64
	// A and B hold the values of the two artifacts, by iteration; those of one index were measured one after the other.
	// Disturbed marks the pairs during which something else used the machine.
	A, B      []float64
	Disturbed []bool
}

// SessionsInTurns reads all sessions in which two artifacts were measured in turns with each other, the oldest first; an
// empty list is no error. Iterations that only one side has are no pairs. Results found invalid are left out.
func (s *Store) SessionsInTurns(ctx context.Context, project, a, b string) ([]SessionInTurns, error) {
	var ids [2]int64
	for i, tag := range []string{a, b} {
		var err error
		ids[i], err = s.artifact(ctx, project, tag)
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, wrap("looking up artifact "+tag, err)
		}
	}
	if ids[0] == ids[1] {
		return nil, nil
	}
	sessions, err := all[SessionInTurns](ctx, s.reports, `
		select `+testCaseDocument+` as test_case, se.metric, ra.size_class, ra.hardware_id, ra.co_located, n.id as run, coalesce(l.comparison_id, 0) as comparison,
			array_agg(va.value order by ca.iteration) as a, array_agg(vb.value order by ca.iteration) as b,
			array_agg(`+disturbed("ca")+` or `+disturbed("cb")+` order by ca.iteration) as disturbed
		from test_result ra
		join test_result rb on rb.run_id = ra.run_id and rb.test_case_id = ra.test_case_id
			and rb.artifact_id = $2 and rb.status = 'ok' and rb.invalid_at is null and not rb.probe
		join job_run n on n.id = ra.run_id
		left join comparison_look l on l.job_id = n.job_id
		join collection ca on ca.result_id = ra.id
		join collection cb on cb.result_id = rb.id and cb.iteration = ca.iteration
		join `+statistics+` va on va.collection_id = ca.id
		join `+statistics+` vb on vb.collection_id = cb.id and vb.series_id = va.series_id
		join pstat_series se on se.id = va.series_id
		join test_case tc on tc.id = ra.test_case_id
		where ra.artifact_id = $1 and ra.status = 'ok' and ra.invalid_at is null and not ra.probe
		group by ra.id, tc.id, se.metric, n.id, l.comparison_id
		order by ra.id, se.metric`, ids[0], ids[1])
	return sessions, wrap("reading the results of "+a+" and "+b+" measured in turns", err)
}

// maxComparisons bounds the comparisons of two artifacts that are read.
const maxComparisons = 10

// Comparisons reads the valid comparisons of two artifacts, whichever of them is the baseline, the newest first, ten at
// most: the one of a tracked request, and those that people asked for.
func (s *Store) Comparisons(ctx context.Context, project, a, b string) ([]Comparison, error) {
	ids, err := column[int64](ctx, s.pool, `
		select c.id from comparison c join artifact x on x.id = c.artifact_id join artifact y on y.id = c.baseline_id
		where c.superseded_at is null and x.project = $1 and y.project = $1 and (x.tag, y.tag) in (($2, $3), ($3, $2))
		order by c.id desc limit $4`, project, a, b, maxComparisons)
	if err != nil {
		return nil, wrap("looking for comparisons of "+a+" and "+b, err)
	}
	var comparisons []Comparison
	for _, id := range ids {
		c, err := s.comparison(ctx, `where c.id = $1`, id)
		if err != nil {
			return nil, wrap("reading a comparison of "+a+" and "+b, err)
		}
		comparisons = append(comparisons, c)
	}
	return comparisons, nil
}
