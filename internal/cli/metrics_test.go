package cli_test

import (
	"encoding/json"
	"strings"
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
		"several":                {asked: []string{"ns/op,B/op"}, want: []bench.Metric{"ns/op", "B/op"}},
		"a family":               {asked: []string{"size:*"}, want: []bench.Metric{"size:a", "size:b"}},
		"nothing of it is twice": {asked: []string{"size:*", "size:a", "size:a"}, want: []bench.Metric{"size:a", "size:b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cli.ChooseMetrics(measured, nil, test.asked, test.all)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	_, err := cli.ChooseMetrics(measured, nil, []string{"rain"}, false)
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, `metric "rain" was not measured; the measured metrics are B/op, cpu-time, `)
	_, err = cli.ChooseMetrics(nil, nil, []string{"rain"}, false)
	require.ErrorContains(t, err, "the measured metrics are none")
}

// A series of one of many lines is asked for as tables show it, as the record names it, or
// with all other lines by its unit.
func TestChooseMetricsOfLines(t *testing.T) {
	t.Parallel()
	row := func(benchmark, line, metric string) report.Row {
		return report.Row{Key: stats.Key{TestCase: stats.TestCase{Benchmark: benchmark}, Line: line, Metric: metric}}
	}
	rows := []report.Row{
		row("lexer.Parse", "Parse/small", "ns/op"), row("lexer.Parse", "Parse/small", "B/op"), row("lexer.Parse", "Parse/large,deep", "ns/op"),
		row("gin", "Route", "ns/op"), row("gin", "", "wall-time"),
	}
	verdicts := cli.Verdicts(report.Report{Rows: rows})
	choose := func(asked ...string) ([]bench.Metric, error) {
		return cli.ChooseMetrics(cli.Measured(verdicts), cli.Shown(verdicts), asked, false)
	}
	for _, r := range rows {
		if r.Line == "" {
			continue
		}
		want := bench.Metric(r.Line + " " + r.Metric)
		for _, asked := range []string{r.Name() + " " + r.Metric, r.Name() + "  " + r.Metric, string(want), strings.ToUpper(string(want))} {
			got, err := choose(asked)
			require.NoError(t, err, asked)
			require.Equal(t, []bench.Metric{want}, got, asked)
		}
	}
	got, err := choose("ns/op")
	require.NoError(t, err)
	require.ElementsMatch(t, []bench.Metric{"Parse/small ns/op", "Parse/large,deep ns/op", "Route ns/op"}, got)
	got, err = choose("Parse/small B/op,gin Route ns/op")
	require.NoError(t, err)
	require.Equal(t, []bench.Metric{"Parse/small B/op", "Route ns/op"}, got)

	_, err = choose("lexer.Parse/smal ns/op")
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, `metric "lexer.Parse/smal ns/op" was not measured; the nearest are "lexer.Parse/small ns/op", "lexer.Parse/small B/op", `)
	require.ErrorContains(t, err, "; ns/op, B/op stand for all lines")
	_, err = choose("rain")
	require.ErrorContains(t, err, "the measured metrics are ")
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
