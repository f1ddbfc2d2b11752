package pages

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/filter"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
)

// openedRow is a row under its own address, with all that is known of it.
type openedRow struct {
	comparedRow
	ID string
	// Lost is set if the comparison has no such row (any more); nothing else is set then.
	Lost bool
	// Facts are the figures that the verdict rests on.
	Facts []fact
	// Values of both sides, in the order of measuring; More is set if there are others.
	Values []openedValue
	More   bool
	Plot   valuePlot
	// Loads and Elsewhere are set if a value has a load or steal, or was measured in another
	// surrounding.
	Loads, Elsewhere bool
	// Commands do on the command line what the page does.
	Commands []fact
	// Again leads to the preview of measuring B again; empty: its request has not ended, or is not known.
	Again string
	// Turns measures both sides in turns.
	Turns act
	// Profile makes profiles of both sides; nil: the suite has no profiler for the benchmark.
	Profile *act
	// History leads to the history of the benchmark.
	History string
	// API is the address at which the API lists the values.
	API string
	// Beside leads to what the machine did meanwhile, both sides beside each other.
	Beside string
	// Pairs leads to the row with the values on which the verdict rests, if it is about an
	// artifact before A, which Pairs names; nil: they are here.
	Pairs *link
}

// Judged is the row with its verdict, as the table shows it.
func (o openedRow) Judged() comparedRow { return o.comparedRow }

// openedValue is one value of an opened row.
type openedValue struct {
	apiclient.ComparedValue
	// Side is "A" or "B", Text the value.
	Side, Text string
	// Load and Steal are shares in percent; empty: not recorded.
	Load, Steal string
}

// shownValues bounds the values of an opened row that are listed and drawn.
const shownValues = 1000

// readOpen reads what the address opens: the Markdown of the comparison, or a row.
func readOpen(v *visit) (key *stats.Key, err error) {
	open := v.get(openParameter)
	if open == "" || open == openMarkdown {
		return nil, nil
	}
	k, err := report.ParseRowID(open)
	if err != nil {
		return nil, badParameter(openParameter, open, "it may be "+openMarkdown+", or the ID of a row as the rows of this page link to it")
	}
	return &k, nil
}

// open adds the row that the address opens.
func (c *compareView) open(p *Pages, v *visit, key stats.Key) error {
	o := openedRow{ID: report.RowID(key)}
	c.Opened = &o
	at := slices.IndexFunc(c.Compared.Result.Rows, func(r report.Row) bool { return r.Key == key })
	if at < 0 {
		o.Lost = true
		return nil
	}
	row := c.Compared.Result.Rows[at]
	o.comparedRow = comparedRow{Row: row, Text: row.Shown(), Parameters: testCase(row.TestCase).String()}
	o.Facts = figures(row)
	answered, err := v.api.ComparedValues(v.Context(), c.Project, c.A.Tag, c.B.Tag, o.ID)
	if err != nil {
		return err
	}
	o.More = answered.More || len(answered.Values) > shownValues
	for _, value := range answered.Values[:min(len(answered.Values), shownValues)] {
		one := openedValue{ComparedValue: value, Side: "B", Text: row.ValueText(value.Value), Load: shareText(value.Load), Steal: shareText(value.Steal)}
		if value.Side == aParameter {
			one.Side = "A"
		}
		if value.NotFinite != "" {
			one.Text = value.NotFinite
		}
		o.Loads = o.Loads || one.Load != "" || one.Steal != ""
		o.Elsewhere = o.Elsewhere || value.Elsewhere
		o.Values = append(o.Values, one)
	}
	o.Plot = plotValues(row, o.Values)
	o.API = "/api/v1/compare/values?" + url.Values{"project": {c.Project}, aParameter: {c.A.Tag}, bParameter: {c.B.Tag}, "row": {o.ID}}.Encode()
	if row.Against != "" {
		o.Pairs = &link{comparison(c.Project, row.Against, c.B.Tag) + "&" + url.Values{openParameter: {o.ID}}.Encode() + "#row", row.Against}
	}
	o.History, o.Beside = historyOf(c.Project, row), comparedMachine(c.Project, c.A.Tag, c.B.Tag, o.ID)
	if err := c.offerProfiling(p, v, &o, answered.Profilers); err != nil {
		return err
	}
	return c.offerMeasuring(p, v, &o, answered.Turns)
}

// figures lists in words the grounds of a row's verdict.
func figures(r report.Row) []fact {
	var facts []fact
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, fact{name, text})
		}
	}
	interval := func(i *stats.Interval) string {
		if i == nil {
			return ""
		}
		return fmt.Sprintf("[%s, %s], at %s", stats.SignedPercent(i.Low), stats.SignedPercent(i.High), stats.Percent(i.Confidence))
	}
	side := func(s stats.Side) string {
		if s.N == 0 {
			return ""
		}
		return fmt.Sprintf("%s of %s; median %s, from %s to %s", r.ValueText(s.Value), plural(s.N, "value"), r.ValueText(s.Median), r.ValueText(s.Min), r.ValueText(s.Max))
	}
	add("Suspicion", r.Suspicion)
	if t := r.Turns; t != nil {
		add("Change in turns", stats.SignedPercent(t.Change))
		add("Interval in turns", interval(t.Interval))
		add("Pairs", fmt.Sprintf("%d in %s, %d of them disturbed", t.Pairs, plural(t.Sessions, "session"), t.Disturbed))
		if t.Level > 0 {
			add("p", fmt.Sprintf("%.2g, which must be below %.2g", t.P, t.Level))
		}
		add("A in turns", side(t.A))
		add("B in turns", side(t.B))
	}
	if !r.OnlyInTurns {
		add("A, stored", side(r.A))
		add("B, stored", side(r.B))
		if r.A.N > 0 && r.B.N > 0 && r.Change.Defined() {
			add("Change, stored", stats.SignedPercent(r.Change.Value))
		}
		add("Interval, stored", interval(r.Interval))
		add("No interval, stored", r.NoInterval)
	}
	if r.Deciding {
		add("Least relevant change", stats.Percent(r.Delta))
	}
	if r.Sees > 0 {
		add("Would have seen", stats.Percent(r.Sees))
	}
	add("Noise", r.Noise)
	if r.Against != "" {
		add("Compared with", r.Against)
	}
	return facts
}

// historyOf leads to the history of a row's benchmark and metric.
func historyOf(project string, r report.Row) string {
	words := "benchmark:" + filter.Word(r.Benchmark)
	if r.Line != "" {
		words += " line:" + filter.Word(r.Line)
	}
	return historyAddress(project) + "?" + url.Values{metricParameter: {r.Metric}, searchParameter: {words}}.Encode()
}

// offerMeasuring says how to measure the row again, and to repeat what the page shows.
func (c *compareView) offerMeasuring(p *Pages, v *visit, o *openedRow, would apiclient.TurnsPreview) error {
	selection := []string{"--benchmark", o.Benchmark}
	fields := []field{{aParameter, c.A.Tag}, {bParameter, c.B.Tag}, {"row", o.ID}}
	for _, parameter := range parameters(o.Row) {
		if parameter[1] != "" {
			selection = append(selection, "--"+parameter[0], parameter[1])
		}
	}
	command := func(words ...string) string { return quoted(append(words, selection...)...) }
	o.Commands = []fact{
		{"Compare", quoted(append(append([]string{"benchloom", "compare", c.Project, c.A.Tag, c.B.Tag}, selection...), "--metric", o.Metric)...)},
		{"Read all values", quoted("benchloom", "results", "export", c.Project, "--tag", c.A.Tag, "--tag", c.B.Tag, "-o", "csv")},
	}
	if r := c.B.Request; r != nil && r.Status == bench.Completed {
		o.Again = "/requests/" + segments(r.ID) + "/again?" + url.Values{"benchmark": {o.Benchmark}}.Encode()
		o.Commands = append(o.Commands, fact{"Measure B again", quoted("benchloom", "request", "remeasure", string(r.ID), "--benchmark", o.Benchmark)})
	}
	o.Commands = append(o.Commands, fact{"Measure in turns", command("benchloom", "submit", "--adhoc", c.Project, c.B.Tag, "--vs", c.A.Tag) + " --reason WHY"})
	var err error
	o.Turns, err = p.offer(v, rightToWrite, c.Project, act{
		Name: "turns", Title: "Measure in turns", Address: "/projects/" + segments(c.Project) + "/turns", Fields: fields,
		About: "Makes an ad-hoc request that measures this test case of both artifacts in turns, look by look, until its metrics are decided. " + cost(would),
	})
	return err
}

// cost says what measuring in turns would take.
func cost(would apiclient.TurnsPreview) string {
	if len(would.Looks) == 0 {
		return "" // a service that does not tell the cost
	}
	text := fmt.Sprintf("That takes %d to %d pairs of iterations, in %d looks at most", would.Looks[0], would.Looks[len(would.Looks)-1], len(would.Looks))
	if would.AtMostSeconds <= 0 {
		return text + "; how long an iteration takes is not known."
	}
	return fmt.Sprintf("%s; about %s to %s of machine time, as long as the iterations so far took, and what prepares them.", text, seconds(would.AtLeastSeconds), seconds(would.AtMostSeconds))
}

// testCase returns the test case that a row names.
func testCase(tc stats.TestCase) bench.TestCase {
	return bench.TestCase{Benchmark: tc.Benchmark, Profile: tc.Profile, Scenario: tc.Scenario, Backend: tc.Backend, Target: bench.Target(tc.Target)}
}

// measureInTurns makes the request that an opened row offers.
func (p *Pages) measureInTurns(v *visit) (string, error) {
	key, err := report.ParseRowID(v.PostFormValue("row"))
	if err != nil {
		return "", badParameter("row", v.PostFormValue("row"), "open a row of the comparison, and send its form")
	}
	wanted := apiclient.NewRequest{
		Project: v.PathValue("project"), Type: bench.AdHoc, Tag: v.PostFormValue(bParameter), Versus: v.PostFormValue(aParameter), IdempotencyKey: v.PostFormValue("key"), Reason: v.sent().Reason,
		Selection: selectionOf(testCase(key.TestCase)),
	}
	made, err := v.api.CreateRequest(v.Context(), wanted)
	return "/requests/" + segments(made.ID), err
}

// selectionOf selects one test case.
func selectionOf(tc bench.TestCase) bench.Selection {
	only := func(name string) []string {
		if name == "" {
			return nil
		}
		return []string{name}
	}
	s := bench.Selection{Benchmarks: only(tc.Benchmark), Profiles: only(tc.Profile), Scenarios: only(tc.Scenario), Backends: only(tc.Backend)}
	if tc.Target != "" {
		s.Targets = []bench.Target{tc.Target}
	}
	return s
}

// valuePlot draws the values of a row in the order of measuring.
type valuePlot struct {
	Marks []valueMark
	// High and Low name the upper and the lower edge; empty: there is nothing to draw.
	High, Low string
}

// valueMark is a value of the plot.
type valueMark struct {
	X, Y  float64
	Class string
	// Cross is a path instead of a circle, for disturbed iterations; empty: it is a circle.
	Cross string
	Title string
}

// Size of the plot of values, in its own units.
const (
	plotWidth  = 600.0
	plotHeight = 160.0
	plotMargin = 10.0
)

// plotValues draws the finite values that are compared: A as rings, B as dots, disturbed
// ones as crosses.
func plotValues(r report.Row, values []openedValue) valuePlot {
	values = slices.DeleteFunc(slices.Clone(values), func(v openedValue) bool { return v.Elsewhere || v.NotFinite != "" })
	if len(values) == 0 {
		return valuePlot{}
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v.Value), max(high, v.Value)
	}
	x := func(i int) float64 {
		return round(plotMargin + (plotWidth-2*plotMargin)*float64(i)/float64(max(1, len(values)-1)))
	}
	y := func(value float64) float64 {
		share := 0.5 // all are equal
		if high > low {
			share = (value/2 - low/2) / (high/2 - low/2)
		}
		return round(plotHeight - plotMargin - (plotHeight-2*plotMargin)*share)
	}
	plot := valuePlot{High: r.ValueText(high), Low: r.ValueText(low)}
	for i, v := range values {
		m := valueMark{X: x(i), Y: y(v.Value), Class: v.ComparedValue.Side, Title: v.Side + ", " + v.Text}
		if v.Disturbed != "" {
			m.Cross = fmt.Sprintf("M%g %gl8 8m0 -8l-8 8", m.X-4, m.Y-4)
			m.Title += ", disturbed"
		}
		plot.Marks = append(plot.Marks, m)
	}
	return plot
}

func shareText(share *float64) string {
	if share == nil {
		return ""
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + " %"
}
