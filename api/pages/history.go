package pages

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/chart"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
)

// historyAPI backs the history page.
type historyAPI interface {
	History(ctx context.Context, project string, q apiclient.HistoryQuery) (apiclient.History, error)
}

// Parameters of the history page.
const (
	typeParameter  = "type"
	fromParameter  = "from"
	toParameter    = "to"
	xParameter     = "x"
	yParameter     = "y"
	scaleParameter = "scale"
	bandParameter  = "band"
	splitParameter = "split"
	pinParameter   = "pin"
	chartParameter = "chart"
)

// historyChoices lists the parameters with a few possible values; the first value is the default.
var historyChoices = []struct {
	name, label string
	values      []string
}{
	{xParameter, "Places along x", []string{"commit", "date"}},
	{yParameter, "Values", []string{"value", "change", "geomean"}},
	{scaleParameter, "Scale", []string{"linear", "log"}},
	{bandParameter, "Band", []string{"none", "quartile", "minmax"}},
	{splitParameter, "A chart for each", []string{"benchmark", "line", "profile", "scenario", "backend", "target"}},
	{lineParameter, "A line for each", []string{"series", "all", "benchmark", "line", "profile", "scenario", "backend", "target"}},
}

// historyParameters lists the parameters of the page and of one chart's address.
var historyParameters = []string{
	typeParameter, fromParameter, toParameter, metricParameter, searchParameter, xParameter, yParameter, scaleParameter, bandParameter,
	splitParameter, lineParameter, pinParameter,
}

func (p *Pages) historyPages() []page {
	return []page{{pattern: "/projects/{project}/history", parameters: append(slices.Clone(historyParameters), openParameter), show: p.history}}
}

// historyAddress returns the address of the history of a project.
func historyAddress(project string) string { return "/projects/" + segments(project) + "/history" }

// historyView is the content of the history page.
type historyView struct {
	apiclient.History
	Search, Type, Pin string
	Types             []string
	Choices           []historyChoice
	Charts            []historyChart
	// Notes lists the remarks that many lines share.
	Notes []sharedNote
	// Zooms lead to other parts of the history.
	Zooms []historyZoom
	// Empty says why no chart is shown.
	Empty string
	// Linear is set if a logarithmic scale is asked for but changes are drawn, which have none.
	Linear bool
	// Open holds the values of the opened chart; nil: none is open.
	Open *historyValues
	// CSV and JSON are addresses of the history.
	CSV, JSON string
	// memory holds the points of lines; each chart reuses it.
	memory struct {
		points [][]chart.Point
		widths []float64
	}
	// remarks holds one copy of each text: lines are kept, and most begin anew with the others.
	remarks map[string]string
}

// historyChoice is a parameter with its values.
type historyChoice struct {
	Name, Label, Value string
	Values             []string
}

// historyZoom is another part of the history.
type historyZoom struct{ From, To, Text string }

// historyChart is a chart with its lines in words.
type historyChart struct {
	keptChart
	Name string
	// Picture is the address of the chart alone, Data the address of its values, and Values the
	// address of the page that lists them.
	Picture, Data, Values string
	Left                  int
	// Remarks has the remarks on each line.
	Remarks []lineRemarks
}

// historyLine describes a line beside its drawing.
type historyLine struct {
	Name string
	// Class numbers its colour, and Count is the number of its points.
	Class, Count       int
	First, Last, Moved string
	// Compare leads to the comparison of its newest artifact with the one before it.
	Compare string
	Notes   []historyNote
}

// historyValues are the values of a chart, the newest first.
type historyValues struct {
	Chart string
	Lines []string
	Rows  []historyRow
	// Older counts the artifacts that are not listed.
	Older int
}

// shownRows bounds the artifacts whose values are listed.
const shownRows = 1000

// historyRow has the values of a chart for one artifact.
type historyRow struct {
	apiclient.HistoryArtifact
	Cells []historyCell
	// Compare leads to the comparison with Against, the others to pages of the repository on the
	// web; empty: there is no page, or its address is not known.
	Compare, Against, Diff, Commit, PullRequest string
}

// historyCell is one value with its band, or why there is none.
type historyCell struct {
	Value, Band, Moved, Note string
	N                        int
	Run                      bench.RunID
}

// readHistory reads the parameters of the address, and refuses unknown values.
func readHistory(v *visit) (historyView, apiclient.HistoryQuery, error) {
	out := historyView{Search: v.get(searchParameter), Type: v.get(typeParameter), Pin: v.get(pinParameter), Types: requestTypes}
	if out.Type != "" && !slices.Contains(requestTypes, out.Type) {
		return out, apiclient.HistoryQuery{}, badParameter(typeParameter, out.Type, "it may be "+joined(requestTypes))
	}
	for _, c := range historyChoices {
		value := cmp.Or(v.get(c.name), c.values[0])
		if !slices.Contains(c.values, value) {
			return out, apiclient.HistoryQuery{}, badParameter(c.name, value, "it may be "+joined(c.values))
		}
		out.Choices = append(out.Choices, historyChoice{c.name, c.label, value, c.values})
	}
	q := apiclient.HistoryQuery{
		Type: bench.RequestType(out.Type), From: v.get(fromParameter), To: v.get(toParameter), Metric: v.get(metricParameter), Words: out.Search,
		Split: out.choice(splitParameter), Line: out.choice(lineParameter),
	}
	if out.choice(yParameter) == "geomean" && v.get(lineParameter) == "" {
		q.Line = "all"
		at := slices.IndexFunc(out.Choices, func(c historyChoice) bool { return c.Name == lineParameter })
		out.Choices[at].Value = q.Line
	}
	return out, q, nil
}

func (h *historyView) choice(name string) string {
	for _, c := range h.Choices {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// drawn narrows a query to what a drawing of the given size shows.
func (h *historyView) drawn(q apiclient.HistoryQuery, size chart.Chart) apiclient.HistoryQuery {
	plot := size.Plot()
	q.Columns, q.X, q.Band, q.Bare = plot.Right-plot.Left, h.choice(xParameter), h.choice(bandParameter), true
	return q
}

// history shows the histories of a project's series.
func (p *Pages) history(v *visit) (*view, error) {
	project := v.PathValue("project")
	out, q, err := readHistory(v)
	if err != nil {
		return nil, err
	}
	open, opened := v.get(openParameter), v.URL.Query().Has(openParameter)
	if opened {
		q.OneChart, q.Chart = true, open
	}
	asked := out.drawn(q, chart.Chart{})
	kept := p.charts.of(&out)
	asked.Drawings = kept
	if opened { // with all values
		asked = q
		asked.Runs = true
	}
	asked.Facets = true
	if out.History, err = v.api.History(v.Context(), project, asked); err != nil {
		return nil, err
	}
	shown := &view{template: "history", Title: "History of " + project, Crumbs: []link{projectLink(project)}, Content: &out}
	out.JSON = "/api/v1" + historyAddress(project) + query(q.Values())
	csv := q.Values()
	csv.Set("format", "csv")
	out.CSV = "/api/v1" + historyAddress(project) + query(csv)
	shown.APIPath = out.JSON
	for _, c := range out.History.Charts {
		drawn := kept.draw(c)
		one := historyChart{keptChart: drawn, Name: out.nameOf(c), Left: c.Left}
		own := v.URL.Query()
		own.Set(openParameter, c.Name) // it may be empty
		one.Values = v.URL.EscapedPath() + query(own) + "#values"
		own.Del(openParameter)
		own.Set(chartParameter, c.Name)
		one.Picture = historyAddress(project) + "/chart.svg" + query(own)
		// Name the drawn artifacts: more may be measured meanwhile, and this address may name none.
		own.Set(typeParameter, string(out.History.Type))
		own.Set(fromParameter, out.Artifacts[0].Tag)
		own.Set(toParameter, out.Newest().Tag)
		one.Data = historyAddress(project) + "/chart.json" + query(own)
		out.Linear = out.Linear || out.choice(scaleParameter) == logScale && !drawn.log
		out.Charts = append(out.Charts, one)
	}
	out.shareNotes()
	if opened && len(out.History.Charts) > 0 {
		of, err := v.api.Project(v.Context(), project)
		if err != nil {
			return nil, err
		}
		out.Open = out.values(out.History.Charts[0], sourceOf(of))
	}
	out.zooms()
	out.Empty = out.why(opened)
	return shown, nil
}

// query writes parameters as the end of an address.
func query(values url.Values) string {
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// Newest is the last artifact of the part.
func (h *historyView) Newest() apiclient.HistoryArtifact { return h.Artifacts[len(h.Artifacts)-1] }

// Between is the address of the page with other ends.
func (f frame) Between(from, to string) string {
	values := f.url.Query()
	for name, tag := range map[string]string{fromParameter: from, toParameter: to} {
		if values.Del(name); tag != "" {
			values.Set(name, tag)
		}
	}
	return f.Path() + query(values)
}

// why says why there is no chart.
func (h *historyView) why(opened bool) string {
	switch {
	case len(h.Charts) > 0:
		return ""
	case h.Total == 0:
		return "The jobs of no artifact have ended yet, so there is no history."
	case len(h.Artifacts) == 0:
		return "No artifact lies between both ends: the first is later than the last."
	case len(h.Metrics) == 0:
		return "Nothing of this project has a result: its jobs have failed, or their results are invalid."
	case opened:
		return "No chart of this history has the name that the address opens."
	}
	return "No series fits the words."
}

// zooms adds links to other parts.
func (h *historyView) zooms() {
	n := len(h.Artifacts)
	add := func(from, to, text string) { h.Zooms = append(h.Zooms, historyZoom{from, to, text}) }
	if h.Earlier != "" {
		add("", h.Earlier, "earlier")
	}
	if h.Later != "" {
		add(h.Later, "", "later")
	}
	if n >= 4 {
		add(h.Artifacts[n/4].Tag, h.Artifacts[n-1-n/4].Tag, "zoom in")
		add(h.Artifacts[n/2].Tag, h.Artifacts[n-1].Tag, "newer half")
	}
	if h.OuterFrom != "" {
		add(h.OuterFrom, h.OuterTo, "zoom out")
	}
	if h.Earlier != "" || h.Later != "" {
		add("", "", "newest")
	}
}

// nameOf names a chart, including the chart of the series without the parameter by which charts
// are split.
func (h *historyView) nameOf(c apiclient.HistoryChart) string {
	return cmp.Or(c.Name, "no "+h.choice(splitParameter))
}

// percentUnit is the unit of changes.
const percentUnit = "%"

// logScale is the logarithmic scale.
const logScale = "log"

// Changes reports whether changes are drawn instead of values.
func (h *historyView) Changes() bool { return h.choice(yParameter) != "value" }

// draw draws a chart, and describes its lines. The points of the chart are valid until the next one is drawn.
func (h *historyView) draw(c apiclient.HistoryChart) (chart.Chart, []historyLine) {
	out := chart.Chart{ID: chartID(c.Name), Title: h.nameOf(c), Ticks: h.ticks()}
	if n := len(h.Artifacts); n > 1 {
		out.From, out.To = h.ends()
	}
	change := h.Changes() || slices.ContainsFunc(c.Lines, func(l apiclient.HistoryLine) bool { return l.Relative })
	out.Log = h.choice(scaleParameter) == logScale && !change
	lines := make([]historyLine, 0, len(c.Lines)) // they are kept
	var said []string
	marked, x := make(map[int]string), h.along()
	for i, l := range c.Lines {
		if i == len(h.memory.points) {
			h.memory.points = append(h.memory.points, nil)
		}
		drawn, noise, unit := h.line(l, change, h.memory.points[i])
		h.memory.points[i] = drawn.Points
		out.Lines, out.Noise, out.Unit = append(out.Lines, drawn), max(out.Noise, noise), unit
		words := h.describe(i, l)
		lines = append(lines, words)
		said = append(said, fmt.Sprintf("%s: %s to %s (%s)", l.Name, cmp.Or(words.First, "no value"), cmp.Or(words.Last, "no value"), cmp.Or(words.Moved, "no change known")))
		for _, change := range l.Changes {
			marked[change.At] = stats.SignedPercent(change.Change)
		}
	}
	out.Description = fmt.Sprintf("%s, %d artifacts. %s.", h.Metric, len(h.Artifacts), strings.Join(said, "; "))
	for i := range h.Artifacts {
		a := &h.Artifacts[i]
		if len(a.Releases) > 0 {
			out.Marks = append(out.Marks, chart.Mark{X: x(i), Kind: chart.Release, Label: strings.Join(a.Releases, ", ")})
		}
		if text, there := marked[i]; there {
			out.Marks = append(out.Marks, chart.Mark{X: x(i), Kind: chart.Change, Label: text})
		}
		if h.Pin != "" && a.Tag == h.Pin {
			out.Marks = append(out.Marks, chart.Mark{X: x(i), Kind: chart.Pin, Label: "pinned"})
		}
	}
	return out, lines
}

// along returns a function that places artifacts on the x axis.
func (h *historyView) along() func(at int) float64 {
	if h.choice(xParameter) == "date" {
		return func(at int) float64 { return float64(h.Artifacts[at].At.Unix()) }
	}
	return func(at int) float64 { return float64(at) }
}

// ends are the places of the first and the last artifact.
func (h *historyView) ends() (from, to float64) {
	x := h.along()
	from, to = x(0), x(0)
	for i := range h.Artifacts {
		from, to = min(from, x(i)), max(to, x(i))
	}
	return from, to
}

// shownTicks is the number of ticks of the x axis.
const shownTicks = 4

// ticks labels the x axis with dates, or with the beginnings of tags where no date is known.
func (h *historyView) ticks() []chart.Tick {
	var ticks []chart.Tick
	n, x := len(h.Artifacts), h.along()
	for i := range min(n, shownTicks) {
		at := 0
		if n > 1 {
			at = i * (n - 1) / (min(n, shownTicks) - 1)
		}
		a := h.Artifacts[at]
		label := a.At.UTC().Format(time.DateOnly)
		if !a.Dated && h.choice(xParameter) != "date" {
			label = fmt.Sprintf("%.10s", a.Tag)
		}
		ticks = append(ticks, chart.Tick{X: x(at), Label: label})
	}
	slices.SortFunc(ticks, func(a, b chart.Tick) int { return cmp.Compare(a.X, b.X) })
	return ticks
}

// unitOf returns the unit in which values are drawn, and the factor for them.
func unitOf(l apiclient.HistoryLine) (unit string, factor float64) {
	if l.Relative {
		return percentUnit, 100
	}
	return report.UnitSign(l.Unit)
}

// line returns a line, the typical width of its values, and its unit. Its points reuse the memory of others.
func (h *historyView) line(l apiclient.HistoryLine, change bool, others []chart.Point) (out chart.Line, noise float64, unit string) {
	out.Name = l.Name
	unit, factor := unitOf(l)
	if change {
		unit = percentUnit
	}
	for _, b := range l.Breaks {
		out.Breaks = append(out.Breaks, b.Reason)
	}
	x, banded := h.along(), h.choice(bandParameter) != "none"
	low, high := l.Low, l.High
	if h.choice(bandParameter) == "minmax" {
		low, high = l.Min, l.Max
	}
	out.Points = slices.Grow(others[:0], len(l.At)+len(l.Gaps)+len(l.Failures))
	nothing := func(at int, failed bool) {
		out.Points = append(out.Points, chart.Point{X: x(at), Y: math.NaN(), Low: math.NaN(), High: math.NaN(), Failed: failed})
	}
	widths := slices.Grow(h.memory.widths[:0], len(low))
	breaks, gaps, failures := l.Breaks, l.Gaps, l.Failures // the rest, by artifact
	failedBefore := func(end int) {                        // adds the failures without a value
		for last := -1; len(failures) > 0 && failures[0].At < end; failures = failures[1:] {
			if at := failures[0].At; at != last {
				nothing(at, true)
				last = at
			}
		}
	}
	base, last := 0.0, -1
	for i, at := range l.At {
		for len(gaps) > 0 && gaps[0] < at {
			gaps = gaps[1:]
		}
		// A line without some of its points lists its gaps; in a full line, each artifact without a value is one.
		if last >= 0 && (len(gaps) > 0 && gaps[0] == at || l.Points == 0 && at > last+1) {
			nothing(last+1, false)
		}
		last = at
		failedBefore(at)
		p := chart.Point{X: x(at), Low: math.NaN(), High: math.NaN()}
		for ; len(failures) > 0 && failures[0].At == at; failures = failures[1:] {
			p.Failed = true // one of several series: the line goes on
		}
		for ; len(breaks) > 0 && breaks[0].At <= at; breaks = breaks[1:] {
			if breaks[0].At == at {
				p.Break = 1 + len(l.Breaks) - len(breaks)
			}
		}
		if i == 0 || p.Break > 0 {
			base = l.Values[i]
		}
		drawn := func(y float64) float64 {
			switch {
			case l.Relative:
				return 100 * (y - 1)
			case change:
				return 100 * (y/base - 1)
			}
			return y * factor
		}
		p.Y = drawn(l.Values[i])
		if i < len(low) && i < len(high) {
			if width := drawn(l.High[i]) - drawn(l.Low[i]); !math.IsNaN(width) {
				widths = append(widths, width)
			}
			if banded {
				p.Low, p.High = drawn(low[i]), drawn(high[i])
			}
		}
		out.Points = append(out.Points, p)
	}
	failedBefore(math.MaxInt)
	if byX := func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) }; !slices.IsSortedFunc(out.Points, byX) {
		slices.SortStableFunc(out.Points, byX)
	}
	if len(widths) > 0 {
		noise = nth(widths, len(widths)/2)
	}
	h.memory.widths = widths
	return out, noise, unit
}

// nth returns the n-th smallest of values, counted from 0, without putting all of them in order (C. A. R. Hoare, Algorithm 65:
// Find, CACM 4, 1961). It reorders values, none of which may be NaN.
func nth(values []float64, n int) float64 {
	for len(values) > 1 {
		pivot := values[len(values)/2]
		i, j := 0, len(values)-1
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch { // no value up to j is larger than one from i on
		case n <= j:
			values = values[:j+1]
		case n >= i:
			values, n = values[i:], n-i
		default:
			return values[n]
		}
	}
	return values[0]
}

// describe says in words what a line shows.
func (h *historyView) describe(i int, l apiclient.HistoryLine) historyLine {
	out := historyLine{Name: l.Name, Class: i, Count: cmp.Or(l.Points, len(l.At))} // At may have only the points that the drawing shows
	n := len(l.Values)
	for _, b := range l.Breaks {
		out.note(b.At, h.remark("begins anew at "+h.Artifacts[b.At].Tag+": "+b.Reason))
	}
	for _, c := range l.Changes {
		out.note(c.At, "confirmed at "+h.Artifacts[c.At].Tag+": "+stats.SignedPercent(c.Change))
	}
	if len(l.Failures) > 0 {
		f := l.Failures[len(l.Failures)-1]
		out.note(f.At, h.remark("failed "+plural(len(l.Failures), "time")+", last at "+h.Artifacts[f.At].Tag+": "+f.Reason))
	}
	if n == 0 {
		return out
	}
	out.First, out.Last = shownValue(l, 0), shownValue(l, n-1)
	from := 0 // values before a break do not compare
	if len(l.Breaks) > 0 {
		from = max(0, slices.Index(l.At, l.Breaks[len(l.Breaks)-1].At))
	}
	out.Moved = moved(l.Values[from], l.Values[n-1])
	if n > 1 {
		against, newest := cmp.Or(h.Pin, h.Artifacts[l.At[n-2]].Tag), h.Artifacts[l.At[n-1]].Tag
		if against != newest {
			out.Compare = comparison(h.Project, against, newest)
		}
	}
	return out
}

// shownValue writes one value of a line.
func shownValue(l apiclient.HistoryLine, i int) string {
	if l.Relative {
		return fmt.Sprintf("%.4g × the start", l.Values[i])
	}
	return report.Value(l.Values[i], l.Unit)
}

// moved writes the change between two values; empty: from is zero.
func moved(from, to float64) string {
	if from == 0 {
		return ""
	}
	return fmt.Sprintf("%+.2f %%", 100*(to/from-1))
}

// values lists the values of a chart by artifact, each with links to its source.
func (h *historyView) values(c apiclient.HistoryChart, source sourceLinks) *historyValues {
	out := &historyValues{Chart: h.nameOf(c)}
	places := make([]map[int]int, len(c.Lines))
	notes := make([]map[int]string, len(c.Lines))
	for i, l := range c.Lines {
		out.Lines = append(out.Lines, l.Name)
		places[i], notes[i] = make(map[int]int), make(map[int]string)
		for k, at := range l.At {
			places[i][at] = k
		}
		for _, b := range l.Breaks {
			notes[i][b.At] = b.Reason
		}
		for _, f := range l.Failures {
			notes[i][f.At] = "failed: " + f.Reason
		}
		for _, change := range l.Changes {
			notes[i][change.At] = fmt.Sprintf("confirmed %s against %s", stats.SignedPercent(change.Change), change.Against)
		}
	}
	out.Older = max(0, len(h.Artifacts)-shownRows)
	for at := len(h.Artifacts) - 1; at >= out.Older; at-- {
		row := historyRow{HistoryArtifact: h.Artifacts[at]}
		row.Against = h.Pin
		if row.Against == "" && at > 0 {
			row.Against = h.Artifacts[at-1].Tag
		}
		if row.Against != "" && row.Against != row.Tag {
			row.Compare = comparison(h.Project, row.Against, row.Tag)
			row.Diff = source.diff(h.History.Type, row.Against, h.History.Type, row.Tag)
		}
		row.Commit, row.PullRequest = source.commit(h.History.Type, row.Tag), source.PullRequestAddress(row.PR)
		for i, l := range c.Lines {
			cell := historyCell{Note: notes[i][at]}
			if k, there := places[i][at]; there {
				cell.Value, cell.N = shownValue(l, k), l.N[k]
				if k < len(l.Low) {
					cell.Band = report.Value(l.Low[k], l.Unit) + " to " + report.Value(l.High[k], l.Unit)
				}
				if k > 0 && !slices.ContainsFunc(l.Breaks, func(b apiclient.HistoryBreak) bool { return b.At == at }) {
					cell.Moved = moved(l.Values[k-1], l.Values[k])
				}
				if k < len(l.Runs) {
					cell.Run = l.Runs[k]
				}
			}
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
