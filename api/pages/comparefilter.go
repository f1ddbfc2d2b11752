package pages

import (
	"github.com/benchloom/benchloom/internal/filter"
	"github.com/benchloom/benchloom/internal/report"
)

// filterKeys are the keys of key:value in the filter of a comparison.
var filterKeys = []string{"benchmark", "line", "profile", "scenario", "backend", "target", "metric", "category", "verdict", "noise"}

// shows reports whether a filter shows a row. Words are parts of a name or of the verdict.
func shows(f filter.Filter, r report.Row) bool {
	return f.Shows(func(key string) []string {
		values := properties(r, key)
		if key == "verdict" {
			values = append(values, string(r.Direction))
		}
		return values
	}, func() []string {
		texts := []string{string(r.Direction), r.Name(), r.Benchmark, r.Line, r.Profile, r.Scenario, r.Backend, r.Target, r.Metric, r.Noise}
		if r.Verdict != nil {
			texts = append(texts, r.Verdict.String(), filter.Word(r.Verdict.String()))
		}
		return texts
	})
}
