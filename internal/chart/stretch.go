package chart

import (
	"cmp"
	"fmt"
	"slices"
)

// Stretch is a part of the x axis.
type Stretch struct{ From, To float64 }

// Columns is a part of a plot, from the left edge of a column to that of another.
type Columns struct{ Left, Right int }

// Columns returns the parts of the plot that stretches cover, from left to right. Each within the plot takes at least one
// column; those that touch become one, which bounds their number.
func (p Plot) Columns(stretches []Stretch) []Columns {
	var out []Columns
	for _, s := range slices.SortedFunc(slices.Values(stretches), func(a, b Stretch) int { return cmp.Compare(a.From, b.From) }) {
		left, within := p.X(max(s.From, p.From))
		right, ends := p.X(min(s.To, p.To))
		if !within || !ends || s.From > s.To {
			continue
		}
		right = max(right, left+1)
		if n := len(out); n > 0 && left <= out[n-1].Right {
			out[n-1].Right = max(out[n-1].Right, right)
			continue
		}
		out = append(out, Columns{left, right})
	}
	return out
}

// Shade marks stretches of the x axis behind the lines.
type Shade struct {
	// Class is the class of the drawing by which style sheets tell shades apart.
	Class, Label string
	Stretches    []Stretch
	// Foot is set for a shade that stands on the x axis only.
	Foot bool
}

// footHeight is the height of a shade at the foot, in units of the drawing.
const footHeight = 6

// shades draws all shades.
func (d *drawing) shades() {
	for _, s := range d.Shades {
		columns := d.plot.Columns(s.Stretches)
		if len(columns) == 0 {
			continue
		}
		top := d.plot.Top
		if s.Foot {
			top = d.plot.Bottom - footHeight
		}
		fmt.Fprintf(d, `<path class="shade %s" stroke="none" fill="currentColor" fill-opacity=".1" d="%s"><title>%s</title></path>`, text(s.Class), Boxes(columns, top, d.plot.Bottom), text(s.Label))
	}
}

// Boxes returns the path of rectangles in columns between two rows.
func Boxes(columns []Columns, top, bottom int) string {
	var b []byte
	for _, c := range columns {
		b = fmt.Appendf(b, "M%d %dH%dV%dH%dz", c.Left, top, c.Right, bottom, c.Left)
	}
	return string(b)
}
