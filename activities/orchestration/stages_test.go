package orchestration_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

const twoTargets = `{"targets": ["x86_64-unknown-linux-gnu"], "optional_targets": ["aarch64-unknown-linux-gnu"], "queue": {"max_in_progress": 9}}`

// child is an admitted request that was made from a parent.
func (b *bundle) child(requestType bench.RequestType, tag, parent string, benchmarks ...string) protocol.RequestRef {
	b.t.Helper()
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(b.t, err)
	r, _, err := b.store.CreateWithAncestors(b.t.Context(), bench.Request{
		ID: id, Project: project, Type: requestType, Tag: tag,
		Submission: bench.Submission{Submitter: "ada"},
		Origin:     bench.Origin{Parent: parent},
		Scope:      bench.Scope{Selection: bench.Selection{Benchmarks: benchmarks}},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	}, store.Creation{})
	require.NoError(b.t, err)
	admitted, err := b.store.Admit(b.t.Context(), project, 100, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{id}}, nil
	})
	require.NoError(b.t, err)
	require.Equal(b.t, []bench.RequestID{r.ID}, admitted)
	return protocol.RequestRef{Project: project, ID: id}
}

// write writes a stage and gives its jobs.
func (b *bundle) write(ref protocol.RequestRef, stage bench.Stage) []bench.Job {
	b.t.Helper()
	out, err := b.Expand(b.t.Context(), protocol.ExpandInput{Request: ref, Stage: stage})
	require.NoError(b.t, err)
	require.Empty(b.t, out.Failed)
	jobs, err := b.store.StageJobs(b.t.Context(), ref.ID, stage)
	require.NoError(b.t, err)
	return jobs
}

// measured carries a request of some benchmarks out.
func (b *bundle) measured(tag string, c bench.Collector, benchmarks ...string) protocol.RequestRef {
	b.t.Helper()
	ref := b.child(bench.Master, tag, "", benchmarks...)
	for _, j := range b.write(ref, bench.StageOwn) {
		b.measure(j, c, 1)
		b.recordEnd(j.Key, "")
	}
	b.complete(ref, "")
	return ref
}

func benchmarksOf(jobs []bench.Job) []string {
	var names []string
	for _, j := range jobs {
		for _, tc := range j.TestCases {
			names = append(names, j.Tag+" "+tc.Benchmark)
		}
	}
	return names
}

func TestMissingParentResultsAreMeasuredFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parent []string // benchmarks; nil: nobody has asked for it
		lacks  []string
	}{
		"nothing":      {[]string{"gin", "sort"}, nil},
		"a benchmark":  {[]string{"gin"}, []string{"c1 sort"}},
		"another kind": {[]string{"sort"}, []string{"c1 gin"}},
		"everything":   {nil, []string{"c1 gin", "c1 sort"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, twoTargets)
			collector := b.register("c1")
			if c.parent != nil {
				b.measured("c1", collector, c.parent...)
			}
			ref := b.child(bench.Try, "t1", "c1")
			for range 2 {
				require.Equal(t, c.lacks, benchmarksOf(b.write(ref, bench.StageParent)))
			}
			for _, j := range b.write(ref, bench.StageParent) {
				b.measure(j, collector, 1)
				b.recordEnd(j.Key, "")
			}
			require.Equal(t, []string{"t1 gin", "t1 sort"}, benchmarksOf(b.write(ref, bench.StageOwn)))
			require.Len(t, b.write(ref, bench.StageParent), len(c.lacks), "looked at again, it lacks nothing")
		})
	}
}

// A merged commit whose parent nobody has asked for does not bring it in.
func TestTheParentOfACommitBeforeTheLookBackStaysUnmeasured(t *testing.T) {
	t.Parallel()
	b := setup(t, twoTargets)
	b.register("c1")
	require.Empty(t, b.write(b.child(bench.Master, "c2", "c1"), bench.StageParent))
}

// What the parent cannot be measured for is not tried for each child again.
func TestImpossibleTestCasesAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, twoTargets)
	c := b.register("c1")
	b.measured("c1", c, "gin")
	first := b.child(bench.Try, "t1", "c1")
	jobs := b.write(first, bench.StageParent)
	require.Len(t, jobs, 1)
	b.recordEnd(jobs[0].Key, "it fails each time")
	require.Empty(t, b.write(b.child(bench.Try, "t2", "c1"), bench.StageParent))

	// By another suite it may be possible.
	require.NoError(t, b.store.PutSuite(t.Context(), "another", "go", []byte("files")))
	b.execute(`update job_queue set suite_hash = 'another' where key = $1`, string(jobs[0].Key))
	require.Len(t, b.write(b.child(bench.Try, "t3", "c1"), bench.StageParent), 1)
}

// One job of the parent serves all children that wait for it. Cancelling a child
// takes that one waiter away; with the last one goes the job, and who comes later
// has it measured all the same.
func TestChildrenShareTheJobsOfTheirParent(t *testing.T) {
	t.Parallel()
	b := setup(t, twoTargets)
	c := b.register("c1")
	b.measured("c1", c, "gin")
	first, second := b.child(bench.Try, "t1", "c1"), b.child(bench.Try, "t2", "c1", "sort")
	jobs := b.write(first, bench.StageParent)
	require.Equal(t, []string{"c1 sort"}, benchmarksOf(jobs))
	require.Equal(t, jobs[0].Key, b.write(second, bench.StageParent)[0].Key)

	cancel := func(ref protocol.RequestRef) {
		_, err := b.CancelRequest(t.Context(), protocol.CancelInput{Request: ref, Who: "ada"})
		require.NoError(t, err)
	}
	cancel(first)
	require.True(t, b.job(jobs[0].Key).Status.Open())
	cancel(second)
	require.Equal(t, bench.JobCancelled, b.job(jobs[0].Key).Status)

	third, fourth := b.child(bench.Try, "t3", "c1"), b.child(bench.Try, "t4", "c1")
	anew := b.write(third, bench.StageParent)
	require.Equal(t, []string{"c1 sort"}, benchmarksOf(anew))
	require.NotEqual(t, jobs[0].Key, anew[0].Key)
	require.Equal(t, 1, anew[0].Generation)
	require.Equal(t, anew[0].Key, b.write(fourth, bench.StageParent)[0].Key, "which is shared again")
	b.measure(anew[0], c, 1)
	require.Equal(t, bench.JobSuccess, b.recordEnd(anew[0].Key, "").Status)
	require.Empty(t, b.write(b.child(bench.Try, "t5", "c1"), bench.StageParent))
}

// What a person cancels while a child waits for it stays cancelled for that child.
func TestACancelledJobStaysCancelledForItsWaiters(t *testing.T) {
	t.Parallel()
	b := setup(t, twoTargets)
	b.register("c1")
	ref := b.child(bench.Try, "t1", "c1", "sort")
	jobs := b.write(ref, bench.StageParent)
	require.Len(t, jobs, 1)
	_, err := b.RecordJobEnd(t.Context(), protocol.JobEndInput{Project: project, Key: jobs[0].Key, TaskQueue: pool.TaskQueue(), Cancelled: true, GaveUp: "cancelled"})
	require.NoError(t, err)
	require.Equal(t, jobs[0].Key, b.write(ref, bench.StageParent)[0].Key)
	require.Len(t, b.write(ref, bench.StageParent), 1)
	require.NotEqual(t, jobs[0].Key, b.write(b.child(bench.Try, "t2", "c1", "sort"), bench.StageParent)[0].Key)
}

// Two children that are expanded at once write what their parent lacks once,
// whatever else each of them wants.
func TestConcurrentChildrenMeasureTheirParentOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, twoTargets)
	b.register("c1")
	refs := []protocol.RequestRef{
		b.child(bench.Try, "t1", "c1", "gin"), b.child(bench.Try, "t2", "c1"), b.child(bench.Try, "t3", "c1", "sort"), b.child(bench.Try, "t4", "c1"),
	}
	errs := make(chan error, len(refs))
	for _, ref := range refs {
		go func() {
			_, err := b.Expand(t.Context(), protocol.ExpandInput{Request: ref, Stage: bench.StageParent})
			errs <- err
		}()
	}
	for range refs {
		require.NoError(t, <-errs)
	}
	seen := make(map[string]bench.JobKey)
	for _, ref := range refs {
		for _, j := range b.write(ref, bench.StageParent) {
			for _, tc := range j.TestCases {
				if key, known := seen[tc.Benchmark]; known {
					require.Equal(t, key, j.Key)
				}
				seen[tc.Benchmark] = j.Key
			}
		}
	}
	require.Len(t, seen, 2)
}

// Results count with or without the job that brought them; where they are gone,
// the job of the same content does not stand in the way.
func TestStoredResultsAreNotMeasuredAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, twoTargets)
	c := b.register("c1")
	b.measured("c1", c, "gin")
	try := b.child(bench.Try, "t1", "c1")
	for _, j := range b.write(try, bench.StageParent) {
		b.measure(j, c, 1)
		b.recordEnd(j.Key, "")
	}
	// Purged of its request, the parent keeps what its child has brought.
	b.execute(`delete from benchmark_request where tag = 'c1'`)
	again := b.child(bench.Master, "c1", "")
	require.Empty(t, b.write(again, bench.StageOwn))
	require.Equal(t, "everything was measured before", b.complete(again, "").Message)

	b.execute(`delete from test_result where artifact_id = (select id from artifact where tag = 'c1')`)
	jobs := b.write(b.child(bench.Try, "t2", "c1"), bench.StageParent)
	require.Equal(t, []string{"c1 gin", "c1 sort"}, benchmarksOf(jobs))
	for _, j := range jobs {
		require.True(t, j.Status.Open())
	}
}

// Jobs of optional targets, the parent's too, are written where somebody serves
// them, and keep nobody waiting: the request stays to start them after its end.
func TestOptionalTargetsBlockNothing(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"served": true, "served by nobody": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, twoTargets)
			c := b.register("c1")
			per := 1
			if served {
				per = 2
				_, err := b.store.RegisterCollector(t.Context(), bench.Collector{
					Name: "arm", Target: arm, SizeClass: 2, Pool: "main", MachineID: "arm", Version: "1", HardwareID: "arm", Facts: []byte(`{}`),
				}, offline)
				require.NoError(t, err)
			}
			ref := b.child(bench.Try, "t1", "c1", "sort")
			for _, stage := range []bench.Stage{bench.StageParent, bench.StageOwn} {
				jobs := b.write(ref, stage)
				require.Len(t, jobs, per)
				for _, j := range jobs {
					if j.Target == target {
						b.measure(j, c, 1)
						b.recordEnd(j.Key, "")
					}
				}
				out, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: stage})
				require.NoError(t, err)
				require.Equal(t, protocol.JobCounts{Total: 1, Success: 1}, out.Counts)
			}
			done := b.complete(ref, "")
			require.Equal(t, bench.Success, done.Outcome)
			require.Equal(t, 2*(per-1), done.OptionalOpen, "the parent's too")
			facts, err := b.LoadRequest(t.Context(), ref)
			require.NoError(t, err)
			require.Equal(t, done.OptionalOpen, facts.End.OptionalOpen)
			out, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Optional: true})
			require.NoError(t, err)
			require.Equal(t, done.OptionalOpen, out.Counts.Open)
			require.Len(t, b.handedOut(ref), done.OptionalOpen)
			require.Len(t, b.write(b.child(bench.Try, "t2", "c1", "sort"), bench.StageParent), per-1, "what is open is shared")
		})
	}
}

// An expiry that told nobody is told when it is tried again.
func TestExpiryWakesTheChildren(t *testing.T) {
	t.Parallel()
	b := setup(t, twoTargets)
	b.register("c1")
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(t, err)
	r, _, err := b.store.CreateWithAncestors(t.Context(), bench.Request{
		ID: id, Project: project, Type: bench.Try, Tag: "t1",
		Submission: bench.Submission{Submitter: "ada"},
		Standing:   bench.Standing{Status: bench.WaitingForArtifacts},
	}, store.Creation{})
	require.NoError(t, err)
	ref := protocol.RequestRef{Project: project, ID: id}
	require.NoError(t, b.ExpireRequest(t.Context(), ref))
	require.Equal(t, bench.WaitingForArtifacts, b.request(ref).Status, "it is not time yet")
	require.Empty(t, b.workflows.taken())
	b.execute(`update benchmark_request set created_at = created_at - interval '15 days' where id = $1`, string(r.ID))
	for range 2 {
		require.NoError(t, b.ExpireRequest(t.Context(), ref))
		require.Equal(t, bench.Expired, b.request(ref).Outcome)
		require.Equal(t, []string{"queue go"}, b.workflows.taken())
	}
}
