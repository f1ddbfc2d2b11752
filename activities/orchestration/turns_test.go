package orchestration_test

import (
	"cmp"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/report"
)

// inTurns asks for tag in turns with versus, and writes its jobs.
func (b *bundle) inTurns(tag, versus string) protocol.RequestRef {
	b.t.Helper()
	ref := b.create(bench.AdHoc, tag, 1)
	b.execute(`update benchmark_request set versus = $2 where id = $1`, ref.ID, versus)
	for range 2 { // once, however often
		out, err := b.Expand(b.t.Context(), own(ref))
		require.NoError(b.t, err)
		require.Empty(b.t, out.Failed)
	}
	return ref
}

// measureBoth runs a job to its end: wall times of the baseline and of the other, with as
// many iterations as it is to have, or 5.
func (b *bundle) measureBoth(job bench.Job, c bench.Collector, versus, own float64) {
	b.t.Helper()
	run := b.start(job.Key, c, 1)
	b.storePairs(run, job, versus, own)
	require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
}

// storePairs uploads the pairs of a run.
func (b *bundle) storePairs(run bench.RunID, job bench.Job, versus, own float64) {
	b.t.Helper()
	seconds := map[string]float64{job.Versus: versus, job.Tag: own}
	b.storePairsOf(run, job, func(tag string, i int) map[bench.Metric]float64 {
		// Each iteration differs from the next by what both sides share.
		return map[bench.Metric]float64{bench.WallTime: seconds[tag] * (1 + float64(i%5)/1000)}
	})
}

// storePairsOf uploads the pairs of a run with the values of each iteration.
func (b *bundle) storePairsOf(run bench.RunID, job bench.Job, values func(tag string, i int) map[bench.Metric]float64) {
	b.t.Helper()
	var results []bench.TestCaseResult
	for _, tc := range job.TestCases {
		for _, tag := range []string{job.Versus, job.Tag} {
			r := bench.TestCaseResult{TestCase: tc, Tag: tag}
			for i := range cmp.Or(job.Iterations, 5) {
				r.Collections = append(r.Collections, bench.Collection{
					Iteration: i + 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Values: values(tag, i),
				})
			}
			results = append(results, r)
		}
	}
	_, err := b.store.StoreBlock(b.t.Context(), run, results, nil)
	require.NoError(b.t, err)
}

// What a request has measured in turns is what it is compared by: everything is
// measured again, and what else is stored of the two plays no part.
func TestARequestInTurnsIsComparedWithItsBaseline(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	b.released("1.0.0", c, 9)
	b.released("1.1.0", c, 1)

	ref := b.inTurns("1.1.0", "1.0.0")
	jobs := b.jobs(ref)
	require.NotEmpty(t, jobs)
	for _, j := range jobs {
		require.Equal(t, []string{"1.1.0", "1.0.0", "user:ada"}, []string{j.Tag, j.Versus, j.Queue})
		require.NotEmpty(t, j.TestCases)
	}
	b.handOut(ref)
	for _, j := range jobs {
		b.measureBoth(j, c, 2, 3)
		require.Equal(t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
	}
	out := b.complete(ref, "")
	require.Equal(t, bench.Success, out.Outcome)
	require.Equal(t, "1.0.0", out.Baseline)
	var summary report.Summary
	require.NoError(t, json.Unmarshal(b.request(ref).Summary, &summary))
	require.NotEmpty(t, summary.Metrics)
	require.InDelta(t, 0.5, summary.Metrics[0].GeometricMean.Value, 0.01, "3 s to 2 s, not 1 s to 9 s")
}

// Nothing was measured: there is nothing to compare with.
func TestARequestInTurnsWithoutResultsHasNoBaseline(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	ref := b.inTurns("1.1.0", "1.0.0")
	b.handOut(ref)
	for _, j := range b.jobs(ref) {
		require.Equal(t, bench.JobFailure, b.recordEnd(j.Key, "no such artifact").Status)
	}
	out := b.complete(ref, "")
	require.Equal(t, bench.Failure, out.Outcome)
	require.Empty(t, out.Baseline)
	require.Empty(t, b.request(ref).Summary)
}

// Two artifacts take twice as long as one: what is learned of jobs that measure in
// turns says nothing about those that do not.
func TestJobsInTurnsHaveTheirOwnShape(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	b.registerAt(bench.Pool{Target: target, SizeClass: 8, Name: "large"})
	shapes := func(jobs []bench.Job) (out []string) {
		for _, j := range jobs {
			require.NotEmpty(t, j.Shape)
			out = append(out, j.Shape)
		}
		return out
	}
	inTurns := shapes(b.write(b.inTurns("v2", "v1"), bench.StageOwn))
	alone := b.write(b.create(bench.Release, "v3", 1), bench.StageOwn)
	require.Len(t, shapes(alone), len(inTurns))
	for _, j := range alone {
		require.NotContains(t, inTurns, j.Shape)
		require.Equal(t, string(bench.SuiteShape(j.Kind, j.Target, j.TestCases, j.Iterations).Shape()), j.Shape)
	}
}
