package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/bench"
)

// WriteBenchfmt writes the collections in Go's benchmark format, one line each,
// with the names and units of the API's export: benchstat reads it.
func (r LocalReport) WriteBenchfmt(w io.Writer) error {
	out := benchfmt.NewWriter(w)
	for _, result := range r.Results {
		for _, c := range result.Collections {
			line := &benchfmt.Result{Name: benchmarkName(result.TestCase), Iters: 1}
			for _, config := range [][2]string{{"suite", r.Suite}, {"tag", result.Subject}, {"target", string(result.TestCase.Target)}} {
				line.Config = append(line.Config, benchfmt.Config{Key: config[0], Value: []byte(Printable(config[1])), File: true})
			}
			for _, m := range slices.Sorted(maps.Keys(c.Metrics)) {
				line.Values = append(line.Values, benchfmt.Value{Value: c.Metrics[m], Unit: benchfmtUnit(m)})
			}
			if err := out.Write(line); err != nil {
				return fmt.Errorf("writing the output: %w", err)
			}
		}
	}
	return nil
}

// benchmarkName is such as Gin/profile=build/scenario=full/backend=gc, without
// white space and beginning with a capital letter, as the format wants it.
func benchmarkName(tc bench.TestCase) benchfmt.Name {
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

// benchfmtUnit names a metric as a unit: times and sizes say theirs, the units
// of Go benchmarks stay as they are.
func benchfmtUnit(m bench.Metric) string {
	switch {
	case m == bench.WallTime, m == bench.CPUTime, m == bench.UserTime, m == bench.SystemTime:
		return string(m) + "-sec"
	case m == bench.MaxRSS, m.Exact():
		return string(m) + "-bytes"
	}
	return string(m)
}
