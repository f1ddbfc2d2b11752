package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever reads a job that nobody carries out learns what it waits for.
func TestAWaitingJobSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "bench-1")
	j := b.submit(t, "1.26.0")
	waits := func() string {
		t.Helper()
		d, err := b.nobody.Job(t.Context(), j.key)
		require.NoError(t, err)
		r, err := b.nobody.Request(t.Context(), string(j.request.ID))
		require.NoError(t, err)
		for _, of := range r.Jobs {
			if of.Key == j.key {
				require.Equal(t, d.Waits, of.Waits)
			}
		}
		return d.Waits
	}
	require.Equal(t, "an idle collector of pool "+c.TaskQueue, waits())
	require.NoError(t, b.store.SetActive(t.Context(), "bench-1", false))
	require.Regexp(t, "^pool "+c.TaskQueue+" has had no live collector for [0-9]+s; no other pool that could take the job has one either", waits())
	require.NoError(t, b.store.SetActive(t.Context(), "bench-1", true))
	b.start(t, j, c, 1)
	require.Empty(t, waits(), "it runs")
}
