package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/chart"
)

// series returns a line through values at 0, 1, 2 and so on.
func series(values ...float64) chart.Line {
	l := chart.Line{Name: "series"}
	for i, y := range values {
		l.Points = append(l.Points, chart.Point{X: float64(i), Y: y, Low: math.NaN(), High: math.NaN()})
	}
	return l
}

func of(lines ...chart.Line) chart.Chart {
	return chart.Chart{ID: "c", Title: "title", Description: "description", Lines: lines}
}

// element is an element of a drawing.
type element struct {
	name, class string
	attributes  map[string]string
	text        string
}

// elements parses a drawing, which must be well formed.
func elements(tb testing.TB, svg string) []element {
	tb.Helper()
	var out []element
	var open []int
	parser := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := parser.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(tb, err)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attributes: make(map[string]string)}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			e.class = e.attributes["class"]
			open = append(open, len(out))
			out = append(out, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				out[open[len(open)-1]].text += string(token)
			}
		}
	}
}

// pick returns the elements with a name and a class.
func pick(all []element, name, class string) []element {
	var out []element
	for _, e := range all {
		if e.name == name && e.class == class {
			out = append(out, e)
		}
	}
	return out
}

func paths(tb testing.TB, c chart.Chart, class string) string {
	tb.Helper()
	var out []string
	for _, e := range pick(elements(tb, c.SVG()), "path", class) {
		out = append(out, e.attributes["d"])
	}
	return strings.Join(out, " ")
}

func TestGapsStayGaps(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	whole := paths(t, of(series(1, 2, 3, 2, 1)), "line")
	require.Equal(t, 1, strings.Count(whole, "M"))
	for name, gap := range map[string]float64{"NaN": nan, "infinite": math.Inf(1), "negative infinite": math.Inf(-1), "too large": math.MaxFloat64} {
		require.Equal(t, 2, strings.Count(paths(t, of(series(1, 2, gap, 2, 1)), "line"), "M"), name)
	}
}

func TestNoRangeLiesWhereNoValueCanBe(t *testing.T) {
	t.Parallel()
	c := of(series(0, 0, 0))
	require.Contains(t, c.SVG(), ">-1.0<", "a change may be negative")
	c.NotNegative = true
	require.NotContains(t, c.SVG(), ">-")
	require.Contains(t, c.SVG(), ">0<")
	// Other ranges stay as they are.
	for _, l := range []chart.Line{series(0, 5, 10), series(3, 4), series(-1, 2)} {
		plain, bounded := of(l), of(l)
		bounded.NotNegative = true
		require.Equal(t, plain.SVG(), bounded.SVG())
	}
}

func TestZeroHasNoLogarithm(t *testing.T) {
	t.Parallel()
	c := of(series(1, 10, 0, 10, 100))
	require.Equal(t, 1, strings.Count(paths(t, c, "line"), "M"))
	c.Log = true
	require.Equal(t, 2, strings.Count(paths(t, c, "line"), "M"))
}

func TestBreaksAreLabelled(t *testing.T) {
	t.Parallel()
	l := series(1, 1, 5, 5)
	l.Breaks = []string{"size class 2 instead of 1"}
	l.Points[2].Break = 1
	c := of(l)
	require.Equal(t, 2, strings.Count(paths(t, c, "line"), "M"))
	require.Len(t, pick(elements(t, c.SVG()), "path", "break"), 1)
	require.Contains(t, c.SVG(), "<title>size class 2 instead of 1</title>")
}

// Two series that break together, as most do, show one break; one that breaks elsewhere, or for another reason, its own.
func TestBreaksOfSeveralSeriesAreDrawnOnce(t *testing.T) {
	t.Parallel()
	broken := func(at int, reason string) chart.Line {
		l := series(1, 2, 3, 4)
		l.Breaks = []string{reason}
		l.Points[at].Break = 1
		return l
	}
	drawn := of(broken(2, "another suite"), broken(2, "another suite"), broken(1, "another suite"), broken(2, "another kernel")).SVG()
	require.Equal(t, 3, strings.Count(drawn, `class="break"`))
	require.Equal(t, 2, strings.Count(drawn, "another suite"))
}

func TestFailuresAreCrosses(t *testing.T) {
	t.Parallel()
	l := series(1, math.NaN(), 1)
	require.Empty(t, paths(t, of(l), "failure"))
	l.Points[1].Failed = true
	require.NotEmpty(t, paths(t, of(l), "failure"))
}

func TestPointsWithoutNeighboursAreDots(t *testing.T) {
	t.Parallel()
	dots := func(values ...float64) int { return len(pick(elements(t, of(series(values...)).SVG()), "circle", "")) }
	require.Equal(t, 1, dots(7))
	require.Equal(t, 2, dots(7, math.NaN(), 7))
	require.Equal(t, 0, dots(7, 7))
}

// A line's size is bounded by its columns, not by its points.
func TestManyPointsAreCut(t *testing.T) {
	t.Parallel()
	values := make([]float64, 5000)
	for i := range values {
		values[i] = 100
	}
	require.Equal(t, "M72 98", regexp.MustCompile(`^M\d+ \d+`).FindString(paths(t, of(series(values...)), "line")))
	require.Empty(t, strings.Trim(paths(t, of(series(values...)), "line"), "M0123456789 h"), "equal points are a level line")
	for i := range values {
		values[i] = 100 + 7*math.Sin(float64(i)*1.7) + 3*math.Cos(float64(i*i))
	}
	path := paths(t, of(series(values...)), "line")
	columns := chart.DefaultWidth
	require.LessOrEqual(t, len(regexp.MustCompile(`[Mlvh]`).FindAllString(path, -1)), 4*columns)
}

// Nor do gaps, breaks, failures and marks make it grow: a column shows one of each.
func TestManyGapsAndMarksAreCut(t *testing.T) {
	t.Parallel()
	full := func(points int) chart.Chart {
		l := chart.Line{Name: "series", Breaks: []string{"size class 2 instead of 1"}}
		c := of()
		for i := range points {
			p := chart.Point{X: float64(i) / float64(points), Y: 100 + 7*math.Sin(float64(i)*1.7), Low: 90, High: 110}
			switch {
			case i%2 == 1:
				p.Y, p.Failed = math.NaN(), true
			case i%3 == 0:
				p.Break = 1
			}
			l.Points = append(l.Points, p)
			c.Marks = append(c.Marks, chart.Mark{X: p.X, Kind: []chart.MarkKind{chart.Release, chart.Change}[i%2], Label: fmt.Sprintf("v1.%d", i)})
		}
		c.Lines = []chart.Line{l}
		return c
	}
	columns := chart.DefaultWidth
	all := elements(t, full(5_000).SVG())
	require.LessOrEqual(t, len(pick(all, "path", "break")), columns)
	require.LessOrEqual(t, len(pick(all, "circle", "")), 2*columns)
	require.LessOrEqual(t, len(pick(all, "g", "mark release"))+len(pick(all, "g", "mark change")), 2*columns)
	require.LessOrEqual(t, len(full(50_000).SVG()), len(full(5_000).SVG())*11/10)
	require.Contains(t, full(5_000).SVG(), "<title>size class 2 instead of 1 and 1 more</title>")
}

// Values that a gap separates, and that fall into one column, are not told apart.
func TestAGapWithinAColumnIsNotDrawn(t *testing.T) {
	t.Parallel()
	c := of(series(1, math.NaN(), 3, 2))
	c.From, c.To = 0, 1e6
	require.Equal(t, 1, strings.Count(paths(t, c, "line"), "M"))
	c.To = 3
	require.Equal(t, 1, strings.Count(paths(t, c, "line"), "M"))
	require.Len(t, pick(elements(t, c.SVG()), "circle", ""), 1)
}

// Values that are all in one place are a dot.
func TestEqualPointsOfAColumnAreADot(t *testing.T) {
	t.Parallel()
	c := of(series(7, 7, 7))
	c.From, c.To = 0, 1e6
	require.Len(t, pick(elements(t, c.SVG()), "circle", ""), 1)
	require.Empty(t, paths(t, c, "line"))
}

func TestBandIsAroundTheLine(t *testing.T) {
	t.Parallel()
	l := series(10, 10, 10)
	for i := range l.Points {
		l.Points[i].Low, l.Points[i].High = 9, 11
	}
	require.Equal(t, 1, strings.Count(paths(t, of(l), "band"), "z"))
	l.Points[1].Low = math.NaN()
	require.NotEmpty(t, paths(t, of(l), "band"), "the others have one still")
	require.Empty(t, paths(t, of(series(1, 2)), "band"))
}

// What lies beyond the zoom neither is drawn nor stretches the axis.
func TestZoomLeavesOutWhatIsBeyond(t *testing.T) {
	t.Parallel()
	c := of(series(1, 2, 1000, 2, 1))
	c.From, c.To = 0, 1
	c.Marks = []chart.Mark{{X: 1, Kind: chart.Release, Label: "v1"}, {X: 3, Kind: chart.Release, Label: "v2"}}
	svg := c.SVG()
	require.Contains(t, svg, ">v1<")
	require.NotContains(t, svg, ">v2<")
	alone := of(series(1, 2))
	alone.From, alone.To = 0, 1
	require.Equal(t, paths(t, alone, "line"), paths(t, c, "line"))
}

func TestMarksKeepTheirTitles(t *testing.T) {
	t.Parallel()
	c := of(series(1, 2, 3))
	for i := range 3 {
		c.Marks = append(c.Marks, chart.Mark{X: 1 + float64(i)/100, Kind: chart.Change, Label: fmt.Sprintf("change %d", i)})
	}
	all := elements(t, c.SVG())
	require.Len(t, pick(all, "g", "mark change"), 3)
	require.Equal(t, 3, strings.Count(c.SVG(), "<title>change "))
	require.Equal(t, 1, strings.Count(c.SVG(), `">change `), "labels that would overlap are left out")
}

func TestDocumentNamesItsStyleSheet(t *testing.T) {
	t.Parallel()
	c := of(series(1, 2))
	require.NotContains(t, c.SVG(), "<?xml")
	c.StyleSheet = "/assets/1/chart.css"
	require.Contains(t, c.SVG(), `<?xml-stylesheet type="text/css" href="/assets/1/chart.css"?>`)
	elements(t, c.SVG())
}

// Names come from others: they are text and nothing else.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{`<script>alert(1)</script>`, `"onload="alert(1)`, "\u202eright to left", "null\x00byte\x1b", "\xff\xfe", "]]>"} {
		l := series(1, 2)
		l.Name, l.Breaks, l.Points[1].Break = name, []string{name}, 1
		c := of(l)
		c.Title, c.Description, c.Unit = name, name, name
		c.Marks = []chart.Mark{{X: 1, Kind: chart.Pin, Label: name}}
		c.Ticks = []chart.Tick{{X: 0, Label: name}}
		require.NotContains(t, c.SVG(), "\u202e", "nothing around it is turned")
		for _, e := range elements(t, c.SVG()) {
			require.Contains(t, []string{"svg", "title", "desc", "g", "path", "text", "circle"}, e.name)
			for a := range e.attributes {
				require.False(t, strings.HasPrefix(a, "on"), a)
				require.NotEqual(t, "style", a)
			}
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]chart.Chart{
		"zero value":       {},
		"no points":        of(chart.Line{}),
		"only gaps":        of(series(math.NaN(), math.Inf(1))),
		"beyond the range": {From: 10, To: 20, Lines: []chart.Line{series(1, 2)}},
		"no logarithm":     {Log: true, Lines: []chart.Line{series(0, -1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, c.SVG(), "no values")
			require.Empty(t, paths(t, c, "line"))
		})
	}
}

func FuzzChart(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 0.5, 0.0, 0.0, false, "name")
	f.Add(math.NaN(), math.Inf(1), -1e300, 1e300, 5.0, -5.0, true, "<b>\x00")
	f.Add(5e-324, 5e-324, 1e300, math.Inf(1), 1e300, 1.5e300, true, "\xff")
	f.Fuzz(func(t *testing.T, a, b, c, noise, from, to float64, log bool, name string) {
		l := series(a, b, c, a, b)
		l.Name = name
		l.Points[2].Low, l.Points[2].High, l.Breaks, l.Points[3].Break, l.Points[4].Failed = a, b, []string{name}, 1, true
		l.Points[4].X = max(4, math.Abs(from))
		drawn := chart.Chart{ID: "c", Title: name, From: from, To: to, Log: log, Noise: noise, Lines: []chart.Line{l}, Ticks: []chart.Tick{{X: from, Label: name}}, Marks: []chart.Mark{{X: c, Label: name}}}
		plot := drawn.Plot()
		for _, e := range elements(t, drawn.SVG()) {
			require.NotContains(t, e.attributes["d"], "NaN")
			x, y := ends(t, e.attributes["d"])
			for i := range x {
				require.True(t, x[i] >= plot.Left-10 && x[i] <= plot.Right+10 && y[i] >= 0 && y[i] <= plot.Bottom+10, "%s: %d, %d", e.attributes["d"], x[i], y[i])
			}
		}
	})
}

var step = regexp.MustCompile(`([MmLlVvHhz])(-?\d+)?(?: ?(-?\d+))?`)

// ends returns the places to which a path leads.
func ends(tb testing.TB, path string) (xs, ys []int) {
	tb.Helper()
	x, y := 0, 0
	for _, s := range step.FindAllStringSubmatch(path, -1) {
		number := func(i int) int {
			n, err := strconv.Atoi(s[i])
			require.NoError(tb, err, path)
			return n
		}
		switch s[1] {
		case "M":
			x, y = number(2), number(3)
		case "m", "l":
			x, y = x+number(2), y+number(3)
		case "v":
			y += number(2)
		case "V":
			y = number(2)
		case "h":
			x += number(2)
		case "H":
			x = number(2)
		}
		xs, ys = append(xs, x), append(ys, y)
	}
	return xs, ys
}

// A chart of one series, as a part of a page.
func Example() {
	c := chart.Chart{
		ID: "parse", Title: "parse", Description: "From 1 s to 2 s.", Unit: "s",
		Lines: []chart.Line{{Name: "wall-time", Points: []chart.Point{
			{X: 0, Y: 1, Low: 0.9, High: 1.1}, {X: 1, Y: 2, Low: 1.9, High: 2.1},
		}}},
	}
	svg := c.SVG()
	for _, part := range []string{"<title ", "<desc ", `<path class="band"`, `<path class="line"`} {
		at := strings.Index(svg, part)
		fmt.Println(svg[at : at+strings.Index(svg[at:], "/")])
	}
	// Output:
	// <title id="parse-title">parse<
	// <desc id="parse-desc">From 1 s to 2 s.<
	// <path class="band" d="M72 146l400-121v25l-400 121z" fill="currentColor" fill-opacity=".15" stroke="none"
	// <path class="line" d="M72 159l400-122"
}
