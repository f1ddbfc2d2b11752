package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
)

// BenchmarkResults returns an iteration of a test case in Go's benchmark format: a result for the metrics of the test case
// as a whole, then one for each of its lines. Their names are those of [benchmarkName].
func BenchmarkResults(tc bench.TestCase, values map[bench.Metric]float64) []*benchfmt.Result {
	var results []*benchfmt.Result
	at := make(map[string]*benchfmt.Result)
	metrics := slices.SortedFunc(maps.Keys(values), func(a, b bench.Metric) int {
		lineA, unitA := a.Split()
		lineB, unitB := b.Split()
		return cmp.Or(cmp.Compare(lineA, lineB), cmp.Compare(unitA, unitB))
	})
	for _, metric := range metrics {
		line, unit := metric.Split()
		r, known := at[line]
		if !known {
			r = &benchfmt.Result{Name: benchmarkName(tc, line), Iters: 1}
			at[line], results = r, append(results, r)
		}
		r.Values = append(r.Values, benchfmt.Value{Value: values[metric], Unit: BenchfmtUnit(unit)})
	}
	return results
}

// benchmarkName names a test case, or one of its lines, in Go's benchmark format, such as
// Gin/profile=build/scenario=full/backend=gc or Parse/small, without white space and beginning with a capital letter,
// as the format requires.
func benchmarkName(tc bench.TestCase, line string) benchfmt.Name {
	word := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return '_'
			}
			return r
		}, s)
	}
	name := word(tc.Benchmark)
	name = strings.ToUpper(name[:1]) + name[1:]
	for _, p := range [][2]string{{"profile", tc.Profile}, {"scenario", tc.Scenario}, {"backend", tc.Backend}} {
		if p[1] != "" {
			name += "/" + p[0] + "=" + strings.ReplaceAll(word(p[1]), "/", "_")
		}
	}
	shown := stats.Key{TestCase: statsTestCase(tc), Line: line}.Name()
	if own := strings.TrimLeft(shown[len(tc.Benchmark):], " /"); own != "" {
		name += "/" + own
	}
	return benchfmt.Name(name)
}

// BenchfmtUnit returns the unit of a metric: times and sizes include it, units of Go benchmarks stay as they are.
func BenchfmtUnit(m bench.Metric) string {
	switch {
	case m == bench.WallTime, m == bench.CPUTime, m == bench.UserTime, m == bench.SystemTime:
		return string(m) + "-sec"
	case m == bench.MaxRSS, m.Exact():
		return string(m) + "-bytes"
	}
	return string(m)
}
