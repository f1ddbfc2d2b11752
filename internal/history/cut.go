package history

import (
	"math"
	"slices"
)

// Changes says why points of one place do not compare with those of another. It remembers
// what it has said, for a series may change its place with every point.
type Changes struct {
	// Places are those to which points refer by number.
	Places []Place
	said   map[[2]int]string
}

// Between says why points of one place do not compare with earlier ones of another; empty:
// they do.
func (c *Changes) Between(now, earlier int) string {
	if now == earlier {
		return ""
	}
	pair := [2]int{now, earlier}
	said, known := c.said[pair]
	if !known {
		said = c.Places[now].Change(c.Places[earlier])
		if c.said == nil {
			c.said = make(map[[2]int]string)
		}
		c.said[pair] = said
	}
	return said
}

// Break marks the point at which a line begins anew.
type Break struct {
	// At is the number of the artifact, and Reason why the values before it do not compare.
	At     int
	Reason string
}

// Breaks lists where a line begins anew.
func Breaks(points []Point, changes *Changes) []Break {
	var breaks []Break
	for i := 1; i < len(points); i++ {
		if reason := changes.Between(points[i].Place, points[i-1].Place); reason != "" {
			breaks = append(breaks, Break{points[i].At, reason})
		}
	}
	return breaks
}

// Band is an area drawn around a line.
type Band string

// Bands. The first is none.
const (
	NoBand       Band = "none"
	QuartileBand Band = "quartile"
	ExtremeBand  Band = "minmax"
)

// Drawing tells which points a drawing shows.
type Drawing struct {
	// Columns has the column of pixels of each artifact.
	Columns []int
	Band    Band
}

// NewDrawing returns the drawing of artifacts at places along x, which is some columns wide.
func NewDrawing(places []float64, columns int, band Band) Drawing {
	d := Drawing{Columns: make([]int, len(places)), Band: band}
	if len(places) == 0 {
		return d
	}
	from, to := slices.Min(places), slices.Max(places)
	for i, x := range places {
		if to > from {
			d.Columns[i] = int(math.Round((x - from) / (to - from) * float64(columns)))
		}
	}
	return d
}

// Fields holds points field by field: the i-th entry of each slice is of the i-th point. Lines
// are passed on as they are answered, without a copy of each point at each step. A drawing
// without a band of extremes has no Min and Max.
type Fields struct {
	At                          []int
	Values, Low, High, Min, Max []float64
	N, Places                   []int
}

// FieldsOf returns the fields of all points.
func FieldsOf(points []Point) Fields {
	f := newFields(len(points), true)
	for i := range points {
		f.set(i, &points[i])
	}
	return f
}

// newFields returns the fields of n points, which are not set yet.
func newFields(n int, extremes bool) Fields {
	fractions := 3
	if extremes {
		fractions = 5
	}
	ints, floats := make([]int, 3*n), make([]float64, fractions*n)
	whole := func(i int) []int { return ints[i*n : (i+1)*n : (i+1)*n] }
	fraction := func(i int) []float64 { return floats[i*n : (i+1)*n : (i+1)*n] }
	f := Fields{At: whole(0), N: whole(1), Places: whole(2), Values: fraction(0), Low: fraction(1), High: fraction(2)}
	if extremes {
		f.Min, f.Max = fraction(3), fraction(4)
	}
	return f
}

// Point returns the i-th point.
func (f Fields) Point(i int) Point {
	p := Point{At: f.At[i], Value: f.Values[i], Low: f.Low[i], High: f.High[i], N: f.N[i], Place: f.Places[i]}
	if f.Min != nil {
		p.Min, p.Max = f.Min[i], f.Max[i]
	}
	return p
}

func (f Fields) set(i int, p *Point) {
	f.At[i], f.N[i], f.Places[i] = p.At, p.N, p.Place
	f.Values[i], f.Low[i], f.High[i] = p.Value, p.Low, p.High
	if f.Min != nil {
		f.Min[i], f.Max[i] = p.Min, p.Max
	}
}

// Cut is a line without the points that its drawing does not show.
type Cut struct {
	Fields
	Breaks []Break
	// Gaps are the numbers of artifacts before which others lack a value.
	Gaps []int
}

// Cut leaves out what a drawing does not show: of the points in a column it keeps the first,
// the lowest, the highest and the last, and the ends of the band (the M4 cut of Jugel et al.,
// VLDB 2014). Gaps that are narrower than a column do not show, nor does a part that begins
// anew and ends within one. The two newest points are always kept.
func (d Drawing) Cut(points []Point, changes *Changes) Cut {
	var out Cut
	kept := make([]int, 0, len(points)+8) // and what a column keeps twice
	for from := 0; from < len(points); {
		to := d.part(points, from, changes)
		first, last := d.Columns[points[from].At], d.Columns[points[to-1].At]
		if from > 0 && to <= len(points)-2 && first == last && d.Columns[points[to].At] == first {
			from = to
			continue
		}
		if n := len(kept); n > 0 {
			before, begins := &points[kept[n-1]], &points[from]
			if reason := changes.Between(begins.Place, before.Place); reason != "" {
				out.Breaks = append(out.Breaks, Break{begins.At, reason})
			}
			if d.gap(before, begins) {
				out.Gaps = append(out.Gaps, begins.At)
			}
		}
		for from < to {
			end := from + 1
			for end < to && d.Columns[points[end].At] == d.Columns[points[from].At] {
				end++
			}
			kept = d.column(kept, points, from, end)
			from = end
		}
	}
	out.Fields = newFields(len(kept), d.Band == ExtremeBand)
	for i, k := range kept {
		out.set(i, &points[k])
	}
	return out
}

// part returns the end of the part that begins with a point.
func (d Drawing) part(points []Point, from int, changes *Changes) int {
	to := from + 1
	for to < len(points) && changes.Between(points[to].Place, points[to-1].Place) == "" && !d.gap(&points[to-1], &points[to]) {
		to++
	}
	return to
}

// gap reports whether a gap between two points shows.
func (d Drawing) gap(before, p *Point) bool {
	return p.At > before.At+1 && d.Columns[p.At]-d.Columns[before.At] > 1
}

// column appends the numbers of the points in one column that are kept.
func (d Drawing) column(kept []int, points []Point, from, to int) []int {
	if kept = append(kept, from); to-from == 1 {
		return kept
	}
	before := len(kept) - 1
	lowest, highest, lowestBand, highestBand := from, from, from, from
	banded := d.Band == QuartileBand || d.Band == ExtremeBand
	for i := from + 1; i < to; i++ {
		if points[i].Value < points[lowest].Value {
			lowest = i
		}
		if points[i].Value > points[highest].Value {
			highest = i
		}
		if !banded {
			continue
		}
		low, high := d.ends(&points[i])
		if below, _ := d.ends(&points[lowestBand]); low < below {
			lowestBand = i
		}
		if _, above := d.ends(&points[highestBand]); high > above {
			highestBand = i
		}
	}
	kept = append(kept, lowest, highest, to-1)
	if banded {
		kept = append(kept, lowestBand, highestBand)
	}
	if newest := len(points) - 2; from <= newest && newest < to {
		kept = append(kept, newest)
	}
	own := kept[before:]
	slices.Sort(own)
	return kept[:before+len(slices.Compact(own))]
}

// ends returns the ends of the band at a point.
func (d Drawing) ends(p *Point) (low, high float64) {
	if d.Band == ExtremeBand {
		return p.Min, p.Max
	}
	return p.Low, p.High
}
