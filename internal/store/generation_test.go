package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// After a purge jobs begin with a later generation. Jobs for the same test cases on two
// pools of one size class stay two.
func TestJobsOfTwoPoolsStayTwoAfterAPurge(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.inProgress(release(t, "v1"))
	r.execute(`insert into artifact (project, tag, first_generation) values ($1, 'v1', 2) on conflict (project, tag) do update set first_generation = 2`, project)
	here := newJob(request, "gin")
	there := here
	other := bench.Pool{Target: target, SizeClass: small.SizeClass, Name: "other"}
	there.Key, there.Pool, there.TaskQueue = "abcdefghijklmnop", other.Name, other.TaskQueue()
	for range 2 { // once, however often
		require.NoError(t, r.ExpandRequest(t.Context(), request.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(here, there)}))
	}
	jobs, err := r.RequestJobs(t.Context(), request.ID)
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	require.Equal(t, []string{small.Name, "other"}, []string{jobs[0].Pool, jobs[1].Pool})
	require.Equal(t, []int{2, 2}, []int{jobs[0].Generation, jobs[1].Generation})
}
