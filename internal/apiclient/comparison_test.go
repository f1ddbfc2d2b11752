package apiclient_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/stats"
)

func TestComparisonRoundTrip(t *testing.T) {
	t.Parallel()
	key := func(benchmark string) stats.Key {
		return stats.Key{TestCase: stats.TestCase{Benchmark: benchmark, Target: "x"}, Metric: "wall-time"}
	}
	result, err := stats.Compare([]stats.Series{
		{Key: key("slower"), A: []float64{1, 1.001, 1.002, 1.003, 1.004}, B: []float64{2, 2.001, 2.002, 2.003, 2.004}, Category: stats.Primary},
		{Key: key("faster"), A: []float64{2, 2.001, 2.002, 2.003, 2.004}, B: []float64{1, 1.001, 1.002, 1.003, 1.004}, Category: stats.Primary},
		{Key: key("same"), A: []float64{1, 1.001, 1.002, 1.003, 1.004}, B: []float64{1, 1.001, 1.002, 1.003, 1.004}},
		{Key: key("missing"), A: []float64{1}},
	}, stats.DefaultOptions())
	require.NoError(t, err)
	written := apiclient.Comparison{Project: "go", A: "1", B: "2", Result: result, Summary: stats.Summarize(result, stats.TestCases{})}
	text, err := json.Marshal(written)
	require.NoError(t, err)

	var read apiclient.Comparison
	require.NoError(t, json.Unmarshal(text, &read))
	again, err := json.Marshal(read)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
	verdicts := map[string]stats.Verdict{}
	for _, r := range read.Result.Results {
		verdicts[r.Benchmark] = r.Verdict
	}
	require.Equal(t, map[string]stats.Verdict{"slower": stats.Regression, "faster": stats.Improvement, "same": stats.NoDifference, "missing": stats.Undecided}, verdicts)
	require.Equal(t, stats.Mixed, read.Summary.Metrics[0].Direction)
	require.Equal(t, stats.VeryLarge, read.Summary.Metrics[0].Primary.All.Largest)

	require.Error(t, json.Unmarshal([]byte(`{"result":{"results":[{"verdict":"splendid"}]}}`), &read))
}
