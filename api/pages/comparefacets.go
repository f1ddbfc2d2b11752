package pages

import (
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/report"
)

// properties returns the values of a row for a key of [filterKeys].
func properties(r report.Row, key string) []string {
	switch key {
	case "benchmark":
		return []string{r.Benchmark}
	case "line":
		return []string{r.Line}
	case "profile":
		return []string{r.Profile}
	case "scenario":
		return []string{r.Scenario}
	case "backend":
		return []string{r.Backend}
	case "target":
		return []string{r.Target}
	case "metric":
		return []string{r.Metric}
	case "category":
		return []string{string(r.Category)}
	case "noise":
		return strings.Split(r.Noise, ", ")
	case "verdict":
		if r.Verdict != nil {
			return []string{r.Verdict.String()}
		}
	}
	return nil
}

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}

// groupKeys are the properties by which rows are grouped.
var groupKeys = []string{"benchmark", "line", "profile", "scenario", "backend", "target", "metric", "category"}

// rowGroup has rows that share a property, and their summary.
type rowGroup struct {
	// Name is the shared value; empty: the rows are not grouped, or have none.
	Name string
	// Series counts all rows of the group that the filter leaves, including those on other pages and
	// those that show neither a change nor a suspicion.
	Series int
	Tally  report.Tally
	// Means are the geometric means, a line for each metric.
	Means []string
	Rows  []comparedRow
}

// grouped splits rows of one page by a property; they are sorted by it. All are the rows
// that the filter leaves on any page, relevant or not.
func grouped(rows []comparedRow, all []*report.Row, key string) []rowGroup {
	if key == "" {
		return []rowGroup{{Rows: rows}}
	}
	of := make(map[string][]report.Row)
	for _, r := range all {
		name := properties(*r, key)[0]
		of[name] = append(of[name], *r)
	}
	var groups []rowGroup
	for _, r := range rows {
		name := properties(r.Row, key)[0]
		if len(groups) == 0 || groups[len(groups)-1].Name != name {
			g := rowGroup{Name: name, Series: len(of[name])}
			// Summaries need the order of a report: by metric.
			slices.SortStableFunc(of[name], func(a, b report.Row) int { return strings.Compare(a.Metric, b.Metric) })
			sum := report.Summarize(report.Report{Rows: of[name]}, report.TestCases{})
			g.Tally = sum.Tally
			for _, m := range sum.Metrics {
				text := m.Mean()
				if len(sum.Metrics) > 1 {
					text = clip(m.Metric) + ": " + text
				}
				g.Means = append(g.Means, text)
			}
			groups = append(groups, g)
		}
		last := &groups[len(groups)-1]
		last.Rows = append(last.Rows, r)
	}
	return groups
}
