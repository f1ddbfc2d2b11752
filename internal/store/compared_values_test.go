package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// The values of a row are those that its comparison may use, in the order of measuring, with
// the run of each.
func TestTheValuesOfARowAreInTheOrderOfMeasuring(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	tags := [2]string{"v1", "v2"}
	none, complete, err := r.ComparedValues(t.Context(), project, tags, testCase("gin"), bench.WallTime)
	require.NoError(t, err)
	require.Empty(t, none)
	require.True(t, complete)

	r.plain("v1", []float64{1, 2, 3}, "gin", "lo")
	r.plain("v2", []float64{4, 5}, "gin")
	_, turns := r.inTurns("v2", "v1", "gin")
	r.start(turns, 1, r.register("c2"))
	r.block(runID(turns, 1), of("v1", measured("gin", 6, 7)), of("v2", measured("gin", 8, 9)))
	_, others := r.inTurns("v2", "v0", "gin")
	r.start(others, 1, r.register("c2"))
	r.block(runID(others, 1), of("v0", measured("gin", 1)), of("v2", measured("gin", 2)))

	values, complete, err := r.ComparedValues(t.Context(), project, tags, testCase("gin"), bench.WallTime)
	require.NoError(t, err)
	require.True(t, complete)
	found := map[string][]float64{}
	for i, v := range values {
		if i > 0 {
			require.False(t, v.CollectedAt.Before(values[i-1].CollectedAt))
		}
		require.Equal(t, bench.Surrounding{SizeClass: 2, HardwareID: "zen4"}, v.Surrounding)
		require.Equal(t, v.InTurns, v.Run == runID(turns, 1))
		require.Equal(t, map[bool]string{false: "c1", true: "c2"}[v.InTurns], v.Collector)
		require.JSONEq(t, `{"load": 0.1}`, string(v.Facts))
		key := v.Tag
		if v.InTurns {
			key += " in turns"
		}
		found[key] = append(found[key], v.Value)
	}
	require.Equal(t, map[string][]float64{"v1": {1, 2, 3}, "v2": {4, 5}, "v1 in turns": {6, 7}, "v2 in turns": {8, 9}}, found)

	// The other way round, they are the same.
	back, _, err := r.ComparedValues(t.Context(), project, [2]string{"v2", "v1"}, testCase("gin"), bench.WallTime)
	require.NoError(t, err)
	require.ElementsMatch(t, values, back)
	none, _, err = r.ComparedValues(t.Context(), project, tags, testCase("gin"), "ns/op")
	require.NoError(t, err)
	require.Empty(t, none)
}
