package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestAQueueIsShownInItsOrderWithEstimates(t *testing.T) {
	t.Parallel()
	clock := &clock{now: time.Now()}
	b := setup(t, withClock(clock))
	b.project(t)
	c := b.register(t, "c1")
	_, err := b.nobody.Queue(t.Context(), "rust")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	q, err := b.nobody.Queue(t.Context(), "go")
	require.NoError(t, err)
	require.Equal(t, apiclient.Queue{Project: "go", Policy: "spec", MaxInProgress: 1, Requests: []apiclient.QueueEntry{}}, q)

	done := b.measure(t, "1.24.0", 1, c)
	later, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.NoError(t, err)
	running := b.submit(t, "1.25.0")
	_, err = b.store.Admit(t.Context(), "go", 1, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{running.request.ID}}, nil
	})
	require.NoError(t, err)
	b.start(t, running, c, 1)

	q, err = b.nobody.Queue(t.Context(), "go")
	require.NoError(t, err)
	require.Len(t, q.Requests, 2)
	first, second := q.Requests[0], q.Requests[1]
	require.Equal(t, running.request.ID, first.ID)
	require.Equal(t, 1, first.Position)
	require.Equal(t, bench.InProgress, first.Status)
	require.Empty(t, first.Blocked)
	require.Equal(t, "1 job by the same job's history in its pool", first.EstimateBasis)
	require.NotNil(t, first.EstimatedStart)
	require.NotNil(t, first.EstimatedEnd)
	require.Equal(t, later.ID, second.ID)
	require.Equal(t, 2, second.Position)
	require.True(t, second.Admissible)
	require.Contains(t, second.Reason, "release of ")
	require.Equal(t, first.EstimatedEnd, second.EstimatedStart, "one after the other")
	require.Equal(t, "1 job by the same job's history in its pool; its jobs are taken to be those of request "+string(running.request.ID)+" (1.25.0)", second.EstimateBasis)

	// The same with the request itself.
	d, err := b.nobody.Request(t.Context(), string(later.ID))
	require.NoError(t, err)
	require.Equal(t, second.EstimateBasis, d.EstimateBasis)
	require.NotNil(t, d.EstimatedEnd)
	d, err = b.nobody.Request(t.Context(), string(done.request.ID))
	require.NoError(t, err)
	require.Equal(t, apiclient.Estimate{}, d.Estimate, "what has ended needs none")

	// Ad-hoc work is in no queue and has its estimate all the same.
	own, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}, PlacementWish: apiclient.PlacementWish{Target: linux}})
	require.NoError(t, err)
	d, err = b.nobody.Request(t.Context(), string(own.ID))
	require.NoError(t, err)
	require.Equal(t, "1 job assumed to take 10 minutes, nothing like it has run", d.EstimateBasis)
	require.NotNil(t, d.EstimatedEnd)
}
