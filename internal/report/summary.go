package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Tally counts the verdicts on deciding metrics.
type Tally struct {
	Changed      int `json:"changed"`
	NoDifference int `json:"no_difference"`
	Undecided    int `json:"undecided"`
	NoSuspicion  int `json:"no_suspicion"`
	// Provisional counts those of the undecided that are being measured.
	Provisional int `json:"provisional,omitempty"`
	// Regressions and Improvements add up to Changed.
	Regressions  int `json:"regressions"`
	Improvements int `json:"improvements"`
	// Sees is the median of the relative changes that would have been seen in rows without suspicion; 0 if there are none.
	Sees float64 `json:"sees,omitempty"`
}

// String writes the counts in a sentence:
//
//	3 changed, 9 no difference, 1 undecided; 672 without suspicion (would have seen ≥ 1.4 %, median)
func (c Tally) String() string {
	if c == (Tally{}) {
		return "nothing was judged"
	}
	var parts []string
	add := func(n int, words string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, words))
		}
	}
	add(c.Changed, "changed")
	add(c.NoDifference, "no difference")
	add(c.Undecided-c.Provisional, "undecided")
	add(c.Provisional, beingMeasured)
	text := strings.Join(parts, ", ")
	if c.NoSuspicion == 0 {
		return text
	}
	if text == "" {
		text = "0 changed"
	}
	text += fmt.Sprintf("; %d without suspicion", c.NoSuspicion)
	if c.Sees > 0 {
		text += fmt.Sprintf(" (would have seen %s, median)", seen(c.Sees))
	}
	return text
}

// seen writes the change that would have been seen, in percent with two significant digits.
func seen(change float64) string {
	percent := 100 * change
	digits := 1
	if percent > 0 {
		digits = max(0, 1-int(math.Floor(math.Log10(percent))))
	}
	return fmt.Sprintf("≥ %.*f %%", digits, percent)
}

// Count counts the verdicts of rows.
func Count(rows []Row) Tally {
	var c Tally
	var sees []float64
	for i := range rows {
		r := &rows[i]
		if r.Verdict == nil {
			continue
		}
		//exhaustive:enforce
		switch *r.Verdict {
		case verdict.Changed:
			c.Changed++
			if r.Direction == Regression {
				c.Regressions++
			} else {
				c.Improvements++
			}
		case verdict.NoDifference:
			c.NoDifference++
		case verdict.Undecided:
			c.Undecided++
			if r.Provisional {
				c.Provisional++
			}
		case verdict.NoSuspicion:
			c.NoSuspicion++
			sees = append(sees, r.Sees)
		}
	}
	if len(sees) > 0 {
		slices.Sort(sees)
		c.Sees = (sees[(len(sees)-1)/2] + sees[len(sees)/2]) / 2
	}
	return c
}

// Group sums up changes of one direction.
type Group struct {
	// Count is the number of changes, Defined the number of those with a relative change, to which the other fields apply.
	Count   int `json:"count"`
	Defined int `json:"defined"`
	// Mean is the arithmetic mean of the relative changes, Min and Max their range; 0 when Defined is 0.
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

func (g *Group) add(r *Row) {
	g.Count++
	estimate := r.Estimate()
	if !estimate.Defined() {
		return
	}
	change := estimate.Value
	if g.Defined == 0 {
		g.Min, g.Max = change, change
	}
	g.Min, g.Max = min(g.Min, change), max(g.Max, change)
	g.Defined++
	g.Mean += (change - g.Mean) / float64(g.Defined)
}

// Groups are the changes of one category's benchmarks.
type Groups struct {
	Regressions  Group `json:"regressions"`
	Improvements Group `json:"improvements"`
}

func (g *Groups) add(r *Row) {
	if r.Direction == Regression {
		g.Regressions.add(r)
	} else {
		g.Improvements.add(r)
	}
}

// MetricSummary sums up one metric.
type MetricSummary struct {
	Metric string `json:"metric"`
	// Deciding is set for a metric that verdicts are given on.
	Deciding bool `json:"deciding"`
	// Series is the number of series; Tally counts their verdicts.
	Series int `json:"series"`
	Tally
	// Primary holds the changes of primary benchmarks, Secondary those of all others.
	Primary   Groups `json:"primary"`
	Secondary Groups `json:"secondary"`
	// GeometricMean is the geometric mean of B/A over all series with a positive estimate, changed or not, less one;
	// GeometricSeries is their number.
	GeometricMean   stats.Change `json:"geometric_mean"`
	GeometricSeries int          `json:"geometric_series"`
	// GeometricRemark says why a mean that is far from 0 is no verdict; empty if there is nothing to remark.
	GeometricRemark string `json:"geometric_remark,omitempty"`
}

// TestCases lists the test cases with results of both sides.
type TestCases struct {
	A, B []stats.TestCase
}

// Summary summarises a comparison.
type Summary struct {
	// Tally counts the verdicts on all rows, and Line writes them as a sentence.
	Tally
	Line        string `json:"line"`
	Provisional bool   `json:"provisional"`
	// Hidden counts the verdicts on rows that a filter hides; nil if it hides none with a verdict.
	Hidden *Tally `json:"hidden,omitempty"`
	// Metrics are sorted by name.
	Metrics []MetricSummary `json:"metrics"`
	// Missing are test cases only A has, Added those only B has. Sorted, without duplicates.
	Missing  []stats.TestCase `json:"missing"`
	Added    []stats.TestCase `json:"added"`
	Warnings []string         `json:"warnings,omitempty"`
}

// Summarize sums up a report. If the test cases of both sides are empty, only the report's rows count.
func Summarize(r Report, cases TestCases) Summary {
	s := Summary{Tally: Count(r.Rows), Provisional: r.Provisional}
	s.Line = s.Tally.String()
	if hidden := Count(r.hidden); hidden != (Tally{}) {
		s.Hidden = &hidden
	}
	for _, rows := range byMetric(r.Rows) {
		s.Metrics = append(s.Metrics, summarizeMetric(rows))
	}
	s.Missing, s.Added = without(cases.A, cases.B), without(cases.B, cases.A)
	if len(s.Missing)+len(s.Added) > 0 {
		s.Warnings = append(s.Warnings, "the sides do not have the same test cases: "+
			plural(len(s.Missing), "test case")+" only in A, "+plural(len(s.Added), "test case")+
			" only in B; means and counts cover what both have")
	}
	return s
}

// byMetric splits sorted rows into those of each metric.
func byMetric(rows []Row) [][]Row {
	var metrics [][]Row
	for start := 0; start < len(rows); {
		end := start + 1
		for end < len(rows) && rows[end].Metric == rows[start].Metric {
			end++
		}
		metrics = append(metrics, rows[start:end])
		start = end
	}
	return metrics
}

func summarizeMetric(rows []Row) MetricSummary {
	m := MetricSummary{Metric: rows[0].Metric, Deciding: rows[0].Deciding, Series: len(rows), Tally: Count(rows)}
	logs, open, delta := 0.0, 0.0, 0.0 // open: of rows that show neither a change nor that there is none
	for i := range rows {
		r := &rows[i]
		delta = max(delta, r.Delta)
		if estimate := r.Estimate(); r.positive() && estimate.Defined() && estimate.Value > -1 {
			m.GeometricSeries++
			logs += math.Log1p(estimate.Value)
			if r.Is(verdict.Undecided) || r.Is(verdict.NoSuspicion) {
				open += math.Log1p(estimate.Value)
			}
		}
		switch {
		case !r.Significant:
		case r.Category == stats.Primary:
			m.Primary.add(r)
		default:
			m.Secondary.add(r)
		}
	}
	m.GeometricMean = stats.Change{Undefined: "no series has positive values on both sides"}
	if m.GeometricSeries > 0 {
		m.GeometricMean = stats.Change{Value: math.Expm1(logs / float64(m.GeometricSeries))}
	}
	m.GeometricRemark = remark(m, logs, open, float64(m.GeometricSeries)*math.Log1p(delta))
	return m
}

// positive reports whether both sides of a row have positive values, so that their ratio has a logarithm.
func (r Row) positive() bool { return r.A.Value > 0 && r.B.Value > 0 }

// remark says that a geometric mean beyond the least relevant change shows nothing, if no row changed in its direction, or
// less than it seems to. The sums are of logarithms: of all rows, of the open ones, and the least relevant.
func remark(m MetricSummary, logs, open, least float64) string {
	if !m.Deciding || m.Undecided+m.NoSuspicion == 0 || math.Abs(logs) <= least {
		return ""
	}
	for _, g := range []Group{m.Primary.Regressions, m.Primary.Improvements, m.Secondary.Regressions, m.Secondary.Improvements} {
		if g.Defined == 0 || (g.Mean > 0) != (logs > 0) {
			continue
		}
		if math.Abs(open) > least {
			return "partly undecided, rows that show no change count in it"
		}
		return ""
	}
	return "undecided, no row shows that it changed"
}

// without returns the distinct test cases of x that are not in y, sorted.
func without(x, y []stats.TestCase) []stats.TestCase {
	if slices.Equal(x, y) { // as most sides are
		return []stats.TestCase{}
	}
	excluded := make(map[stats.TestCase]bool, len(y))
	for _, t := range y {
		excluded[t] = true
	}
	rest := []stats.TestCase{}
	for _, t := range x {
		if !excluded[t] {
			excluded[t] = true
			rest = append(rest, t)
		}
	}
	slices.SortFunc(rest, stats.TestCase.Compare)
	return rest
}
