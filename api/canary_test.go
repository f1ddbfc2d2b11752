package api_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// A collector whose canary failed is told to serve nothing but its canaries, and only
// while there is one.
func TestACollectorShowsItsCanaryAndServesItWhileSetAside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	b.register(t, "c2")
	shown, err := b.nobody.Collector(t.Context(), "c1")
	require.NoError(t, err)
	require.Nil(t, shown.LastCanary)

	r, err := bench.NewCanary("go", "1.25.0", bench.Collector{Name: "c1", Target: linux, SizeClass: 2, Pool: "main"}, bench.Selection{Benchmarks: []string{"gin"}}, "idle")
	require.NoError(t, err)
	r.ID, err = bench.NewRequestID(rand.Reader)
	require.NoError(t, err)
	_, begun, err := b.store.BeginCanary(t.Context(), "c1", r)
	require.NoError(t, err)
	require.True(t, begun)
	again := r
	again.ID, err = bench.NewRequestID(rand.Reader)
	require.NoError(t, err)
	_, begun, err = b.store.BeginCanary(t.Context(), "c1", again)
	require.NoError(t, err)
	require.False(t, begun)
	_, err = b.nobody.Request(t.Context(), string(again.ID))
	require.ErrorIs(t, err, apiclient.ErrNotFound, "nothing is left of the second")

	open, err := b.store.OpenCanaries(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 1)
	for i := range 2 {
		ended, setAside, err := b.store.EndCanary(t.Context(), open[0].ID, bench.CanaryDisturbed, "9 of 28 iterations were disturbed", 30*time.Second)
		require.NoError(t, err)
		require.Equal(t, i == 0, ended, "once")
		require.Equal(t, i == 0, setAside)
	}
	list, err := b.nobody.Collectors(t.Context())
	require.NoError(t, err)
	require.Nil(t, list[1].LastCanary)
	shown, err = b.nobody.Collector(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, list[0].LastCanary, shown.LastCanary)
	require.Equal(t, []any{r.ID, bench.CanaryDisturbed, "9 of 28 iterations were disturbed"}, []any{shown.LastCanary.Request, shown.LastCanary.Outcome, shown.LastCanary.Message})
	require.True(t, shown.CanaryFailed)
	require.Equal(t, "its last canary failed: 9 of 28 iterations were disturbed", shown.DisturbedBy)

	beat := func() apiclient.HeartbeatAnswer {
		answer, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch})
		require.NoError(t, err)
		return answer
	}
	canaries := bench.ForCanaries(bench.Pool{Target: linux, SizeClass: 2, Name: "main"}, "c1").TaskQueue()
	b.submit(t, "1.26.0")
	answer := beat()
	require.Equal(t, []any{false, true, []string{canaries}}, []any{answer.Active, answer.SetAside, answer.TaskQueues})
	b.past(t, `update job_queue set task_queue = '`+canaries+`'`)
	answer = beat()
	require.Equal(t, []any{true, true, []string{canaries}}, []any{answer.Active, answer.SetAside, answer.TaskQueues})
}
