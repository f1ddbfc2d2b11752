package api

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestOneCallerLeavesSlotsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4)
		for range 2 {
			require.True(t, s.take(t.Context(), "a"))
		}
		require.False(t, s.take(t.Context(), "a"), "half of them are taken, and none becomes free in time")
		require.True(t, s.take(t.Context(), "b"))
		require.True(t, s.take(t.Context(), "c"))
		require.False(t, s.take(t.Context(), "d"))

		let := make(chan bool)
		go func() { let <- s.take(t.Context(), "d") }()
		synctest.Wait()
		s.free("b")
		require.True(t, <-let, "the first that becomes free")

		gone, leave := context.WithCancel(t.Context())
		go func() { let <- s.take(gone, "a") }()
		synctest.Wait()
		leave()
		require.False(t, <-let, "who waits may go")
		for _, caller := range []string{"a", "a", "c", "d"} {
			s.free(caller)
		}
		require.Empty(t, s.taken)
		require.Zero(t, s.total)
	})
}
