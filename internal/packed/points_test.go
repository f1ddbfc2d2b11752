package packed_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/packed"
)

// Whatever part of a sheet is asked for, its points are those of the series unpacked.
func TestPointsOfASheet(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 6)) //nolint:gosec // not for secrets
	for range 300 {
		sheet := randomSheet(random)
		bytes, err := sheet.Pack()
		require.NoError(t, err)
		fields := []packed.Fields{packed.AllFields, packed.MinField, packed.QuartileFields}[random.IntN(3)]
		points, err := packed.PointsOf(7, bytes, fields)
		require.NoError(t, err)
		for i := range sheet {
			if random.IntN(3) == 0 {
				continue
			}
			if before := sheet[i].ID - 1; before > 0 && (i == 0 || sheet[i-1].ID < before) {
				_, known, err := points.Of(before)
				require.NoError(t, err)
				require.False(t, known)
			}
			point, known, err := points.Of(sheet[i].ID)
			require.NoError(t, err)
			require.True(t, known)
			want := packed.NewPoint(7, &sheet[i])
			require.Equal(t, *want.Origin, *point.Origin)
			if fields == packed.MinField && finite(sheet[i].Values) {
				want.Summary = packed.Summary{Min: want.Min}
			}
			require.Equal(t, bits(summary(want.Summary)), bits(summary(point.Summary)))
			require.Equal(t, [3]int{7, want.N, want.Disturbed}, [3]int{int(point.Artifact), point.N, point.Disturbed})
		}
		_, known, err := points.Of(1 << 40)
		require.NoError(t, err)
		require.False(t, known)
		_, err = packed.PointsOf(7, bytes[:random.IntN(2)], fields)
		require.ErrorIs(t, err, packed.ErrCorrupt)
	}
}

func FuzzPointsOf(f *testing.F) {
	random := rand.New(rand.NewPCG(14, 7)) //nolint:gosec // not for secrets
	for range 4 {
		sheet, err := randomSheet(random).Pack()
		require.NoError(f, err)
		f.Add(sheet, int64(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, step int64) {
		points, err := packed.PointsOf(1, b, packed.AllFields)
		sheet, whole := packed.UnpackSheet(b)
		if err != nil {
			require.Error(t, whole, "what is no sheet has no points")
			return
		}
		of := make(map[int64]packed.Point)
		for i := range sheet {
			of[sheet[i].ID] = packed.NewPoint(1, &sheet[i])
		}
		for id := int64(1); id < 200; id += max(1, step%64) {
			point, known, err := points.Of(id)
			if whole != nil {
				continue // it must not panic
			}
			require.NoError(t, err)
			want, there := of[id]
			require.Equal(t, there, known)
			require.Equal(t, bits(summary(want.Summary)), bits(summary(point.Summary)))
		}
	})
}
