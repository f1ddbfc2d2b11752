package orchestration

import (
	"github.com/benchloom/benchloom/internal/stats"
)

// suspicion reports whether the newest session of a series differs from the baseline's.
func (h history) suspicion() (suspected bool, score float64, words string) {
	c, err := stats.Compare([]stats.Series{{
		Key: stats.Key{TestCase: stats.TestCase{Benchmark: h.testCase.Benchmark}, Metric: string(h.metric)},
		A:   h.baseline.Values, B: h.own().Values,
	}}, stats.DefaultOptions())
	if err != nil || len(c.Results) == 0 {
		return false, 0, ""
	}
	return c.Results[0].Significant, 0, c.Results[0].Why
}
