package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchunit"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Sorting is the order of a table's rows within a metric.
type Sorting int

const (
	// ByName sorts by test case.
	ByName Sorting = iota
	// BySize puts the largest relative change first, those without one last.
	BySize
	// ByCertainty puts changed rows first, then undecided ones, no difference and no suspicion, each by size.
	ByCertainty
)

// Sorted returns rows in the given order. Equal rows keep theirs.
func Sorted(list []Row, sorting Sorting) []Row {
	rows := make([]Row, len(list))
	for place, row := range Order(list, sorting) {
		rows[place] = list[row]
	}
	return rows
}

// Order returns the indexes of rows in the given order. Equal rows keep theirs.
func Order(list []Row, sorting Sorting) []int {
	type place struct {
		row       int
		certainty int
		size      float64
	}
	places := make([]place, len(list))
	for i := range list {
		places[i] = place{i, certainty(&list[i]), -1}
		if change := list[i].Estimate(); change.Defined() {
			places[i].size = math.Abs(change.Value)
		}
	}
	slices.SortFunc(places, func(x, y place) int {
		order := 0
		switch sorting {
		case BySize:
			order = cmp.Compare(y.size, x.size)
		case ByCertainty:
			if order = x.certainty - y.certainty; order == 0 {
				order = cmp.Compare(y.size, x.size)
			}
		}
		if order == 0 {
			return x.row - y.row
		}
		return order
	})
	rows := make([]int, len(list))
	for i, p := range places {
		rows[i] = p.row
	}
	return rows
}

// certainty orders verdicts by how much they matter to a reader.
func certainty(r *Row) int {
	order := [...]verdict.Kind{verdict.Changed, verdict.Undecided, verdict.NoDifference, verdict.NoSuspicion}
	for i, k := range order {
		if r.Is(k) {
			return i
		}
	}
	return len(order)
}

// column is a column of a table: its heading, alignment and cells.
type column struct {
	heading string
	right   bool
	cell    func(Row) string
	// detail is set for a column that may move to the heading when all its cells are equal.
	detail bool
	// spare orders the columns that a narrow table leaves out: the smallest above 0 goes first.
	spare int
}

func columns() []column {
	return []column{
		{heading: "benchmark", cell: func(r Row) string { return printable(r.Name()) }},
		{heading: "profile", cell: func(r Row) string { return printable(r.Profile) }, detail: true},
		{heading: "scenario", cell: func(r Row) string { return printable(r.Scenario) }, detail: true},
		{heading: "backend", cell: func(r Row) string { return printable(r.Backend) }, detail: true},
		{heading: "target", cell: func(r Row) string { return printable(r.Target) }, detail: true},
		{heading: "A", right: true, cell: func(r Row) string { return valueCell(r, r.A) }},
		{heading: "B", right: true, cell: func(r Row) string { return valueCell(r, r.B) }},
		{heading: "change", right: true, cell: stored(changeCell)},
		{heading: "interval", right: true, cell: stored(func(r Row) string { return intervalCell(r.Interval) }), spare: 2},
		{heading: "n", right: true, cell: stored(sizeCell), spare: 3},
		{heading: "in turns", right: true, cell: inTurns(turnsCell)},
		{heading: "interval", right: true, cell: inTurns(func(t Turns) string { return intervalCell(t.Interval) })},
		{heading: "pairs", right: true, cell: inTurns(pairsCell)},
		{heading: "noise", cell: func(r Row) string { return printable(r.Noise) }, spare: 1},
		{heading: "verdict", cell: verdictCell},
	}
}

const absent = "-"

// stored returns a cell that describes stored values; empty if there are none.
func stored(cell func(Row) string) func(Row) string {
	return func(r Row) string {
		if r.OnlyInTurns {
			return ""
		}
		return cell(r)
	}
}

// inTurns returns a cell that describes pairs; empty if there are none.
func inTurns(cell func(Turns) string) func(Row) string {
	return func(r Row) string {
		if r.Turns == nil {
			return ""
		}
		return cell(*r.Turns)
	}
}

// valueCell scales both values of a row alike, so that they can be compared at a glance.
func valueCell(r Row, side stats.Side) string {
	if !side.Known() {
		return absent
	}
	return scaled(r, side.Value, r.A.Value, r.B.Value)
}

// scaled writes a value of a row in the scale that suits both sides.
func scaled(r Row, value, a, b float64) string {
	unit, factor := baseUnit(r.Unit)
	if whole := value * factor; r.Exact && whole == math.Trunc(whole) && math.Abs(whole) < 1e15 {
		return joinUnit(benchunit.NoOpScaler.Format(whole), displayUnit(unit)) // every digit matters
	}
	scaler := benchunit.CommonScale([]float64{a * factor, b * factor}, benchunit.ClassOf(unit))
	number := scaler.Format(value * factor)
	number = number[:len(number)-len(scaler.Prefix)]
	return joinUnit(number, scaler.Prefix+displayUnit(unit))
}

// Value writes a value of a metric, scaled to its size, with the sign of its unit: "1.25 ms". The unit is spelled as in
// golang.org/x/perf/benchunit; one that has no sign is left out.
func Value(v float64, unit string) string {
	base, factor := baseUnit(unit)
	scaler := benchunit.CommonScale([]float64{v * factor}, benchunit.ClassOf(base))
	number := scaler.Format(v * factor)
	return joinUnit(strings.TrimSuffix(number, scaler.Prefix), scaler.Prefix+displayUnit(base))
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

// UnitSign returns the sign under which values of a unit are shown, and the factor that converts them to it: "s" and 1e-9
// for "ns". The sign is empty for a unit that is named elsewhere, such as a count.
func UnitSign(unit string) (sign string, factor float64) {
	base, factor := baseUnit(unit)
	return displayUnit(base), factor
}

func changeCell(r Row) string {
	switch {
	case !r.A.Known() || !r.B.Known():
		return absent
	case !r.Change.Defined():
		return "undefined"
	default:
		return stats.SignedPercent(r.Change.Value)
	}
}

func intervalCell(i *stats.Interval) string {
	if i == nil {
		return absent
	}
	return "[" + stats.SignedPercent(i.Low) + ", " + stats.SignedPercent(i.High) + "]"
}

// turnsCell writes the estimate from pairs, without the digits that pairs of times do not have.
func turnsCell(t Turns) string {
	if math.Abs(t.Change) < 0.00005 {
		return stats.SignedPercent(0)
	}
	return stats.SignedPercent(t.Change)
}

// pairsCell writes the pairs, their sessions, and how many were disturbed: "22 in 3, 4 disturbed".
func pairsCell(t Turns) string {
	text := fmt.Sprintf("%d in %d", t.Pairs, t.Sessions)
	if t.Disturbed > 0 {
		text += fmt.Sprintf(", %d disturbed", t.Disturbed)
	}
	return text
}

// verdictCell writes the verdict with its direction or the first words of its reason or, where nothing changed, with what
// would have been seen.
func verdictCell(r Row) string {
	if r.Verdict == nil {
		return ""
	}
	text := r.Verdict.String()
	//exhaustive:enforce
	switch *r.Verdict {
	case verdict.Changed:
		text += ", " + string(r.Direction)
		if r.Against != "" {
			text += " against " + printable(r.Against)
		}
	case verdict.Undecided:
		if r.Provisional {
			return beingMeasured
		}
		if reason, _, _ := strings.Cut(r.Reason, ":"); reason != "" && len(reason) <= shortReason {
			text += ": " + printable(reason)
		}
	case verdict.NoDifference, verdict.NoSuspicion:
		if r.Sees > 0 {
			text += " (sees " + seen(r.Sees) + ")"
		}
	}
	return text
}

// shortReason is the length in bytes of a reason that fits in a cell.
const shortReason = 24

// sizeCell writes the number of values on both sides.
func sizeCell(r Row) string { return fmt.Sprintf("%d+%d", r.A.N, r.B.N) }

// whyCell writes the reason and what would decide.
func whyCell(r Row) string {
	text := r.Reason
	if r.Needs != "" {
		text += "; needs " + r.Needs
	}
	return printable(text)
}

// printable replaces control characters: names come from suites, and a terminal would obey them.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}
