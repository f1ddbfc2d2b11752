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

// Drawing says of which points a drawing shows anything.
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

// Cut is a line without the points that its drawing does not show.
type Cut struct {
	Points []Point
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
	kept := make([]int, 0, 8) // of a column
	for from := 0; from < len(points); {
		to := d.part(points, from, changes)
		first, last := d.Columns[points[from].At], d.Columns[points[to-1].At]
		if from > 0 && to <= len(points)-2 && first == last && d.Columns[points[to].At] == first {
			from = to
			continue
		}
		if n := len(out.Points); n > 0 {
			before, begins := out.Points[n-1], points[from]
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
			kept = d.column(kept[:0], points, from, end)
			for _, i := range kept {
				out.Points = append(out.Points, points[i])
			}
			from = end
		}
	}
	return out
}

// part returns the end of the part that begins with a point.
func (d Drawing) part(points []Point, from int, changes *Changes) int {
	to := from + 1
	for to < len(points) && changes.Between(points[to].Place, points[to-1].Place) == "" && !d.gap(points[to-1], points[to]) {
		to++
	}
	return to
}

// gap reports whether a gap between two points shows.
func (d Drawing) gap(before, p Point) bool {
	return p.At > before.At+1 && d.Columns[p.At]-d.Columns[before.At] > 1
}

// column adds the numbers of the points that are kept of those in one column.
func (d Drawing) column(kept []int, points []Point, from, to int) []int {
	if kept = append(kept, from); to-from == 1 {
		return kept
	}
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
		low, high := d.ends(points[i])
		if below, _ := d.ends(points[lowestBand]); low < below {
			lowestBand = i
		}
		if _, above := d.ends(points[highestBand]); high > above {
			highestBand = i
		}
	}
	kept = append(kept, lowest, highest, lowestBand, highestBand, to-1)
	if before := len(points) - 2; from <= before && before < to {
		kept = append(kept, before)
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// ends returns the ends of the band at a point.
func (d Drawing) ends(p Point) (low, high float64) {
	if d.Band == ExtremeBand {
		return p.Min, p.Max
	}
	return p.Low, p.High
}
