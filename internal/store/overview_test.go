package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestRequestsThatDoNotGoOnAreStuck(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ctx := t.Context()
	unstarted := r.create(release(t, "1.26.0"))
	announced := release(t, "")
	announced.Type, announced.Status = bench.Try, bench.WaitingForArtifacts
	announced = r.create(announced)
	require.NoError(t, r.MarkWorkflowStarted(ctx, announced.ID))
	between := r.inProgress(release(t, "1.27.0"))
	require.NoError(t, r.MarkWorkflowStarted(ctx, between.ID))

	list, err := r.StuckRequests(ctx)
	require.NoError(t, err)
	require.Empty(t, list, "all of them are young")
	r.execute(`update benchmark_request set created_at = now() - interval '2 days', admitted_at = admitted_at - interval '11 minutes'`)
	list, err = r.StuckRequests(ctx)
	require.NoError(t, err)
	why := make(map[bench.RequestID]store.StuckReason)
	for _, s := range list {
		why[s.ID] = s.Why
		require.Equal(t, project, s.Project)
		require.False(t, s.Since.IsZero())
	}
	require.Equal(t, map[bench.RequestID]store.StuckReason{
		unstarted.ID: store.StuckUnstarted, announced.ID: store.StuckUnannounced, between.ID: store.StuckBetween,
	}, why)

	// Those of a paused project wait for its end; it is told instead.
	_, err = r.PauseQueue(ctx, project, store.Act{Who: "ada", Reason: "why"})
	require.NoError(t, err)
	list, err = r.StuckRequests(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
	pauses, err := r.Pauses(ctx)
	require.NoError(t, err)
	require.Len(t, pauses, 1)
	require.Equal(t, "why", pauses[0].Reason)
}
