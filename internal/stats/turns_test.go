package stats_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
)

// Sides measured in turns are not two sessions: a smaller difference stands
// out, and the comparison says so.
func TestSidesMeasuredInTurnsHaveNoVarianceOfSessions(t *testing.T) {
	t.Parallel()
	a := []float64{1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07}
	series := func(benchmark string, inTurns bool) stats.Series {
		return stats.Series{
			Key:  stats.Key{Metric: "cpu-time", TestCase: stats.TestCase{Benchmark: benchmark}},
			Unit: "sec", A: a, B: times(1.04, a), InTurns: inTurns,
		}
	}
	said := func(list ...stats.Series) (stats.Comparison, string, string) {
		t.Helper()
		c, err := stats.Compare(list, stats.DefaultOptions())
		require.NoError(t, err)
		s := stats.Summarize(c, stats.TestCases{})
		var text, markdown strings.Builder
		require.NoError(t, stats.WriteText(&text, c, s, stats.TableOptions{}))
		require.NoError(t, stats.WriteMarkdown(&markdown, c, s, stats.TableOptions{}))
		return c, text.String(), markdown.String()
	}
	one, text, markdown := said(series("x", true))
	require.True(t, one.Results[0].InTurns)
	require.Equal(t, stats.Regression, one.Results[0].Verdict)
	require.Contains(t, text, "Both sides were measured in turns")
	require.Contains(t, markdown, "Both sides were measured in turns")

	apart, text, _ := said(series("x", false))
	require.Equal(t, stats.NoDifference, apart.Results[0].Verdict)
	require.Greater(t, apart.Results[0].Margin, one.Results[0].Margin)
	require.NotContains(t, text, "in turns")

	_, text, _ = said(series("x", true), series("y", false))
	require.Contains(t, text, "Both sides of 1 of the 2 series were measured in turns")
}
