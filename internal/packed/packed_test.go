package packed_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/stats"
)

// odd holds values that text or arithmetic might lose.
var odd = []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xfff8dead00000001), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}

func randomOrigin(random *rand.Rand) packed.Origin {
	return packed.Origin{
		Kind:        []bench.JobKind{bench.KindRuntime, bench.KindCompileTime}[random.IntN(2)],
		Segment:     bench.Segment([]string{"", "6.18|performance", "6.19|performance"}[random.IntN(3)]),
		Suite:       []string{"", "f00d"}[random.IntN(2)],
		DisturbedBy: []string{"", "load"}[random.IntN(2)],
	}
}

func randomSeries(random *rand.Rand, id int64) packed.Series {
	s := packed.Series{ID: id, Origin: randomOrigin(random)}
	iteration, far := random.IntN(3), random.IntN(2) == 0
	for range 1 + random.IntN(12) {
		v := 1 + random.Float64()
		if random.IntN(20) == 0 {
			v = odd[random.IntN(len(odd))]
		}
		s.Values, s.Iterations = append(s.Values, v), append(s.Iterations, iteration)
		s.Disturbed = append(s.Disturbed, random.IntN(10) == 0)
		iteration++
		if far {
			iteration += random.IntN(200)
		}
	}
	return s
}

func randomSheet(random *rand.Rand) packed.Sheet {
	sheet, id := packed.Sheet{}, int64(0)
	for range random.IntN(20) {
		id += 1 + random.Int64N(1<<random.IntN(40))
		sheet = append(sheet, randomSeries(random, id))
	}
	return sheet
}

func point(artifact int64, s packed.Series) packed.Point { return packed.NewPoint(artifact, &s) }

func randomStrip(random *rand.Rand) packed.Strip {
	strip, id := packed.Strip{}, int64(0)
	for range random.IntN(packed.MaxPoints + 1) {
		id += 1 + random.Int64N(1<<random.IntN(40))
		strip = append(strip, point(id, randomSeries(random, 1)))
	}
	return strip
}

// bits replaces values by their bits: NaN is equal to none, and 0 to -0.
func bits(values []float64) []uint64 {
	out := make([]uint64, len(values))
	for i, v := range values {
		out[i] = math.Float64bits(v)
	}
	return out
}

func equalSheets(t *testing.T, want, got packed.Sheet) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, bits(want[i].Values), bits(got[i].Values))
		a, b := want[i], got[i]
		a.Values, b.Values = nil, nil
		require.Equal(t, a, b)
	}
}

func summary(s packed.Summary) []float64 {
	return []float64{s.Min, s.LowerQuartile, s.Median, s.UpperQuartile, s.Max, s.Mean}
}

func equalStrips(t *testing.T, want, got packed.Strip) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, bits(summary(want[i].Summary)), bits(summary(got[i].Summary)))
		a, b := want[i], got[i]
		a.Summary, b.Summary = packed.Summary{}, packed.Summary{}
		require.Equal(t, a, b)
	}
}

// Sheets that are read into the same memory, one behind the other, stay what they are, whatever
// was there before and whatever cannot be read behind them.
func TestSheetsShareMemory(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 2)) //nolint:gosec // not for secrets
	var memory packed.Sheet
	for range 200 {
		first, second := randomSheet(random), randomSheet(random)
		a, err := first.Pack()
		require.NoError(t, err)
		b, err := second.Pack()
		require.NoError(t, err)
		memory, err = packed.AppendSheet(memory[:0], a)
		require.NoError(t, err)
		memory, err = packed.AppendSheet(memory, b)
		require.NoError(t, err)
		equalSheets(t, slices.Concat(first, second), memory)
		memory, err = packed.AppendSheet(memory, append(b, 0))
		require.ErrorIs(t, err, packed.ErrCorrupt)
		equalSheets(t, slices.Concat(first, second), memory)
	}
}

func TestPackingLosesNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 1)) //nolint:gosec // not for secrets
	for range 500 {
		sheet := randomSheet(random)
		b, err := sheet.Pack()
		require.NoError(t, err)
		unpacked, err := packed.UnpackSheet(b)
		require.NoError(t, err)
		equalSheets(t, sheet, unpacked)

		strip := randomStrip(random)
		b, err = strip.Pack()
		require.NoError(t, err)
		points, err := packed.UnpackStrip(b)
		require.NoError(t, err)
		equalStrips(t, strip, points)
	}
}

// Whatever part of an encoding is missing, is too much or names another version: it is
// refused, and never read as something else.
func TestDamageIsRefused(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 2)) //nolint:gosec // not for secrets
	for kind, one := range map[string]struct {
		pack   func() ([]byte, error)
		unpack func([]byte) error
	}{
		"sheet": {
			func() ([]byte, error) { return packed.Sheet{randomSeries(random, 3), randomSeries(random, 400)}.Pack() },
			func(b []byte) error { _, err := packed.UnpackSheet(b); return err },
		},
		"strip": {
			func() ([]byte, error) {
				return packed.Strip{point(3, randomSeries(random, 1)), point(400, randomSeries(random, 1))}.Pack()
			},
			func(b []byte) error { _, err := packed.UnpackStrip(b); return err },
		},
	} {
		b, err := one.pack()
		require.NoError(t, err)
		require.NoError(t, one.unpack(b))
		for n := range b {
			require.ErrorIs(t, one.unpack(b[:n]), packed.ErrCorrupt, "%s of %d bytes", kind, n)
		}
		require.ErrorIs(t, one.unpack(append(slices.Clone(b), 0)), packed.ErrCorrupt)
		newer := slices.Clone(b)
		newer[0]++
		require.ErrorContains(t, one.unpack(newer), fmt.Sprint("its version is ", newer[0]))
		// Counts that no memory could hold.
		require.ErrorContains(t, one.unpack(append([]byte{b[0], 0}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)), "more than the bytes can hold")
	}
}

func TestWhatIsNoSheetOrStripIsNotPacked(t *testing.T) {
	t.Parallel()
	one := packed.Series{ID: 1, Values: []float64{1, 2}, Iterations: []int{1, 2}, Disturbed: make([]bool, 2)}
	with := func(change func(*packed.Series)) packed.Series {
		s := one
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		sheet packed.Sheet
		says  string
	}{
		"the same series twice":    {packed.Sheet{one, one}, "there twice"},
		"no ID":                    {packed.Sheet{with(func(s *packed.Series) { s.ID = 0 })}, "not in the order of their IDs"},
		"no values":                {packed.Sheet{{ID: 1}}, "0 values"},
		"a mark too few":           {packed.Sheet{with(func(s *packed.Series) { s.Disturbed = make([]bool, 1) })}, "2 iterations and 1 marks"},
		"an iteration twice":       {packed.Sheet{with(func(s *packed.Series) { s.Iterations = []int{1, 1} })}, "not ascending"},
		"an iteration before zero": {packed.Sheet{with(func(s *packed.Series) { s.Iterations = []int{-1, 1} })}, "not ascending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.sheet.Pack()
			require.ErrorContains(t, err, c.says)
		})
	}
	point := packed.NewPoint(1, &one)
	_, err := packed.Strip{point, point}.Pack()
	require.ErrorContains(t, err, "there twice")
	_, err = make(packed.Strip, packed.MaxPoints+1).Pack()
	require.ErrorContains(t, err, "321 points")
	point.Disturbed = 3
	_, err = packed.Strip{point}.Pack()
	require.ErrorContains(t, err, "of which 3 are disturbed")
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for name, c := range map[string]struct {
		values []float64
		want   packed.Summary
	}{
		"one value":       {[]float64{3}, packed.Summary{3, 3, 3, 3, 3, 3}},
		"two":             {[]float64{3, 1}, packed.Summary{1, 1.5, 2, 2.5, 3, 2}},
		"five":            {[]float64{5, 1, 4, 2, 3}, packed.Summary{1, 2, 3, 4, 5, 3}},
		"equal ones":      {[]float64{0.1, 0.1, 0.1}, packed.Summary{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}},
		"large ones":      {[]float64{math.MaxFloat64, math.MaxFloat64}, packed.Summary{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}},
		"an infinite one": {[]float64{1, 1, inf, 1, 1}, packed.Summary{1, 1, 1, 1, inf, inf}},
		"both infinities": {[]float64{inf, -inf}, packed.Summary{-inf, nan, nan, nan, inf, nan}},
		"one is NaN":      {[]float64{1, nan, 2}, packed.Summary{nan, nan, nan, nan, nan, nan}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.values)
			require.Equal(t, bits(summary(c.want)), bits(summary(packed.Summarize(c.values))))
			require.Equal(t, bits(before), bits(c.values), "the values stay")
		})
	}
}

// The centre of a point is the one that comparisons show.
func TestSummariesAreThoseOfComparisons(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 3)) //nolint:gosec // not for secrets
	for range 500 {
		values := make([]float64, 1+random.IntN(20))
		for i := range values {
			values[i] = math.Exp(random.NormFloat64() * 10)
		}
		s := packed.Summarize(values)
		for aggregation, v := range map[stats.Aggregation]float64{stats.Minimum: s.Min, stats.Median: s.Median, stats.Mean: s.Mean, stats.Maximum: s.Max} {
			require.InEpsilon(t, stats.Describe(values, aggregation).Value, v, 1e-12)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	random := rand.New(rand.NewPCG(14, 4)) //nolint:gosec // not for secrets
	for range 4 {
		sheet, err := randomSheet(random).Pack()
		require.NoError(f, err)
		strip, err := randomStrip(random).Pack()
		require.NoError(f, err)
		f.Add(sheet)
		f.Add(strip)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if sheet, err := packed.UnpackSheet(b); err == nil {
			again, err := sheet.Pack()
			require.NoError(t, err)
			require.Equal(t, b, again, "a sheet has one encoding")
		}
		strip, err := packed.UnpackStrip(b)
		if err != nil {
			_, _ = packed.AppendPoints(nil, b, 2, 9, packed.QuartileFields) // it must not panic
			return
		}
		points, err := packed.AppendPoints(nil, b, 0, math.MaxInt64, packed.MinField)
		require.NoError(t, err)
		equalStrips(t, strip, points)
		if b[0] == packed.StripVersion {
			again, err := strip.Pack()
			require.NoError(t, err)
			require.Equal(t, b, again, "a strip has one encoding")
		}
	})
}
