package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// decided returns a series with a stored verdict.
func decided(benchmark string, k verdict.Kind, change, sees float64) report.Series {
	s := cpu(benchmark, []float64{1, 1, 1}, []float64{1 + change, 1 + change, 1 + change})
	s.Stored = &report.Stored{Verdict: verdict.Verdict{Kind: k, Change: change, Sees: sees}}
	return s
}

func TestTheSummaryCountsVerdicts(t *testing.T) {
	t.Parallel()
	for want, series := range map[string][]report.Series{
		"2 changed, 1 no difference, 1 undecided; 3 without suspicion (would have seen ≥ 1.4 %, median)": {
			decided("a", verdict.Changed, 0.1, 0), decided("b", verdict.Changed, -0.1, 0), decided("c", verdict.NoDifference, 0, 0),
			decided("d", verdict.Undecided, 0.02, 0), decided("e", verdict.NoSuspicion, 0, 0.01), decided("f", verdict.NoSuspicion, 0, 0.014),
			decided("g", verdict.NoSuspicion, 0, 0.12),
		},
		"0 changed; 1 without suspicion (would have seen ≥ 0.20 %, median)": {decided("a", verdict.NoSuspicion, 0, 0.002)},
		"1 no difference":    {decided("a", verdict.NoDifference, 0, 0)},
		"1 undecided":        {cpu("one value of each", []float64{1}, []float64{2})},
		"nothing was judged": nil,
	} {
		s := report.Summarize(compared(t, series, report.Standing{}), report.TestCases{})
		require.Equal(t, want, s.Line)
	}
}

// Several metrics of a test case have the same pairs.
func TestTheSummarySaysHowManyPairsWereDisturbed(t *testing.T) {
	t.Parallel()
	pairs := func(benchmark, metric string, pairs, disturbed int) report.Series {
		s := cpu(benchmark, []float64{1, 1, 1}, []float64{1, 1, 1})
		s.Metric = metric
		var session []verdict.Pair
		for i := range pairs {
			session = append(session, verdict.Pair{A: 1 + float64(i%2), B: 1, Disturbed: i < disturbed})
		}
		s.Evidence.Sessions = [][]verdict.Pair{session}
		return s
	}
	text := func(series ...report.Series) string {
		var b strings.Builder
		r := compared(t, series, report.Standing{})
		require.NoError(t, report.WriteText(&b, r, report.Summarize(r, report.TestCases{}), report.TableOptions{}))
		return b.String()
	}
	require.Contains(t, text(pairs("a", "cpu-time", 6, 2), pairs("a", "wall-time", 6, 2), pairs("b", "cpu-time", 14, 3)), "\n  disturbed: 5 of 20 pairs; ")
	require.NotContains(t, text(pairs("a", "cpu-time", 6, 0)), "disturbed")
}

func TestChangesAreGroupedByDirectionAndCategory(t *testing.T) {
	t.Parallel()
	secondary := decided("d", verdict.Changed, 0.5, 0)
	secondary.Category = stats.Secondary
	r := compared(t, []report.Series{
		decided("a", verdict.Changed, 0.1, 0), decided("b", verdict.Changed, 0.3, 0), decided("c", verdict.Changed, -0.2, 0), secondary,
		decided("e", verdict.Undecided, 9, 0),
	}, report.Standing{})
	m := report.Summarize(r, report.TestCases{}).Metrics[0]
	require.Equal(t, []int{3, 1, 4}, []int{m.Regressions, m.Improvements, m.Changed})
	require.Equal(t, 2, m.Primary.Regressions.Count)
	require.InDelta(t, 0.2, m.Primary.Regressions.Mean, 1e-12)
	require.InDelta(t, 0.1, m.Primary.Regressions.Min, 1e-12)
	require.InDelta(t, 0.3, m.Primary.Regressions.Max, 1e-12)
	require.Equal(t, 1, m.Primary.Improvements.Count)
	require.Equal(t, 1, m.Secondary.Regressions.Count)
	require.Zero(t, m.Secondary.Improvements)
	require.Equal(t, 3, r.Regressions())
}

// Two commits, each row a fifth slower on average, and nothing shown by any row: that is no "no change".
func TestAGeometricMeanFarFromZeroIsNoVerdict(t *testing.T) {
	t.Parallel()
	values := func(middle float64) []float64 { return []float64{middle, 1.3 * middle, 0.8 * middle} }
	noisy := []report.Series{cpu("a", values(1), values(1.3)), cpu("b", values(1), values(1.15)), cpu("c", values(1), values(1.2))}
	remark := func(series ...report.Series) string {
		return report.Summarize(compared(t, series, report.Standing{}), report.TestCases{}).Metrics[0].GeometricRemark
	}
	require.Equal(t, "undecided, no row shows that it changed", remark(noisy...))
	require.Equal(t, "partly undecided, rows that show no change count in it", remark(append(noisy, decided("d", verdict.Changed, 0.3, 0))...), "a row does")
	require.Empty(t, remark(cpu("a", values(1), values(1.001)), decided("d", verdict.Changed, 0.3, 0)), "a row makes all of it")
	require.NotEmpty(t, remark(append(noisy, decided("d", verdict.Changed, -0.01, 0))...), "but the other way")
	require.Empty(t, remark(cpu("a", values(1), values(1.001))), "less than matters")
	require.Empty(t, remark(decided("a", verdict.NoDifference, 0.02, 0)), "everything is decided")

	r := compared(t, noisy, report.Standing{})
	var text, markdown strings.Builder
	require.NoError(t, report.WriteText(&text, r, report.Summarize(r, report.TestCases{}), report.TableOptions{}))
	require.NoError(t, report.WriteMarkdown(&markdown, r, report.Summarize(r, report.TestCases{}), report.TableOptions{}))
	require.Contains(t, text.String(), "geometric mean +21.51 % over 3 series: undecided")
	require.Contains(t, markdown.String(), "Geometric mean +21.51 % over 3 series: undecided")
}

func TestNoGeometricMeanWithoutPositiveValues(t *testing.T) {
	t.Parallel()
	r := compared(t, []report.Series{size("a", 0, 5)}, report.Standing{})
	m := report.Summarize(r, report.TestCases{}).Metrics[0]
	require.False(t, m.GeometricMean.Defined())
	require.Equal(t, 1, m.Primary.Regressions.Count, "from nothing to something")
	require.Zero(t, m.Primary.Regressions.Defined)
}

func TestTheSummaryComparesTheSetsOfTestCases(t *testing.T) {
	t.Parallel()
	s := report.Summarize(report.Report{}, report.TestCases{A: cases("json", "gone"), B: cases("json", "new", "also new")})
	require.Equal(t, cases("gone"), s.Missing)
	require.Equal(t, cases("also new", "new"), s.Added)
	require.Equal(t, []string{"the sides do not have the same test cases: 1 test case only in A, 2 test cases only in B; " +
		"means and counts cover what both have"}, s.Warnings)

	alike := report.Summarize(report.Report{}, report.TestCases{A: cases("json"), B: cases("json")})
	require.Empty(t, alike.Warnings)
	require.Empty(t, alike.Missing)
}

// A table that shows only what is remarkable is not empty if nothing is: it has the intervals that say what was seen.
func TestATableWithoutRemarkableRowsShowsSome(t *testing.T) {
	t.Parallel()
	var series []report.Series
	for i, benchmark := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		series = append(series, cpu(benchmark, steady, times(1+float64(i)/1e5, steady)))
	}
	text := func(series []report.Series) string {
		r := compared(t, series, report.Standing{})
		var b strings.Builder
		require.NoError(t, report.WriteText(&b, r, report.Summarize(r, report.TestCases{}), report.TableOptions{OnlyRemarkable: true}))
		return b.String()
	}
	quiet := text(series)
	require.Contains(t, quiet, "\ng ", "the largest change")
	require.NotContains(t, quiet, "\na ")
	require.Contains(t, quiet, "2 rows without suspicion or change not shown")
	require.Equal(t, 5, strings.Count(quiet, "[-0."), "with their intervals")

	remarkable := text(append(series, cpu("h", steady, times(1.5, steady))))
	require.Contains(t, remarkable, "\nh ")
	require.NotContains(t, remarkable, "\ng ")
	require.Contains(t, remarkable, "7 rows without suspicion or change not shown")
}
