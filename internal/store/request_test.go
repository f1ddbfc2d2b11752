package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// admitNone calls do and admits nothing.
func admitNone(do func()) func([]bench.Request, map[string]bool) (store.Admission, error) {
	return func([]bench.Request, map[string]bool) (store.Admission, error) {
		do()
		return store.Admission{}, nil
	}
}

func TestARequestIsStoredAsSubmitted(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	date := time.Date(2026, 2, 11, 0, 0, 0, 0, time.UTC)
	asked := release(t, "go1.26")
	asked.Type = bench.Master
	asked.Parent, asked.PR, asked.CommitDate = "go1.25", 7, &date
	asked.Selection = bench.Selection{Set: "quick", Benchmarks: []string{"gin"}, Targets: []bench.Target{target}, Iterations: 3}
	asked.Queue, asked.Branch, asked.IdempotencyKey, asked.Message = "vip", "dev", "key", "waits"
	stored := r.create(asked)

	want := asked
	want.CreatedAt = stored.CreatedAt
	require.Equal(t, want, stored)
	require.WithinDuration(t, time.Now(), stored.CreatedAt, time.Minute)
	require.Equal(t, stored, r.request(asked.ID))
	byTag, err := r.RequestByTag(t.Context(), project, "go1.26")
	require.NoError(t, err)
	require.Equal(t, stored, byTag)
	require.Equal(t, 1, r.count(`select count(*) from artifact where tag = 'go1.26'`))

	_, err = r.Request(t.Context(), "rnobody")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.RequestByTag(t.Context(), project, "go1.0")
	require.ErrorIs(t, err, store.ErrNotFound)

	own := release(t, "go1.26")
	own.Type, own.Versus, own.SizeClass, own.Constraints = bench.AdHoc, "go1.25", 4, &bench.Constraints{CPUs: 2}
	stored = r.create(own)
	own.CreatedAt = stored.CreatedAt
	require.Equal(t, own, stored)

	command := bench.Request{
		ID: newID(t), Project: project, Type: bench.AdHoc,
		Submission: bench.Submission{Submitter: "ada"},
		Commands:   bench.Commands{Command: &bench.Command{Argv: []string{"sleep", "1"}, Env: map[string]string{"A": "b"}, TimeoutSeconds: 5, Iterations: 2}},
	}
	stored = r.create(command)
	require.Equal(t, command.Command, stored.Command)
	require.Equal(t, bench.ArtifactsReady, stored.Status)
}

func TestTheSameRequestIsCreatedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	first := release(t, "go1.26")
	first.IdempotencyKey = "k"
	stored := r.create(first)

	// The same tag again, from another submitter.
	again := release(t, "go1.26")
	again.Submitter = "bob"
	got, created, err := r.CreateRequest(t.Context(), again)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, stored, got)

	// The same key again, with the same and with different contents.
	got, created, err = r.CreateRequest(t.Context(), first)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, stored, got)
	for name, change := range map[string]func(*bench.Request){
		"tag":       func(q *bench.Request) { q.Tag = "go1.27" },
		"type":      func(q *bench.Request) { q.Type = bench.Master },
		"selection": func(q *bench.Request) { q.Selection.Benchmarks = []string{"gin"} },
		"command": func(q *bench.Request) {
			q.Type, q.Tag, q.Command = bench.AdHoc, "", &bench.Command{Argv: []string{"true"}}
		},
		"size class": func(q *bench.Request) { q.Type, q.SizeClass = bench.AdHoc, 8 },
	} {
		other := first
		other.ID = newID(t)
		change(&other)
		got, created, err := r.CreateRequest(t.Context(), other)
		require.ErrorIs(t, err, store.ErrConflict, name)
		require.False(t, created)
		require.Equal(t, stored.ID, got.ID, "the one in the way is named")
	}

	// Keys belong to their submitter, and ad-hoc requests share tags.
	other := bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Tag: "go1.26", Submission: bench.Submission{Submitter: "bob", IdempotencyKey: "k"}}
	r.create(other)
	larger := other
	larger.ID, larger.SizeClass = newID(t), 8
	_, _, err = r.CreateRequest(t.Context(), larger)
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "another size class")
	other.ID, other.IdempotencyKey = newID(t), ""
	r.create(other)

	// IDs are unique, projects exist.
	other.Tag = "x"
	_, _, err = r.CreateRequest(t.Context(), other)
	require.ErrorIs(t, err, store.ErrConflict)
	other.ID, other.Project = newID(t), "nothing"
	_, _, err = r.CreateRequest(t.Context(), other)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestConcurrentCreationsOfTheSameRequest(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ids := make(chan bench.RequestID, 16)
	creations := make(chan bool, 16)
	for _, err := range together(16, func(int) error {
		stored, created, err := r.CreateRequest(t.Context(), release(t, "go1.26"))
		ids <- stored.ID
		creations <- created
		return err
	}) {
		require.NoError(t, err)
	}
	first, made := <-ids, 0
	for range 15 {
		require.Equal(t, first, <-ids)
	}
	for range 16 {
		if <-creations {
			made++
		}
	}
	require.Equal(t, 1, made)
}

func TestRequestsAreListedNewestFirstPageByPage(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	var want []bench.RequestID
	for i := range 7 {
		want = append(want, r.create(release(t, fmt.Sprint("v", i))).ID)
	}
	slices.Reverse(want)
	r.execute(`update benchmark_request set created_at = (select min(created_at) from benchmark_request) where tag in ('v2', 'v3', 'v4')`)
	all, err := r.Requests(t.Context(), store.RequestFilter{Limit: 500})
	require.NoError(t, err)
	require.Len(t, all, 7)
	newest := []bench.RequestID{all[0].ID, all[1].ID}
	require.Equal(t, want[:2], newest)

	var paged []bench.Request
	filter := store.RequestFilter{Project: project, Limit: 2}
	for {
		page, err := r.Requests(t.Context(), filter)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		last := page[len(page)-1]
		filter.BeforeTime, filter.BeforeID = &last.CreatedAt, last.ID
	}
	require.Equal(t, all, paged, "also where several were created at the same time")

	adhoc := r.create(bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Tag: "v3", Submission: bench.Submission{Submitter: "ada"}})
	require.NoError(t, r.StartAdHoc(t.Context(), adhoc.ID))
	for name, c := range map[string]struct {
		filter store.RequestFilter
		want   int
	}{
		"project":       {store.RequestFilter{Project: "other"}, 0},
		"type":          {store.RequestFilter{Type: bench.AdHoc}, 1},
		"status":        {store.RequestFilter{Status: bench.ArtifactsReady}, 7},
		"tag":           {store.RequestFilter{Tag: "v3"}, 2},
		"tag, status":   {store.RequestFilter{Tag: "v3", Status: bench.InProgress}, 1},
		"no limit is 1": {store.RequestFilter{Limit: -3}, 1},
	} {
		if c.filter.Limit == 0 {
			c.filter.Limit = 100
		}
		got, err := r.Requests(t.Context(), c.filter)
		require.NoError(t, err)
		require.Len(t, got, c.want, name)
	}
}

func TestOpenRequestsSayWhetherTheirWorkflowShouldRun(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	old, young, started, ended := r.create(release(t, "v1")), r.create(release(t, "v2")), r.create(release(t, "v3")), r.create(release(t, "v4"))
	r.execute(`update benchmark_request set created_at = created_at - interval '1 minute' where id <> $1`, young.ID)
	twice(t, func() error { return r.MarkWorkflowStarted(t.Context(), started.ID) })
	first := r.request(started.ID).WorkflowStartedAt
	require.NotNil(t, first)
	require.NoError(t, r.MarkWorkflowStarted(t.Context(), started.ID))
	require.Equal(t, first, r.request(started.ID).WorkflowStartedAt)
	require.NoError(t, r.CompleteRequest(t.Context(), ended.ID, bench.Expired, "", nil, ""))

	open, err := r.OpenRequests(t.Context(), 30*time.Second)
	require.NoError(t, err)
	confirmed := make(map[bench.RequestID]bool)
	for _, o := range open {
		require.Equal(t, project, o.Project)
		require.Equal(t, bench.Release, o.Type)
		confirmed[o.ID] = o.Confirmed
	}
	require.Equal(t, map[bench.RequestID]bool{old.ID: true, young.ID: false, started.ID: true}, confirmed)
	require.ErrorIs(t, r.MarkWorkflowStarted(t.Context(), "rnobody"), store.ErrNotFound)
}

func TestTheFirstCompletionStays(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	require.NoError(t, r.SetRequestMessage(t.Context(), q.ID, "waits for a collector\x00"))
	require.Equal(t, "waits for a collector\uFFFD", r.request(q.ID).Message)
	twice(t, func() error { return r.FinishJobsOf(t.Context(), q.ID) })
	done := r.request(q.ID).JobsDoneAt
	require.NotNil(t, done)

	twice(t, func() error {
		return r.CompleteRequest(t.Context(), q.ID, bench.Success, "v0", json.RawMessage(`{"n":1}`), "all well")
	})
	ended := r.request(q.ID)
	require.Equal(t, bench.Completed, ended.Status)
	require.Equal(t, bench.Success, ended.Outcome)
	require.NotNil(t, ended.CompletedAt)
	require.Equal(t, done, ended.JobsDoneAt)
	require.Equal(t, "v0", ended.Baseline)
	require.JSONEq(t, `{"n":1}`, string(ended.Summary))

	require.ErrorIs(t, r.CompleteRequest(t.Context(), q.ID, bench.Failure, "", nil, "no"), store.ErrConflict)
	require.NoError(t, r.SetRequestMessage(t.Context(), q.ID, "too late"))
	jobs, err := r.CancelRequest(t.Context(), q.ID, "ada", "too late")
	require.NoError(t, err)
	require.Empty(t, jobs)
	require.Equal(t, ended, r.request(q.ID))

	require.ErrorIs(t, r.CompleteRequest(t.Context(), "rnobody", bench.Failure, "", nil, "no"), store.ErrNotFound)
	require.ErrorIs(t, r.FinishJobsOf(t.Context(), "rnobody"), store.ErrNotFound)
	require.ErrorIs(t, r.SetRequestMessage(t.Context(), "rnobody", ""), store.ErrNotFound)
}
