package store_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// batch is an ad-hoc request for many commands.
func batch(t *testing.T, n int) store.Request {
	t.Helper()
	return store.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Submitter: "ada", Batch: n, Digest: fmt.Sprint("of ", n)}
}

// lines are the jobs of a request for commands.
func lines(request store.Request, n int) iter.Seq2[store.Job, error] {
	return func(yield func(store.Job, error) bool) {
		for i := 1; i <= n; i++ {
			if !yield(lineJob(request, i), nil) {
				return
			}
		}
	}
}

func lineJob(request store.Request, place int) store.Job {
	j := store.Job{
		Project: project, Kind: bench.KindCommand, Target: target, TestCases: []bench.TestCase{{Benchmark: "command", Target: target}},
		Iterations: 1, Command: &store.Command{Argv: []string{"./x", fmt.Sprint(place)}, Env: map[string]string{"QUOTED": `"a", {b}`}, TimeoutSeconds: 60, Iterations: 1},
		SizeClass: small.SizeClass, Pool: small.Name, TaskQueue: small.TaskQueue(), Queue: "user:ada", Weight: 1, Priority: 3, Status: bench.JobQueued,
		Submitter: "ada", Branch: "dev", Place: place, Name: fmt.Sprint("line ", place),
	}
	if place%2 == 0 {
		j.Constraints = &bench.Constraints{Devices: []string{"gpu"}}
	}
	j.Key = bench.JobIdentity{Request: request.ID, Project: project, Target: target, Kind: j.Kind, TestCases: j.TestCases, SizeClass: j.SizeClass, Place: place}.Key()
	return j
}

func TestThousandsOfCommandsAreWrittenWithTheirRequest(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	const n = 10_000
	request := batch(t, n)
	stored, created, err := r.CreateCommands(t.Context(), request, lines(request, n))
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, bench.InProgress, stored.Status)
	require.True(t, stored.Deferred)
	require.NotNil(t, stored.ExpandedAt)
	require.Nil(t, stored.WorkflowStartedAt)
	require.Equal(t, n, stored.Batch)

	jobs, err := r.RequestJobs(t.Context(), request.ID)
	require.NoError(t, err)
	require.Len(t, jobs, n)
	for i, j := range jobs {
		want := lineJob(request, i+1)
		want.ID, want.CreatedAt, want.RequestCreated = j.ID, j.CreatedAt, stored.CreatedAt
		require.Equal(t, want, j)
	}
	require.Equal(t, n, r.count(`select count(distinct artifact_id) from job_test_case`), "each has results of its own")

	r.register("c1")
	handed, err := r.HandOut(t.Context(), small.TaskQueue(), func(int) int { return 3 })
	require.NoError(t, err)
	require.Equal(t, []bench.JobKey{jobs[0].Key, jobs[1].Key, jobs[2].Key}, []bench.JobKey{handed[0].Job, handed[1].Job, handed[2].Job}, "in the order of the batch")
}

func TestABatchIsWrittenAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := batch(t, 1500)
	unreadable := errors.New("line 1200 is none")
	_, created, err := r.CreateCommands(t.Context(), request, func(yield func(store.Job, error) bool) {
		for j := range lines(request, 1200) {
			if !yield(j, nil) {
				return
			}
		}
		yield(store.Job{}, unreadable)
	})
	require.ErrorIs(t, err, unreadable)
	require.False(t, created)
	_, err = r.Request(t.Context(), request.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Zero(t, r.count(`select count(*) from job_queue`))

	unknown := request
	unknown.Project = "nobody"
	_, _, err = r.CreateCommands(t.Context(), unknown, lines(request, 1))
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestABatchWithAKeyIsWrittenOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ids := make(chan bench.RequestID, 8)
	made := make(chan bool, 8)
	requests := make([]store.Request, 8)
	for i := range requests {
		requests[i] = batch(t, 1100)
		requests[i].IdempotencyKey = "nightly"
	}
	for _, err := range together(len(requests), func(i int) error {
		stored, created, err := r.CreateCommands(t.Context(), requests[i], lines(requests[i], 1100))
		ids <- stored.ID
		made <- created
		return err
	}) {
		require.NoError(t, err)
	}
	first, creations := <-ids, 0
	for range len(requests) - 1 {
		require.Equal(t, first, <-ids)
	}
	for range requests {
		if <-made {
			creations++
		}
	}
	require.Equal(t, 1, creations)
	require.Equal(t, 1100, r.count(`select count(*) from job_queue`))

	other := batch(t, 2)
	other.IdempotencyKey = "nightly"
	stored, _, err := r.CreateCommands(t.Context(), other, lines(other, 2))
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "another set of jobs")
	require.Equal(t, first, stored.ID)
}
