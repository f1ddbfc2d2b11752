package chart

import "math"

// cell is a place in the drawing, in its units: x to the right, y downwards.
type cell struct{ x, y int }

// cut returns at most four of the places of each column: the first, the topmost, the lowest
// and the last, in the order in which they come. Places must be ordered by x; places equal
// to the one before them are left out. It changes its argument.
func cut(places []cell) []cell {
	kept := places[:0]
	keep := func(c cell) {
		if len(kept) == 0 || kept[len(kept)-1] != c {
			kept = append(kept, c)
		}
	}
	for from := 0; from < len(places); {
		to, top, low := from, from, from
		for ; to < len(places) && places[to].x == places[from].x; to++ {
			if places[to].y < places[top].y {
				top = to
			}
			if places[to].y > places[low].y {
				low = to
			}
		}
		// No more are written than were read, so nothing is overwritten that is still needed.
		four := [4]cell{places[from], places[min(top, low)], places[max(top, low)], places[to-1]}
		for _, c := range four {
			keep(c)
		}
		from = to
	}
	return kept
}

// drawable bounds the values that are drawn: beyond it, ranges and their ticks overflow.
const drawable = 1e250

// known reports whether a value can be drawn.
func known(y float64) bool { return math.Abs(y) <= drawable }
