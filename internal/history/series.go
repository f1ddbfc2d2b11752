package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Place describes the conditions under which a value was measured.
type Place struct {
	bench.Surrounding
	Segment bench.Segment
	// Suite is the content hash of the suite; empty: not known.
	Suite string
}

// shortHash is the number of characters of a hash that are shown.
const shortHash = 12

// Change says why values at this place do not compare with those at an earlier one; empty:
// they do.
func (p Place) Change(earlier Place) string {
	if p == earlier {
		return "" // as usual: most points are where the ones before them are
	}
	var changes []string
	instead := func(what string, now, before any) {
		if now != before {
			changes = append(changes, fmt.Sprintf("%s %v instead of %v", what, now, before))
		}
	}
	instead("size class", p.SizeClass, earlier.SizeClass)
	instead("hardware", p.HardwareID, earlier.HardwareID)
	if p.CoLocated != earlier.CoLocated {
		changes = append(changes, map[bool]string{true: "beside other jobs", false: "no longer beside other jobs"}[p.CoLocated])
	}
	if p.Suite != "" && earlier.Suite != "" {
		instead("suite", fmt.Sprintf("%.*s", shortHash, p.Suite), fmt.Sprintf("%.*s", shortHash, earlier.Suite))
	}
	if change := earlier.Segment.Change(p.Segment); change != "" {
		changes = append(changes, change)
	}
	return strings.Join(changes, "; ")
}

// Point sums up the values that a series has of one artifact.
type Point struct {
	// At is the artifact's number in the history, from 0.
	At int
	// Value is used in comparisons; Low and High are the quartiles, Min and Max the extremes
	// of all N values.
	Value, Low, High, Min, Max float64
	N                          int
	// Place is the number of the [Place].
	Place int
}

// Series is the history of one metric of one test case. Points are ordered by At.
type Series struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	Points   []Point
}

// Sizes of what [Shift] compares: the newest points with those before them.
const (
	// RecentPoints is the number of the newest points.
	RecentPoints = 5
	// EarlierPoints is the number of points before them.
	EarlierPoints = 35
	// fewestEarlier is the number of points without which there is no scatter to compare with.
	fewestEarlier = 3
	// leastScatter is the relative scatter below which series are not told apart: a change of
	// an exact metric would else come before all others, however small.
	leastScatter = 0.002
)

// Shift tells how far the newest points of a series are from those before them, in units of
// their scatter: the difference of the two medians, divided by the median distance of the
// earlier points from their median. Only points that compare with the newest one count; 0:
// there are too few.
func Shift(points []Point, places []Place) float64 {
	from := len(points)
	for from > 0 && len(points)-from < RecentPoints+EarlierPoints && (from == len(points) || places[points[from].Place].Change(places[points[from-1].Place]) == "") {
		from--
	}
	points = points[from:]
	var memory [2][RecentPoints + EarlierPoints]float64
	values := memory[0][:len(points)]
	for i, p := range points {
		values[i] = p.Value / 4 // exact, and no difference overflows
	}
	recent := min(RecentPoints, len(values)-fewestEarlier)
	if recent < 1 {
		return 0
	}
	earlier, newest := values[:len(values)-recent], values[len(values)-recent:]
	middle := median(earlier)
	distances := memory[1][:len(earlier)]
	for i, v := range earlier {
		distances[i] = math.Abs(v - middle)
	}
	scatter := max(median(distances), leastScatter*math.Abs(middle))
	difference := math.Abs(median(newest) - middle)
	if difference == 0 || math.IsNaN(difference) {
		return 0
	}
	return min(difference/scatter, math.MaxFloat64)
}

// median returns the middle of values, of which there is at least one. It sorts them.
func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return values[middle-1]/2 + values[middle]/2
}

// Mean returns the geometric mean of several series as one line, relative to its start: 1 is
// the start of every series, and 1.1 is ten per cent more. Where a series has no value, its
// last one counts, and where it begins anew, it goes on from there: neither moves the mean.
// Series with values that are not positive have no geometric mean and are left out.
func Mean(series []Series, places []Place) []Point {
	type state struct {
		next, place int
		base, ratio float64
	}
	states := make([]state, len(series))
	var at []int
	for i, s := range series {
		states[i].place = -1
		if slices.ContainsFunc(s.Points, func(p Point) bool { return !(p.Value > 0) }) {
			states[i].next = len(s.Points)
			continue
		}
		for _, p := range s.Points {
			at = append(at, p.At)
		}
	}
	slices.Sort(at)
	var out []Point
	for _, here := range slices.Compact(at) {
		mean := Point{At: here}
		sum, known := 0.0, 0
		for i, s := range series {
			one := &states[i]
			if one.next < len(s.Points) && s.Points[one.next].At == here {
				p := s.Points[one.next]
				switch {
				case one.place < 0:
					one.base = p.Value
				case places[p.Place].Change(places[one.place]) != "":
					one.base = p.Value / one.ratio
				}
				one.ratio, one.place = p.Value/one.base, p.Place
				one.next, mean.N = one.next+1, mean.N+1
			}
			if one.place >= 0 {
				sum, known = sum+math.Log(one.ratio), known+1
			}
		}
		mean.Value = math.Exp(sum / float64(known))
		mean.Low, mean.High, mean.Min, mean.Max = mean.Value, mean.Value, mean.Value, mean.Value
		out = append(out, mean)
	}
	return out
}

// Name says what tells a series from others: its parameters with a value, without those in
// shared, or the test case.
func (s Series) Name(shared []string) string {
	var own []string
	for _, p := range Parameters {
		if v := s.Parameter(p); v != "" && !slices.Contains(shared, p) {
			own = append(own, v)
		}
	}
	return cmp.Or(strings.Join(own, " "), s.TestCase.String())
}
