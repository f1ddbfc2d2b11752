package packed_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/packed"
)

func finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// Whatever part of a strip is asked for, and whatever fields of its points: they are those of the whole, also where the bytes
// of other fields are missing.
func TestPointsOfAStrip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 8)) //nolint:gosec // not for secrets
	narrow := 0
	for range 500 {
		strip := randomStrip(random)
		if random.IntN(2) == 0 {
			strip = slices.DeleteFunc(strip, func(p packed.Point) bool { return !finite(summary(p.Summary)) })
		}
		b, err := strip.Pack()
		require.NoError(t, err)
		fields := []packed.Fields{packed.AllFields, packed.MinField, packed.QuartileFields, packed.MedianFields}[random.IntN(4)]
		spread, known := strip.Spread()
		require.Equal(t, !slices.ContainsFunc(strip, func(p packed.Point) bool { return !finite([]float64{p.Min, p.Max}) }), known)
		if known {
			b = b[:len(b)-spread*fields.Spare()]
		}
		first, last := int64(0), int64(math.MaxInt64)
		if len(strip) > 0 && random.IntN(3) > 0 {
			first, last = strip[random.IntN(len(strip))].Artifact+random.Int64N(2), strip[random.IntN(len(strip))].Artifact-random.Int64N(2)
		}
		before := packed.Strip{point(1, randomSeries(random, 1))}
		points, err := packed.AppendPoints(slices.Clone(before), b, first, last, fields)
		require.NoError(t, err)
		want := slices.Clone(before)
		for _, p := range strip {
			if p.Artifact < first || p.Artifact > last {
				continue
			}
			if known && spread > 0 && fields != packed.AllFields && !alike(p.Summary) {
				narrow++
				p.Summary = only(p.Summary, fields)
			}
			want = append(want, p)
		}
		equalStrips(t, want, points)

		if n := len(b); n > 0 {
			points, err = packed.AppendPoints(slices.Clone(before), b[:random.IntN(n)], first, last, fields)
			require.ErrorIs(t, err, packed.ErrCorrupt)
			equalStrips(t, before, points)
		}
	}
	require.Positive(t, narrow)
}

func alike(s packed.Summary) bool {
	return !slices.ContainsFunc(bits(summary(s)), func(v uint64) bool { return v != math.Float64bits(s.Min) })
}

// only returns a summary without other fields.
func only(s packed.Summary, fields packed.Fields) packed.Summary {
	out := packed.Summary{Min: s.Min}
	if fields != packed.MinField {
		out.LowerQuartile, out.UpperQuartile = s.LowerQuartile, s.UpperQuartile
	}
	if fields == packed.MedianFields {
		out.Median = s.Median
	}
	return out
}

// Strips as they were before are still read.
func TestStripsOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 9)) //nolint:gosec // not for secrets
	for range 100 {
		strip := randomStrip(random)
		b := firstVersion(strip)
		points, err := packed.UnpackStrip(b)
		require.NoError(t, err)
		equalStrips(t, strip, points)
		points, err = packed.AppendPoints(nil, b, 5, 1000, packed.MinField)
		require.NoError(t, err)
		equalStrips(t, slices.DeleteFunc(strip, func(p packed.Point) bool { return p.Artifact < 5 || p.Artifact > 1000 }), points)
		_, err = packed.UnpackStrip(b[:random.IntN(len(b))])
		require.ErrorIs(t, err, packed.ErrCorrupt)
	}
}

// firstVersion packs a strip in version 1.
func firstVersion(strip packed.Strip) []byte {
	var origins []packed.Origin
	for _, p := range strip {
		if !slices.Contains(origins, *p.Origin) {
			origins = append(origins, *p.Origin)
		}
	}
	b := binary.AppendUvarint([]byte{1}, uint64(len(origins)))
	for _, o := range origins {
		for _, text := range []string{string(o.Kind), string(o.Segment), o.Suite, o.DisturbedBy} {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(strip)))
	before := int64(0)
	for _, p := range strip {
		for _, v := range []int{int(p.Artifact - before), p.N, p.Disturbed, slices.Index(origins, *p.Origin)} {
			b = binary.AppendUvarint(b, uint64(v)) //nolint:gosec // none is negative
		}
		before = p.Artifact
		floats := []float64{p.Min, p.LowerQuartile, p.Median, p.UpperQuartile, p.Max, p.Mean}
		if alike(p.Summary) {
			b, floats = append(b, 0), floats[:1]
		} else {
			b = append(b, 1)
		}
		for _, v := range floats {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}
