package chart

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Chart describes a drawing. Its zero value is an empty chart of the default size.
type Chart struct {
	// ID prefixes the IDs of the elements inside, which must differ within a document; it
	// holds letters, digits and hyphens.
	ID string
	// Title names the chart, Description says in words what it shows. They are its text
	// alternative.
	Title, Description string
	// Unit of the values, such as "s", "B" or "B/s"; prefixes are added, those of bytes are
	// binary. Empty: a count. "%" takes no prefix.
	Unit string
	// Width and Height are in units of the drawing, which are pixels at its own size.
	// 0: [DefaultWidth] and [DefaultHeight].
	Width, Height int
	// From and To bound the x axis. If equal, the first and the last point do.
	From, To float64
	// Log draws values by their logarithm; those that have none are gaps.
	Log bool
	// Noise is the typical scatter of the values, in their unit: the range is at least three
	// times as high.
	Noise float64
	// NotNegative is set if no value can be below zero: then the range hardly is, even if all are zero.
	NotNegative bool
	// Lines are drawn in their order, each in a class of its own, line-0 to line-9.
	Lines []Line
	Marks []Mark
	// Shades are drawn behind the lines, in their order.
	Shades []Shade
	// Ticks of the x axis; of two that would overlap, the second is left out.
	Ticks []Tick
	// StyleSheet is the address of the style sheet of a chart that is a document of its own;
	// empty: the chart is part of a page, which has its own.
	StyleSheet string
}

// Default size, in units of the drawing.
const (
	DefaultWidth  = 480
	DefaultHeight = 200
)

// Line is the history of one series. Points are ordered by X.
type Line struct {
	Name   string
	Points []Point
	// Breaks says why values do not compare with those before them; points refer to its entries.
	Breaks []string
}

// Point is the value of a series at a place along x.
type Point struct {
	X float64
	// Y is the value. NaN is a gap, and so is what cannot be drawn.
	Y float64
	// Low and High bound the band around the value; NaN: there is none.
	Low, High float64
	// Failed marks a place at which there is no value because measuring failed.
	Failed bool
	// Break is the number of the line's break at this point, counted from 1; 0: the values
	// before it compare.
	Break int
}

// MarkKind tells marks apart; it is a class of the drawing.
type MarkKind string

const (
	// Release marks a release.
	Release MarkKind = "release"
	// Change marks a confirmed change.
	Change MarkKind = "change"
	// Pin marks what others are compared with.
	Pin MarkKind = "pin"
)

// Mark is a vertical line with a label.
type Mark struct {
	X     float64
	Kind  MarkKind
	Label string
}

// Tick is a labelled place on the x axis.
type Tick struct {
	X     float64
	Label string
}

// Plot is the part of a drawing in which its lines are, in units of the drawing.
type Plot struct {
	Left, Top, Right, Bottom int
	// From and To are the places along x at its edges.
	From, To float64
}

// Spaces around the plot, in units of the drawing, and the widest character of a label.
const (
	leftSpace, rightSpace, topSpace, bottomSpace = 72, 8, 18, 22
	characterWidth                               = 9
	// crossSize is half the width of the cross of a failure.
	crossSize = 4
	// dotSize is the radius of a point without neighbours.
	dotSize = 2
	// lineClasses is the number of classes of lines.
	lineClasses = 10
)

// Plot returns the part of the drawing in which the lines are.
func (c Chart) Plot() Plot {
	p := Plot{Left: leftSpace, Top: topSpace, From: c.From, To: c.To}
	p.Right = max(cmp.Or(c.Width, DefaultWidth)-rightSpace, p.Left+1)
	p.Bottom = max(cmp.Or(c.Height, DefaultHeight)-bottomSpace, p.Top+1)
	if !(p.From < p.To) || !known(p.From) || !known(p.To) {
		p.From, p.To = c.extent()
	}
	return p
}

// extent returns the places of the first and the last point.
func (c Chart) extent() (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if known(p.X) {
				from, to = min(from, p.X), max(to, p.X)
			}
		}
	}
	switch {
	case from > to:
		return 0, 1
	case from == to:
		half := max(0.5, math.Abs(from)/2) // a place that large has no neighbour at 0.5
		return from - half, to + half
	}
	return from, to
}

// X returns the column of a place, and whether it is within the plot.
func (p Plot) X(x float64) (int, bool) {
	if !(x >= p.From && x <= p.To) {
		return 0, false
	}
	return p.Left + int(math.Round((x-p.From)/(p.To-p.From)*float64(p.Right-p.Left))), true
}

// drawing is a chart that is being written.
type drawing struct {
	Chart
	strings.Builder
	plot Plot
	axis axis
	// empty is set if there is nothing to draw.
	empty bool
	// broken holds the breaks that are drawn: most lines break together.
	broken map[label]bool
	lineMemory
}

// lineMemory is used again for each line of a drawing.
type lineMemory struct {
	part, low, high, around []cell
	band, path              []byte
}

// SVG returns the chart as an element, or as a document if there is a style sheet.
func (c Chart) SVG() string {
	d := drawing{Chart: c, plot: c.Plot(), broken: make(map[label]bool)}
	low, high, found := d.valueRange()
	d.empty = !found
	if found {
		d.axis = newAxis(low, high, c.Noise, c.Log)
		if c.NotNegative && !c.Log && low >= 0 {
			d.axis.low = max(d.axis.low, -margin*d.axis.high)
		}
	}
	d.Grow(c.size())
	width, height := cmp.Or(c.Width, DefaultWidth), cmp.Or(c.Height, DefaultHeight)
	if c.StyleSheet != "" {
		fmt.Fprintf(&d, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<?xml-stylesheet type=\"text/css\" href=\"%s\"?>\n", html.EscapeString(c.StyleSheet))
	}
	fmt.Fprintf(&d, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-title %[3]s-desc" fill="none" stroke="currentColor" font-size="13">`, width, height, c.ID)
	fmt.Fprintf(&d, `<title id="%s-title">%s</title><desc id="%[1]s-desc">%[3]s</desc>`, c.ID, text(c.Title), text(c.Description))
	d.shades()
	d.grid()
	for i, l := range c.Lines {
		d.line(i%lineClasses, l)
	}
	d.marks()
	d.WriteString("</svg>")
	return d.String()
}

// size estimates the length of the drawing in bytes.
func (c Chart) size() int {
	const frame, perLine, perPoint = 4096, 512, 5
	n := frame
	for _, l := range c.Lines {
		n += perLine + perPoint*len(l.Points)
	}
	return n
}

// text escapes what others have written, without characters that XML cannot hold or that turn text around.
func text(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		switch {
		case r < ' ' && r != '\t' && r != '\n' || r == '\uFFFE' || r == '\uFFFF':
			return -1
		case r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069': // SVG has no bdi
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// drawn reports whether a value has a place on the y axis.
func (c Chart) drawn(y float64) bool { return known(y) && (!c.Log || y > 1/drawable) }

// valueRange returns the lowest and the highest value with their bands.
func (d *drawing) valueRange() (low, high float64, found bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range d.Lines {
		for _, p := range l.Points {
			if _, within := d.plot.X(p.X); !within || !d.drawn(p.Y) {
				continue
			}
			for _, y := range []float64{p.Low, p.Y, p.High} {
				if d.drawn(y) {
					low, high = min(low, y), max(high, y)
				}
			}
		}
	}
	return low, high, low <= high
}

// y returns the row of a value.
func (d *drawing) y(y float64) int {
	height := float64(d.plot.Bottom - d.plot.Top)
	share := min(1, max(0, d.axis.at(y)))
	return d.plot.Bottom - int(math.Round(share*height))
}

// grid draws the axes.
func (d *drawing) grid() {
	p := d.plot
	d.WriteString(`<g class="grid">`)
	if !d.empty {
		for _, t := range d.axis.ticks(d.Unit) {
			y := d.y(t.y)
			fmt.Fprintf(d, `<path d="M%d %dH%d"/><text x="%d" y="%d" text-anchor="end" fill="currentColor" stroke="none">%s</text>`, p.Left, y, p.Right, p.Left-6, y+4, text(t.label))
		}
	}
	fmt.Fprintf(d, `<path class="axis" d="M%d %dV%dH%d"/>`, p.Left, p.Top, p.Bottom, p.Right)
	free := 0 // where the next label may begin
	for _, t := range d.Ticks {
		x, within := p.X(t.X)
		if !within {
			continue
		}
		half := len([]rune(t.Label)) * characterWidth / 2
		middle := min(max(x, half), p.Right+rightSpace-half)
		if middle-half < free {
			continue
		}
		free = middle + half + characterWidth
		fmt.Fprintf(d, `<path class="axis" d="M%d %dv4"/><text x="%d" y="%d" text-anchor="middle" fill="currentColor" stroke="none">%s</text>`, x, p.Bottom, middle, p.Bottom+17, text(t.Label))
	}
	d.WriteString("</g>")
	if d.empty {
		fmt.Fprintf(d, `<text class="nothing" x="%d" y="%d" text-anchor="middle" fill="currentColor" stroke="none">no values</text>`, (p.Left+p.Right)/2, (p.Top+p.Bottom)/2)
	}
}

// line draws one series: its band, its parts, its failures and where it breaks, unless another
// series breaks there in the same way. What no column can show, a gap or a second break within it,
// is left out: that bounds the size.
func (d *drawing) line(class int, l Line) {
	fmt.Fprintf(d, `<g class="series line-%d"><title>%s</title>`, class, text(l.Name))
	var dots, crosses strings.Builder
	band, path := d.band[:0], d.path[:0]
	part, low, high := d.part[:0], d.low[:0], d.high[:0]
	var breaks []label
	gap, crossed := false, 0 // the column of the last cross: others there would look the same
	end := func() {
		band, d.around = appendBand(band, low, high, d.around)
		if places := cut(part); len(places) == 1 {
			fmt.Fprintf(&dots, `<circle cx="%d" cy="%d" r="%d" fill="currentColor"/>`, places[0].x, places[0].y, dotSize)
		} else {
			path = appendPath(path, places)
		}
		part, low, high, gap = part[:0], low[:0], high[:0], false
	}
	for _, p := range l.Points {
		x, within := d.plot.X(p.X)
		if !within {
			end()
			continue
		}
		if n := len(breaks); p.Break > 0 && n > 0 && breaks[n-1].x == x {
			breaks[n-1].more++
		} else if p.Break > 0 {
			end()
			breaks = append(breaks, label{x: x, first: l.Breaks[p.Break-1]})
		}
		if p.Failed && x != crossed {
			crossed = x
			fmt.Fprintf(&crosses, "M%d %dl%d %dm0-%[4]dl-%[3]d %[4]d", x-crossSize, d.plot.Bottom-3*crossSize, 2*crossSize, 2*crossSize)
		}
		if !d.drawn(p.Y) {
			gap = true
			continue
		}
		if n := len(part); gap && n > 0 && part[n-1].x != x {
			end()
		}
		gap = false
		part = append(part, cell{x, d.y(p.Y)})
		if d.drawn(p.Low) && d.drawn(p.High) && p.Low <= p.High {
			low, high = append(low, cell{x, d.y(p.Low)}), append(high, cell{x, d.y(p.High)})
		}
	}
	end()
	d.part, d.low, d.high, d.band, d.path = part, low, high, band, path
	if len(band) > 0 {
		fmt.Fprintf(d, `<path class="band" d="%s" fill="currentColor" fill-opacity=".15" stroke="none"/>`, band)
	}
	if len(path) > 0 {
		fmt.Fprintf(d, `<path class="line" d="%s"/>`, path)
	}
	d.WriteString(dots.String())
	for _, b := range breaks {
		if d.broken[b] {
			continue
		}
		d.broken[b] = true
		fmt.Fprintf(d, `<path class="break" d="M%d %dV%d"><title>%s</title></path>`, b.x, d.plot.Top, d.plot.Bottom, text(b.String()))
	}
	if crosses.Len() > 0 {
		fmt.Fprintf(d, `<path class="failure" d="%s"><title>failed</title></path>`, crosses.String())
	}
	d.WriteString("</g>")
}

// label of a column: the first one there, and the number of others.
type label struct {
	x     int
	first string
	more  int
}

func (l label) String() string {
	if l.more == 0 {
		return l.first
	}
	return fmt.Sprintf("%s and %d more", l.first, l.more)
}

// appendPath appends a line through places, each relative to the one before it.
func appendPath(b []byte, places []cell) []byte {
	number := func(n int) { b = strconv.AppendInt(b, int64(n), 10) }
	for i, c := range places {
		if i == 0 {
			b = append(b, 'M')
			number(c.x)
			b = append(b, ' ')
			number(c.y)
			continue
		}
		switch dx, dy := c.x-places[i-1].x, c.y-places[i-1].y; {
		case dx == 0:
			b = append(b, 'v')
			number(dy)
		case dy == 0:
			b = append(b, 'h')
			number(dx)
		default:
			b = append(b, 'l')
			number(dx)
			if dy > 0 {
				b = append(b, ' ')
			}
			number(dy)
		}
	}
	return b
}

// appendBand appends the area between two lines: the lowest and the highest of each column. It
// changes both lines, and returns the memory of the places around the area, to be used again.
func appendBand(b []byte, low, high, around []cell) (band []byte, used []cell) {
	low, high = outermost(low, func(a, b int) bool { return a > b }), outermost(high, func(a, b int) bool { return a < b })
	if len(low) == 0 {
		return b, around
	}
	around = append(around[:0], high...)
	for i := len(low) - 1; i >= 0; i-- {
		around = append(around, low[i])
	}
	return append(appendPath(b, around), 'z'), around
}

// outermost returns the outermost place of each column, in the memory of places.
func outermost(places []cell, further func(a, b int) bool) []cell {
	out := places[:0]
	for _, c := range places {
		switch last := len(out) - 1; {
		case last < 0 || out[last].x != c.x:
			out = append(out, c)
		case further(c.y, out[last].y):
			out[last] = c
		}
	}
	return out
}

// marks draws what applies to all lines: of each kind, one mark for a column.
func (d *drawing) marks() {
	type shown struct {
		label
		kind MarkKind
	}
	var marks []shown
	last := make(map[MarkKind]int)
	for _, m := range slices.SortedStableFunc(slices.Values(d.Marks), func(a, b Mark) int { return cmp.Compare(a.X, b.X) }) {
		x, within := d.plot.X(m.X)
		if !within {
			continue
		}
		if at, there := last[m.Kind]; there && marks[at].x == x {
			marks[at].more++
			continue
		}
		last[m.Kind] = len(marks)
		marks = append(marks, shown{label{x: x, first: m.Label}, m.Kind})
	}
	free := 0
	for _, m := range marks {
		words := m.String()
		fmt.Fprintf(d, `<g class="mark %s"><title>%s</title><path d="M%d %dV%d"/>`, text(string(m.kind)), text(words), m.x, d.plot.Top-4, d.plot.Bottom)
		half := len([]rune(words)) * characterWidth / 2
		if middle := min(max(m.x, half), d.plot.Right+rightSpace-half); middle-half >= free && middle >= half {
			fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle" fill="currentColor" stroke="none">%s</text>`, middle, d.plot.Top-6, text(words))
			free = middle + half + characterWidth
		}
		d.WriteString("</g>")
	}
}
