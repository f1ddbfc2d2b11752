package chart

import (
	"math"
	"math/rand/v2"
	"slices"
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
	require.Equal(t, "M10 20v5h3l1-5l2 2", string(appendPath(nil, []cell{{10, 20}, {10, 25}, {13, 25}, {14, 20}, {16, 22}})))
}

// Ticks are round in the unit of their labels, and the prefix is one that people read.
func TestTicksAreReadable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		low, high float64
		unit      string
		want      []string
	}{
		"seconds":             {1, 2, "s", []string{"1.0 s", "1.5 s", "2.0 s"}},
		"nanoseconds":         {2e-7, 6e-7, "s", []string{"200 ns", "300 ns", "400 ns", "500 ns", "600 ns"}},
		"no thousand seconds": {1000, 3000, "s", []string{"1000 s", "1500 s", "2000 s", "2500 s", "3000 s"}},
		"mebibytes":           {1 << 20, 5 << 20, "B", []string{"1 MiB", "2 MiB", "3 MiB", "4 MiB", "5 MiB"}},
		"below a mebibyte":    {1000 << 10, 1020 << 10, "B", []string{"1000 KiB", "1005 KiB", "1010 KiB", "1015 KiB", "1020 KiB"}},
		"a rate of bytes":     {1 << 30, 2 << 30, "B/s", []string{"1.0 GiB/s", "1.5 GiB/s", "2.0 GiB/s"}},
		"instructions":        {1e9, 5e9, "", []string{"1 G", "2 G", "3 G", "4 G", "5 G"}},
		"no thousandths":      {0.001, 0.005, "", []string{"0.001", "0.002", "0.003", "0.004", "0.005"}},
		"per cent":            {-0.5, 0.5, "%", []string{"-0.5 %", "0 %", "0.5 %"}},
		"many per cent":       {1000, 5000, "%", []string{"1000 %", "2000 %", "3000 %", "4000 %", "5000 %"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, written(newAxis(tt.low, tt.high, 0, false).ticks(tt.unit)))
		})
	}
}

// On a logarithmic axis each label has the prefix of its own size.
func TestPowersAreReadable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		low, high float64
		unit      string
		want      []string
	}{
		"times":  {1e-6, 1, "s", []string{"1 µs", "100 µs", "10 ms", "1 s"}},
		"bytes":  {1 << 10, 1 << 30, "B", []string{"4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB"}},
		"counts": {1, 10_000, "", []string{"1", "10", "100", "1 k", "10 k"}},
		"narrow": {1 << 20, 5 << 20, "B", []string{"1 MiB", "2 MiB", "3 MiB", "4 MiB", "5 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, written(newAxis(tt.low, tt.high, 0, true).ticks(tt.unit)))
		})
	}
}

func written(ticks []tick) []string {
	var out []string
	for _, t := range ticks {
		out = append(out, t.label)
	}
	return out
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values []float64
		unit   string
		want   []string
	}{
		"close together":       {[]float64{1.2345, 1.2346}, "s", []string{"1.2345 s", "1.2346 s"}},
		"a single one":         {[]float64{3}, "s", []string{"3.00 s"}},
		"too large for digits": {[]float64{1e30}, "s", []string{"1e+30 s"}},
		"none":                 {nil, "s", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, labels(tt.values, tt.unit))
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
			require.NotEmpty(t, a.ticks("s"))
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
	require.Equal(t, []float64{1, 10, 100, 1000}, rounded(a.ticks("")))
	narrow := newAxis(10, 12, 0, true)
	require.Greater(t, len(narrow.ticks("")), 1, "less than a power of ten has ticks, too")
}

func rounded(ticks []tick) []float64 {
	var out []float64
	for _, t := range ticks {
		out = append(out, float64(int(t.y+0.5)))
	}
	return out
}
