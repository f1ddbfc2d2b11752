package orchestration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// attempt is one run of a job in which these benchmarks get a result and the others
// fail.
func (b *bundle) attempt(job bench.Job, c bench.Collector, n int32, outcome bench.RunOutcome, benchmarks ...string) {
	b.t.Helper()
	run := b.start(job.Key, c, n)
	var results []bench.TestCaseResult
	for _, tc := range job.TestCases {
		for _, name := range benchmarks {
			if tc.Benchmark == name {
				results = append(results, bench.TestCaseResult{TestCase: tc, Collections: []bench.Collection{{
					Iteration: 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Values: map[bench.Metric]float64{bench.WallTime: 1},
				}}})
			}
		}
	}
	_, err := b.store.StoreBlock(b.t.Context(), run, results, nil)
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: outcome}))
}

// places are the benchmarks of jobs by size class.
func places(jobs []bench.Job) map[bench.SizeClass][]string {
	out := make(map[bench.SizeClass][]string)
	for _, j := range jobs {
		out[j.SizeClass] = append(out[j.SizeClass], benchmarksOf([]bench.Job{j})...)
	}
	return out
}

// Test cases are measured where their series live. What fails there goes to the
// largest class alone; its series moves only if it succeeds there, and then the parent
// is measured there as well, but for nothing else.
func TestASeriesMovesOnlyWhereItSucceeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		largest bench.RunOutcome
		parent  map[bench.SizeClass][]string
		next    map[bench.SizeClass][]string
	}{
		"it succeeds": {bench.RunSuccess, map[bench.SizeClass][]string{8: {"c1 sort"}}, map[bench.SizeClass][]string{2: {"c3 gin"}, 8: {"c3 sort"}}},
		"it fails":    {bench.RunFailure, map[bench.SizeClass][]string{}, map[bench.SizeClass][]string{2: {"c3 gin", "c3 sort"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{"targets": ["x86_64-unknown-linux-gnu"], "queue": {"max_in_progress": 9}, "max_job_fails": 1}`)
			small := b.register("c1")
			b.measured("c1", small, "gin", "sort")
			large := b.registerAt(bench.Pool{Target: target, SizeClass: 8, Name: "large"})

			ref := b.child(bench.Master, "c2", "c1")
			jobs := b.write(ref, bench.StageOwn)
			require.Equal(t, map[bench.SizeClass][]string{2: {"c2 gin", "c2 sort"}}, places(jobs), "where the series live, not on the largest")
			for _, j := range jobs {
				if j.TestCases[0].Benchmark == "gin" {
					b.measure(j, small, 1)
					b.recordEnd(j.Key, "")
					continue
				}
				b.attempt(j, small, 1, bench.RunTimeout)
				a, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: j.Key, Kind: bench.FailTooSmall, Message: "slow"})
				require.NoError(t, err)
				require.Equal(t, bench.SizeClass(8), a.Moved.SizeClass)
				var done []string
				if c.largest == bench.RunSuccess {
					done = []string{"sort"}
				}
				b.attempt(j, large, 2, c.largest, done...)
				b.recordEnd(j.Key, "")
			}
			// Now its parent is asked for what it lacks.
			lacks := b.write(ref, bench.StageParent)
			require.Equal(t, c.parent, places(lacks))
			for _, j := range lacks {
				b.measure(j, large, 1)
				b.recordEnd(j.Key, "")
			}
			b.complete(ref, "")
			require.Equal(t, c.next, places(b.write(b.child(bench.Master, "c3", "c2"), bench.StageOwn)))
		})
	}
}

// A result that comes late does not move a series back: what is measured next goes
// where its parent was measured or, without one, where the newest commit was.
func TestALateResultDoesNotMoveASeriesBack(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"targets": ["x86_64-unknown-linux-gnu"], "queue": {"max_in_progress": 9}, "max_job_fails": 1}`)
	small := b.register("c1")
	b.measured("c1", small, "gin", "sort")
	large := b.registerAt(bench.Pool{Target: target, SizeClass: 8, Name: "large"})

	ref := b.child(bench.Master, "c2", "c1")
	jobs := b.write(ref, bench.StageOwn)
	slow := b.child(bench.Try, "t1", "c1")
	late := b.write(slow, bench.StageOwn) // where c1 was measured, before anything has moved
	finish := func(job bench.Job) {
		b.measure(job, small, 1)
		b.recordEnd(job.Key, "")
	}
	for _, j := range jobs {
		if j.TestCases[0].Benchmark == "gin" {
			finish(j)
			continue
		}
		b.attempt(j, small, 1, bench.RunTimeout)
		_, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: j.Key, Kind: bench.FailTooSmall, Message: "slow"})
		require.NoError(t, err)
		b.attempt(j, large, 2, bench.RunSuccess, "sort")
		b.recordEnd(j.Key, "")
	}
	b.complete(ref, "")
	for _, j := range late {
		finish(j)
	}
	require.Equal(t, map[bench.SizeClass][]string{2: {"c3 gin"}, 8: {"c3 sort"}}, places(b.write(b.child(bench.Master, "c3", "c2"), bench.StageOwn)), "with its parent")
	require.Equal(t, map[bench.SizeClass][]string{2: {"t2 gin", "t2 sort"}}, places(b.write(b.child(bench.Try, "t2", "c1"), bench.StageOwn)), "with its parent, which has not moved")
	require.Equal(t, map[bench.SizeClass][]string{2: {"c9 gin"}, 8: {"c9 sort"}}, places(b.write(b.child(bench.Master, "c9", ""), bench.StageOwn)), "with the newest commit")
}
