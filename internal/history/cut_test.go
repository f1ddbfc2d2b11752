package history_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/history"
)

// numbers are the places of artifacts one after another.
func numbers(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i)
	}
	return out
}

// pointsOf are the points of a cut.
func pointsOf(c history.Cut) []history.Point {
	out := make([]history.Point, len(c.At))
	for i := range out {
		out[i] = c.Point(i)
	}
	return out
}

// Each column keeps its extremes, and what leads to its neighbours.
func TestACutKeepsWhatItsDrawingShows(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 40))
	for range 300 {
		n, columns := 2+random.IntN(2000), 1+random.IntN(100)
		d := history.NewDrawing(numbers(n), columns, []history.Band{history.NoBand, history.QuartileBand, history.ExtremeBand}[random.IntN(3)])
		var all []history.Point
		for at := range n {
			if random.IntN(4) > 0 || at == n-1 {
				v := random.NormFloat64()
				all = append(all, history.Point{At: at, Value: v, Low: v - random.Float64(), High: v + random.Float64(), Min: v - 2*random.Float64(), Max: v + 2*random.Float64()})
			}
		}
		cut := d.Cut(all, &history.Changes{Places: places})
		require.Empty(t, cut.Breaks)
		if d.Band != history.ExtremeBand {
			require.Nil(t, cut.Min, "extremes that no drawing shows are left out")
			for i := range all {
				all[i].Min, all[i].Max = 0, 0
			}
		}
		shown := pointsOf(cut)
		require.True(t, slices.IsSortedFunc(shown, func(a, b history.Point) int { return a.At - b.At }))
		require.Equal(t, all[max(0, len(all)-2):], shown[max(0, len(shown)-2):], "the newest two")
		require.LessOrEqual(t, len(shown), 6*(columns+1)+1)
		byColumn := func(points []history.Point) map[int][]history.Point {
			out := make(map[int][]history.Point)
			for _, p := range points {
				out[d.Columns[p.At]] = append(out[d.Columns[p.At]], p)
			}
			return out
		}
		of := byColumn(all)
		kept := byColumn(shown)
		require.Len(t, kept, len(of))
		for column, points := range of {
			own := kept[column]
			require.Equal(t, points[0], own[0])
			require.Equal(t, points[len(points)-1], own[len(own)-1])
			same := func(value func(p history.Point) float64) {
				by := func(a, b history.Point) int { return map[bool]int{true: -1}[value(a) < value(b)] }
				require.Equal(t, value(slices.MinFunc(points, by)), value(slices.MinFunc(own, by)))
			}
			same(func(p history.Point) float64 { return p.Value })
			same(func(p history.Point) float64 { return -p.Value })
			switch d.Band {
			case history.QuartileBand:
				same(func(p history.Point) float64 { return p.Low })
				same(func(p history.Point) float64 { return -p.High })
			case history.ExtremeBand:
				same(func(p history.Point) float64 { return p.Min })
				same(func(p history.Point) float64 { return -p.Max })
			}
		}
	}
}

func TestACutNamesGapsThatShow(t *testing.T) {
	t.Parallel()
	of := func(n, columns int, at ...int) []int {
		var points []history.Point
		for _, a := range at {
			points = append(points, history.Point{At: a})
		}
		return history.NewDrawing(numbers(n), columns, history.NoBand).Cut(points, &history.Changes{Places: places}).Gaps
	}
	require.Empty(t, of(5, 400, 0, 1, 2, 3, 4))
	require.Equal(t, []int{3}, of(5, 400, 0, 1, 3, 4))
	require.Empty(t, of(4001, 400, 0, 1, 3, 4), "all within a column")
	require.Equal(t, []int{40}, of(4001, 400, 0, 1, 2, 40, 41))
}

// Where the place changes too often to be seen, lines are still short, and each value is compared with its like.
func TestACutOfALineThatAlwaysBeginsAnew(t *testing.T) {
	t.Parallel()
	var all []history.Point
	for at := range 4001 {
		all = append(all, history.Point{At: at, Value: float64(at % 2), Place: at % 2})
	}
	changes := history.Changes{Places: places}
	require.Len(t, history.Breaks(all, &changes), 4000)
	cut := history.NewDrawing(numbers(4001), 400, history.NoBand).Cut(all, &changes)
	shown := pointsOf(cut)
	require.Less(t, len(shown), 1300)
	require.Equal(t, all[3999:], shown[len(shown)-2:])
	begins := make(map[int]bool)
	for _, b := range cut.Breaks {
		begins[b.At] = true
	}
	for i := 1; i < len(shown); i++ {
		require.Equal(t, shown[i].Place != shown[i-1].Place, begins[shown[i].At])
	}
}

// Without a drawing, all points are answered.
func TestFieldsHoldEachPoint(t *testing.T) {
	t.Parallel()
	all := []history.Point{{At: 1, Value: 2, Low: 3, High: 4, Min: 5, Max: 6, N: 7, Place: 8}, {At: 9, Value: 10, Low: 11, High: 12, Min: 13, Max: 14, N: 15, Place: 16}}
	require.Equal(t, all, pointsOf(history.Cut{Fields: history.FieldsOf(all)}))
	require.NotNil(t, history.FieldsOf(nil).At, "no points are a list as well")
}
