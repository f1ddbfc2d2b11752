package orchestration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

// packedNow checks how many artifacts are read from what is packed, and how many from the
// rows of their results.
func (b *bundle) packedNow(artifacts, stale int) {
	b.t.Helper()
	c, err := b.store.CheckPacked(b.t.Context(), "go", 0, 100)
	require.NoError(b.t, err)
	require.Empty(b.t, c.Differences)
	require.Equal(b.t, []int{artifacts, stale}, []int{c.Artifacts - c.Stale, c.Stale})
	require.Equal(b.t, artifacts > 0, c.Sheets > 0 && c.Points > 0)
}

// Results are packed when the jobs of their request have ended, and not before; what
// changes later, by the next reconciliation.
func TestResultsArePackedWhenTheirJobsHaveEnded(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	jobs := b.jobs(ref)
	require.NotEmpty(t, jobs)
	for _, j := range jobs {
		b.measure(j, c, 1)
	}
	b.pass(t)
	b.packedNow(0, 1)
	for _, j := range jobs {
		b.recordEnd(j.Key, "")
	}
	require.NoError(t, b.JobsDone(t.Context(), ref))
	b.packedNow(1, 0)

	_, err := b.store.InvalidateResults(t.Context(), store.ResultFilter{Project: "go"}, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	b.packedNow(0, 1)
	b.pass(t)
	after, err := b.store.CheckPacked(t.Context(), "go", 0, 100)
	require.NoError(t, err)
	require.Equal(t, store.PackedCheck{Artifacts: 1}, after, "it has no results any more")
}

// An artifact that cannot be packed is left to its rows; requests, the reconciliation and
// other artifacts go on.
func TestWhatCannotBePackedStopsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	for _, tag := range []string{"1.1.0", "1.2.0"} {
		ref := b.running(tag)
		b.handOut(ref)
		for _, j := range b.jobs(ref) {
			b.measure(j, c, 1)
			b.recordEnd(j.Key, "")
		}
		b.execute(`update collection set iteration = -1 where iteration = (select min(iteration) from collection) and result_id in (
			select r.id from test_result r join artifact a on a.id = r.artifact_id where a.tag = '1.1.0')`)
		require.NoError(t, b.JobsDone(t.Context(), ref))
		b.pass(t)
	}
	found, err := b.store.CheckPacked(t.Context(), "go", 0, 100)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{found.Artifacts, found.Stale})
	require.Len(t, found.Differences, 1)
	require.Contains(t, found.Differences[0], "artifact 1.1.0 is read from its rows, as it could not be packed")
	require.NotZero(t, found.Sheets)
}
