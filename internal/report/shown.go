package report

import (
	"fmt"
	"math"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Shown is a row in words, for outputs that are not text: the evidence that its verdict rests on, from pairs if there are
// any, else from stored results.
type Shown struct {
	A, B     string
	Change   string
	Interval string
	// Stored is the change of stored results where Change is that of pairs; empty: there is none.
	Stored string
	// N counts the values of both sides, or the pairs and their sessions.
	N       string
	Verdict string
	// Why is the reason of the verdict, and what would decide it.
	Why string
}

// Shown returns the row in words. Unlike the tables of [WriteText], it takes any side with values as known, so that the report
// may have been read from JSON, which has finite numbers only.
func (r Row) Shown() Shown {
	out := Shown{Verdict: verdictCell(r), Why: whyCell(r), Change: absent}
	if r.A.N > 0 && r.B.N > 0 {
		out.Change = "undefined"
		if r.Change.Defined() {
			out.Change = stats.SignedPercent(r.Change.Value)
		}
	}
	if t := r.Turns; t != nil {
		if !r.OnlyInTurns {
			out.Stored = out.Change
		}
		if out.A, out.B = values(r, t.A, t.B); t.A.N+t.B.N == 0 {
			out.A, out.B = values(r, r.A, r.B) // the pairs themselves are gone, or are of another artifact
		}
		out.Change, out.Interval, out.N = turnsCell(*t), intervalCell(t.Interval), pairsCell(*t)
		return out
	}
	out.A, out.B = values(r, r.A, r.B)
	out.Interval, out.N = intervalCell(r.Interval), sizeCell(r)
	return out
}

// values writes both sides of a row, scaled alike.
func values(r Row, a, b stats.Side) (left, right string) {
	left, right = absent, absent
	if a.N > 0 {
		left = scaled(r, a.Value, a.Value, b.Value)
	}
	if b.N > 0 {
		right = scaled(r, b.Value, a.Value, b.Value)
	}
	return left, right
}

// ValueText writes a value of the row in the scale in which both its sides are shown.
func (r Row) ValueText(value float64) string {
	a, b := r.A, r.B
	if a.N+b.N == 0 && r.Turns != nil {
		a, b = r.Turns.A, r.Turns.B
	}
	return scaled(r, value, a.Value, b.Value)
}

// Details of a row that tables show on request.
const (
	// MedianDetail is the change of the medians of stored values.
	MedianDetail = "median"
	// SpreadDetail is the standard deviation of both sides, relative to their values.
	SpreadDetail = "spread"
	// PDetail is the p value of the paired test with the level that it must be below.
	PDetail = "p"
	// ThresholdDetail is the least relevant change.
	ThresholdDetail = "threshold"
	// CorrectedDetail is the p value as if the row were judged alone and in one look: with it, a change needs less than 1 %.
	CorrectedDetail = "corrected"
	// EffectDetail is the difference of the medians in standard deviations within the sides.
	EffectDetail = "effect"
	// MagnitudeDetail is the change as a multiple of the least relevant one.
	MagnitudeDetail = "magnitude"
	// SourceDetail says what the least relevant change follows from.
	SourceDetail = "source"
)

// DetailValue returns the number by which rows are ordered by a detail; known is false if the row has none.
func (r Row) DetailValue(name string) (value float64, known bool) {
	a, b := r.A, r.B
	if r.Turns != nil {
		a, b = r.Turns.A, r.Turns.B
	}
	tested := r.Turns != nil && r.Turns.Level > 0
	scatter := math.Hypot(a.Spread, b.Spread) / math.Sqrt2
	switch {
	case name == MedianDetail && r.A.N > 0 && r.B.N > 0 && !r.OnlyInTurns && r.MedianChange.Defined():
		return r.MedianChange.Value, true
	case name == SpreadDetail && a.N > 1 && b.N > 1 && a.Value > 0 && b.Value > 0:
		return max(a.Spread/a.Value, b.Spread/b.Value), true
	case name == PDetail && tested:
		return r.Turns.P, true
	case name == CorrectedDetail && tested:
		return min(1, r.Turns.P*verdict.Alpha/r.Turns.Level), true
	case name == EffectDetail && a.N > 1 && b.N > 1 && scatter > 0:
		return (b.Median - a.Median) / scatter, true
	case name == MagnitudeDetail && r.Deciding && r.Delta > 0 && r.Estimate().Defined():
		return math.Abs(r.Estimate().Value) / r.Delta, true
	case name == ThresholdDetail && r.Deciding:
		return r.Delta, true
	}
	return 0, false
}

// Detail writes one of the details of a row.
func (r Row) Detail(name string) string {
	value, known := r.DetailValue(name)
	switch {
	case name == SourceDetail && r.Deciding:
		return r.thresholdSource()
	case !known:
		return absent
	}
	switch name {
	case MedianDetail:
		return stats.SignedPercent(value)
	case SpreadDetail:
		a, b := r.A, r.B
		if r.Turns != nil {
			a, b = r.Turns.A, r.Turns.B
		}
		return stats.Percent(a.Spread/a.Value) + ", " + stats.Percent(b.Spread/b.Value)
	case PDetail:
		return fmt.Sprintf("%.2g of %.2g", value, r.Turns.Level)
	case CorrectedDetail:
		return fmt.Sprintf("%.2g", value)
	case EffectDetail:
		return fmt.Sprintf("%+.1f", value)
	case MagnitudeDetail:
		return fmt.Sprintf("%.1f ×", value)
	}
	return stats.Percent(value)
}

// thresholdSource says what the least relevant change of a row follows from.
func (r Row) thresholdSource() string {
	switch metric := bench.Metric(r.Metric); {
	case r.Delta != verdict.Delta(r.Metric, r.Exact):
		return "as it was judged"
	case metric.Exact():
		return "exact metric"
	case r.Exact:
		return "no noise, as declared or seen"
	case metric == bench.Instructions:
		return "metric"
	}
	return "default"
}

// Heading names the metric of a row with its unit and direction.
func (r Row) Heading() string { return heading(r) }

// Words are the texts about a comparison as a whole, the same in every output.
type Words struct {
	// Lines sum it up. The first counts all verdicts.
	Lines []string
	// Lists name what is undecided and what only one side has.
	Lists []List
	// Notes explain tables, and say how to get verdicts.
	Notes    []string
	Warnings []string
}

// List is a list below the summary. Count may exceed the number of lines.
type List struct {
	Title string
	Count int
	Lines []string
}

// Describe writes a comparison as a whole in words. Names in them are as they were given, with control characters.
func Describe(r Report, s Summary) Words {
	return Words{Lines: summaryLines(r, s), Lists: lists(r, s), Notes: notes(r), Warnings: allWarnings(r, s)}
}

// Changes writes the changes of a metric, a line for each direction and category that has any:
//
//	regressions (primary): 9, mean +1.20 %, range [+0.50 %, +4.10 %]
func (m MetricSummary) Changes() []string {
	var lines []string
	for _, g := range groups(m) {
		if g.group.Count > 0 {
			lines = append(lines, g.title+": "+g.group.String())
		}
	}
	return lines
}

// String writes the changes of one direction: "9, mean +1.20 %, range [+0.50 %, +4.10 %]".
func (g Group) String() string {
	if g.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, mean %s, range %s", g.Count, meanCell(g), rangeCell(g))
}

// Mean writes the geometric mean of a metric, and why it may be no verdict.
func (m MetricSummary) Mean() string { return geometricMean(m) }
