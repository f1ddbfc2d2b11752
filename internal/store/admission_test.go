package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// allInOrder admits all waiting requests, the oldest first.
func allInOrder(open []bench.Request, _ map[string]bool) (store.Admission, error) {
	var next store.Admission
	for _, q := range open {
		next.Next = append(next.Next, q.ID)
	}
	return next, nil
}

func TestAdmissionFillsFreeSlotsInOrder(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	first, second, third := r.create(release(t, "v1")), r.create(release(t, "v2")), r.create(release(t, "v3"))
	waiting := release(t, "v4")
	waiting.Type, waiting.Status = bench.Try, bench.WaitingForArtifacts
	waits := r.create(waiting)
	r.create(bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Tag: "v1", Submission: bench.Submission{Submitter: "ada"}})

	// decide receives all open tracked requests; those that cannot be admitted are
	// skipped, wherever they are in the order.
	admitted, err := r.Admit(t.Context(), project, 2, func(open []bench.Request, completed map[string]bool) (store.Admission, error) {
		require.Len(t, open, 4)
		require.Empty(t, completed)
		return store.Admission{Next: []bench.RequestID{"rnobody", waits.ID, third.ID, first.ID, second.ID}, Policy: "spec", State: json.RawMessage(`{"requests":[]}`)}, nil
	})
	require.NoError(t, err)
	require.Equal(t, []bench.RequestID{third.ID, first.ID}, admitted)
	running, err := r.InProgressTracked(t.Context(), project)
	require.NoError(t, err)
	require.Len(t, running, 2)
	require.NotNil(t, running[0].AdmittedAt)

	// Full.
	admitted, err = r.Admit(t.Context(), project, 2, allInOrder)
	require.NoError(t, err)
	require.Empty(t, admitted)

	// The end of a request's jobs frees a slot, long before the request is completed.
	require.NoError(t, r.FinishJobsOf(t.Context(), third.ID))
	admitted, err = r.Admit(t.Context(), project, 2, allInOrder)
	require.NoError(t, err)
	require.Equal(t, []bench.RequestID{second.ID}, admitted)
	running, err = r.InProgressTracked(t.Context(), project)
	require.NoError(t, err)
	require.Len(t, running, 3)

	// A lower maximum neither stops nor admits requests.
	require.NoError(t, r.FinishJobsOf(t.Context(), first.ID))
	admitted, err = r.Admit(t.Context(), project, 1, allInOrder)
	require.NoError(t, err)
	require.Empty(t, admitted)
}

func TestAdmissionKnowsWhichParentsAreCompleted(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for _, tag := range []string{"done", "unrelated"} {
		q := r.create(release(t, tag))
		require.NoError(t, r.CompleteRequest(t.Context(), q.ID, bench.Failure, "", nil, ""))
	}
	r.create(release(t, "open"))
	for _, parent := range []string{"done", "open", "unknown"} {
		q := release(t, "child-of-"+parent)
		q.Type, q.Parent = bench.Master, parent
		_, _, err := r.CreateWithAncestors(t.Context(), q, store.Creation{})
		require.NoError(t, err)
	}
	_, err := r.Admit(t.Context(), project, 1, func(open []bench.Request, completed map[string]bool) (store.Admission, error) {
		require.Len(t, open, 4)
		require.Equal(t, map[string]bool{"done": true}, completed)
		return store.Admission{}, nil
	})
	require.NoError(t, err)
}

func TestConcurrentAdmissionsNeverExceedTheSlots(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for i := range 20 {
		r.create(release(t, fmt.Sprint("v", i)))
	}
	var mu sync.Mutex
	var admitted []bench.RequestID
	for _, err := range together(12, func(int) error {
		ids, err := r.Admit(t.Context(), project, 5, allInOrder)
		mu.Lock()
		defer mu.Unlock()
		admitted = append(admitted, ids...)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Len(t, admitted, 5)
	running, err := r.InProgressTracked(t.Context(), project)
	require.NoError(t, err)
	require.Len(t, running, 5)
}

func TestConcurrentAdmissionsRunInSequence(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.create(release(t, "v1"))
	r.create(release(t, "v2"))
	var second []bench.RequestID
	var wait func()
	first, err := r.Admit(t.Context(), project, 1, func(open []bench.Request, completed map[string]bool) (store.Admission, error) {
		if wait == nil {
			wait = r.whileWaiting(func() (err error) {
				second, err = r.Admit(t.Context(), project, 1, allInOrder)
				return err
			})
		}
		return allInOrder(open, completed)
	})
	require.NoError(t, err)
	wait()
	require.Len(t, first, 1)
	require.Empty(t, second, "it saw that the slot was taken")
}

func TestAdHocRequestsStartWithoutAdmission(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.create(bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Tag: "v1", Submission: bench.Submission{Submitter: "ada"}})
	twice(t, func() error { return r.StartAdHoc(t.Context(), q.ID) })
	require.Equal(t, bench.InProgress, r.request(q.ID).Status)
	running, err := r.InProgressTracked(t.Context(), project)
	require.NoError(t, err)
	require.Empty(t, running)
	require.NoError(t, r.CompleteRequest(t.Context(), q.ID, bench.Success, "", nil, ""))
	require.ErrorIs(t, r.StartAdHoc(t.Context(), q.ID), store.ErrConflict)
	require.ErrorIs(t, r.StartAdHoc(t.Context(), r.create(release(t, "v1")).ID), store.ErrConflict)
	require.ErrorIs(t, r.StartAdHoc(t.Context(), "rnobody"), store.ErrNotFound)
}

func TestExpansionWritesEachJobOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	one, two := newJob(q, "zip", "gin"), newCommand(q, 0, "x")
	twice(t, func() error {
		return r.ExpandRequest(t.Context(), q.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(one, two)})
	})
	first := r.request(q.ID).ExpandedAt
	require.NotNil(t, first)

	jobs, err := r.RequestJobs(t.Context(), q.ID)
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	want := one
	want.ID, want.CreatedAt = jobs[0].ID, jobs[0].CreatedAt
	require.Equal(t, want, jobs[0])
	require.Equal(t, two.Command, jobs[1].Command)
	require.Equal(t, jobs[0], r.job(one.Key))
	p, err := r.JobProgress(t.Context(), q.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: 2, Queued: 2, TestCases: 3}, p)
	require.Equal(t, 2, p.Open())
	require.Equal(t, 1, r.count(`select count(*) from artifact where tag = $1`, string(two.Key)), "a command is an artifact of its own")

	// A later expansion writes nothing new; an ended request is not expanded at all.
	require.NoError(t, r.CompleteRequest(t.Context(), q.ID, bench.Expired, "", nil, ""))
	require.ErrorIs(t, r.ExpandRequest(t.Context(), q.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(newJob(q, "new"))}), store.ErrConflict)
	_, err = r.Job(t.Context(), newJob(q, "new").Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorIs(t, r.ExpandRequest(t.Context(), "rnobody", store.Expansion{Stage: bench.StageOwn, Jobs: nil}), store.ErrNotFound)
}

func TestParentJobsAreSharedAndNotOwn(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("parent", "gin")
	child := r.inProgress(release(t, "child"))
	require.NoError(t, r.ExpandRequest(t.Context(), child.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))
	require.Nil(t, r.request(child.ID).ExpandedAt, "its own jobs are still to come")
	jobs, err := r.RequestJobs(t.Context(), child.ID)
	require.NoError(t, err)
	require.Len(t, jobs, 1)

	// A job that has ended does not run again.
	_, err = r.CancelJob(t.Context(), job.Key, 0, "no longer wanted")
	require.NoError(t, err)
	other := r.inProgress(release(t, "other"))
	require.NoError(t, r.ExpandRequest(t.Context(), other.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}))
	require.Equal(t, bench.JobCancelled, r.job(job.Key).Status)

	// A key belongs to one job in one project.
	_, err = r.ApplyProject(t.Context(), store.Project{Name: "fork"})
	require.NoError(t, err)
	job.Project = "fork"
	require.ErrorIs(t, r.ExpandRequest(t.Context(), other.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(job)}), store.ErrConflict)
}

func TestConcurrentExpansionsShareJobs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	parent := release(t, "parent")
	var shared []bench.Job
	for _, b := range names(8) {
		shared = append(shared, newJob(parent, b, "gin"))
	}
	var children []bench.Request
	for i := range 8 {
		children = append(children, r.inProgress(release(t, fmt.Sprint("v", i))))
	}
	for _, err := range together(len(children), func(i int) error {
		// Each in another order.
		jobs := append(append([]bench.Job{}, shared[i:]...), shared[:i]...)
		return r.ExpandRequest(t.Context(), children[i].ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(jobs...)})
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, 8, r.count(`select count(*) from job_queue`))
	require.Equal(t, 64, r.count(`select count(*) from request_job`))
	require.Equal(t, 9, r.count(`select count(*) from test_case`))
}

func TestASharedJobGoesAtTheEarliestLevelOfItsRequests(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	first := r.inProgress(release(t, "v1"))
	var jobs []bench.Job
	for _, name := range []string{"gin", "zap", "chi"} {
		j := newJob(first, name)
		j.Queue = "idle"
		jobs = append(jobs, j)
	}
	r.expand(first, jobs...)
	r.execute(`update job_queue set held = 'cap', submitter = 'bob' where key = $1`, jobs[0].Key)
	r.execute(`update job_queue set status = 'handed_out', handed_out_at = now(), priority = 5 where key = $1`, jobs[1].Key)

	second := r.inProgress(release(t, "v2"))
	share := func(queue string) {
		require.NoError(t, r.ExpandRequest(t.Context(), second.ID, store.Expansion{
			Stage: bench.StageParent, Shared: []bench.JobKey{jobs[0].Key, jobs[1].Key}, OnlyMissing: true, Queue: queue,
		}))
	}
	queueOf := func(j bench.Job) string {
		stored, err := r.Job(t.Context(), j.Key)
		require.NoError(t, err)
		return stored.Queue
	}
	own := "project:" + project
	_, before := r.jobsOf("v0", own, 1)
	r.execute(`update job_queue set status = 'cancelled', handed_out_at = now(), completed_at = now() where key = $1`, before[0].Key)
	share(own)
	require.Equal(t, []string{own, own, "idle"}, []string{queueOf(jobs[0]), queueOf(jobs[1]), queueOf(jobs[2])}, "nobody else waits for the third")
	relevelled, err := r.Relevel(t.Context())
	require.NoError(t, err)
	require.Equal(t, []store.Relevelled{{JobRef: jobs[1].Ref(), Level: 3}}, relevelled, "it waits in Temporal")
	handed := map[bench.JobKey]int{}
	for _, h := range r.handOutUpTo(4) {
		handed[h.Job] = h.Priority
		if h.Queue == own {
			require.Equal(t, 1, h.Turn, "one of its queue was cancelled in Temporal")
		}
	}
	require.Equal(t, map[bench.JobKey]int{jobs[0].Key: 3, jobs[2].Key: 5}, handed)

	share("idle")
	require.Equal(t, own, queueOf(jobs[0]), "never to a later level")
}
