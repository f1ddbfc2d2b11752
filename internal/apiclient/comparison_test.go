package apiclient_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// A client reads the verdicts as they were given.
func TestComparisonRoundTrip(t *testing.T) {
	t.Parallel()
	series := func(benchmark string, a, b float64) report.Series {
		return report.Series{
			Series: stats.Series{Key: stats.Key{TestCase: stats.TestCase{Benchmark: benchmark, Target: "x"}, Metric: "size:binary"},
				Exact: true, Category: stats.Primary, A: []float64{a}, B: []float64{b}},
			Deciding: true, Evidence: verdict.Evidence{Exact: true},
		}
	}
	suspect := series("suspect", 1, 2)
	suspect.Metric, suspect.Exact, suspect.Evidence.Exact = "wall-time", false, false
	compared, err := report.New([]report.Series{series("larger", 1, 2), series("smaller", 2, 1), series("same", 1, 1), suspect}, report.Standing{})
	require.NoError(t, err)
	written := apiclient.Comparison{Project: "go", A: "1", B: "2", Result: compared, Summary: report.Summarize(compared, report.TestCases{})}
	text, err := json.Marshal(written)
	require.NoError(t, err)

	var read apiclient.Comparison
	require.NoError(t, json.Unmarshal(text, &read))
	again, err := json.Marshal(read)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
	verdicts := map[string]verdict.Kind{}
	directions := map[string]report.Direction{}
	for _, r := range read.Result.Rows {
		verdicts[r.Benchmark], directions[r.Benchmark] = *r.Verdict, r.Direction
	}
	require.Equal(t, map[string]verdict.Kind{"larger": verdict.Changed, "smaller": verdict.Changed, "same": verdict.NoDifference, "suspect": verdict.Undecided}, verdicts)
	require.Equal(t, map[string]report.Direction{"larger": report.Regression, "smaller": report.Improvement, "same": "", "suspect": ""}, directions)
	require.Equal(t, "2 changed, 1 no difference, 1 undecided", read.Summary.Line)
	require.Equal(t, verdict.RuleVersion, read.Result.Rule)

	require.Error(t, json.Unmarshal([]byte(`{"result":{"results":[{"verdict":"splendid"}]}}`), &read))
}
