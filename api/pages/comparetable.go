package pages

import (
	"math"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/filter"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// comparedAtOnce bounds the rows of one page of a comparison: each has a line of earlier values.
const comparedAtOnce = 100

// comparedTable is the table of a comparison: the rows that are asked for, in their order.
type comparedTable struct {
	// Search, Only, Metric and All are parameters of the address, Opened is the row that it opens.
	Search, Only, Metric, Opened string
	All                          bool
	Order                        order
	// Tabs are the metrics to choose from.
	Tabs []metricTab
	// Kinds are the values of Only.
	Kinds []string
	// Details are the columns that can be added, Cols those that are.
	Details, Cols []string
	Rows          []comparedRow
	// Facets count the rows that are found, on all pages. GroupKeys are the properties by which
	// they can be grouped, Group is the chosen one and Groups the rows by it.
	Facets    []filter.Facet
	GroupKeys []string
	Group     string
	Groups    []rowGroup
	// Sum sums up the chosen metric, whatever the filter hides; nil: none is chosen.
	Sum *report.MetricSummary
	// Caption names the parameters that all rows share, and the metric if there is only one.
	Caption string
	// ManyMetrics is set if rows are of several metrics.
	ManyMetrics bool
	// Total counts the rows of the chosen metric, Found those that are shown, on all pages, and
	// Others those that show=all would add.
	Total, Found, Others int
	Next                 string
	// NoEarlier is set if earlier values could not be read.
	NoEarlier bool
}

// metricTab is a metric to choose. Metrics that do not decide are offered with all rows.
type metricTab struct {
	Metric   string
	Deciding bool
	// Series counts its rows, Relevant those to look at.
	Series, Relevant int
}

// comparedRow is a row of the table.
type comparedRow struct {
	report.Row
	Text report.Shown
	// Parameters are those that differ between rows.
	Parameters string
	Bar        changeBar
	// Earlier is the line of earlier values.
	Earlier sparkline
	// Extra are the requested details, Runs the runs that measured the test case.
	Extra []detail
	Runs  []runOf
	// Machine leads to what the machine did meanwhile, both sides beside each other; empty: no run is known.
	Machine string
	// rank is its place by certainty.
	rank int
}

// detail is a cell that is shown on request.
type detail struct{ Heading, Text string }

// runOf leads to a run that measured a test case.
type runOf struct {
	Run bench.RunID
	// Of names the side, or says that the run measured in turns.
	Of string
}

// style shows the row's direction if it has one, else its verdict.
func (r comparedRow) style() style {
	switch {
	case r.Direction == report.Regression:
		return styleBad
	case r.Direction == report.Improvement:
		return styleGood
	case r.Is(verdict.Undecided):
		return styleWaiting
	}
	return styleQuiet
}

// onlyKinds are the rows to which a table can be narrowed.
var onlyKinds = []string{string(report.Regression), string(report.Improvement), verdict.Undecided.String()}

const showAll = "all"

// rowDetails are the columns that are shown on request.
var rowDetails = []string{report.MedianDetail, report.SpreadDetail, report.PDetail, report.CorrectedDetail, report.EffectDetail, report.MagnitudeDetail, report.ThresholdDetail, report.SourceDetail}

// detailHeadings are their headings.
var detailHeadings = map[string]string{
	report.MedianDetail: "Change of medians", report.SpreadDetail: "Spread of A, B", report.PDetail: "p, of at most", report.ThresholdDetail: "Least relevant",
	report.CorrectedDetail: "Corrected p, of at most 1 %", report.EffectDetail: "Effect, in standard deviations", report.MagnitudeDetail: "Magnitude, of least relevant",
	report.SourceDetail: "Least relevant by",
}

// comparedColumns returns the columns by which the table can be sorted; the first is the default.
func comparedColumns() []column[comparedRow] {
	columns := []column[comparedRow]{
		by("certainty", func(r comparedRow) int { return r.rank }),
		by("name", func(r comparedRow) string { return r.Name() + " " + r.TestCase.String() }),
		by("metric", func(r comparedRow) string { return r.Metric }),
		by("a", func(r comparedRow) float64 { return r.side(true) }),
		by("b", func(r comparedRow) float64 { return r.side(false) }),
		by("change", func(r comparedRow) float64 {
			if change := r.Estimate(); change.Defined() {
				return change.Value
			}
			return math.Inf(1)
		}),
		by("interval", func(r comparedRow) float64 { // by its width: how exactly the change is known
			if i := r.interval(); i != nil {
				return i.High - i.Low
			}
			return math.Inf(1)
		}),
		by("n", func(r comparedRow) int {
			if r.Turns != nil {
				return 2 * r.Turns.Pairs
			}
			return r.A.N + r.B.N
		}),
	}
	for _, name := range rowDetails {
		if name == report.SourceDetail {
			columns = append(columns, by(name, func(r comparedRow) string { return r.Detail(name) }))
			continue
		}
		columns = append(columns, by(name, func(r comparedRow) float64 {
			if value, known := r.DetailValue(name); known {
				return value
			}
			return math.Inf(1)
		}))
	}
	return columns
}

// side returns the shown value of one side.
func (r comparedRow) side(a bool) float64 {
	switch {
	case r.Turns != nil && a:
		return r.Turns.A.Value
	case r.Turns != nil:
		return r.Turns.B.Value
	case a:
		return r.Row.A.Value
	}
	return r.Row.B.Value
}

// interval returns the shown interval of the change; nil: there is none.
func (r comparedRow) interval() *stats.Interval {
	if r.Turns != nil {
		return r.Turns.Interval
	}
	return r.Row.Interval
}

// readTable reads the parameters of the address, and refuses unknown values.
func readTable(v *visit) (comparedTable, error) {
	t := comparedTable{Search: v.get(searchParameter), Only: v.get(onlyParameter), Metric: v.get(metricParameter), Opened: v.get(openParameter), Kinds: onlyKinds, Details: rowDetails}
	if t.Only != "" && !slices.Contains(onlyKinds, t.Only) {
		return t, badParameter(onlyParameter, t.Only, "it may be "+joined(onlyKinds))
	}
	show := v.get(showParameter)
	if t.All = show == showAll; show != "" && !t.All {
		return t, badParameter(showParameter, show, "it may be "+showAll)
	}
	for _, name := range v.URL.Query()[colsParameter] {
		if !slices.Contains(rowDetails, name) {
			return t, badParameter(colsParameter, name, "it may be "+joined(rowDetails))
		}
		if !slices.Contains(t.Cols, name) {
			t.Cols = append(t.Cols, name)
		}
	}
	t.GroupKeys, t.Group = groupKeys, v.get(groupParameter)
	if t.Group != "" && !slices.Contains(groupKeys, t.Group) {
		return t, badParameter(groupParameter, t.Group, "it may be "+joined(groupKeys))
	}
	var err error
	t.Order, err = sorted(v, nil, comparedColumns()...)
	return t, err
}

// fill chooses and sorts the rows of a comparison. It hides rows and changes none.
func (t *comparedTable) fill(v *visit, c *apiclient.Comparison) error {
	all := c.Result.Rows
	for i := range all {
		r := &all[i]
		at := slices.IndexFunc(t.Tabs, func(tab metricTab) bool { return tab.Metric == r.Metric })
		if at < 0 {
			at, t.Tabs = len(t.Tabs), append(t.Tabs, metricTab{Metric: r.Metric, Deciding: r.Deciding})
		}
		if t.Tabs[at].Series++; r.Remarkable() {
			t.Tabs[at].Relevant++
		}
	}
	if t.Metric != "" && !slices.ContainsFunc(t.Tabs, func(tab metricTab) bool { return tab.Metric == t.Metric }) {
		names := make([]string, len(t.Tabs))
		for i, tab := range t.Tabs {
			names[i] = tab.Metric
		}
		return badParameter(metricParameter, t.Metric, "compared are "+joined(names))
	}
	words := filter.Read(t.Search, filterKeys)
	var rows []comparedRow
	var left []*report.Row // by the filter, relevant or not
	for rank, at := range report.Order(all, report.ByCertainty) {
		r := &all[at]
		if t.Metric != "" && r.Metric != t.Metric {
			continue
		}
		t.Total++
		if t.Search != "" && !shows(words, *r) || t.Only != "" && !isKind(r, t.Only) {
			continue
		}
		left = append(left, r)
		if !t.All && !r.Remarkable() {
			t.Others++
			continue
		}
		rows = append(rows, comparedRow{Row: *r, rank: rank})
	}
	t.Found = len(rows)
	if _, err := sorted(v, rows, comparedColumns()...); err != nil {
		return err
	}
	if t.Group != "" {
		slices.SortStableFunc(rows, func(a, b comparedRow) int {
			return strings.Compare(properties(a.Row, t.Group)[0], properties(b.Row, t.Group)[0])
		})
	}
	t.caption(rows)
	t.Facets = filter.Facets(t.Search, filterKeys, len(rows), func(i int, key string) []string { return properties(rows[i].Row, key) })
	if at := slices.IndexFunc(c.Summary.Metrics, func(m report.MetricSummary) bool { return m.Metric == t.Metric }); at >= 0 {
		t.Sum = &c.Summary.Metrics[at]
	}
	var err error
	if t.Rows, t.Next, err = part(v, rows, comparedAtOnce); err != nil {
		return err
	}
	for i := range t.Rows {
		t.Rows[i].Text = t.Rows[i].Shown()
	}
	drawBars(t.Rows)
	runs := runsOf(c, t.Rows)
	for i, r := range t.Rows {
		for _, name := range t.Cols {
			t.Rows[i].Extra = append(t.Rows[i].Extra, detail{detailHeadings[name], r.Detail(name)})
		}
		if t.Rows[i].Runs = runs[testCase(r.TestCase)]; len(t.Rows[i].Runs) > 0 {
			t.Rows[i].Machine = comparedMachine(c.Project, c.A, c.B, report.RowID(r.Key))
		}
	}
	t.Groups = grouped(t.Rows, left, t.Group)
	return nil
}

// shownRuns bounds the runs of a test case to which a row leads.
const shownRuns = 12

// runsOf lists the runs of the test case of each row, those of A first and those in turns last.
func runsOf(c *apiclient.Comparison, rows []comparedRow) map[bench.TestCase][]runOf {
	runs := make(map[bench.TestCase][]runOf)
	for i := range rows {
		runs[testCase(rows[i].TestCase)] = nil
	}
	for _, inTurns := range []bool{false, true} {
		for i, side := range c.Sides {
			of := []string{"A", "B"}[i]
			if inTurns {
				of = "in turns"
			}
			for k := range side.Runs {
				m := &side.Runs[k]
				if m.InTurns != inTurns {
					continue
				}
				one := runOf{m.Run, of}
				if known, shown := runs[m.TestCase]; shown && len(known) < shownRuns && !slices.Contains(known, one) {
					runs[m.TestCase] = append(known, one)
				}
			}
		}
	}
	return runs
}

// Columns counts the columns of the table.
func (t comparedTable) Columns() int { return 8 + boolean(t.ManyMetrics) + len(t.Cols) }

// Heading returns the heading of a column that is shown on request.
func (t comparedTable) Heading(name string) string { return detailHeadings[name] }

// Shows reports whether a column is shown.
func (t comparedTable) Shows(name string) bool { return slices.Contains(t.Cols, name) }

// isKind reports whether a row is of a kind to which the table can be narrowed.
func isKind(r *report.Row, kind string) bool {
	return string(r.Direction) == kind || r.Verdict != nil && r.Verdict.String() == kind
}

// parameters lists a row's parameters in the order in which they are named.
func parameters(r report.Row) [][2]string {
	return [][2]string{{"profile", r.Profile}, {"scenario", r.Scenario}, {"backend", r.Backend}, {"target", r.Target}}
}

// caption moves what all rows share to the caption.
func (t *comparedTable) caption(rows []comparedRow) {
	if len(rows) == 0 {
		return
	}
	first := rows[0].Row
	t.ManyMetrics = slices.ContainsFunc(rows, func(r comparedRow) bool { return r.Metric != first.Metric })
	var shared []string
	if !t.ManyMetrics {
		shared = append(shared, first.Heading())
	}
	varies := make(map[string]bool)
	for i, p := range parameters(first) {
		varies[p[0]] = slices.ContainsFunc(rows, func(r comparedRow) bool { return parameters(r.Row)[i][1] != p[1] })
		if !varies[p[0]] && p[1] != "" {
			shared = append(shared, p[0]+" "+p[1])
		}
	}
	t.Caption = strings.Join(shared, ", ")
	for i, r := range rows {
		var own []string
		for _, p := range parameters(r.Row) {
			if varies[p[0]] && p[1] != "" {
				own = append(own, p[1])
			}
		}
		rows[i].Parameters = strings.Join(own, " ")
	}
}
