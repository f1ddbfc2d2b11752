package history

import (
	"cmp"
	"slices"
	"strings"
)

// Parameters by which charts and lines are split.
var Parameters = []string{"benchmark", "line", "profile", "scenario", "backend", "target"}

// Values of [Arrangement.Line] that are not parameters.
const (
	// EachSeries draws a line per series.
	EachSeries = "series"
	// AllSeries draws one line for all series of a chart.
	AllSeries = "all"
)

// Parameter returns the value of one of the [Parameters]; "" if there is none.
func (s Series) Parameter(name string) string {
	line, _ := s.Metric.Split()
	switch name {
	case "benchmark":
		return s.TestCase.Benchmark
	case "line":
		return line
	case "profile":
		return s.TestCase.Profile
	case "scenario":
		return s.TestCase.Scenario
	case "backend":
		return s.TestCase.Backend
	case "target":
		return string(s.TestCase.Target)
	}
	return ""
}

// Chart is a group of lines that are drawn together.
type Chart struct {
	// Name is the value of the parameter by which charts are split.
	Name string
	// Lines are the first of them, Left counts the others.
	Lines []Line
	Left  int
	// Shift is the largest one of its series.
	Shift float64
}

// Line is a group of series that are drawn as one line.
type Line struct {
	Name string
	// Series holds their places in the list that was arranged.
	Series []int
	Shift  float64
}

// Arrangement says how series are split into charts and lines.
type Arrangement struct {
	// Split is the parameter by which charts are split, Line the one for lines, [EachSeries]
	// or [AllSeries].
	Split, Line string
	// Charts and Lines bound the charts, and the lines of each.
	Charts, Lines int
}

// Arrange splits series into charts and lines, those with the largest shift first, and
// counts the charts that were left out.
func (a Arrangement) Arrange(series []Series, shifts []float64) (charts []Chart, left int) {
	byName := make(map[string]int)
	for i, s := range series {
		name := s.Parameter(a.Split)
		at, there := byName[name]
		if !there {
			at = len(charts)
			byName[name], charts = at, append(charts, Chart{Name: name})
		}
		c := &charts[at]
		c.Shift = max(c.Shift, shifts[i])
		c.Lines = append(c.Lines, Line{Series: []int{i}, Shift: shifts[i]})
	}
	slices.SortFunc(charts, func(x, y Chart) int { return cmp.Or(cmp.Compare(y.Shift, x.Shift), strings.Compare(x.Name, y.Name)) })
	left = max(0, len(charts)-a.Charts)
	charts = charts[:len(charts)-left]
	for i := range charts {
		a.lines(&charts[i], series)
	}
	return charts, left
}

// lines joins the series of a chart to its lines, and names them.
func (a Arrangement) lines(c *Chart, series []Series) {
	all := make([]Series, len(c.Lines))
	for i, l := range c.Lines {
		all[i] = series[l.Series[0]]
	}
	shared := same(all)
	name := func(s Series) string { return s.Name(shared) }
	switch a.Line {
	case EachSeries:
	case AllSeries:
		name = func(Series) string { return "all" }
	default:
		name = func(s Series) string { return cmp.Or(s.Parameter(a.Line), "no "+a.Line) }
	}
	byName := make(map[string]int)
	var lines []Line
	for i, l := range c.Lines {
		l.Name = name(all[i])
		at, there := byName[l.Name]
		if !there {
			at = len(lines)
			byName[l.Name], lines = at, append(lines, Line{Name: l.Name})
		}
		lines[at].Series = append(lines[at].Series, l.Series...)
		lines[at].Shift = max(lines[at].Shift, l.Shift)
	}
	slices.SortFunc(lines, func(x, y Line) int { return cmp.Or(cmp.Compare(y.Shift, x.Shift), strings.Compare(x.Name, y.Name)) })
	c.Left = max(0, len(lines)-a.Lines)
	c.Lines = lines[:len(lines)-c.Left]
}

// same lists the parameters that are the same in all series.
func same(all []Series) []string {
	var shared []string
	for _, p := range Parameters {
		if !slices.ContainsFunc(all, func(s Series) bool { return s.Parameter(p) != all[0].Parameter(p) }) {
			shared = append(shared, p)
		}
	}
	return shared
}
