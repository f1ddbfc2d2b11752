package jobrun

import (
	"fmt"
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
		"nothing":        {"PASS\n", nil, nil, "no result line"},
		"torn line":      {"BenchmarkX log output here\n", nil, nil, "no result line"},
		"missing unit":   {line, []bench.Metric{"MB/s"}, nil, "BenchmarkX has no MB/s; it has ns/op, widgets"},
		"not a number":   {"BenchmarkX 1 NaN ns/op\n", nil, nil, "ns/op of the result line BenchmarkX is NaN, which is not a measurement"},
		"infinite":       {"BenchmarkX 1 5 ns/op\nBenchmarkY 1 +Inf ns/op\n", nil, nil, "BenchmarkY is +Inf"},
		"unit twice":     {"BenchmarkX 1 5 ns/op 6 ns/op\n", nil, nil, "twice"},
		"endless line":   {"BenchmarkX 1 5 " + strings.Repeat("x", 1<<17), nil, nil, "token too long"},
		"unusable units": {"BenchmarkX 1 5 " + strings.Repeat("x", 100), nil, nil, "1 to 64 printable characters"},
		"endless":        {line + strings.Repeat("log\n", 1<<18), nil, nil, "longer than 1.0 MiB"},
		"repeated lines": {line + "BenchmarkY 1 2 ns/op\n" + line, nil, nil, "two result lines named BenchmarkX; print each once, without -test.count"},
		"several lines": {
			"pkg: example.org/p\nBenchmarkParse/small-8 1 5 ns/op 3 B/op\nBenchmarkParse/large-8 1 7 ns/op 4 B/op\nBenchmarkPrint-8 1 9 MB/s\nPASS\n", nil,
			map[bench.Metric]float64{
				"Parse/small ns/op": 5, "Parse/small B/op": 3, "Parse/large ns/op": 7, "Parse/large B/op": 4, "Print MB/s": 9,
			}, "",
		},
		"wanted units of several lines": {
			"BenchmarkA 1 5 ns/op 3 B/op\nBenchmarkB 1 7 ns/op 4 B/op\n", []bench.Metric{"ns/op"},
			map[bench.Metric]float64{"A ns/op": 5, "B ns/op": 7}, "",
		},
		"a line without a wanted unit": {
			"BenchmarkA 1 5 ns/op 3 B/op\nBenchmarkB 1 7 ns/op\n", []bench.Metric{"B/op"}, nil, "BenchmarkB has no B/op; it has ns/op",
		},
		"several numbers of CPUs": {
			"BenchmarkA 1 5 ns/op\nBenchmarkA-2 1 7 ns/op\nBenchmarkA-4 1 8 ns/op\n", nil,
			map[bench.Metric]float64{"A ns/op": 5, "A-2 ns/op": 7, "A-4 ns/op": 8}, "",
		},
		"numbers that are no CPUs": {
			"BenchmarkA/n-10 1 5 ns/op\nBenchmarkA/n-20 1 7 ns/op\n", nil,
			map[bench.Metric]float64{"A/n-10 ns/op": 5, "A/n-20 ns/op": 7}, "",
		},
		"a line with an endless name": {line + "BenchmarkB/" + strings.Repeat("x", 200) + " 1 5 ns/op\n", nil, nil, "give the benchmark a shorter or simpler name"},
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

// printed returns the output of n benchmarks with the given values.
func printed(n int, values string) []byte {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "BenchmarkParse/file=%04d 100 %s\n", i, values)
	}
	return []byte(out.String())
}

func TestAThousandLinesAreSeriesAndMoreAreRefused(t *testing.T) {
	t.Parallel()
	metrics, err := parseBenchfmt(printed(1000, "5 ns/op 6 B/op"), nil)
	require.NoError(t, err)
	require.Len(t, metrics, 2000)
	require.Equal(t, 5.0, metrics["Parse/file=0999 ns/op"])

	_, err = parseBenchfmt(printed(1001, "5 ns/op"), nil)
	require.ErrorContains(t, err, "more than 1000 result lines; select fewer, or spread them over several benchmarks")

	many := printed(1000, "5 ns/op 6 B/op 7 allocs/op")
	_, err = parseBenchfmt(many, nil)
	require.ErrorContains(t, err, "3000 values in 1000 result lines; at most 2000 are recorded: name the units")
	metrics, err = parseBenchfmt(many, []bench.Metric{"ns/op"})
	require.NoError(t, err)
	require.Len(t, metrics, 1000)
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
