package packed_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/packed"
)

// A sheet of 700 series with three values each, as a comparison reads sixteen of.
func BenchmarkUnpackSheet(b *testing.B) {
	random := rand.New(rand.NewPCG(14, 5)) //nolint:gosec // not for secrets
	var sheet packed.Sheet
	for id := range int64(700) {
		s := packed.Series{ID: 8*id + 1, Iterations: []int{1, 2, 3}, Disturbed: make([]bool, 3)}
		for range 3 {
			s.Values = append(s.Values, random.Float64())
		}
		sheet = append(sheet, s)
	}
	bytes, err := sheet.Pack()
	require.NoError(b, err)
	b.SetBytes(int64(len(bytes)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := packed.UnpackSheet(bytes)
		require.NoError(b, err)
	}
}
