package orchestration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// A request hears of the first end at once, of all that follow within the time once, and of
// one after silence at once again.
func TestARequestHearsOfManyEndsTogether(t *testing.T) {
	t.Parallel()
	var due []func()
	n := notices{after: func(d time.Duration, f func()) {
		require.Equal(t, noticeEvery, d)
		due = append(due, f)
	}}
	pass := func() {
		t.Helper()
		require.Len(t, due, 1)
		f := due[0]
		due = nil
		f()
	}
	const a = bench.RequestID("a")
	var heard []int
	end := func(job int) { heard = append(heard, job) }
	tell := func(job int) {
		if !n.later(a, func() { end(job) }) {
			end(job)
		}
	}
	for job := range 5 {
		tell(job)
	}
	require.Equal(t, []int{0}, heard)
	pass()
	require.Equal(t, []int{0, 4}, heard, "the last one of those that followed")
	tell(5)
	require.Equal(t, []int{0, 4}, heard)
	pass()
	pass()
	require.Equal(t, []int{0, 4, 5}, heard)
	require.Empty(t, due)
	require.Empty(t, n.told, "nothing is kept of a request that is silent")
	tell(6)
	require.Equal(t, []int{0, 4, 5, 6}, heard)

	require.False(t, n.later("b", func() {}), "another request hears for itself")
}
