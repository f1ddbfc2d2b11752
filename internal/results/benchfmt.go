package results

import (
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/bench"
)

// BenchmarkName names a test case in Go's benchmark format, such as Gin/profile=build/scenario=full/backend=gc, without
// white space and beginning with a capital letter, as the format requires.
func BenchmarkName(tc bench.TestCase) benchfmt.Name {
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
