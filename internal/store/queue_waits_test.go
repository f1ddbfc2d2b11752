package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only handed-out jobs that have not begun wait for a machine.
func TestQueueWaitsCountFromTheOldestHandedOutJob(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	waits := func() map[string]float64 {
		w, err := r.QueueWaits(t.Context(), []string{"bench/elsewhere", small.TaskQueue()})
		require.NoError(t, err)
		return w
	}
	_, job := r.oneJob("v1", "gin")
	require.Empty(t, waits())
	r.execute(`update job_queue set status = 'handed_out', handed_out_at = now() - interval '90 seconds' where key = $1`, job.Key)
	require.Len(t, waits(), 1)
	require.GreaterOrEqual(t, waits()[small.TaskQueue()], 90.0)
	r.start(job, 1, r.register("one"))
	require.Empty(t, waits())
}
