package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
)

func TestAtBest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ work, lostAt, want time.Duration }{
		{60, 10, 25}, // 3 × 10, then 2 × 15
		{60, 0, 30},  // two collectors from the start
		{60, 20, 20}, // lost when all work is done
		{60, 50, 20}, // lost later
	} {
		require.Equal(t, c.want, atBest(c.work, 3, c.lostAt), "%+v", c)
	}
}

func TestLengthsAreSpreadFromOneToTenUnits(t *testing.T) {
	t.Parallel()
	all := lengths(rand.New(rand.NewPCG(1, 1)), time.Second)
	require.Len(t, all, 40)
	require.Equal(t, all, lengths(rand.New(rand.NewPCG(1, 1)), time.Second), "a seed is repeatable")
	short, long := 0, 0
	for _, d := range all {
		require.GreaterOrEqual(t, d, time.Second)
		require.LessOrEqual(t, d, 10*time.Second)
		if d < 3*time.Second {
			short++
		}
		if d > 8*time.Second {
			long++
		}
	}
	require.Positive(t, short)
	require.Positive(t, long)
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	jobs := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}
	require.Equal(t, 1250*25*time.Millisecond+15*time.Second+30*time.Second, allowed(jobs, 10*time.Second))
}

func TestExtent(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 0, time.UTC) }
	end := func(s int) *time.Time { e := at(s); return &e }
	first, last := extent([]apiclient.Run{{StartedAt: at(3), FinishedAt: end(9)}, {StartedAt: at(1), FinishedAt: end(4)}, {StartedAt: at(5)}})
	require.Equal(t, at(1), first)
	require.Equal(t, at(9), last)
}
