package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// comparisonRows reads the rows of a comparison. Most raised no suspicion: of those, only what
// they say is read, by columns.
func (s *Store) comparisonRows(ctx context.Context, c Comparison) ([]ComparisonRow, error) {
	var quiet []quietRows
	var others []comparisonRow
	var cases []int64 // of the quiet rows, then of the others
	var batch pgx.Batch
	batch.Queue(`
		select v.metric, v.size_class, v.hardware_id, v.co_located, v.reason, v.exact, v.bimodal,
			array_agg(v.test_case_id), array_agg(v.delta), array_agg(v.sigma_within), array_agg(v.tau), array_agg(v.sees)
		from comparison_verdict v where v.comparison_id = $1 and `+quietRow+`
		group by v.metric, v.size_class, v.hardware_id, v.co_located, v.reason, v.exact, v.bimodal`, c.ID).Query(func(found pgx.Rows) error {
		var r quietRows
		_, err := pgx.ForEachRow(found, []any{
			&r.Metric, &r.SizeClass, &r.HardwareID, &r.CoLocated, &r.Reason, &r.Exact, &r.Bimodal,
			&r.Cases, &r.Deltas, &r.SigmasWithin, &r.Taus, &r.Sees,
		}, func() error {
			quiet, cases = append(quiet, r), append(cases, r.Cases...)
			return nil
		})
		return err
	})
	batch.Queue(`
		select v.test_case_id, v.metric, v.size_class, v.hardware_id, v.co_located, v.suspected, v.score, v.suspicion, v.suspected_change, coalesce(g.tag, ''), v.measured,
			v.exact, v.delta, v.sigma_within, v.tau, v.bimodal,
			v.verdict, v.change, v.low, v.high, v.confidence, v.pairs, v.sessions, v.disturbed, v.p, v.level, v.sees, v.reason, v.needs
		from comparison_verdict v left join artifact g on g.id = v.against_id
		where v.comparison_id = $1 and `+quietRow+` is not true`, c.ID).Query(func(found pgx.Rows) error {
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
			others, cases = append(others, r), append(cases, testCase)
			return nil
		})
		return err
	})
	if err := s.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	if len(cases) == 0 {
		return nil, nil
	}
	names, err := s.testCases(ctx, s.pool, cases)
	if err != nil {
		return nil, err
	}
	return orderedRows(c, quiet, others, cases, names)
}

// quietRows are rows that raised no suspicion, of one metric and surrounding and with one
// reason, as parallel arrays. Postgres groups them without sorting as long as they are grouped
// by little, and each array takes about as long as all groups.
type quietRows struct {
	Metric bench.Metric
	bench.Surrounding
	Reason                           string
	Exact, Bimodal                   bool
	Cases                            []int64
	Deltas, SigmasWithin, Taus, Sees []float64
}

// orderedRows makes the rows of a comparison in the order of test cases, then of metrics. Names
// are in the order of their bytes. cases has the test cases of the quiet rows, then of the
// others.
func orderedRows(c Comparison, quiet []quietRows, others []comparisonRow, cases []int64, names map[int64]bench.TestCase) ([]ComparisonRow, error) {
	caseIDs := slices.SortedFunc(maps.Keys(names), func(a, b int64) int { return compareNames(names[a], names[b]) })
	rankOfCase := make(map[int64]int, len(caseIDs))
	for rank, id := range caseIDs {
		rankOfCase[id] = rank
	}
	rankOfMetric := make(map[bench.Metric]int)
	for i := range quiet {
		rankOfMetric[quiet[i].Metric] = 0
	}
	for i := range others {
		rankOfMetric[others[i].Metric] = 0
	}
	for rank, metric := range slices.Sorted(maps.Keys(rankOfMetric)) {
		rankOfMetric[metric] = rank
	}
	type place struct{ rank, row int }
	places := make([]place, 0, len(cases))
	add := func(metric bench.Metric) {
		row := len(places)
		places = append(places, place{rankOfCase[cases[row]]*len(rankOfMetric) + rankOfMetric[metric], row})
	}
	for i := range quiet {
		for range quiet[i].Cases {
			add(quiet[i].Metric)
		}
	}
	for i := range others {
		add(others[i].Metric)
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(a.rank-b.rank, a.row-b.row) })
	at := make([]int, len(places)) // of each row in the result
	for i, p := range places {
		at[p.row] = i
	}
	rows, verdicts := make([]ComparisonRow, len(cases)), make([]verdict.Verdict, len(cases))
	n := 0
	for i := range quiet {
		q := &quiet[i]
		for k, id := range q.Cases {
			row, told := &rows[at[n]], &verdicts[n]
			*told = verdict.Verdict{Kind: verdict.NoSuspicion, P: 1, Sees: q.Sees[k], Reason: q.Reason}
			*row = ComparisonRow{
				TestCase: names[id], Metric: q.Metric, Surrounding: q.Surrounding, Against: c.Baseline,
				Exact: q.Exact, Delta: q.Deltas[k], SigmaWithin: q.SigmasWithin[k], Tau: q.Taus[k], Bimodal: q.Bimodal, Verdict: told,
			}
			n++
		}
	}
	for i := range others {
		row, err := others[i].row()
		if err != nil {
			return nil, fmt.Errorf("the database holds an invalid row: %w", err)
		}
		row.TestCase = names[cases[n]]
		rows[at[n]] = row
		n++
	}
	return rows, nil
}

// compareNames orders test cases by the bytes of their names.
func compareNames(a, b bench.TestCase) int {
	return cmp.Or(strings.Compare(a.Benchmark, b.Benchmark), strings.Compare(a.Profile, b.Profile), strings.Compare(a.Scenario, b.Scenario),
		strings.Compare(a.Backend, b.Backend), strings.Compare(string(a.Target), string(b.Target)))
}

// quietRow matches a row v that raised no suspicion and of which nothing else is stored.
const quietRow = `(v.verdict = 'no suspicion' and not v.suspected and v.score = 0 and v.suspected_change = 0 and not v.measured and v.against_id is null and v.suspicion = '' and v.needs = ''
	and v.change = 0 and v.low is null and v.confidence = 0 and v.pairs = 0 and v.sessions = 0 and v.disturbed = 0 and v.p = 1 and v.level = 0)`

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
