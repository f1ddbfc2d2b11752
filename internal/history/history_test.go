package history_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/history"
)

// places has a usual place and a larger machine.
var places = []history.Place{{Surrounding: bench.Surrounding{SizeClass: 1, HardwareID: "a"}}, {Surrounding: bench.Surrounding{SizeClass: 2, HardwareID: "a"}}}

// points returns points with values at 0, 1, 2 and so on; NaN has none.
func points(values ...float64) []history.Point {
	var out []history.Point
	for i, v := range values {
		if !math.IsNaN(v) {
			out = append(out, history.Point{At: i, Value: v, N: 1})
		}
	}
	return out
}

// moved puts the points from a number on to the larger machine.
func moved(list []history.Point, from int) []history.Point {
	for i := range list {
		if list[i].At >= from {
			list[i].Place = 1
		}
	}
	return list
}

func values(list []history.Point) (out []float64) {
	for _, p := range list {
		out = append(out, math.Round(1e6*p.Value)/1e6)
	}
	return out
}

func TestPlacesTellWhatChanged(t *testing.T) {
	t.Parallel()
	usual := history.Place{Surrounding: bench.Surrounding{SizeClass: 1, HardwareID: "a"}, Segment: "6.1|", Suite: "0123456789abcdef"}
	require.Empty(t, usual.Change(usual))
	for want, change := range map[string]func(p *history.Place){
		"size class 2 instead of 1":                          func(p *history.Place) { p.SizeClass = 2 },
		"hardware b instead of a":                            func(p *history.Place) { p.HardwareID = "b" },
		"beside other jobs":                                  func(p *history.Place) { p.CoLocated = true },
		"suite fedcba987654 instead of 0123456789ab":         func(p *history.Place) { p.Suite = "fedcba9876543210" },
		"another kernel: 6.1 and 6.8":                        func(p *history.Place) { p.Segment = "6.8|" },
		"size class 2 instead of 1; hardware b instead of a": func(p *history.Place) { p.SizeClass, p.HardwareID = 2, "b" },
		"": func(p *history.Place) { p.Suite, p.Segment = "", "" }, // not known is no difference
	} {
		p := usual
		change(&p)
		require.Equal(t, want, p.Change(usual))
	}
	back := usual
	back.CoLocated = true
	require.Equal(t, "no longer beside other jobs", usual.Change(back))
}

func TestShift(t *testing.T) {
	t.Parallel()
	noisy := func(level float64) []float64 {
		return []float64{level, level * 1.01, level * 0.99, level * 1.02, level * 0.98, level, level * 1.01, level * 0.99}
	}
	require.Zero(t, history.Shift(nil, places))
	require.Zero(t, history.Shift(points(1, 2, 3), places), "too few")
	require.Zero(t, history.Shift(points(5, 5, 5, 5, 5, 5, 5, 5), places))
	require.Zero(t, history.Shift(points(0, 0, 0, 0, 0, 0, 0, 0), places))
	still := history.Shift(points(append(noisy(100), 100, 101, 99, 100, 100)...), places)
	jumped := history.Shift(points(append(noisy(100), 110, 111, 109, 110, 110)...), places)
	fell := history.Shift(points(append(noisy(100), 90, 91, 89, 90, 90)...), places)
	require.Less(t, still, 1.0)
	require.Greater(t, jumped, 5.0)
	require.InDelta(t, jumped, fell, 1e-9)
	require.Zero(t, history.Shift(moved(points(append(noisy(100), 200, 200)...), 8), places), "another machine is no shift, and two values tell nothing")
	once := history.Shift(points(append(noisy(100), 100, 200, 99, 100, 100)...), places)
	require.Less(t, once, 1.0, "one value alone is none")
}

func TestMeanOfSeries(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	of := func(lists ...[]history.Point) []float64 {
		var series []history.Series
		for _, l := range lists {
			series = append(series, history.Series{Points: l})
		}
		return values(history.Mean(series, places))
	}
	require.Equal(t, []float64{1, 2}, of(points(3, 6)))
	require.Equal(t, []float64{1, 2}, of(points(1, 1), points(10, 40)), "sizes do not matter, only ratios")
	require.Equal(t, []float64{1, 1, 2}, of(points(1, nan, 2), points(5, 5, 10)), "a gap moves nothing")
	require.Equal(t, []float64{1, 1}, of(points(1, 1), points(nan, 7)), "nor does a series that begins later")
	require.Equal(t, []float64{1, 1, 1.5}, of(moved(points(2, 8, 12), 1)), "another machine moves nothing")
	require.Equal(t, []float64{1, 3}, of(points(0, 1), points(1, 3)), "zero has no geometric mean")
	require.Empty(t, of(points(0, 1)))
	require.Empty(t, of())
}

func anySeries(random *rand.Rand, n int) []history.Series {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	out := make([]history.Series, n)
	for i := range out {
		out[i] = history.Series{TestCase: bench.TestCase{
			Benchmark: pick("a", "b", "c", "d"), Profile: pick("debug", "opt", ""), Scenario: fmt.Sprint("s", i), Target: "x",
		}, Metric: bench.Metric(pick("wall-time", "Line ns/op"))}
	}
	return out
}

// Each series is in one line of one chart at most, and none is lost but those counted as left.
func TestArrangingLosesNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 14))
	for range 300 {
		series := anySeries(random, random.IntN(60))
		shifts := make([]float64, len(series))
		for i := range shifts {
			shifts[i] = float64(random.IntN(10))
		}
		a := history.Arrangement{
			Split: history.Parameters[random.IntN(len(history.Parameters))], Line: append([]string{history.EachSeries, history.AllSeries}, history.Parameters...)[random.IntN(2+len(history.Parameters))],
			Charts: 1 + random.IntN(4), Lines: 1 + random.IntN(4),
		}
		charts, left := a.Arrange(series, shifts)
		names := make(map[string]bool)
		for _, s := range series {
			names[s.Parameter(a.Split)] = true
		}
		require.Equal(t, len(names), len(charts)+left)
		require.LessOrEqual(t, len(charts), a.Charts)
		seen := make(map[int]bool)
		for i, c := range charts {
			require.True(t, i == 0 || charts[i-1].Shift >= c.Shift)
			require.NotEmpty(t, c.Lines)
			require.LessOrEqual(t, len(c.Lines), a.Lines)
			lines := make(map[string]bool)
			for k, l := range c.Lines {
				require.True(t, k == 0 || c.Lines[k-1].Shift >= l.Shift)
				require.False(t, lines[l.Name], "two lines have the name %s", l.Name)
				lines[l.Name] = true
				for _, s := range l.Series {
					require.Equal(t, c.Name, series[s].Parameter(a.Split))
					require.False(t, seen[s])
					seen[s] = true
				}
			}
		}
		all, none := history.Arrangement{Split: a.Split, Line: a.Line, Charts: 1000, Lines: 1000}.Arrange(series, shifts)
		require.Zero(t, none)
		total := 0
		for _, c := range all {
			for _, l := range c.Lines {
				total += len(l.Series)
			}
		}
		require.Equal(t, len(series), total)
	}
}

func TestLinesAreNamedByWhatDiffers(t *testing.T) {
	t.Parallel()
	series := []history.Series{
		{TestCase: bench.TestCase{Benchmark: "serde", Profile: "opt", Scenario: "full", Target: "x"}},
		{TestCase: bench.TestCase{Benchmark: "serde", Profile: "debug", Scenario: "full", Target: "x"}},
	}
	charts, _ := history.Arrangement{Split: "benchmark", Line: history.EachSeries, Charts: 9, Lines: 9}.Arrange(series, []float64{2, 1})
	require.Equal(t, "serde", charts[0].Name)
	require.Equal(t, []string{"opt", "debug"}, []string{charts[0].Lines[0].Name, charts[0].Lines[1].Name})
	alone, _ := history.Arrangement{Split: "benchmark", Line: history.EachSeries, Charts: 9, Lines: 9}.Arrange(series[:1], []float64{2})
	require.Equal(t, "serde opt full x", alone[0].Lines[0].Name)
	profiles, _ := history.Arrangement{Split: "target", Line: "backend", Charts: 9, Lines: 9}.Arrange(series, []float64{2, 1})
	require.Equal(t, []history.Line{{Name: "no backend", Series: []int{0, 1}, Shift: 2}}, profiles[0].Lines)
}
