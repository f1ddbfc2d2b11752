package stats

import (
	"fmt"
	"math"
	"slices"
)

// Direction is the direction in which a metric moved over all series.
type Direction int

// The directions.
const (
	Unchanged Direction = iota
	Improved
	Regressed
	Mixed
)

// String returns the direction's name.
func (d Direction) String() string {
	switch d {
	case Unchanged:
		return "no relevant changes"
	case Improved:
		return "improvements"
	case Regressed:
		return "regressions"
	case Mixed:
		return "improvements and regressions"
	default:
		return fmt.Sprintf("Direction(%d)", int(d))
	}
}

// MarshalText writes the direction as its name.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a direction's name.
func (d *Direction) UnmarshalText(text []byte) (err error) {
	*d, err = named(text, Unchanged, Mixed)
	return err
}

// Group sums up relevant changes of one kind.
type Group struct {
	// Count is the number of changes, Defined the number of those with a relative change, to which the other fields apply.
	Count   int `json:"count"`
	Defined int `json:"defined"`
	// Mean is the arithmetic mean of the relative changes, Min and Max their range; 0 when Defined is 0.
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	// Largest is the greatest magnitude among them.
	Largest Magnitude `json:"largest"`
}

func (g *Group) add(r Result) {
	g.Count++
	g.Largest = max(g.Largest, r.Magnitude)
	if !r.Change.Defined() {
		return
	}
	change := r.Change.Value
	if g.Defined == 0 {
		g.Min, g.Max = change, change
	}
	g.Min, g.Max = min(g.Min, change), max(g.Max, change)
	g.Defined++
	g.Mean += (change - g.Mean) / float64(g.Defined)
}

// Groups are the relevant changes of one category's benchmarks.
type Groups struct {
	Regressions  Group `json:"regressions"`
	Improvements Group `json:"improvements"`
	All          Group `json:"all"`
}

func (g *Groups) add(r Result) {
	g.All.add(r)
	if r.Verdict == Regression {
		g.Regressions.add(r)
	} else {
		g.Improvements.add(r)
	}
}

// MetricSummary sums up one metric.
type MetricSummary struct {
	Metric string `json:"metric"`
	// Series is the number of series, Compared the number with values on both sides; Significant and Confirmed count the
	// verdicts on these.
	Series      int `json:"series"`
	Compared    int `json:"compared"`
	Significant int `json:"significant"`
	Confirmed   int `json:"confirmed"`
	// Primary holds the relevant changes of primary benchmarks, Secondary those of all others.
	Primary   Groups `json:"primary"`
	Secondary Groups `json:"secondary"`
	// GeometricMean is the geometric mean of B/A over all series where both values are positive, significant or
	// not, less one; GeometricSeries is their number.
	GeometricMean   Change `json:"geometric_mean"`
	GeometricSeries int    `json:"geometric_series"`
	// Direction combines the directions of both categories.
	Direction Direction `json:"direction"`
	// DeservesAttention is set if a person should look at it. For a precise metric: a primary change of medium magnitude or
	// a secondary one that is large, or three times the primary ones plus the secondary ones make nine. For any other: a
	// relevant change that is at least small.
	DeservesAttention bool `json:"deserves_attention"`
}

// TestCases lists the test cases of both sides: the selected ones and the failed ones.
type TestCases struct {
	A, B             []TestCase
	FailedA, FailedB []TestCase
}

// Summary summarises a comparison.
type Summary struct {
	// Metrics are sorted by name.
	Metrics []MetricSummary `json:"metrics"`
	// NewlyFailing failed only on side B, NoLongerFailing only on side A; Missing are test cases only A has, Added those
	// only B has. Sorted, without duplicates.
	NewlyFailing    []TestCase `json:"newly_failing"`
	NoLongerFailing []TestCase `json:"no_longer_failing"`
	Missing         []TestCase `json:"missing"`
	Added           []TestCase `json:"added"`
	Warnings        []string   `json:"warnings,omitempty"`
}

// Summarize sums up a comparison. Failed test cases count as part of their side. If the test cases of both sides are empty,
// those with values are used.
//
// Source: groups, directions and attention follow rust-lang/rustc-perf.
func Summarize(c Comparison, cases TestCases) Summary {
	var s Summary
	var valuesA, valuesB []TestCase
	for _, results := range byMetric(c.Results) {
		s.Metrics = append(s.Metrics, summarizeMetric(results))
	}
	for _, r := range c.Results {
		if r.A.N > 0 {
			valuesA = append(valuesA, r.TestCase)
		}
		if r.B.N > 0 {
			valuesB = append(valuesB, r.TestCase)
		}
	}
	a, b := slices.Concat(cases.A, cases.FailedA), slices.Concat(cases.B, cases.FailedB)
	if len(cases.A) == 0 && len(cases.B) == 0 {
		a, b = append(a, valuesA...), append(b, valuesB...)
	}
	s.NewlyFailing = without(cases.FailedB, cases.FailedA)
	s.NoLongerFailing = without(cases.FailedA, cases.FailedB)
	s.Missing, s.Added = without(a, b), without(b, a)
	if len(s.Missing)+len(s.Added) > 0 {
		s.Warnings = append(s.Warnings, "the sides do not have the same test cases: "+
			plural(len(s.Missing), "test case")+" only in A, "+plural(len(s.Added), "test case")+
			" only in B; means and counts cover what both have")
	}
	return s
}

// byMetric groups results, which are sorted by metric.
func byMetric(results []Result) [][]Result {
	var metrics [][]Result
	for start := 0; start < len(results); {
		end := start + 1
		for end < len(results) && results[end].Metric == results[start].Metric {
			end++
		}
		metrics = append(metrics, results[start:end])
		start = end
	}
	return metrics
}

func summarizeMetric(results []Result) MetricSummary {
	m := MetricSummary{Metric: results[0].Metric, Series: len(results)}
	logs := 0.0
	for _, r := range results {
		m.Compared += count(missingValues(r.A, r.B) == "")
		m.Significant += count(r.Significant)
		m.Confirmed += count(r.Confirmed)
		if r.A.Value > 0 && r.B.Value > 0 {
			m.GeometricSeries++
			logs += math.Log(r.B.Value) - math.Log(r.A.Value)
		}
		switch {
		case !r.Relevant:
		case r.Category == Primary:
			m.Primary.add(r)
		default:
			m.Secondary.add(r)
		}
	}
	m.GeometricMean = Change{Undefined: "no series has positive values on both sides"}
	if m.GeometricSeries > 0 {
		m.GeometricMean = Change{Value: math.Expm1(logs / float64(m.GeometricSeries))}
	}
	m.Direction = join(directionOf(m.Primary), directionOf(m.Secondary))
	primary, secondary := m.Primary.All, m.Secondary.All
	if results[0].Precise {
		m.DeservesAttention = primary.Largest >= Medium || secondary.Largest >= Large || 3*primary.Count+secondary.Count >= 9
	} else {
		m.DeservesAttention = primary.Count+secondary.Count > 0
	}
	return m
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// directionOf weighs the regressions of a category against its improvements. Source: rust-lang/rustc-perf.
func directionOf(g Groups) Direction {
	regressions, improvements := g.Regressions, g.Improvements
	switch {
	case regressions.Count+improvements.Count == 0:
		return Unchanged
	case regressions.Count == 0:
		return Improved
	case improvements.Count == 0:
		return Regressed
	}
	share := float64(regressions.Count) / float64(regressions.Count+improvements.Count)
	strongRegression, strongImprovement := regressions.Largest >= Medium, improvements.Largest >= Medium
	switch {
	case strongRegression && strongImprovement:
		return Mixed
	case strongImprovement:
		if share >= 0.15 {
			return Mixed
		}
		return Improved
	case strongRegression:
		if share < 0.85 {
			return Mixed
		}
		return Regressed
	case share >= 0.1 && share <= 0.9:
		return Mixed
	case share < 0.1:
		return Improved
	default:
		return Regressed
	}
}

// join returns the least direction that covers both, in the order Unchanged < {Improved, Regressed} < Mixed.
func join(x, y Direction) Direction {
	switch {
	case x == y || y == Unchanged:
		return x
	case x == Unchanged:
		return y
	default:
		return Mixed
	}
}

// without returns the distinct test cases of x that are not in y, sorted.
func without(x, y []TestCase) []TestCase {
	excluded := make(map[TestCase]bool, len(y))
	for _, t := range y {
		excluded[t] = true
	}
	rest := []TestCase{}
	for _, t := range x {
		if !excluded[t] {
			excluded[t] = true
			rest = append(rest, t)
		}
	}
	slices.SortFunc(rest, compareTestCases)
	return rest
}
