package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Rows of a comparison of a few suspects, and of one of all series of a large project.
const few, many = 64, 4096

// comparisonRows reads the rows of a comparison. Most raised no suspicion: of those, only what
// they say is read.
func (s *Store) comparisonRows(ctx context.Context, c Comparison) ([]ComparisonRow, error) {
	var rows []ComparisonRow
	var cases []int64
	add := func(testCase int64, r comparisonRow) error {
		row, err := r.row()
		if err != nil {
			return errors.New("the database holds an invalid row: " + err.Error())
		}
		if len(rows) == few { // all at once, instead of copying them again and again
			rows, cases = slices.Grow(rows, many), slices.Grow(cases, many)
		}
		rows, cases = append(rows, row), append(cases, testCase)
		return nil
	}
	var batch pgx.Batch
	batch.Queue(`
		select v.test_case_id, v.metric, v.size_class, v.hardware_id, v.co_located, v.score, v.suspected_change, v.exact, v.delta, v.sigma_within, v.tau, v.bimodal, v.sees, v.reason
		from comparison_verdict v where v.comparison_id = $1 and `+quietRow, c.ID).Query(func(found pgx.Rows) error {
		var testCase int64
		quiet := verdict.NoSuspicion.String()
		r := comparisonRow{Against: c.Baseline, Verdict: &quiet, P: 1}
		_, err := pgx.ForEachRow(found, []any{
			&testCase, &r.Metric, &r.SizeClass, &r.HardwareID, &r.CoLocated, &r.Score, &r.SuspectedChange, &r.Exact, &r.Delta, &r.SigmaWithin, &r.Tau, &r.Bimodal, &r.Sees, &r.Reason,
		}, func() error { return add(testCase, r) })
		return err
	})
	batch.Queue(`
		select v.test_case_id, v.metric, v.size_class, v.hardware_id, v.co_located, v.suspected, v.score, v.suspicion, v.suspected_change, coalesce(g.tag, ''), v.measured,
			v.exact, v.delta, v.sigma_within, v.tau, v.bimodal,
			v.verdict, v.change, v.low, v.high, v.confidence, v.pairs, v.sessions, v.disturbed, v.p, v.level, v.sees, v.reason, v.needs
		from comparison_verdict v left join artifact g on g.id = v.against_id
		where v.comparison_id = $1 and not (`+quietRow+`)`, c.ID).Query(func(found pgx.Rows) error {
		var testCase int64
		var r comparisonRow
		_, err := pgx.ForEachRow(found, []any{
			&testCase, &r.Metric, &r.SizeClass, &r.HardwareID, &r.CoLocated, &r.Suspected, &r.Score, &r.Suspicion, &r.SuspectedChange, &r.Against, &r.Measured,
			&r.Exact, &r.Delta, &r.SigmaWithin, &r.Tau, &r.Bimodal,
			&r.Verdict, &r.Change, &r.Low, &r.High, &r.Confidence, &r.Pairs, &r.Sessions, &r.Disturbed, &r.P, &r.Level, &r.Sees, &r.Reason, &r.Needs,
		}, func() error {
			if r.Against == "" {
				r.Against = c.Baseline
			}
			return add(testCase, r)
		})
		return err
	})
	if err := s.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	names, err := s.testCases(ctx, s.pool, cases)
	if err != nil {
		return nil, err
	}
	for i, id := range cases {
		rows[i].TestCase = names[id]
	}
	slices.SortFunc(rows, func(a, b ComparisonRow) int { return compareRows(&a, &b) })
	return rows, nil
}

// quietRow matches a row v that raised no suspicion and of which nothing else is stored.
const quietRow = `coalesce(v.verdict, '') = 'no suspicion' and not v.suspected and not v.measured and v.against_id is null and v.suspicion = '' and v.needs = ''
	and v.change = 0 and v.low is null and v.confidence = 0 and v.pairs = 0 and v.sessions = 0 and v.disturbed = 0 and v.p = 1 and v.level = 0`

// compareRows orders rows by test case, then by metric. Names are in the order of their bytes.
func compareRows(a, b *ComparisonRow) int {
	for _, pair := range [...][2]string{
		{a.TestCase.Benchmark, b.TestCase.Benchmark}, {a.TestCase.Profile, b.TestCase.Profile}, {a.TestCase.Scenario, b.TestCase.Scenario},
		{a.TestCase.Backend, b.TestCase.Backend}, {string(a.TestCase.Target), string(b.TestCase.Target)}, {string(a.Metric), string(b.Metric)},
	} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	return 0
}

// comparisonRow is a [ComparisonRow] as it is stored.
type comparisonRow struct {
	Metric bench.Metric
	bench.Surrounding
	Suspected       bool
	Score           float64
	Suspicion       string
	SuspectedChange float64
	Against         string
	Measured        bool
	Exact           bool
	Delta           float64
	SigmaWithin     float64
	Tau             float64
	Bimodal         bool
	Verdict         *string
	Change          float64
	Low             *float64
	High            *float64
	Confidence      float64
	Pairs           int
	Sessions        int
	Disturbed       int
	P               float64
	Level           float64
	Sees            float64
	Reason          string
	Needs           string
}

func (r comparisonRow) row() (ComparisonRow, error) {
	out := ComparisonRow{
		Metric: r.Metric, Surrounding: r.Surrounding,
		Suspected: r.Suspected, Score: r.Score, Suspicion: r.Suspicion, SuspectedChange: r.SuspectedChange, Against: r.Against, Measured: r.Measured,
		Exact: r.Exact, Delta: r.Delta, SigmaWithin: r.SigmaWithin, Tau: r.Tau, Bimodal: r.Bimodal,
	}
	if r.Verdict == nil {
		return out, nil
	}
	v := verdict.Verdict{
		Change: r.Change, Pairs: r.Pairs, Sessions: r.Sessions, Disturbed: r.Disturbed,
		P: r.P, Level: r.Level, Sees: r.Sees, Reason: r.Reason, Needs: r.Needs,
	}
	if r.Low != nil && r.High != nil {
		v.Interval = &stats.Interval{Low: *r.Low, High: *r.High, Confidence: r.Confidence}
	}
	out.Verdict = &v
	return out, v.Kind.UnmarshalText([]byte(*r.Verdict))
}
