package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchunit"
)

// Sorting is the order of a table's rows within a metric.
type Sorting int

const (
	// ByName sorts by test case.
	ByName Sorting = iota
	// BySize puts the largest relative change first, those without one last.
	BySize
	// ByCertainty puts significant rows first, then the smallest p value, then the largest change.
	ByCertainty
)

func sorted(results []Result, sorting Sorting) []Result {
	rows := slices.Clone(results)
	size := func(r Result) float64 {
		if !r.Change.Defined() {
			return -1
		}
		return math.Abs(r.Change.Value)
	}
	slices.SortStableFunc(rows, func(x, y Result) int {
		bySize := cmp.Compare(size(y), size(x))
		switch sorting {
		case BySize:
			return bySize
		case ByCertainty:
			return cmp.Or(cmp.Compare(count(y.Significant), count(x.Significant)), cmp.Compare(x.P, y.P), bySize)
		default:
			return 0
		}
	})
	return rows
}

// column is a column of a table: its heading, alignment and cells.
type column struct {
	heading string
	right   bool
	cell    func(Result) string
	// detail is set for a column that may move to the heading when all its cells are equal.
	detail bool
}

func columns() []column {
	return []column{
		{heading: "benchmark", cell: func(r Result) string { return printable(r.name()) }},
		{heading: "profile", cell: func(r Result) string { return printable(r.Profile) }, detail: true},
		{heading: "scenario", cell: func(r Result) string { return printable(r.Scenario) }, detail: true},
		{heading: "backend", cell: func(r Result) string { return printable(r.Backend) }, detail: true},
		{heading: "target", cell: func(r Result) string { return printable(r.Target) }, detail: true},
		{heading: "A", right: true, cell: func(r Result) string { return valueCell(r, r.A) }},
		{heading: "B", right: true, cell: func(r Result) string { return valueCell(r, r.B) }},
		{heading: "change", right: true, cell: changeCell},
		{heading: "interval", right: true, cell: intervalCell},
		{heading: "p", right: true, cell: pCell},
		{heading: "n", right: true, cell: sizeCell},
		{heading: "verdict", cell: verdictCell},
	}
}

const absent = "-"

// valueCell scales both values of a row alike, so that they can be compared at a glance.
func valueCell(r Result, side Side) string {
	if side.ascending == nil {
		return absent
	}
	unit, factor := baseUnit(r.Unit)
	if whole := side.Value * factor; r.Exact && whole == math.Trunc(whole) && math.Abs(whole) < 1e15 {
		return joinUnit(benchunit.NoOpScaler.Format(whole), displayUnit(unit)) // every digit matters
	}
	class := benchunit.ClassOf(unit)
	scaler := benchunit.CommonScale([]float64{r.A.Value * factor, r.B.Value * factor}, class)
	number := scaler.Format(side.Value * factor)
	number = number[:len(number)-len(scaler.Prefix)]
	return joinUnit(number, scaler.Prefix+displayUnit(unit))
}

func joinUnit(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// baseUnit extends benchunit.Tidy, which knows "ns" and "MB", by other usual spellings of times and sizes.
func baseUnit(unit string) (base string, factor float64) {
	switch unit {
	case "s", "second", "seconds":
		return "sec", 1
	case "ms":
		return "sec", 1e-3
	case "us", "µs":
		return "sec", 1e-6
	case "bytes":
		return "B", 1
	case "KiB":
		return "B", 1 << 10
	case "MiB":
		return "B", 1 << 20
	}
	factor, base = benchunit.Tidy(1, unit)
	return base, factor
}

// displayUnit returns the suffix of a number in base units: times, sizes and rates have a short sign, other units appear
// only in the heading.
func displayUnit(base string) string {
	switch base {
	case "sec":
		return "s"
	case "B", "B/s":
		return base
	default:
		return ""
	}
}

func changeCell(r Result) string {
	switch {
	case r.A.ascending == nil || r.B.ascending == nil:
		return absent
	case !r.Change.Defined():
		return "undefined"
	default:
		return formatChange(r.Change)
	}
}

func intervalCell(r Result) string {
	if r.Interval == nil {
		return absent
	}
	return "[" + formatSigned(r.Interval.Low) + ", " + formatSigned(r.Interval.High) + "]"
}

func pCell(r Result) string {
	switch {
	case r.Basis == ByEquality:
		return "exact"
	case r.Tested:
		return formatP(r.P)
	default:
		return absent
	}
}

// verdictCell writes the direction of the values as a sign and the verdict as a word; a trailing "!" means confirmed. "~" is
// the usual sign for no significant difference.
func verdictCell(r Result) string {
	switch r.Verdict {
	case NoDifference:
		return "~"
	case Undecided:
		return "? " + r.Verdict.String()
	}
	sign := "+ "
	if r.B.Value < r.A.Value {
		sign = "- "
	}
	text := sign + r.Verdict.String()
	if r.Magnitude != MagnitudeUndefined {
		text += ", " + r.Magnitude.String()
	}
	if r.Confirmed {
		text += " !"
	}
	return text
}

// sizeCell writes the number of values on both sides.
func sizeCell(r Result) string { return fmt.Sprintf("%d+%d", r.A.N, r.B.N) }

// printable replaces control characters: names come from suites, and a terminal would obey them.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}
