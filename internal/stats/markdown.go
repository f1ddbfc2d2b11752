package stats

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the comparison as Markdown, as for a pull request: the summary of each metric, lists of failed
// and missing test cases, then the tables and the warnings. The error is the writer's.
func WriteMarkdown(w io.Writer, c Comparison, s Summary, options TableOptions) error {
	var b strings.Builder
	for _, list := range lists(s) {
		if len(list.cases) > 0 {
			fmt.Fprintf(&b, "### %s (%d)\n\n", list.title, len(list.cases))
			for _, t := range list.cases {
				fmt.Fprintf(&b, "- %s\n", escape(t.String()))
			}
			b.WriteString("\n")
		}
	}
	if len(c.Results) == 0 {
		b.WriteString("Nothing to compare: there are no series.\n\n")
	}
	for i, results := range byMetric(c.Results) {
		if i < len(s.Metrics) {
			writeSummaryMarkdown(&b, s.Metrics[i], heading(results[0]))
		}
		rows, shown, hidden := table(results, options)
		writeRowsMarkdown(&b, rows, shown)
		if hidden > 0 {
			fmt.Fprintf(&b, "%s without a significant difference not shown. ", plural(hidden, "row"))
		}
		fmt.Fprintf(&b, "%s.\n\n", capitalize(geometricMean(s, results[0].Metric)))
	}
	fmt.Fprintf(&b, "%s\n", escape(legend(c)))
	if note := turnsNote(c); note != "" {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	if warnings := allWarnings(c, s); len(warnings) > 0 {
		b.WriteString("\n**Warnings**\n\n")
		for _, warning := range warnings {
			fmt.Fprintf(&b, "- %s\n", escape(warning))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

func writeSummaryMarkdown(b *strings.Builder, m MetricSummary, title string) {
	fmt.Fprintf(b, "### %s\n\n%s", escape(title), capitalize(m.Direction.String()))
	if m.DeservesAttention {
		b.WriteString(", deserves attention")
	}
	fmt.Fprintf(b, ". %d of %d series significant, %d confirmed.\n\n", m.Significant, m.Compared, m.Confirmed)
	b.WriteString("| | mean | range | count |\n|:--|--:|--:|--:|\n")
	for _, g := range groups(m) {
		fmt.Fprintf(b, "| %s | %s | %s | %d |\n", g.title, escape(meanCell(g.group)), escape(rangeCell(g.group)), g.group.Count)
	}
	b.WriteString("\n")
}

func writeRowsMarkdown(b *strings.Builder, rows []Result, shown []column) {
	if len(rows) == 0 {
		return
	}
	rule := "|"
	b.WriteString("|")
	for _, c := range shown {
		fmt.Fprintf(b, " %s |", c.heading)
		if c.right {
			rule += "--:|"
		} else {
			rule += ":--|"
		}
	}
	fmt.Fprintf(b, "\n%s\n", rule)
	for _, r := range rows {
		b.WriteString("|")
		for _, c := range shown {
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
