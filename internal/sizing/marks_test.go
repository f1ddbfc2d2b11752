package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// A request is cancelled after its job's class was selected, and before it was handed out: no
// workflow tells of its end, and yet the next job is tried in its place at once.
func TestAProbeThatWasCancelledBeforeItsHandOutIsFreed(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 4)
	first := b.submit("make")
	b.place(4)
	require.Equal(t, bench.SizeClass(1), b.at(first).SizeClass)
	r, err := b.store.JobRequest(t.Context(), first)
	require.NoError(t, err)
	_, jobs, err := b.store.EndRequest(t.Context(), r.ID, store.EndOptions{Outcome: bench.Cancelled}, store.Act{Who: "ada"})
	require.NoError(t, err)
	require.Empty(t, jobs)
	next, other := b.submit("make"), b.submit("make")
	b.place(4)
	require.Equal(t, []bench.SizeClass{1, 4}, []bench.SizeClass{b.at(next).SizeClass, b.at(other).SizeClass})
}

// A probe whose collector dies goes on as the same probe: nobody else is tried meanwhile,
// and what it costs in the end is that of a probe. One that ends without is freed.
func TestLostProbesGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 4)
	known := b.submit("make")
	b.execute(`update job_queue set selected_at = now() where key = $1`, known) // somebody wanted it on class 4
	b.run(known, 1, bench.RunSuccess, 60)
	b.end(known)

	first := b.submit("make")
	b.place(4)
	require.Equal(t, []any{bench.SizeClass(1), true}, []any{b.at(first).SizeClass, b.at(first).Probe})
	b.run(first, 1, bench.RunLost, 1)
	b.Learn(t.Context(), first)
	second := b.submit("make")
	b.place(4)
	require.Equal(t, bench.SizeClass(4), b.at(second).SizeClass)

	b.run(first, 2, bench.RunOutOfMemory, 5)
	b.Learn(t.Context(), first)
	stats, err := sizing.ReadStatistics(b.known(first).Statistics)
	require.NoError(t, err)
	require.Empty(t, stats.Marks)
	require.Equal(t, 5.0, stats.Spent.Probes)
	require.Equal(t, 1, stats.Counts.TooSmall)

	third := b.submit("link")
	b.place(4)
	b.run(third, 1, bench.RunLost, 1)
	b.Learn(t.Context(), third)
	_, err = b.store.CancelJob(t.Context(), third, 0, "cancelled")
	require.NoError(t, err)
	b.Learn(t.Context(), third)
	fourth := b.submit("link")
	b.place(4)
	require.Equal(t, bench.SizeClass(1), b.at(fourth).SizeClass)
}
