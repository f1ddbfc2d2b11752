package report

import (
	"fmt"
	"math"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Shown is a row in words, for outputs that are no text: the evidence that its verdict rests on, from pairs if there are any,
// else from stored results.
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

// Shown returns the row in words. Unlike the tables of [WriteText], it takes a side with values for known, so that a report may
// have been read from JSON, which has finite numbers only.
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
	// MagnitudeDetail is the change in least relevant ones.
	MagnitudeDetail = "magnitude"
)

// Detail writes one of the details of a row.
func (r Row) Detail(name string) string {
	a, b := r.A, r.B
	if r.Turns != nil {
		a, b = r.Turns.A, r.Turns.B
	}
	switch {
	case name == MedianDetail && r.A.N > 0 && r.B.N > 0 && !r.OnlyInTurns && r.MedianChange.Defined():
		return stats.SignedPercent(r.MedianChange.Value)
	case name == SpreadDetail && a.N > 1 && b.N > 1 && a.Value > 0 && b.Value > 0:
		return stats.Percent(a.Spread/a.Value) + ", " + stats.Percent(b.Spread/b.Value)
	case name == PDetail && r.Turns != nil && r.Turns.Level > 0:
		return fmt.Sprintf("%.2g of %.2g", r.Turns.P, r.Turns.Level)
	case name == CorrectedDetail && r.Turns != nil && r.Turns.Level > 0:
		return fmt.Sprintf("%.2g", min(1, r.Turns.P*verdict.Alpha/r.Turns.Level))
	case name == EffectDetail && a.N > 1 && b.N > 1 && math.Hypot(a.Spread, b.Spread) > 0:
		return fmt.Sprintf("%+.1f", (b.Median-a.Median)/(math.Hypot(a.Spread, b.Spread)/math.Sqrt2))
	case name == MagnitudeDetail && r.Deciding && r.Delta > 0 && r.Estimate().Defined():
		return fmt.Sprintf("%.1f ×", math.Abs(r.Estimate().Value)/r.Delta)
	case name == ThresholdDetail && r.Deciding:
		return stats.Percent(r.Delta)
	}
	return absent
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
