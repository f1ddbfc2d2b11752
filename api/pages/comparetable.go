package pages

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/verdict"
)

// comparedTable is the table of a comparison: the rows that are asked for, in their order.
type comparedTable struct {
	// Search, Only, Metric and All are what the address asks for.
	Search, Only, Metric string
	All                  bool
	Order                order
	// Tabs are the metrics to choose from.
	Tabs []metricTab
	// Kinds are the values of Only.
	Kinds []string
	Rows  []comparedRow
	// Caption names the parameters that all rows share, and the metric if there is one.
	Caption string
	// ManyMetrics is set if rows are of several metrics.
	ManyMetrics bool
	// Total counts the rows of the chosen metric, Found those that are shown, on all pages, and
	// Others those that show=all would add.
	Total, Found, Others int
	Next                 string
}

// metricTab is a metric to choose.
type metricTab struct {
	Metric string
	// Series counts its rows, Relevant those to look at.
	Series, Relevant int
}

// comparedRow is a row of the table.
type comparedRow struct {
	report.Row
	Text report.Shown
	// Parameters are those that are not the same in all rows.
	Parameters string
	Bar        changeBar
	// rank is its place by certainty.
	rank int
}

// look is that of the row's verdict, and of its direction before all.
func (r comparedRow) look() look {
	switch {
	case r.Direction == report.Regression:
		return looksBad
	case r.Direction == report.Improvement:
		return looksGood
	case r.Is(verdict.Undecided):
		return looksWaiting
	}
	return looksQuiet
}

// onlyKinds are the rows to which a table can be narrowed.
var onlyKinds = []string{string(report.Regression), string(report.Improvement), verdict.Undecided.String()}

const showAll = "all"

// comparedColumns are the columns by which the table is sorted; the first is the default.
func comparedColumns() []column[comparedRow] {
	return []column[comparedRow]{
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
		by("n", func(r comparedRow) int {
			if r.Turns != nil {
				return 2 * r.Turns.Pairs
			}
			return r.A.N + r.B.N
		}),
	}
}

// side is the value of one side as it is shown.
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

// readTable reads what the address asks for, and refuses what it does not know.
func readTable(v *visit) (comparedTable, error) {
	t := comparedTable{Search: v.get(searchParameter), Only: v.get(onlyParameter), Metric: v.get(metricParameter), Kinds: onlyKinds}
	if t.Only != "" && !slices.Contains(onlyKinds, t.Only) {
		return t, badParameter(onlyParameter, t.Only, "it may be "+joined(onlyKinds))
	}
	show := v.get(showParameter)
	if t.All = show == showAll; show != "" && !t.All {
		return t, badParameter(showParameter, show, "it may be "+showAll)
	}
	var err error
	t.Order, err = sorted(v, nil, comparedColumns()...)
	return t, err
}

// fill chooses and sorts the rows of a comparison. It hides rows and changes none.
func (t *comparedTable) fill(v *visit, all []report.Row) error {
	for _, r := range all {
		at := slices.IndexFunc(t.Tabs, func(tab metricTab) bool { return tab.Metric == r.Metric })
		if at < 0 {
			at, t.Tabs = len(t.Tabs), append(t.Tabs, metricTab{Metric: r.Metric})
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
	filter := readFilter(t.Search)
	var rows []comparedRow
	for rank, r := range report.Sorted(all, report.ByCertainty) {
		if t.Metric != "" && r.Metric != t.Metric {
			continue
		}
		t.Total++
		if !filter.shows(r) || t.Only != "" && !isKind(r, t.Only) {
			continue
		}
		if !t.All && !r.Remarkable() {
			t.Others++
			continue
		}
		rows = append(rows, comparedRow{Row: r, Text: r.Shown(), rank: rank})
	}
	t.Found = len(rows)
	if _, err := sorted(v, rows, comparedColumns()...); err != nil {
		return err
	}
	t.caption(rows)
	var err error
	if t.Rows, t.Next, err = part(v, rows); err != nil {
		return err
	}
	drawBars(t.Rows)
	return nil
}

// isKind reports whether a row is of a kind to which the table can be narrowed.
func isKind(r report.Row, kind string) bool {
	return string(r.Direction) == kind || r.Verdict != nil && r.Verdict.String() == kind
}

// parameters are those of a row, in the order in which they are named.
func parameters(r report.Row) [][2]string {
	return [][2]string{{"profile", r.Profile}, {"scenario", r.Scenario}, {"backend", r.Backend}, {"target", r.Target}}
}

// caption moves what is the same in all rows to the caption.
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

// filter narrows a table by words. A word is part of a name or of the verdict, key:value
// names a parameter, and a minus before either leaves out what it matches.
type filter []condition

type condition struct {
	not        bool
	key, value string
}

// filterKeys are the keys of key:value.
var filterKeys = []string{"benchmark", "profile", "scenario", "backend", "target", "metric", "category", "verdict", "noise"}

func readFilter(text string) filter {
	var f filter
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		var c condition
		if rest, not := strings.CutPrefix(word, "-"); not && rest != "" {
			c.not, word = true, rest
		}
		c.value = word
		if key, value, ok := strings.Cut(word, ":"); ok && slices.Contains(filterKeys, key) {
			c.key, c.value = key, value
		}
		f = append(f, c)
	}
	return f
}

// shows reports whether all conditions hold for a row.
func (f filter) shows(r report.Row) bool {
	return !slices.ContainsFunc(f, func(c condition) bool { return c.holds(r) == c.not })
}

func (c condition) holds(r report.Row) bool {
	has := func(values ...string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.ToLower(v) == c.value })
	}
	verdicts := []string{string(r.Direction)}
	if r.Verdict != nil {
		verdicts = append(verdicts, r.Verdict.String(), strings.ReplaceAll(r.Verdict.String(), " ", "-"))
	}
	switch c.key {
	case "benchmark":
		return has(r.Benchmark)
	case "profile":
		return has(r.Profile)
	case "scenario":
		return has(r.Scenario)
	case "backend":
		return has(r.Backend)
	case "target":
		return has(r.Target)
	case "metric":
		return has(r.Metric)
	case "category":
		return has(string(r.Category))
	case "noise":
		return has(strings.Split(r.Noise, ", ")...)
	case "verdict":
		return has(verdicts...)
	}
	texts := append(verdicts, r.Name(), r.Benchmark, r.Line, r.Profile, r.Scenario, r.Backend, r.Target, r.Metric, r.Noise)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), c.value) })
}

// changeBar draws a change with its interval around zero, in a box as wide as [barWidth].
type changeBar struct {
	// Band is what would not have been seen or does not matter, Interval what the values
	// allow, Value the estimate; a width of 0 is not drawn.
	Band, Interval span
	Value          float64
	// Drawn is set if there is an estimate.
	Drawn bool
	Class string
}

type span struct{ X, Width float64 }

const (
	barWidth = 200.0
	barZero  = barWidth / 2
)

// drawBars draws all rows in one scale, in which the largest estimate fits. Intervals that
// are wider end at the edge.
func drawBars(rows []comparedRow) {
	largest := 0.0
	for _, r := range rows {
		if change := r.Estimate(); change.Defined() {
			largest = max(largest, math.Abs(change.Value))
		}
		largest = max(largest, r.Delta)
	}
	if largest == 0 {
		largest = 0.01
	}
	scale := barZero * 0.9 / largest
	at := func(change float64) float64 { return round(min(barWidth, max(0, barZero+scale*change))) }
	between := func(low, high float64) span { return span{at(low), round(at(high) - at(low))} }
	for i, r := range rows {
		band := max(r.Delta, r.Sees)
		b := changeBar{Band: between(-band, band), Class: map[report.Direction]string{report.Regression: "bad", report.Improvement: "good"}[r.Direction]}
		interval := r.Row.Interval
		if r.Turns != nil {
			interval = r.Turns.Interval
		}
		if interval != nil {
			b.Interval = between(interval.Low, interval.High)
		}
		if change := r.Estimate(); change.Defined() && r.Text.Change != "-" {
			b.Drawn, b.Value = true, at(change.Value)
		}
		b.Class = cmp.Or(b.Class, "quiet")
		rows[i].Bar = b
	}
}

// round keeps the coordinates of drawings short.
func round(x float64) float64 { return math.Round(10*x) / 10 }
