package stats

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// TableOptions configures the output of a comparison. The zero value is a plain table sorted by name.
type TableOptions struct {
	Sorting Sorting
	// OnlySignificant leaves out rows without a significant difference and states their number.
	OnlySignificant bool
	// Reasons adds the reason for the verdict to every row.
	Reasons bool
	// Color marks improvements and regressions with ANSI escape sequences; never in Markdown.
	Color bool
	// Width is the number of characters in a line. If a table is wider, columns with the same value in every row move to its
	// heading. 0 means no limit. Not used in Markdown.
	Width int
}

// WriteText writes the comparison as tables for a terminal, one for each metric, followed by the summary and the
// warnings. The error is the writer's.
func WriteText(w io.Writer, c Comparison, s Summary, options TableOptions) error {
	var b strings.Builder
	if len(c.Results) == 0 {
		b.WriteString("Nothing to compare: there are no series.\n\n")
	}
	for _, results := range byMetric(c.Results) {
		writeMetricText(&b, results, s, options)
	}
	b.WriteString("Summary\n")
	for _, m := range s.Metrics {
		writeSummaryText(&b, m)
	}
	for _, list := range lists(s) {
		if len(list.cases) > 0 {
			fmt.Fprintf(&b, "  %s (%d):\n", list.title, len(list.cases))
			for _, t := range list.cases {
				fmt.Fprintf(&b, "    %s\n", printable(t.String()))
			}
		}
	}
	b.WriteString(legend(c) + "\n")
	if note := turnsNote(c); note != "" {
		b.WriteString(note + "\n")
	}
	if warnings := allWarnings(c, s); len(warnings) > 0 {
		b.WriteString("\nWarnings\n")
		for _, warning := range warnings {
			fmt.Fprintf(&b, "  %s\n", printable(warning))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

// table selects the rows of one metric and the columns that have content, and counts the hidden rows.
func table(results []Result, options TableOptions) (rows []Result, shown []column, hidden int) {
	rows = sorted(results, options.Sorting)
	if options.OnlySignificant {
		rows = slices.DeleteFunc(rows, func(r Result) bool { return !r.Significant })
		hidden = len(results) - len(rows)
	}
	for _, c := range columns() {
		if c.detail && !slices.ContainsFunc(rows, func(r Result) bool { return c.cell(r) != "" }) {
			continue // a parameter that these benchmarks do not have
		}
		shown = append(shown, c)
	}
	if options.Reasons {
		shown = append(shown, column{heading: "why", cell: func(r Result) string { return r.Why }})
	}
	return rows, shown, hidden
}

func heading(r Result) string {
	if r.Unit == "" {
		return fmt.Sprintf("%s (%s)", r.Metric, r.Better)
	}
	return fmt.Sprintf("%s (%s, %s)", r.Metric, r.Unit, r.Better)
}

func writeMetricText(b *strings.Builder, results []Result, s Summary, options TableOptions) {
	rows, shown, hidden := table(results, options)
	title := heading(results[0])
	cells, widths := layout(rows, shown)
	if options.Width > 0 && lineWidth(widths) > options.Width && len(rows) > 0 {
		var fixed []string
		shown = slices.DeleteFunc(shown, func(c column) bool {
			first := c.cell(rows[0])
			differs := slices.ContainsFunc(rows, func(r Result) bool { return c.cell(r) != first })
			if !c.detail || differs {
				return false
			}
			fixed = append(fixed, c.heading+" "+first)
			return true
		})
		if len(fixed) > 0 {
			title += "; " + strings.Join(fixed, ", ")
		}
		cells, widths = layout(rows, shown)
	}
	fmt.Fprintf(b, "%s\n", printable(title))
	for i, line := range cells {
		var text strings.Builder
		for j, cell := range line {
			padding := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell))
			if i > 0 && options.Color && (shown[j].heading == "change" || shown[j].heading == "verdict") {
				cell = color(rows[i-1], cell)
			}
			if shown[j].right {
				text.WriteString(padding + cell + "  ")
			} else {
				text.WriteString(cell + padding + "  ")
			}
		}
		fmt.Fprintf(b, "%s\n", strings.TrimRight(text.String(), " "))
	}
	if hidden > 0 {
		fmt.Fprintf(b, "(%s without a significant difference not shown)\n", plural(hidden, "row"))
	}
	fmt.Fprintf(b, "%s\n\n", geometricMean(s, results[0].Metric))
}

func geometricMean(s Summary, metric string) string {
	for _, m := range s.Metrics {
		if m.Metric == metric && m.GeometricMean.Defined() {
			return fmt.Sprintf("geometric mean %s over %d series", formatChange(m.GeometricMean), m.GeometricSeries)
		}
	}
	return "no geometric mean: no series has positive values on both sides"
}

// layout returns the cells, the headings first, and the width of each column.
func layout(rows []Result, shown []column) (cells [][]string, widths []int) {
	headings := make([]string, len(shown))
	for i, c := range shown {
		headings[i] = c.heading
	}
	cells = append(cells, headings)
	for _, r := range rows {
		line := make([]string, len(shown))
		for i, c := range shown {
			line[i] = c.cell(r)
		}
		cells = append(cells, line)
	}
	widths = make([]int, len(shown))
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

func color(r Result, cell string) string {
	switch r.Verdict {
	case Improvement:
		return "\x1b[32m" + cell + "\x1b[0m"
	case Regression:
		return "\x1b[31m" + cell + "\x1b[0m"
	default:
		return cell
	}
}

func writeSummaryText(b *strings.Builder, m MetricSummary) {
	attention := ""
	if m.DeservesAttention {
		attention = "; deserves attention"
	}
	fmt.Fprintf(b, "  %s: %s%s\n", m.Metric, m.Direction, attention)
	fmt.Fprintf(b, "    %d of %d series significant, %d confirmed\n", m.Significant, m.Compared, m.Confirmed)
	for _, g := range groups(m) {
		if g.group.Count > 0 {
			fmt.Fprintf(b, "    %s: %d, mean %s, range %s\n", g.title, g.group.Count, meanCell(g.group), rangeCell(g.group))
		}
	}
}

type titledGroup struct {
	title string
	group Group
}

func groups(m MetricSummary) []titledGroup {
	return []titledGroup{
		{"regressions (primary)", m.Primary.Regressions},
		{"regressions (secondary)", m.Secondary.Regressions},
		{"improvements (primary)", m.Primary.Improvements},
		{"improvements (secondary)", m.Secondary.Improvements},
		{"all (primary)", m.Primary.All},
	}
}

func meanCell(g Group) string {
	if g.Defined == 0 {
		return absent
	}
	return formatSigned(g.Mean)
}

func rangeCell(g Group) string {
	if g.Defined == 0 {
		return absent
	}
	return "[" + formatSigned(g.Min) + ", " + formatSigned(g.Max) + "]"
}

type titledList struct {
	title string
	cases []TestCase
}

func lists(s Summary) []titledList {
	return []titledList{
		{"Newly failing", s.NewlyFailing},
		{"No longer failing", s.NoLongerFailing},
		{"Missing in B", s.Missing},
		{"Added in B", s.Added},
	}
}

// legend explains the signs of the tables.
func legend(c Comparison) string {
	return fmt.Sprintf("~ no significant difference; ? nothing to decide by; ! confirmed: holds for all %s together (Holm, %s). "+
		"The interval is that of the values as a whole.", plural(c.Tests, "test"), formatNumber(c.Options.Alpha))
}

// turnsNote returns a note about the series that were measured in turns; empty if none was.
func turnsNote(c Comparison) string {
	n := 0
	for _, r := range c.Results {
		if r.InTurns {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case len(c.Results):
		return "Both sides were measured in turns, iteration by iteration, in the same run."
	}
	return fmt.Sprintf("Both sides of %d of the %d series were measured in turns, iteration by iteration, in the same run.", n, len(c.Results))
}

func allWarnings(c Comparison, s Summary) []string {
	warnings := slices.Clone(s.Warnings)
	for _, r := range c.Results {
		for _, warning := range r.Warnings {
			warnings = append(warnings, r.Key.String()+": "+warning)
		}
	}
	return warnings
}
