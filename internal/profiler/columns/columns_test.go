package columns_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler/columns"
)

var begin = time.Date(2026, 3, 4, 15, 0, 0, 123_456_000, time.UTC)

// series are n samples, 100 ms apart, of which the first third belongs to no command.
func series(n int, value func(i int) float64) columns.Samples {
	s := columns.Samples{Values: make([]float64, n), Batches: make([]int, n), Times: make([]time.Time, n)}
	for i := range n {
		s.Values[i], s.Batches[i], s.Times[i] = value(i), 3*i/max(1, n), begin.Add(time.Duration(i)*100*time.Millisecond)
	}
	return s
}

func TestSamplesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	odd := []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.Pi, 256, 1.0 / 3}
	for name, want := range map[string]columns.Samples{
		"none":               {Values: []float64{}, Batches: []int{}, Times: []time.Time{}},
		"one":                series(1, func(int) float64 { return 0.25 }),
		"a constant":         series(100, func(int) float64 { return 1.5e9 }),
		"zeros":              series(100, func(int) float64 { return 0 }),
		"ratios":             series(3000, func(i int) float64 { return float64(i%11) / 10.1 }),
		"odd numbers":        series(len(odd), func(i int) float64 { return odd[i] }),
		"indexes that jump":  {Values: []float64{1, 2, 3}, Batches: []int{7, 0, math.MaxInt32}, Times: []time.Time{begin, begin, begin}},
		"times in disorder":  {Values: []float64{1, 2}, Batches: []int{0, 0}, Times: []time.Time{begin, begin.Add(-time.Hour)}},
		"times before 1970":  {Values: []float64{1}, Batches: []int{0}, Times: []time.Time{time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)}},
		"bytes that change":  series(100, func(i int) float64 { return float64(16<<30 + i*4096) }),
		"all bits different": series(50, func(i int) float64 { return math.Float64frombits(uint64(i+1) * 0x9e3779b97f4a7c15 >> 1) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packed, err := columns.Pack(want)
			require.NoError(t, err)
			got, err := columns.Unpack(packed)
			require.NoError(t, err)
			require.Equal(t, want.Batches, got.Batches)
			require.Equal(t, want.Times, got.Times)
			require.Len(t, got.Values, len(want.Values))
			for i, v := range want.Values {
				require.Equal(t, math.Float64bits(v), math.Float64bits(got.Values[i]), "value %d", i)
			}
		})
	}
}

func TestWhatDoesNotChangeTakesThreeBytes(t *testing.T) {
	t.Parallel()
	packed, err := columns.Pack(series(3000, func(int) float64 { return 0 }))
	require.NoError(t, err)
	require.Less(t, len(packed), 3000*3)
	steady, err := columns.Pack(series(100, func(i int) float64 { return float64(16<<30 + i*4096) }))
	require.NoError(t, err)
	require.Less(t, len(steady), 100*7, "a count of bytes")
}

func TestColumnsAreEquallyLong(t *testing.T) {
	t.Parallel()
	s := series(3, func(int) float64 { return 1 })
	s.Times = s.Times[:2]
	_, err := columns.Pack(s)
	require.ErrorIs(t, err, columns.ErrUneven)
}

func TestOtherBytesAreRefused(t *testing.T) {
	t.Parallel()
	packed, err := columns.Pack(series(10, func(i int) float64 { return float64(i) }))
	require.NoError(t, err)
	for name, b := range map[string][]byte{
		"none":             nil,
		"another version":  append([]byte{columns.Version + 1}, packed[1:]...),
		"cut off":          packed[:len(packed)-1],
		"a rest":           append(bytes.Clone(packed), 0),
		"a great claim":    {columns.Version, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1},
		"an empty run":     {columns.Version, 1, 0, 0, 0, 0},
		"runs that are 1":  {columns.Version, 2, 1, 0, 1, 0, 0, 0, 0, 0},
		"a value too long": {columns.Version, 1, 1, 0, 0, 0x19, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		"a needless zero":  {columns.Version, 1, 1, 0, 0, 0x02, 0, 1},
	} {
		_, err := columns.Unpack(b)
		require.ErrorIs(t, err, columns.ErrCorrupt, name)
	}
}

// Whatever is in the bytes, they are refused, or are the encoding of what they say.
func FuzzUnpack(f *testing.F) {
	for _, n := range []int{0, 1, 10, 300} {
		packed, err := columns.Pack(series(n, func(i int) float64 { return float64(i*i) / 7 }))
		require.NoError(f, err)
		f.Add(packed)
	}
	f.Add([]byte{columns.Version, 1, 1, 0, 0, 0x02, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := columns.Unpack(b)
		if err != nil {
			require.ErrorIs(t, err, columns.ErrCorrupt)
			return
		}
		again, err := columns.Pack(s)
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}
