package jobrun

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// A metric that one iteration lacks is dropped from all of them; the others
// stay.
func TestPartialMetricsAreDropped(t *testing.T) {
	t.Parallel()
	r := Result{Collections: []Collection{
		{Metrics: map[bench.Metric]float64{bench.WallTime: 1, bench.MaxRSS: 5}},
		{Metrics: map[bench.Metric]float64{bench.WallTime: 2}},
	}}
	require.Equal(t, []bench.Metric{bench.MaxRSS}, r.keepWhole())
	require.Equal(t, map[bench.Metric]float64{bench.WallTime: 1}, r.Collections[0].Metrics)
	require.Equal(t, map[bench.Metric]float64{bench.WallTime: 2}, r.Collections[1].Metrics)
	require.Empty(t, r.keepWhole())
}
