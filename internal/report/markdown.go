package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the report as Markdown, as for a pull request: the summary, the tables of each metric, then what
// is undecided or missing and the warnings. The error is the writer's.
func WriteMarkdown(w io.Writer, r Report, s Summary, options TableOptions) error {
	var b strings.Builder
	words := Describe(r, s)
	if len(r.Rows) == 0 {
		b.WriteString("Nothing to compare: there are no series.\n\n")
	} else {
		fmt.Fprintf(&b, "**%s**\n\n", escape(words.Lines[0]))
		for _, line := range words.Lines[1:] {
			fmt.Fprintf(&b, "%s.\n\n", escape(capitalize(line)))
		}
	}
	if options.Link != "" {
		fmt.Fprintf(&b, "[All rows, their values and how they were measured](%s)\n\n", options.Link)
	}
	options.Width = 0
	for i, rows := range byMetric(r.Rows) {
		m := s.Metrics[i]
		t := newTable(rows, options)
		t.pin()
		fmt.Fprintf(&b, "### %s\n\n", escape(t.title))
		if m.Deciding {
			writeSummaryMarkdown(&b, m)
		}
		t.writeMarkdown(&b)
		if note := t.hiddenNote(); note != "" {
			fmt.Fprintf(&b, "%s. ", capitalize(note))
		}
		fmt.Fprintf(&b, "%s.\n\n", capitalize(geometricMean(m)))
	}
	for _, l := range words.Lists {
		fmt.Fprintf(&b, "### %s (%d)\n\n", l.Title, l.Count)
		for _, line := range l.Lines {
			fmt.Fprintf(&b, "- %s\n", escape(line))
		}
		b.WriteString("\n")
	}
	for i, note := range words.Notes {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n", escape(note))
	}
	if len(words.Warnings) > 0 {
		b.WriteString("\n**Warnings**\n\n")
		for _, warning := range words.Warnings {
			fmt.Fprintf(&b, "- %s\n", escape(warning))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

func writeSummaryMarkdown(b *strings.Builder, m MetricSummary) {
	fmt.Fprintf(b, "%s.\n\n", escape(capitalize(m.Tally.String())))
	if m.Changed == 0 {
		return
	}
	b.WriteString("| | mean | range | count |\n|:--|--:|--:|--:|\n")
	for _, g := range groups(m) {
		if g.group.Count > 0 {
			fmt.Fprintf(b, "| %s | %s | %s | %d |\n", g.title, escape(meanCell(g.group)), escape(rangeCell(g.group)), g.group.Count)
		}
	}
	b.WriteString("\n")
}

func (t *metricTable) writeMarkdown(b *strings.Builder) {
	rule := "|"
	b.WriteString("|")
	for _, c := range t.columns {
		fmt.Fprintf(b, " %s |", c.heading)
		if c.right {
			rule += "--:|"
		} else {
			rule += ":--|"
		}
	}
	fmt.Fprintf(b, "\n%s\n", rule)
	for _, r := range t.rows {
		b.WriteString("|")
		for _, c := range t.columns {
			fmt.Fprintf(b, " %s |", escape(c.cell(r)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// escape keeps names from being read as Markdown: they come from suites, which anyone may write.
var escape = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "~", `\~`,
	"#", `\#`, "@", "@\u200b", "\n", " ", "\r", " ",
).Replace

func capitalize(s string) string {
	return strings.ToUpper(s[:1]) + s[1:]
}
