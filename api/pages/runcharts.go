package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/chart"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/profiler"
)

// quantities are the metrics in the order of their charts, with their titles.
var quantities = []struct {
	metric profiler.Metric
	title  string
}{
	{profiler.CPUUsed, "CPUs in use"}, {profiler.CPUUtil, "Use of CPUs"}, {profiler.MemoryUsed, "Memory in use"}, {profiler.MemoryFree, "Free memory"},
	{profiler.CPUPressure, "CPU pressure"}, {profiler.MemoryPressure, "Memory pressure"}, {profiler.IOPressure, "I/O pressure"}, {profiler.CPUSteal, "CPU time for others (steal)"},
	{profiler.PageFaults, "Page faults"}, {profiler.MajorPageFaults, "Major page faults"},
	{profiler.DiskThroughputRead, "Read from disks"}, {profiler.DiskThroughputWrite, "Written to disks"}, {profiler.DiskIOPS, "Disk operations"},
	{profiler.NetThroughputSent, "Sent to the network"}, {profiler.NetThroughputRecv, "Received from the network"},
	{profiler.GPUUtil, "Use of GPUs"}, {profiler.GPUMemoryFree, "Free memory of GPUs"}, {profiler.CPUFrequency, "CPU frequency"}, {profiler.CPUTemperature, "CPU temperature"},
}

// orderOf returns the place of a metric among all.
func orderOf(metric string) int {
	for i, q := range quantities {
		if string(q.metric) == metric {
			return i
		}
	}
	return len(quantities)
}

// titleOf names a metric.
func titleOf(metric string) string {
	if i := orderOf(metric); i < len(quantities) {
		return quantities[i].title
	}
	return strings.ReplaceAll(metric, "_", " ")
}

// compareSeries orders series: by metric, the job's before the machine's, all together before its parts.
func compareSeries(a, b profiler.Series) int {
	return cmp.Or(cmp.Compare(orderOf(a.Name), orderOf(b.Name)), cmp.Compare(a.Scope, b.Scope), cmp.Compare(len(a.Device), len(b.Device)), cmp.Compare(a.Device, b.Device))
}

const (
	// plotLines bounds the lines of a chart, plotsShown the charts.
	plotLines  = 5
	plotsShown = 24
)

// plot is a chart to draw.
type plot struct {
	metric string
	series []profiler.Series
	// left counts the series of the metric that are not shown.
	left int
}

// plots chooses the charts: one for each metric, or all series of the requested metric.
func (p *profileView) plots() (shown []plot, left int) {
	var list []profiler.Series
	for _, s := range p.Shown.Series {
		if s.Scope == profiler.ScopeTiming {
			continue
		}
		if !slices.Contains(p.Metrics, s.Name) {
			p.Metrics = append(p.Metrics, s.Name)
		}
		if (p.Scope == "" || s.Scope == p.Scope) && (p.Metric == "" || s.Name == string(p.Metric)) {
			list = append(list, s.Series)
		}
	}
	slices.SortFunc(p.Metrics, func(a, b string) int { return cmp.Or(cmp.Compare(orderOf(a), orderOf(b)), cmp.Compare(a, b)) })
	slices.SortFunc(list, compareSeries)
	for _, s := range list {
		last := len(shown) - 1
		switch {
		case last < 0 || shown[last].metric != s.Name || p.Metric != "" && len(shown[last].series) == plotLines:
			shown = append(shown, plot{metric: s.Name, series: []profiler.Series{s}})
		case len(shown[last].series) < plotLines:
			shown[last].series = append(shown[last].series, s)
		default:
			shown[last].left++
		}
	}
	n := min(len(shown), plotsShown)
	return shown[:n], len(shown) - n
}

// profileChart is a chart with its lines in words.
type profileChart struct {
	ID, Metric, Title string
	SVG               template.HTML
	Lines             []profileLine
	Left              int
}

// profileLine describes a line beside its drawing.
type profileLine struct {
	Class            int
	Name, Mean, Most string
}

// chartUnit returns the unit of a chart's axis, and the factor for values.
func chartUnit(unit profiler.Unit) (sign string, factor float64) {
	switch unit {
	case profiler.Ratio:
		return percentUnit, 100
	case profiler.Bytes:
		return "B", 1
	case profiler.BytesPerSecond:
		return "B/s", 1
	case profiler.OperationsPerSecond, profiler.FaultsPerSecond:
		return "/s", 1
	case profiler.CPUs:
		return "", 1
	}
	return string(unit), 1
}

// lineName names a series beside others of its metric.
func lineName(s profiler.Series) string {
	if s.Device != "" {
		return s.Device
	}
	return "the " + string(s.Scope)
}

// gapSeconds is the time without a sample that interrupts a line.
const gapSeconds = 1.0

// leastSpan is the least range of an axis, as a share of the largest value: free memory that hardly changes then looks steady, and
// the labels of the axis fit.
const leastSpan = 0.2

// draw draws a chart of the time between two seconds.
func (p plot) draw(id string, s samples, from, to float64, shades []chart.Shade) profileChart {
	out := profileChart{ID: id, Metric: p.metric, Title: titleOf(p.metric), Left: p.left}
	drawn := chart.Chart{ID: id, Title: out.Title, From: from, To: to, Ticks: secondTicks(from, to), Shades: shades, NotNegative: true}
	var said []string
	largest := 0.0
	for i, series := range p.series {
		one, ok := s.series[series]
		if !ok {
			one = &sampledSeries{Series: series, unit: series.Unit()}
		}
		sign, factor := chartUnit(one.unit)
		drawn.Unit = sign
		line := chart.Line{Name: lineName(series), Points: make([]chart.Point, 0, len(one.at))}
		mean, most, n := 0.0, math.Inf(-1), 0
		for k, at := range one.at {
			if at < from || at > to {
				continue
			}
			if k > 0 && at-one.at[k-1] > gapSeconds {
				line.Points = append(line.Points, chart.Point{X: at, Y: math.NaN(), Low: math.NaN(), High: math.NaN()})
			}
			line.Points = append(line.Points, chart.Point{X: at, Y: one.values[k] * factor, Low: math.NaN(), High: math.NaN()})
			n++
			mean += (one.values[k] - mean) / float64(n)
			most = max(most, one.values[k])
			largest = max(largest, math.Abs(one.values[k]*factor))
		}
		drawn.Lines = append(drawn.Lines, line)
		words := profileLine{Class: i, Name: line.Name}
		if n > 0 {
			words.Mean, words.Most = cli.InUnit(mean, one.unit), cli.InUnit(most, one.unit)
			said = append(said, fmt.Sprintf("%s: mean %s, most %s", words.Name, words.Mean, words.Most))
		} else {
			said = append(said, words.Name+": no value")
		}
		out.Lines = append(out.Lines, words)
	}
	drawn.Noise = leastSpan / 3 * largest
	drawn.Description = fmt.Sprintf("Seconds %s to %s of the run; %s.", secondsParameter(from), secondsParameter(to), strings.Join(said, "; "))
	out.SVG = template.HTML(drawn.SVG()) //nolint:gosec // the chart escapes what it writes
	return out
}

// secondTicks labels the x axis at round seconds, at most six of them.
func secondTicks(from, to float64) []chart.Tick {
	least := (to - from) / 5
	step := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor >= least*(1-1e-9) {
			step *= factor
			break
		}
	}
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []chart.Tick
	for i := max(0, math.Ceil(from/step-1e-9)); i*step <= to+step*1e-9; i++ {
		ticks = append(ticks, chart.Tick{X: min(max(i*step, from), to), Label: strconv.FormatFloat(i*step, 'f', digits, 64) + " s"})
	}
	return ticks
}

// phaseMeasuring is the phase of the measured commands.
const phaseMeasuring = "measuring"

// phases lists the phases of a job in the order of their lanes, each with the word before its lane and its shade. Parts that commands
// mark have no shade, as they lie within measuring.
var phases = []struct{ name, word, class string }{
	{"fetching", "fetch", "phase-fetching"}, {"building", "build", "phase-building"}, {"preparing", "prepare", "phase-preparing"},
	{"setting up", "set up", "phase-setup"}, {phaseMeasuring, "measure", "phase-measuring"}, {"uploading", "upload", "phase-uploading"},
}

// stretches returns the times of a phase.
func (s samples) stretches(name string) []chart.Stretch {
	one, ok := s.series[profiler.Series{Scope: profiler.ScopeTiming, Name: name}]
	if !ok {
		return nil
	}
	out := make([]chart.Stretch, len(one.at))
	for i, at := range one.at {
		out[i] = chart.Stretch{From: max(0, at-one.values[i]), To: at}
	}
	return out
}

// shadesOf marks the phases behind the lines.
func shadesOf(s samples) []chart.Shade {
	var out []chart.Shade
	for _, phase := range phases {
		if at := s.stretches(phase.name); len(at) > 0 {
			out = append(out, chart.Shade{Class: phase.class, Label: phase.name, Stretches: at, Foot: phase.name == phaseMeasuring})
		}
	}
	return out
}

// Size of a lane, in units of the drawing.
const (
	laneHeight = 18
	laneBar    = 12
	// maxLanes bounds the lanes: those of the job, and of parts that commands have marked.
	maxLanes = 12
	// laneNames is the number of characters that fit before a lane.
	laneNames = 6
	// digitWidth is the width of a character below the lanes.
	digitWidth = 8
)

// phaseLanes draws the phases below each other, and the numbers of the measured commands below them, on the time axis of the charts.
type phaseLanes struct {
	Rows    []phaseLane
	Numbers []laneNumber
	Ticks   []laneNumber
	Height  int
	// NumbersAt and TicksAt are the rows of the texts.
	NumbersAt, TicksAt int
	// More counts the phases that have no lane.
	More int
}

// phaseLane is the lane of a phase.
type phaseLane struct {
	Name, Title, Class, Path string
	Y                        int
}

// laneNumber is a text at a column.
type laneNumber struct {
	X    int
	Text string
}

// phaseLanesOf draws the phases between two seconds.
func phaseLanesOf(s samples, from, to float64) phaseLanes {
	picture := chart.Chart{From: from, To: to}.Plot()
	var out phaseLanes
	add := func(name, word, class string) {
		columns := picture.Columns(s.stretches(name))
		if len(columns) == 0 {
			return
		}
		if len(out.Rows) == maxLanes {
			out.More++
			return
		}
		top := laneHeight*len(out.Rows) + (laneHeight-laneBar)/2
		if utf8.RuneCountInString(word) > laneNames+1 {
			word = string([]rune(word)[:laneNames]) + "…"
		}
		out.Rows = append(out.Rows, phaseLane{Name: word, Title: name, Class: class, Path: chart.Boxes(columns, top, top+laneBar), Y: top + laneBar - 1})
	}
	var parts []string
	for series := range s.series {
		if series.Scope == profiler.ScopeTiming && !slices.ContainsFunc(phases, func(p struct{ name, word, class string }) bool { return p.name == series.Name }) {
			parts = append(parts, series.Name)
		}
	}
	slices.Sort(parts)
	for _, phase := range phases {
		add(phase.name, phase.word, phase.class)
		if phase.name == phaseMeasuring {
			for _, part := range parts {
				add(part, strings.TrimPrefix(part, phaseMeasuring+"/"), "phase-part")
			}
		}
	}
	if len(out.Rows) == 0 {
		return out
	}
	out.NumbersAt = laneHeight*len(out.Rows) + 12
	out.TicksAt = out.NumbersAt + laneHeight
	out.Height = out.TicksAt + 6
	free := 0
	for _, batch := range s.order() {
		at := s.measured[batch]
		left, within := picture.X(max(at.From, from))
		right, ends := picture.X(min(at.To, to))
		number := strconv.Itoa(batch)
		half := len(number) * digitWidth / 2
		if middle := (left + right) / 2; within && ends && at.From <= at.To && middle-half >= free {
			out.Numbers = append(out.Numbers, laneNumber{middle, number})
			free = middle + half + digitWidth
		}
	}
	for _, t := range secondTicks(from, to) {
		x, _ := picture.X(t.X)
		half := len(t.Label) * digitWidth / 2
		out.Ticks = append(out.Ticks, laneNumber{min(x, chart.DefaultWidth-half), t.Label})
	}
	return out
}

// order returns the numbers of the measured commands that were timed.
func (s samples) order() []int {
	out := make([]int, 0, len(s.measured))
	for batch := range s.measured {
		out = append(out, batch)
	}
	slices.Sort(out)
	return out
}

// commandTable lists the measured commands of an attempt with some of their series.
type commandTable struct {
	Columns []string
	Rows    []commandRow
	// Left counts the commands that are not listed, Others the series.
	Left, Others int
}

// commandRow is a measured command.
type commandRow struct {
	profiler.Command
	// From and To are the command's time; empty: not timed.
	From, To string
	Cells    []commandCell
}

// commandCell is the mean and the maximum of a series; empty: there are none.
type commandCell struct{ Mean, Most string }

const (
	// commandsShown bounds the listed commands; if all are asked for, mostCommands does.
	commandsShown, mostCommands = 25, 1000
	// commandSeries bounds the series of the table.
	commandSeries = 6
)

// commandsOf lists the measured commands.
func (p *profileView) commandsOf(s samples) (out commandTable) {
	if s.summary == nil {
		return out
	}
	var list []profiler.SeriesSummary
	for _, one := range s.summary.Series {
		switch {
		case p.Scope != "" && one.Scope != p.Scope, p.Metric != "" && one.Name != string(p.Metric):
		case p.Metric == "" && one.Device != "":
			out.Others++
		default:
			list = append(list, one)
		}
	}
	// The job's series first: they are about the command alone.
	slices.SortFunc(list, func(a, b profiler.SeriesSummary) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), compareSeries(a.Series, b.Series))
	})
	out.Others += max(0, len(list)-commandSeries)
	list = list[:min(len(list), commandSeries)]
	places := make([]map[int]int, len(list))
	for i, one := range list {
		out.Columns = append(out.Columns, titleOf(one.Name)+", "+lineName(one.Series))
		places[i] = make(map[int]int, len(one.Batches))
		for k, batch := range one.Batches {
			places[i][batch] = k
		}
	}
	most := commandsShown
	if p.All {
		most = mostCommands
	}
	for _, command := range s.summary.Commands[:min(len(s.summary.Commands), most)] {
		row := commandRow{Command: command}
		if at, timed := s.measured[command.Batch]; timed {
			row.From, row.To = secondsParameter(math.Floor(at.From*1000)/1000), secondsParameter(math.Ceil(at.To*1000)/1000)
		}
		for i, one := range list {
			cell := commandCell{}
			if k, ok := places[i][command.Batch]; ok {
				cell = commandCell{cli.InUnit(one.Mean[k], one.Unit), cli.InUnit(one.Max[k], one.Unit)}
			}
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	out.Left = len(s.summary.Commands) - len(out.Rows)
	return out
}
