package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// Each artifact has medians of its own, only of the series that are asked for.
func TestTheMediansOfSeriesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	of := []store.SeriesName{{TestCase: testCase("gin"), Metric: bench.WallTime}, {TestCase: testCase("lo"), Metric: bench.MaxRSS}, {TestCase: testCase("none"), Metric: bench.WallTime}}
	tags := []string{"v1", "v2", "v9"}
	none, err := r.Centers(t.Context(), project, tags, of)
	require.NoError(t, err)
	require.Empty(t, none)

	r.plain("v1", []float64{1, 9, 2}, "gin", "lo")
	r.plain("v2", []float64{4, 6}, "gin")
	r.plain("v3", []float64{7}, "gin")
	_, turns := r.inTurns("v2", "v1", "gin")
	r.start(turns, 1, r.register("c2"))
	r.block(runID(turns, 1), inTurnsAt("v1", 100), inTurnsAt("v2", 100))
	centers, err := r.Centers(t.Context(), project, tags, of)
	require.NoError(t, err)
	at := bench.Surrounding{SizeClass: 2, HardwareID: "zen4"}
	require.Equal(t, map[store.SeriesName][]store.Center{
		of[0]: {{Tag: "v1", Surrounding: at, Value: 2}, {Tag: "v2", Surrounding: at, Value: 5}},
		of[1]: {{Tag: "v1", Surrounding: at, Value: 2000}},
	}, centers)
	nothing, err := r.Centers(t.Context(), project, tags, nil)
	require.NoError(t, err)
	require.Empty(t, nothing)
}

func inTurnsAt(tag string, value float64) bench.TestCaseResult {
	return of(tag, measured("gin", value))
}
