package chart

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is left out, each column keeps its first, topmost, lowest and last place, and
// the order of its places.
func TestCutKeepsTheExtremesOfEachColumn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		places := make([]cell, random.IntN(400))
		x := 0
		for i := range places {
			x += random.IntN(3) * random.IntN(2)
			places[i] = cell{x, random.IntN(1 + random.IntN(200))}
		}
		kept := cut(slices.Clone(places))
		columns, left := byColumn(places), byColumn(kept)
		require.Len(t, left, len(columns))
		for x, all := range columns {
			some := left[x]
			require.LessOrEqual(t, len(some), 4)
			require.Equal(t, all[0], some[0], "the first of column %d", x)
			require.Equal(t, all[len(all)-1], some[len(some)-1], "the last of column %d", x)
			byHeight := func(a, b cell) int { return a.y - b.y }
			require.Equal(t, slices.MinFunc(all, byHeight), slices.MinFunc(some, byHeight))
			require.Equal(t, slices.MaxFunc(all, byHeight), slices.MaxFunc(some, byHeight))
			require.True(t, subsequence(some, all), "%v is not in the order of %v", some, all)
		}
	}
}

func byColumn(places []cell) map[int][]cell {
	out := make(map[int][]cell)
	for _, c := range places {
		out[c.x] = append(out[c.x], c)
	}
	return out
}

func subsequence(some, all []cell) bool {
	for _, c := range all {
		if len(some) > 0 && some[0] == c {
			some = some[1:]
		}
	}
	return len(some) == 0
}

func TestCut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ places, want []cell }{
		"nothing":             {},
		"one place":           {[]cell{{1, 5}}, []cell{{1, 5}}},
		"equal places":        {[]cell{{1, 5}, {1, 5}, {1, 5}}, []cell{{1, 5}}},
		"top before low":      {[]cell{{1, 5}, {1, 1}, {1, 4}, {1, 9}, {1, 6}}, []cell{{1, 5}, {1, 1}, {1, 9}, {1, 6}}},
		"low before top":      {[]cell{{1, 5}, {1, 9}, {1, 4}, {1, 1}, {1, 6}}, []cell{{1, 5}, {1, 9}, {1, 1}, {1, 6}}},
		"the first is lowest": {[]cell{{1, 9}, {1, 1}, {1, 4}}, []cell{{1, 9}, {1, 1}, {1, 4}}},
		"two columns":         {[]cell{{1, 9}, {1, 7}, {1, 8}, {2, 8}}, []cell{{1, 9}, {1, 7}, {1, 8}, {2, 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, append([]cell(nil), cut(slices.Clone(tt.places))...))
		})
	}
}

func TestPathIsRelative(t *testing.T) {
	t.Parallel()
	var w strings.Builder
	writePath(&w, []cell{{10, 20}, {10, 25}, {13, 25}, {14, 20}, {16, 22}})
	require.Equal(t, "M10 20v5h3l1-5l2 2", w.String())
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ticks []float64
		unit  string
		want  []string
	}{
		"seconds":              {[]float64{1, 1.5, 2}, "s", []string{"1.0 s", "1.5 s", "2.0 s"}},
		"one prefix for all":   {[]float64{0, 0.0005, 0.001}, "s", []string{"0 ms", "0.5 ms", "1.0 ms"}},
		"close together":       {[]float64{1.2345, 1.2346}, "s", []string{"1.2345 s", "1.2346 s"}},
		"counts":               {[]float64{2e9, 4e9}, "", []string{"2 G", "4 G"}},
		"bytes":                {[]float64{5e6, 10e6}, "B", []string{"5 MB", "10 MB"}},
		"per cent":             {[]float64{-0.5, 0, 0.5}, "%", []string{"-0.5 %", "0 %", "0.5 %"}},
		"small per cent":       {[]float64{0.001, 0.002}, "%", []string{"0.001 %", "0.002 %"}},
		"a single tick":        {[]float64{3}, "s", []string{"3.00 s"}},
		"too large for digits": {[]float64{1e30}, "s", []string{"1e+18 Ts"}},
		"none":                 {nil, "s", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, labels(tt.ticks, tt.unit))
		})
	}
}

// Noise alone must not look like change: the range is at least three times as high.
func TestAxisLeavesRoomForNoise(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		low, high, noise float64
		least            float64
	}{
		"noise wider than the values": {99, 101, 4, 12},
		"values wider than the noise": {90, 110, 1, 20},
		"all equal":                   {100, 100, 0, 10},
		"all zero":                    {0, 0, 0, 2},
		"noise not known":             {1, 2, math.NaN(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAxis(tt.low, tt.high, tt.noise, false)
			require.GreaterOrEqual(t, a.high-a.low, tt.least)
			require.GreaterOrEqual(t, a.at(tt.low), 0.0)
			require.LessOrEqual(t, a.at(tt.high), 1.0)
			require.InDelta(t, 0.5, a.at(tt.low+(tt.high-tt.low)/2), 1e-9)
			require.NotEmpty(t, a.ticks())
		})
	}
}

// Where all values are positive, the axis does not go below zero.
func TestAxisLeavesNoRoomBelowZero(t *testing.T) {
	t.Parallel()
	a := newAxis(1, 2, 4, false)
	require.Zero(t, a.low)
	require.GreaterOrEqual(t, a.high, 12.0)
	require.Negative(t, newAxis(-1, 2, 4, false).low)
}

func TestLogarithmicAxis(t *testing.T) {
	t.Parallel()
	a := newAxis(1, 1000, 0, true)
	require.InDelta(t, a.at(100)-a.at(10), a.at(10)-a.at(1), 1e-9, "equal ratios are equal distances")
	require.Equal(t, []float64{1, 10, 100, 1000}, rounded(a.ticks()))
	narrow := newAxis(10, 12, 0, true)
	require.Greater(t, len(narrow.ticks()), 1, "less than a power of ten has ticks, too")
}

func rounded(ticks []float64) []float64 {
	for i, t := range ticks {
		ticks[i] = float64(int(t + 0.5))
	}
	return ticks
}
