package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/stats"
)

// TableOptions configures the output of a comparison. The zero value is a plain table sorted by name.
type TableOptions struct {
	Sorting Sorting
	// OnlyRemarkable leaves out rows that raised no suspicion and exact values that did not change, and states their number.
	// If that leaves no row of a metric, the rows with the largest changes are shown nevertheless.
	OnlyRemarkable bool
	// Reasons adds the reason for the verdict to every row.
	Reasons bool
	// Color marks improvements and regressions with ANSI escape sequences; never in Markdown.
	Color bool
	// Width is the number of characters in a line. If a table is wider, columns with the same value in every row move to its
	// heading, and the least important columns are left out. 0 means no limit. Not used in Markdown.
	Width int
	// Link is the address of the comparison's page, to which Markdown leads; empty: it has none.
	Link string
}

// leastRows is the number of rows that a table shows if none is remarkable.
const leastRows = 5

// metricTable is the table of one metric.
type metricTable struct {
	title   string
	rows    []Row
	columns []column
	hidden  int
}

// newTable selects the rows of one metric and the columns that have content, and counts the hidden rows.
func newTable(rows []Row, options TableOptions) metricTable {
	t := metricTable{title: heading(rows[0]), rows: Sorted(rows, options.Sorting)}
	if options.OnlyRemarkable {
		t.rows = remarkableRows(t.rows)
		t.hidden = len(rows) - len(t.rows)
	}
	for _, c := range columns() {
		if !slices.ContainsFunc(t.rows, func(r Row) bool { return c.cell(r) != "" }) {
			continue // such as a parameter that these benchmarks do not have
		}
		t.columns = append(t.columns, c)
	}
	if options.Reasons {
		t.columns = append(t.columns, column{heading: "why", cell: whyCell})
	}
	if options.Width > 0 {
		t.narrow(options.Width)
	}
	return t
}

// remarkableRows returns the remarkable rows in the given order; without any, the few with the largest changes.
func remarkableRows(rows []Row) []Row {
	remarkable := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return !r.Remarkable() })
	if len(remarkable) > 0 || len(rows) <= leastRows {
		if len(remarkable) > 0 {
			return remarkable
		}
		return rows
	}
	largest := Sorted(rows, BySize)[:leastRows]
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
		return !slices.ContainsFunc(largest, func(l Row) bool { return l.Key == r.Key })
	})
}

// narrow makes the table fit the width as far as it can.
func (t *metricTable) narrow(width int) {
	if _, widths := t.layout(); lineWidth(widths) <= width {
		return
	}
	t.pin()
	for {
		if _, widths := t.layout(); lineWidth(widths) <= width {
			return
		}
		least, at := math.MaxInt, -1
		for i, c := range t.columns {
			if c.spare > 0 && c.spare < least {
				least, at = c.spare, i
			}
		}
		if at < 0 {
			return
		}
		t.columns = slices.Delete(t.columns, at, at+1)
	}
}

// pin moves the columns of parameters that have the same value in every row to the title.
func (t *metricTable) pin() {
	if len(t.rows) == 0 {
		return
	}
	var fixed []string
	t.columns = slices.DeleteFunc(t.columns, func(c column) bool {
		first := c.cell(t.rows[0])
		if !c.detail || slices.ContainsFunc(t.rows, func(r Row) bool { return c.cell(r) != first }) {
			return false
		}
		fixed = append(fixed, c.heading+" "+first)
		return true
	})
	if len(fixed) > 0 {
		t.title += "; " + strings.Join(fixed, ", ")
	}
}

// layout returns the cells, the headings first, and the width of each column.
func (t *metricTable) layout() (cells [][]string, widths []int) {
	headings := make([]string, len(t.columns))
	for i, c := range t.columns {
		headings[i] = c.heading
	}
	cells = append(cells, headings)
	for _, r := range t.rows {
		line := make([]string, len(t.columns))
		for i, c := range t.columns {
			line[i] = c.cell(r)
		}
		cells = append(cells, line)
	}
	widths = make([]int, len(t.columns))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return cells, widths
}

func lineWidth(widths []int) int {
	total := 2 * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	return total
}

// hiddenNote says how many rows the table leaves out; empty if none.
func (t *metricTable) hiddenNote() string {
	if t.hidden == 0 {
		return ""
	}
	return plural(t.hidden, "row") + " without suspicion or change not shown"
}

func heading(r Row) string {
	text := r.Metric + " ("
	if r.Unit != "" {
		text += r.Unit + ", "
	}
	text += r.Better.String() + ")"
	if !r.Deciding {
		text += ": explains, not judged"
	}
	return text
}

// geometricMean writes the geometric mean of a metric, and why it may be no verdict.
func geometricMean(m MetricSummary) string {
	if !m.GeometricMean.Defined() {
		return "no geometric mean: " + m.GeometricMean.Undefined
	}
	text := fmt.Sprintf("geometric mean %s over %d series", stats.SignedPercent(m.GeometricMean.Value), m.GeometricSeries)
	if m.GeometricRemark != "" {
		text += ": " + m.GeometricRemark
	}
	return text
}
