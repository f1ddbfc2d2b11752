package profiler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

// Collectors are used by one run at a time, by the next once all are closed, and for a minute.
func TestCollectorsAreReusedOnceAllAreClosed(t *testing.T) {
	t.Parallel()
	var opened []*source
	now := time.Unix(0, 0)
	use := profiler.Reused(func() []profiler.Collector {
		first, second := memory(), memory()
		opened = append(opened, first, second)
		return []profiler.Collector{first, second}
	}, func() time.Time { return now })
	closeAll := func(lent []profiler.Collector) {
		for _, c := range lent {
			require.NoError(t, c.Close())
			require.NoError(t, c.Close(), "twice")
		}
	}

	one := use()
	require.NoError(t, one[0].Close())
	two := use()
	require.Len(t, opened, 4, "one of the first is in use")
	closeAll(one)
	again := use()
	require.Len(t, opened, 4)
	got, err := again[1].Collect(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, got.Values)
	closeAll(two)
	for _, s := range opened {
		require.Zero(t, s.closed)
	}

	now = now.Add(time.Minute)
	closeAll(again)
	require.Equal(t, []int{1, 1, 0, 0}, []int{opened[0].closed, opened[1].closed, opened[2].closed, opened[3].closed})
	closeAll(use())
	require.Len(t, opened, 4)
	require.Equal(t, 1, opened[2].closed, "too old to be used once more")
	use()
	require.Len(t, opened, 6)
}
