package jobrun

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestParseBenchfmt(t *testing.T) {
	t.Parallel()
	const line = "BenchmarkX 1 5 ns/op 3 widgets\n"
	for name, want := range map[string]struct {
		output string
		wanted []bench.Metric
		values map[bench.Metric]float64
		err    string
	}{
		"all units":      {line, nil, map[bench.Metric]float64{"ns/op": 5, "widgets": 3}, ""},
		"wanted units":   {"PASS\n" + line + "ok\n", []bench.Metric{"widgets"}, map[bench.Metric]float64{"widgets": 3}, ""},
		"verbose":        {"BenchmarkX\n" + line, []bench.Metric{"ns/op"}, map[bench.Metric]float64{"ns/op": 5}, ""},
		"two lines":      {line + line, nil, nil, "more than one result line"},
		"nothing":        {"PASS\n", nil, nil, "no result line"},
		"torn line":      {"BenchmarkX log output here\n", nil, nil, "no result line"},
		"missing unit":   {line, []bench.Metric{"MB/s"}, nil, "has no MB/s; it has ns/op, widgets"},
		"not a number":   {"BenchmarkX 1 NaN ns/op\n", nil, nil, "not a measurement"},
		"unit twice":     {"BenchmarkX 1 5 ns/op 6 ns/op\n", nil, nil, "twice"},
		"endless line":   {"BenchmarkX 1 5 " + strings.Repeat("x", 1<<17), nil, nil, "token too long"},
		"unusable units": {"BenchmarkX 1 5 " + strings.Repeat("x", 100), nil, nil, "1 to 64 printable characters"},
	} {
		values, err := parseBenchfmt([]byte(want.output), want.wanted)
		if want.err != "" {
			require.ErrorContains(t, err, want.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, want.values, values, name)
	}
}

func FuzzParseBenchfmt(f *testing.F) {
	f.Add([]byte("BenchmarkX-2 100 1234.5 ns/op 48 B/op\n"))
	f.Add([]byte("Unit ns/op better=lower\nBenchmarkX 1 1e400 ns/op\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		values, err := parseBenchfmt(output, nil)
		if err != nil {
			return
		}
		require.NotEmpty(t, values)
		for metric, value := range values {
			require.NoError(t, bench.CheckMetric(string(metric)))
			require.False(t, math.IsNaN(value) || math.IsInf(value, 0))
		}
	})
}

func TestTailKeepsWholeLines(t *testing.T) {
	t.Parallel()
	var end tail
	for range 1000 {
		n, err := end.Write([]byte("0123456789\n"))
		require.NoError(t, err)
		require.Equal(t, 11, n)
	}
	require.LessOrEqual(t, len(end.String()), MaxOutputTail)
	require.Greater(t, len(end.String()), MaxOutputTail-11)
	require.True(t, strings.HasPrefix(end.String(), "0123456789\n"))
}
