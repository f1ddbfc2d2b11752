package results

import (
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/suite"
)

// naming describes series. It keeps what the series of a metric, or of a benchmark, share: a comparison has thousands of
// series of few metrics.
type naming struct {
	facts      Facts
	metrics    map[bench.Metric]*stats.Series
	categories map[string]stats.Category
}

func newNaming(facts Facts) *naming {
	return &naming{facts: facts, metrics: make(map[bench.Metric]*stats.Series), categories: make(map[string]stats.Category)}
}

// metric returns what the series of a metric share.
func (n *naming) metric(m bench.Metric) *stats.Series {
	if known := n.metrics[m]; known != nil {
		return known
	}
	line, unit := m.Split()
	s := &stats.Series{Key: stats.Key{Line: line, Metric: string(unit)}, Unit: Unit(unit), Exact: n.facts.Exact(m), Precise: m == bench.Instructions}
	if m.Direction() == bench.HigherIsBetter {
		s.Better = stats.HigherIsBetter
	}
	switch n.facts.Aggregation(m) {
	case suite.AggregateMedian:
		s.Aggregation = stats.Median
	case suite.AggregateMean:
		s.Aggregation = stats.Mean
	case suite.AggregateMax:
		s.Aggregation = stats.Maximum
	}
	n.metrics[m] = s
	return s
}

// series returns the series of a metric of a test case.
func (n *naming) series(k seriesKey, a, b []float64) stats.Series {
	s := *n.metric(k.metric)
	s.TestCase, s.A, s.B = statsTestCase(k.testCase), a, b
	category, known := n.categories[k.testCase.Benchmark]
	if !known {
		category = stats.Category(n.facts.Category(k.testCase.Benchmark))
		n.categories[k.testCase.Benchmark] = category
	}
	s.Category = category
	return s
}

// Unit returns the unit of a metric's values, spelled as in
// golang.org/x/perf/benchunit.
func Unit(m bench.Metric) string {
	_, m = m.Split()
	switch m {
	case bench.WallTime, bench.CPUTime, bench.UserTime, bench.SystemTime:
		return "sec"
	case bench.MaxRSS:
		return "B"
	}
	if m.Exact() {
		return "B"
	}
	unit, _, isRate := strings.Cut(string(m), "/op")
	if isRate {
		return unit
	}
	return ""
}
