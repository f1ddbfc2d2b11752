package results_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

const comparison = 7

// decided returns a stored comparison of the two artifacts with a row of wall time for each benchmark, with these verdicts.
func decided(verdicts map[bench.TestCase]*verdict.Verdict) []store.Comparison {
	c := store.Comparison{
		ID: comparison, Baseline: before, Tag: after, RuleVersion: verdict.RuleVersion, FamilySize: 3, Look: 3, Decided: true,
		OwnSeconds: 100, SpentSeconds: 20, BudgetSeconds: 600,
	}
	for tc, v := range verdicts {
		c.Rows = append(c.Rows, store.ComparisonRow{
			TestCase: tc, Metric: bench.WallTime, Surrounding: alone(4, "x"), Against: before, Delta: 0.01, Verdict: v,
			Suspected: v == nil || v.Kind != verdict.NoSuspicion, Suspicion: "T = 5 over 2 commits",
		})
		c.Decided = c.Decided && v != nil
	}
	return []store.Comparison{c}
}

// look returns a session that belongs to the stored comparison.
func look(tc bench.TestCase, factor float64, pairs int) results.Session {
	s := session(tc, alone(4, "x"), factor, pairs)
	s.Comparison = comparison
	return s
}

func slower() *verdict.Verdict {
	return &verdict.Verdict{
		Kind: verdict.Changed, Change: 0.05, Interval: &stats.Interval{Low: 0.04, High: 0.06, Confidence: 0.98},
		Pairs: 14, Sessions: 2, P: 1e-4, Level: 1e-3, Sees: 0.012, Reason: "p=0.0001 is below 0.001",
	}
}

// One row of a report by its benchmark.
func rowOf(t *testing.T, r results.Report, tc bench.TestCase) report.Row {
	t.Helper()
	for _, row := range r.Rows {
		if row.Benchmark == tc.Benchmark {
			return row
		}
	}
	require.Fail(t, "there is no row", tc.Benchmark)
	return report.Row{}
}

// A verdict that is stored is shown as it is, even if the same values would now get another one.
func TestStoredVerdictsAreShown(t *testing.T) {
	t.Parallel()
	compared := compare(t, record{
		samples:  map[string][]bench.Samples{before: {times(gin, 1), times(hugo, 1)}, after: {times(gin, 1), times(hugo, 1.5)}},
		sessions: []results.Session{look(gin, 1, 6), look(gin, 1, 8), look(gin, 1, 8)},
		decided:  decided(map[bench.TestCase]*verdict.Verdict{gin: slower(), hugo: {Kind: verdict.NoSuspicion}}),
	}, nil)
	changed := rowOf(t, compared, gin)
	require.True(t, changed.Is(verdict.Changed))
	require.Equal(t, report.Regression, changed.Direction)
	require.Equal(t, "T = 5 over 2 commits", changed.Suspicion)
	require.Equal(t, []int{14, 2}, []int{changed.Turns.Pairs, changed.Turns.Sessions}, "as it was judged")
	require.InDelta(t, 0.05, changed.Turns.Change, 0)
	quiet := rowOf(t, compared, hugo)
	require.True(t, quiet.Is(verdict.NoSuspicion), "its history says so")
	require.Positive(t, quiet.Sees)

	require.Equal(t, 3, compared.Family)
	require.False(t, compared.Provisional)
	require.Empty(t, compared.Hint)
	require.Equal(t, []float64{100, 20, 600}, []float64{compared.OwnSeconds, compared.SpentSeconds, compared.BudgetSeconds})
	require.Contains(t, compared.Summary().Line, "1 changed; 1 without suspicion")
}

// The stored verdict on exact values counts one pair, which nobody measured in turns: what is stored was judged.
func TestAnExactVerdictShowsTheValuesThatItRestsOn(t *testing.T) {
	t.Parallel()
	c := decided(map[bench.TestCase]*verdict.Verdict{gin: {
		Kind: verdict.Changed, Change: 0.125, Interval: &stats.Interval{Low: 0.125, High: 0.125, Confidence: 1}, Pairs: 1, Sessions: 1, P: 1,
	}})
	c[0].Rows[0].Exact = true
	row := rowOf(t, compare(t, record{samples: map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 1.125)}}, decided: c}, nil), gin)
	require.True(t, row.Is(verdict.Changed))
	require.Nil(t, row.Turns)
	require.False(t, row.InTurns)
	shown := row.Shown()
	require.Equal(t, []string{"+12.50 %", ""}, []string{shown.Change, shown.Stored})
	require.NotContains(t, []string{shown.A, shown.B}, "-")
}

// Pairs may be gone, or be those of another artifact: the values that are stored are still shown.
func TestAVerdictWithoutItsPairsShowsStoredValues(t *testing.T) {
	t.Parallel()
	row := rowOf(t, compare(t, record{
		samples: map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 1.05)}},
		decided: decided(map[bench.TestCase]*verdict.Verdict{gin: slower()}),
	}, nil), gin)
	require.Equal(t, 14, row.Turns.Pairs)
	shown := row.Shown()
	require.NotContains(t, []string{shown.A, shown.B}, "-")
	require.Equal(t, []string{"+5.00 %", "+5.00 %"}, []string{shown.Change, shown.Stored})
}

// Asked the other way round, it is the same comparison.
func TestAStoredComparisonIsFoundFromBothSides(t *testing.T) {
	t.Parallel()
	r := record{
		samples: map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 1.05)}},
		decided: decided(map[bench.TestCase]*verdict.Verdict{gin: slower()}),
	}
	compared, err := results.Compare(t.Context(), r, nil, results.Pair{Project: "go", A: after, B: before})
	require.NoError(t, err)
	row := compared.Rows[0]
	require.True(t, row.Is(verdict.Changed))
	require.Equal(t, report.Improvement, row.Direction)
	require.InDelta(t, 1/1.05-1, row.Turns.Change, 1e-12, "the pairs themselves may be gone")
	require.InDelta(t, 1/1.06-1, row.Turns.Interval.Low, 1e-12)
	require.InDelta(t, 1/1.04-1, row.Turns.Interval.High, 1e-12)
}

func TestRowsAreProvisionalUntilTheyHaveAVerdict(t *testing.T) {
	t.Parallel()
	compared := compare(t, record{
		samples:  map[string][]bench.Samples{before: {times(gin, 1), times(hugo, 1)}, after: {times(gin, 1.2), times(hugo, 1)}},
		sessions: []results.Session{look(gin, 1.2, 6)},
		decided:  decided(map[bench.TestCase]*verdict.Verdict{gin: nil, hugo: {Kind: verdict.NoSuspicion, Sees: 0.02}}),
	}, nil)
	require.True(t, compared.Provisional)
	open := rowOf(t, compared, gin)
	require.True(t, open.Provisional)
	require.True(t, open.Is(verdict.Undecided))
	require.Equal(t, 6, open.Turns.Pairs)
	require.Empty(t, compared.Hint, "it is being decided")
	require.Equal(t, 1, compared.Summary().Tally.Provisional)
	require.Equal(t, "1 being measured in turns; 1 without suspicion (would have seen ≥ 2.0 %, median)", compared.Summary().Line)
}

// What a comparison left open, a person can decide by measuring in turns; what it decided stays.
func TestWhatIsMeasuredBesidesDecidesWhatWasLeftOpen(t *testing.T) {
	t.Parallel()
	lo := bench.TestCase{Benchmark: "lo", Target: "x"}
	undecided := &verdict.Verdict{Kind: verdict.Undecided, Pairs: 46, Sessions: 5, Reason: "noise", Needs: "a quieter machine"}
	asked := func(tc bench.TestCase) results.Session { return session(tc, alone(4, "x"), 1.3, 22) }
	compared := compare(t, record{
		samples: map[string][]bench.Samples{
			before: {times(gin, 1), times(hugo, 1), times(lo, 1)}, after: {times(gin, 1), times(hugo, 1), times(lo, 1)},
		},
		sessions: []results.Session{look(gin, 1, 14), look(hugo, 1, 14), asked(gin), asked(hugo), asked(lo)},
		decided:  decided(map[bench.TestCase]*verdict.Verdict{gin: slower(), hugo: undecided, lo: {Kind: verdict.NoSuspicion}}),
	}, nil)
	for _, tc := range []bench.TestCase{hugo, lo} {
		row := rowOf(t, compared, tc)
		require.True(t, row.Is(verdict.Changed), row.Reason)
		require.Equal(t, 22, row.Turns.Pairs, "the looks were spent on the verdict before")
	}
	require.InDelta(t, 0.05, rowOf(t, compared, gin).Turns.Change, 0)
}

// Looks of a comparison that no longer holds are evidence for no other.
func TestLooksOfASupersededComparisonDoNotCount(t *testing.T) {
	t.Parallel()
	former := look(gin, 1.5, 22)
	former.Comparison = comparison - 1
	compared := compare(t, record{
		samples:  map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 1)}},
		sessions: []results.Session{former},
		decided:  decided(map[bench.TestCase]*verdict.Verdict{gin: {Kind: verdict.NoSuspicion}}),
	}, nil)
	require.True(t, compared.Rows[0].Is(verdict.NoSuspicion))
	require.Nil(t, compared.Rows[0].Turns)
}

// People may ask again for what was decided, or for what was not: the newest decision of a row counts.
func TestTheNewestDecisionOfARowCounts(t *testing.T) {
	t.Parallel()
	lo := bench.TestCase{Benchmark: "lo", Target: "x"}
	undecided := &verdict.Verdict{Kind: verdict.Undecided, Pairs: 46, Reason: "noise", Needs: "a quieter machine"}
	same := &verdict.Verdict{Kind: verdict.NoDifference, Pairs: 46, Interval: &stats.Interval{Low: -0.005, High: 0.005}, Reason: "the whole interval lies within"}
	tracked := decided(map[bench.TestCase]*verdict.Verdict{gin: slower(), hugo: slower(), lo: {Kind: verdict.NoSuspicion}})
	asked := decided(map[bench.TestCase]*verdict.Verdict{gin: same, hugo: undecided, lo: undecided})
	asked[0].ID, asked[0].FamilySize = comparison+1, 1
	// Asked the other way round.
	asked[0].Baseline, asked[0].Tag = after, before
	for i := range asked[0].Rows {
		asked[0].Rows[i].Against = after
	}
	values := []bench.Samples{times(gin, 1), times(hugo, 1), times(lo, 1)}
	compared := compare(t, record{
		samples:  map[string][]bench.Samples{before: values, after: values},
		sessions: []results.Session{look(gin, 1.1, 14), look(hugo, 1.1, 14)},
		decided:  append(asked, tracked...),
	}, nil)
	require.True(t, rowOf(t, compared, gin).Is(verdict.NoDifference), "measured again")
	require.True(t, rowOf(t, compared, hugo).Is(verdict.Changed), "a later try did not decide it")
	require.True(t, rowOf(t, compared, lo).Is(verdict.Undecided), "a try tells more than none")
	require.Equal(t, 1, compared.Family)
}

// Several artifacts in a row that differ from those before are measured against the last of these, and the row says so.
func TestAVerdictMayBeAboutAnEarlierArtifact(t *testing.T) {
	t.Parallel()
	c := decided(map[bench.TestCase]*verdict.Verdict{gin: slower()})
	c[0].Rows[0].Against = "1.25.9"
	r := record{samples: map[string][]bench.Samples{before: {times(gin, 1.05)}, after: {times(gin, 1.05)}}, decided: c}
	row := compare(t, r, nil).Rows[0]
	require.Equal(t, "1.25.9", row.Against)
	require.True(t, row.Is(verdict.Changed))

	back, err := results.Compare(t.Context(), r, nil, results.Pair{Project: "go", A: after, B: before})
	require.NoError(t, err)
	require.True(t, back.Rows[0].Is(verdict.NoSuspicion), "that says nothing of these two")
}

func TestTallyCountsStoredVerdicts(t *testing.T) {
	t.Parallel()
	lo := bench.TestCase{Benchmark: "lo", Target: "x"}
	c := decided(map[bench.TestCase]*verdict.Verdict{gin: slower(), hugo: nil, lo: {Kind: verdict.NoSuspicion, Sees: 0.02}})[0]
	require.Equal(t, "1 changed, 1 being measured in turns; 1 without suspicion (would have seen ≥ 2.0 %, median)", results.Tally(c).String())
}

// What is known of the noise is named, and counts where there is no stored verdict.
func TestTheNoiseOfASeriesIsKnown(t *testing.T) {
	t.Parallel()
	model := func(tc bench.TestCase, where bench.Surrounding, m noise.Model) store.SeriesNoise {
		return store.SeriesNoise{TestCase: tc, Metric: bench.WallTime, Surrounding: where, Model: m}
	}
	there := session(gin, alone(4, "x"), 1.02, 22)
	r := record{sessions: []results.Session{there}}
	require.True(t, compare(t, r, nil).Rows[0].Is(verdict.Changed))

	// Sides that are off by more than the change in each session cannot show it.
	r.noise = []store.SeriesNoise{
		model(gin, alone(8, "x"), noise.Model{Labels: []noise.Label{noise.Exact}}),
		model(gin, alone(4, "x"), noise.Model{Logarithms: true, SigmaWithin: 0.02, Tau: 0.5, Labels: []noise.Label{noise.Skewed, noise.Outliers}, Lenders: 3}),
	}
	row := compare(t, r, nil).Rows[0]
	require.True(t, row.Is(verdict.Undecided), row.Reason)
	require.Equal(t, "skewed, outliers, as in other series", row.Noise)

	// A series that has never shown noise needs no second look.
	r = record{
		samples: map[string][]bench.Samples{before: {samples(gin, bench.WallTime, alone(4, "x"), 5, 5)}, after: {samples(gin, bench.WallTime, alone(4, "x"), 6, 6)}},
		noise:   []store.SeriesNoise{model(gin, alone(4, "x"), noise.Model{Labels: []noise.Label{noise.Exact}})},
	}
	row = compare(t, r, nil).Rows[0]
	require.True(t, row.Exact)
	require.True(t, row.Is(verdict.Changed), row.Reason)

	gone := errors.New("connection refused")
	r.fails = map[string]error{"noise": gone}
	_, err := results.Compare(t.Context(), r, nil, pair)
	require.ErrorIs(t, err, gone)
}
