package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The heap of a busy API may grow further, until two seconds after its last computation.
func TestGarbageIsCollectedLessOftenWhileBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		percent, changes := 100, 0
		g := garbage{set: func(to int) (before int) {
			before, percent = percent, to
			changes++
			return before
		}}
		g.computes(true)
		require.Equal(t, busyPercent, percent)
		for range 10 {
			g.computes(false)
			time.Sleep(calmAfter - time.Millisecond)
			g.computes(true)
		}
		require.Equal(t, 1, changes, "one computation follows the other")
		g.computes(false)
		time.Sleep(calmAfter + time.Millisecond)
		require.Equal(t, 100, percent)

		g.computes(true)
		time.Sleep(time.Minute)
		require.Equal(t, busyPercent, percent, "a long one")
		g.computes(false)
		time.Sleep(calmAfter + time.Millisecond)
		require.Equal(t, 100, percent)
	})
}

func TestGarbageStaysAsItIsIfItIsCollectedEvenLessOften(t *testing.T) {
	t.Parallel()
	for _, usual := range []int{-1, busyPercent + 1} {
		percent := usual
		g := garbage{set: func(to int) (before int) {
			before, percent = percent, to
			return before
		}}
		g.computes(true)
		require.Equal(t, usual, percent)
		g.computes(false)
		require.Equal(t, usual, percent)
	}
}
