package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

// The record sees whether a run's collector is still the same process, at that run, and
// how long it has been silent.
func TestARunIsSightedByItsCollectorsHeartbeats(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	c := r.register("one")
	r.handOut()
	run := r.start(job, 1, c).Run.ID
	sight := func() store.Sighting {
		t.Helper()
		seen, err := r.SightRun(t.Context(), run, offline)
		require.NoError(t, err)
		require.Equal(t, run, seen.Run.ID)
		return seen
	}
	require.True(t, sight().Registered)
	require.True(t, sight().Current)

	r.execute(`update collector_config set last_heartbeat = now() - interval '1 hour'`)
	require.GreaterOrEqual(t, sight().Silence, time.Hour)
	require.False(t, sight().OthersBeat)
	r.register("two")
	require.True(t, sight().OthersBeat)
	_, err := r.Heartbeat(t.Context(), "one", c.Epoch, run, nil)
	require.NoError(t, err)
	require.Less(t, sight().Silence, time.Hour)

	_, err = r.Heartbeat(t.Context(), "one", c.Epoch, "", nil)
	require.NoError(t, err)
	require.False(t, sight().Current)

	newer := r.register("one")
	_, err = r.Heartbeat(t.Context(), "one", newer.Epoch, run, nil)
	require.NoError(t, err)
	require.False(t, sight().Registered, "another process says so")
	require.NoError(t, r.RemoveCollector(t.Context(), "one"))
	require.False(t, sight().Registered)

	_, err = r.SightRun(t.Context(), runID(job, 2), offline)
	require.ErrorIs(t, err, store.ErrNotFound)
}
