package dispatch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/store"
)

// slowRecord makes hand-outs wait until they are let go.
type slowRecord struct {
	*world
	mu    sync.Mutex
	calls map[string]int
	gate  chan error // what the next hand-out returns
}

func (r *slowRecord) HandOut(ctx context.Context, taskQueue string, _ store.HandOutOptions) ([]bench.HandOut, error) {
	r.mu.Lock()
	r.calls[taskQueue]++
	r.mu.Unlock()
	select {
	case err := <-r.gate:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Calls that arrive while a task queue is being filled share one fill, which begins after
// all of them; those of other task queues wait for nothing.
func TestCallsShareAFill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &slowRecord{world: &world{}, calls: make(map[string]int), gate: make(chan error)}
		d := dispatcher(r.world)
		d.Record, d.Fills = r, new(dispatch.Fills)
		fill := func(ctx context.Context, taskQueue string) chan error {
			done := make(chan error, 1)
			go func() { done <- d.Fill(ctx, taskQueue) }()
			synctest.Wait()
			return done
		}
		first := fill(t.Context(), "one")
		giving, giveUp := context.WithCancel(t.Context())
		leader := fill(giving, "one")
		var sharing []chan error
		for range 5 {
			sharing = append(sharing, fill(t.Context(), "one"))
		}
		other := fill(t.Context(), "other")
		require.Equal(t, map[string]int{"one": 1, "other": 1}, r.calls)

		// Whoever was to make the shared fill gives up: another does.
		giveUp()
		synctest.Wait()
		require.ErrorIs(t, <-leader, context.Canceled)
		require.Equal(t, 1, r.calls["one"])

		for range 2 { // one of each task queue
			r.gate <- nil
		}
		synctest.Wait()
		require.NoError(t, <-first)
		require.NoError(t, <-other)
		require.Equal(t, map[string]int{"one": 2, "other": 1}, r.calls)
		later := fill(t.Context(), "one")
		require.Equal(t, 2, r.calls["one"], "it comes too late for the one that goes on")

		broken := errors.New("broken")
		r.gate <- broken
		synctest.Wait()
		for _, done := range sharing {
			require.ErrorIs(t, <-done, broken)
		}
		r.gate <- nil
		require.NoError(t, <-later)
		require.Equal(t, 3, r.calls["one"])
	})
}
