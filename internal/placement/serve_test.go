package placement_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/placement"
)

// Of many sets a collector serves few: none that has work waits for ever, and none
// that has nothing to take keeps another from being served.
func TestServe(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	set := func(name string, level int, age time.Duration) placement.SetQueue {
		return placement.SetQueue{TaskQueue: name, Ready: level > 0, Level: level, Since: start.Add(-age)}
	}
	serve := func(turn uint64, sets ...placement.SetQueue) []string { return placement.Serve(sets, 3, turn) }

	require.Equal(t, []string{"old", "young"}, serve(7, set("young", 3, 1), set("old", 3, 2)))
	require.Equal(t, []string{"vip", "a", "b"}, serve(7, set("a", 5, 9), set("b", 5, 8), set("c", 0, 7), set("vip", 1, 1)),
		"the level goes before the age")
	require.Equal(t, []string{"young", "x", "y"}, serve(7, set("x", 0, 9), set("y", 0, 8), set("z", 0, 7), set("young", 3, 1)),
		"nothing can be taken of the others")
	mine := set("mine", 0, 1)
	mine.Current = true
	require.Equal(t, []string{"mine", "a", "b"}, serve(0, set("a", 3, 9), set("b", 3, 8), set("c", 5, 7), mine))

	var last []string
	for turn := range uint64(6) {
		served := serve(turn, set("a", 3, 9), set("b", 3, 8), set("c", 3, 7), set("d", 3, 6), set("e", 3, 5), set("idle", 5, 10))
		require.Equal(t, []string{"a", "b"}, served[:2])
		last = append(last, served[2])
	}
	require.Equal(t, slices.Repeat([]string{"c", "d", "e"}, 2), last)
}
