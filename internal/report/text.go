package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// WriteText writes the report as tables for a terminal, one for each metric, followed by the summary and the warnings. The
// error is the writer's.
func WriteText(w io.Writer, r Report, s Summary, options TableOptions) error {
	var b strings.Builder
	if len(r.Rows) == 0 {
		b.WriteString("Nothing to compare: there are no series.\n\n")
	}
	for i, rows := range byMetric(r.Rows) {
		writeMetricText(&b, newTable(rows, options), s.Metrics[i], options)
	}
	b.WriteString("Summary\n")
	words := Describe(r, s)
	for _, line := range words.Lines {
		b.WriteString("  " + printable(line) + "\n")
	}
	for _, m := range s.Metrics {
		writeSummaryText(&b, m)
	}
	for _, l := range words.Lists {
		fmt.Fprintf(&b, "  %s (%d):\n", l.Title, l.Count)
		for _, line := range l.Lines {
			fmt.Fprintf(&b, "    %s\n", printable(line))
		}
	}
	for _, note := range words.Notes {
		b.WriteString(printable(note) + "\n")
	}
	if len(words.Warnings) > 0 {
		b.WriteString("\nWarnings\n")
		for _, warning := range words.Warnings {
			fmt.Fprintf(&b, "  %s\n", printable(warning))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

func writeMetricText(b *strings.Builder, t metricTable, m MetricSummary, options TableOptions) {
	cells, widths := t.layout()
	fmt.Fprintf(b, "%s\n", printable(t.title))
	for i, line := range cells {
		var text strings.Builder
		for j, cell := range line {
			padding := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell))
			if i > 0 && options.Color && slices.Contains([]string{"change", "in turns", "verdict"}, t.columns[j].heading) {
				cell = color(t.rows[i-1], cell)
			}
			if t.columns[j].right {
				text.WriteString(padding + cell + "  ")
			} else {
				text.WriteString(cell + padding + "  ")
			}
		}
		fmt.Fprintf(b, "%s\n", strings.TrimRight(text.String(), " "))
	}
	if note := t.hiddenNote(); note != "" {
		fmt.Fprintf(b, "(%s)\n", note)
	}
	fmt.Fprintf(b, "%s\n\n", geometricMean(m))
}

func color(r Row, cell string) string {
	switch r.Direction {
	case Improvement:
		return "\x1b[32m" + cell + "\x1b[0m"
	case Regression:
		return "\x1b[31m" + cell + "\x1b[0m"
	default:
		return cell
	}
}

// summaryLines are the sentences that sum up the whole.
func summaryLines(r Report, s Summary) []string {
	lines := []string{s.Line}
	if s.Hidden != nil {
		lines = append(lines, "hidden by the selection: "+s.Hidden.String())
	}
	spent := ""
	if r.Looks > 0 {
		spent = plural(r.Looks, "look") + ", " + machineTime(r.SpentSeconds) + " of machine time"
		if r.OwnSeconds > 0 {
			spent += fmt.Sprintf(" beside %s for its own jobs", machineTime(r.OwnSeconds))
		}
	}
	switch {
	case r.Provisional && spent != "":
		lines = append(lines, "provisional: suspects are being measured in turns, so far in "+spent)
	case r.Provisional:
		lines = append(lines, "provisional: suspects are being measured in turns")
	case spent != "":
		lines = append(lines, "measured in turns: "+spent)
	}
	if disturbed, pairs := disturbedPairs(r); disturbed > 0 {
		lines = append(lines, fmt.Sprintf("disturbed: %d of %s; these may show a change, but never that there is none", disturbed, plural(pairs, "pair")))
	}
	return lines
}

// disturbedPairs counts the pairs of all test cases, also of hidden rows. The rows of a test case share its pairs.
func disturbedPairs(r Report) (disturbed, pairs int) {
	counted := make(map[stats.TestCase]Turns)
	for _, rows := range [][]Row{r.Rows, r.hidden} {
		for i := range rows {
			if row := &rows[i]; row.Turns != nil && row.Turns.Pairs > counted[row.TestCase].Pairs {
				counted[row.TestCase] = *row.Turns
			}
		}
	}
	for _, t := range counted {
		disturbed, pairs = disturbed+t.Disturbed, pairs+t.Pairs
	}
	return disturbed, pairs
}

// machineTime writes seconds as a person reads them: "40 s", "12 min", "3.5 h".
func machineTime(seconds float64) string {
	switch {
	case 0 < seconds && seconds < 0.5:
		return "less than 1 s"
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 100*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	default:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
}

func writeSummaryText(b *strings.Builder, m MetricSummary) {
	if !m.Deciding {
		return
	}
	fmt.Fprintf(b, "  %s: %s\n", printable(m.Metric), m.Tally)
	for _, line := range m.Changes() {
		b.WriteString("    " + line + "\n")
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
	}
}

func meanCell(g Group) string {
	if g.Defined == 0 {
		return absent
	}
	return stats.SignedPercent(g.Mean)
}

func rangeCell(g Group) string {
	if g.Defined == 0 {
		return absent
	}
	return "[" + stats.SignedPercent(g.Min) + ", " + stats.SignedPercent(g.Max) + "]"
}

// lists returns the lists that are not empty: undecided rows by reason, and test cases of one side.
func lists(r Report, s Summary) []List {
	all := []List{undecided(r)}
	for _, l := range []struct {
		title string
		cases []stats.TestCase
	}{{"Missing in B", s.Missing}, {"Added in B", s.Added}} {
		named := List{Title: l.title, Count: len(l.cases)}
		for _, t := range l.cases {
			named.Lines = append(named.Lines, t.String())
		}
		all = append(all, named)
	}
	return slices.DeleteFunc(all, func(l List) bool { return l.Count == 0 })
}

// namedRows bounds the rows that a reason of undecided ones names.
const namedRows = 3

// undecided lists why rows are undecided and what would decide them, the most frequent reason first.
func undecided(r Report) List {
	l := List{Title: "Undecided"}
	var reasons []string
	rows := map[string][]string{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if !row.Is(verdict.Undecided) {
			continue
		}
		l.Count++
		why := whyCell(*row)
		if rows[why] == nil {
			reasons = append(reasons, why)
		}
		rows[why] = append(rows[why], row.Key.String())
	}
	slices.SortStableFunc(reasons, func(x, y string) int { return len(rows[y]) - len(rows[x]) })
	for _, why := range reasons {
		names := rows[why]
		text := strings.Join(names[:min(len(names), namedRows)], ", ")
		if more := len(names) - namedRows; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		l.Lines = append(l.Lines, text+": "+why)
	}
	return l
}

// notes explain the tables, and say how to get verdicts.
func notes(r Report) []string {
	var out []string
	if len(r.Rows) > 0 {
		note := fmt.Sprintf("Verdicts rest on pairs measured in turns or on exact values (rule %d)", r.Rule)
		if slices.ContainsFunc(r.Rows, func(r Row) bool { return !r.OnlyInTurns }) {
			note += "; change, interval and n describe stored results and decide nothing"
		}
		out = append(out, note+".")
	}
	if r.Hint != "" {
		out = append(out, r.Hint)
	}
	return out
}

func allWarnings(r Report, s Summary) []string {
	warnings := slices.Clone(s.Warnings)
	for i := range r.Rows {
		for _, warning := range r.Rows[i].Warnings {
			warnings = append(warnings, r.Rows[i].Key.String()+": "+warning)
		}
	}
	return warnings
}
