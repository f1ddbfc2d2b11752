package stats_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
)

// exactly returns exact series of one metric, one for each change in percent, primary ones first.
func exactly(precise bool, primary, secondary []float64) []stats.Series {
	var series []stats.Series
	add := func(category stats.Category, change float64) {
		series = append(series, stats.Series{
			Key:      stats.Key{TestCase: stats.TestCase{Benchmark: fmt.Sprintf("b%03d", len(series))}, Metric: "instructions"},
			Category: category, Exact: true, Precise: precise, A: []float64{1e9}, B: []float64{1e9 + 1e7*change},
		})
	}
	for _, change := range primary {
		add(stats.Primary, change)
	}
	for _, change := range secondary {
		add(stats.Secondary, change)
	}
	return series
}

func summarize(t *testing.T, series []stats.Series) stats.Summary {
	t.Helper()
	c, err := stats.Compare(series, stats.DefaultOptions())
	require.NoError(t, err)
	return stats.Summarize(c, stats.TestCases{})
}

func repeat(change float64, times int) []float64 {
	var changes []float64
	for range times {
		changes = append(changes, change)
	}
	return changes
}

func TestSummaryCountsRelevantChanges(t *testing.T) {
	t.Parallel()
	// In percent; 0.005 and 0.1 are very small and do not count, though they are significant.
	s := summarize(t, exactly(true, []float64{10, 2, -4, 0.005, 0}, []float64{-1, -3, 0.1}))
	require.Len(t, s.Metrics, 1)
	m := s.Metrics[0]
	require.Equal(t, 8, m.Series)
	require.Equal(t, 8, m.Compared)
	require.Equal(t, 7, m.Significant)
	require.Equal(t, 7, m.Confirmed)
	group := func(want stats.Group, got stats.Group) {
		t.Helper()
		require.Equal(t, want.Count, got.Count)
		require.Equal(t, want.Count, got.Defined)
		require.InDelta(t, want.Mean, got.Mean, 1e-12)
		require.InDelta(t, want.Min, got.Min, 1e-12)
		require.InDelta(t, want.Max, got.Max, 1e-12)
	}
	group(stats.Group{Count: 2, Mean: 0.06, Min: 0.02, Max: 0.1}, m.Primary.Regressions)
	group(stats.Group{Count: 1, Mean: -0.04, Min: -0.04, Max: -0.04}, m.Primary.Improvements)
	group(stats.Group{Count: 3, Mean: 0.08 / 3, Min: -0.04, Max: 0.1}, m.Primary.All)
	group(stats.Group{}, m.Secondary.Regressions)
	group(stats.Group{Count: 2, Mean: -0.02, Min: -0.03, Max: -0.01}, m.Secondary.Improvements)
	require.Equal(t, 8, m.GeometricSeries)
	require.InDelta(t, 0.00436, m.GeometricMean.Value, 0.00001)
}

func TestDirections(t *testing.T) {
	t.Parallel()
	f := func(name string, primary, secondary []float64, want stats.Direction) {
		t.Helper()
		require.Equal(t, want, summarize(t, exactly(true, primary, secondary)).Metrics[0].Direction, name)
	}
	f("nothing", []float64{0, 0.001}, nil, stats.Unchanged)
	f("up", []float64{1}, nil, stats.Regressed)
	f("down", []float64{-1}, nil, stats.Improved)
	f("both medium", []float64{10, -10}, nil, stats.Mixed)
	f("strong down, 1 of 10 up", append(repeat(-10, 9), 0.4), nil, stats.Improved)
	f("strong down, 1 of 5 up", append(repeat(-10, 4), 0.4), nil, stats.Mixed)
	f("strong up, 1 of 10 down", append(repeat(10, 9), -0.4), nil, stats.Regressed)
	f("strong up, 1 of 5 down", append(repeat(10, 4), -0.4), nil, stats.Mixed)
	f("weak, half up", []float64{0.4, -0.4}, nil, stats.Mixed)
	f("weak, 1 of 20 up", append(repeat(-0.4, 19), 0.4), nil, stats.Improved)
	f("weak, 19 of 20 up", append(repeat(0.4, 19), -0.4), nil, stats.Regressed)
	f("primary up, secondary down", []float64{10}, []float64{-10}, stats.Mixed)
	f("primary up, secondary unchanged", []float64{10}, []float64{0}, stats.Regressed)
	f("primary unchanged, secondary down", []float64{0}, []float64{-10}, stats.Improved)
	f("both down", []float64{-10}, []float64{-10}, stats.Improved)
}

func TestAttention(t *testing.T) {
	t.Parallel()
	f := func(name string, precise bool, primary, secondary []float64, want bool) {
		t.Helper()
		require.Equal(t, want, summarize(t, exactly(precise, primary, secondary)).Metrics[0].DeservesAttention, name)
	}
	f("primary medium", true, []float64{1.2}, nil, true)
	f("primary small", true, []float64{0.4}, nil, false)
	f("secondary medium", true, nil, []float64{1.2}, false)
	f("secondary large", true, nil, []float64{3}, true)
	f("8 points", true, repeat(0.4, 2), repeat(0.4, 2), false)
	f("9 points", true, repeat(0.4, 2), repeat(0.4, 3), true)
	f("another metric, small", false, nil, []float64{0.8}, true)
	f("another metric, very small", false, nil, []float64{0.1}, false)
}

func TestSummaryComparesTheSetsOfTestCases(t *testing.T) {
	t.Parallel()
	cases := func(names ...string) []stats.TestCase {
		list := []stats.TestCase{}
		for _, name := range names {
			list = append(list, stats.TestCase{Benchmark: name})
		}
		return list
	}
	s := stats.Summarize(stats.Comparison{}, stats.TestCases{
		A: cases("json", "gone", "heals", "breaks"), B: cases("json", "new", "heals"),
		FailedA: cases("flaky", "heals"), FailedB: cases("flaky", "breaks", "breaks", "also new"),
	})
	require.Equal(t, cases("also new", "breaks"), s.NewlyFailing)
	require.Equal(t, cases("heals"), s.NoLongerFailing)
	require.Equal(t, cases("gone"), s.Missing)
	require.Equal(t, cases("also new", "new"), s.Added)
	require.Equal(t, []string{"the sides do not have the same test cases: 1 test case only in A, 2 test cases only in B; " +
		"means and counts cover what both have"}, s.Warnings)

	alike := stats.Summarize(stats.Comparison{}, stats.TestCases{A: cases("json"), B: cases("json")})
	require.Empty(t, alike.Warnings)
	require.Empty(t, alike.Missing)
}

func TestSetsOfTestCasesDefaultToWhatHasValues(t *testing.T) {
	t.Parallel()
	series := exactly(true, []float64{0, 0, 0}, nil)
	series[0].B, series[1].A = nil, nil
	s := summarize(t, series)
	require.Equal(t, []stats.TestCase{{Benchmark: "b000"}}, s.Missing)
	require.Equal(t, []stats.TestCase{{Benchmark: "b001"}}, s.Added)
	require.Equal(t, 1, s.Metrics[0].Compared)
}

func TestNoGeometricMeanWithoutPositiveValues(t *testing.T) {
	t.Parallel()
	series := exactly(true, []float64{5}, nil)
	series[0].A = []float64{0}
	m := summarize(t, series).Metrics[0]
	require.False(t, m.GeometricMean.Defined())
	require.Equal(t, 1, m.Primary.Regressions.Count)
	require.Zero(t, m.Primary.Regressions.Defined)
}
