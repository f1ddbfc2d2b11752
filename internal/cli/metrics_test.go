package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

func TestChooseMetrics(t *testing.T) {
	t.Parallel()
	measured := []bench.Metric{"B/op", bench.CPUTime, bench.Instructions, bench.MinorFaults, "ns/op", "size:a", "size:b", bench.UserTime, bench.WallTime}
	tests := map[string]struct {
		asked []string
		all   bool
		want  []bench.Metric
	}{
		"what matters":           {want: []bench.Metric{"B/op", bench.CPUTime, bench.Instructions, "ns/op", "size:a", "size:b", bench.WallTime}},
		"everything":             {all: true, want: measured},
		"all rows of a metric":   {asked: []string{"minor-faults"}, all: true, want: []bench.Metric{bench.MinorFaults}},
		"what was asked for":     {asked: []string{"minor-faults", "CPU-time"}, want: []bench.Metric{bench.MinorFaults, bench.CPUTime}},
		"a family":               {asked: []string{"size:*"}, want: []bench.Metric{"size:a", "size:b"}},
		"nothing of it is twice": {asked: []string{"size:*", "size:a", "size:a"}, want: []bench.Metric{"size:a", "size:b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cli.ChooseMetrics(measured, test.asked, test.all)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	_, err := cli.ChooseMetrics(measured, []string{"rain"}, false)
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, `metric "rain" was not measured; the measured metrics are B/op, cpu-time, `)
	_, err = cli.ChooseMetrics(nil, []string{"rain"}, false)
	require.ErrorContains(t, err, "the measured metrics are none")
}

// Verdicts read from the API equal those of a local comparison.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	series := func(metric string, exact bool, a, b float64) report.Series {
		return report.Series{
			Series:   stats.Series{Key: stats.Key{TestCase: stats.TestCase{Benchmark: "gin"}, Metric: metric}, Exact: exact, A: []float64{a}, B: []float64{b}},
			Deciding: true, Evidence: verdict.Evidence{Exact: exact},
		}
	}
	c, err := report.New([]report.Series{series("size:a", true, 1, 2), series("size:b", true, 2, 1), series("size:c", true, 1, 1), series("wall-time", false, 1, 5)}, report.Standing{})
	require.NoError(t, err)
	local := cli.Verdicts(c)
	require.Equal(t, []cli.Verdict{{Metric: "size:a", Regression: true}, {Metric: "size:b"}, {Metric: "size:c"}, {Metric: "wall-time"}}, local, "an undecided series is no regression")
	require.Equal(t, 1, cli.Regressions(local))
	require.Equal(t, []bench.Metric{"size:a", "size:b", "size:c", "wall-time"}, cli.Measured(local))

	text, err := json.Marshal(map[string]any{"result": c})
	require.NoError(t, err)
	read, err := cli.ReadVerdicts(string(text))
	require.NoError(t, err)
	require.Equal(t, local, read)
	_, err = cli.ReadVerdicts("<html>")
	require.ErrorContains(t, err, "is this the Benchloom API")
}
