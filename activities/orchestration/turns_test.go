package orchestration_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/stats"
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

// measureBoth runs a job to its end: wall times of the baseline and of the other.
func (b *bundle) measureBoth(job bench.Job, c bench.Collector, versus, own float64) {
	b.t.Helper()
	run := b.start(job.Key, c, 1)
	var results []bench.TestCaseResult
	for _, tc := range job.TestCases {
		for tag, seconds := range map[string]float64{job.Versus: versus, job.Tag: own} {
			r := bench.TestCaseResult{TestCase: tc, Tag: tag}
			for i := range 5 {
				r.Collections = append(r.Collections, bench.Collection{
					Iteration: i + 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC),
					Values: map[bench.Metric]float64{bench.WallTime: seconds * (1 + float64(i)/1000)},
				})
			}
			results = append(results, r)
		}
	}
	_, err := b.store.StoreBlock(b.t.Context(), run, results, nil)
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
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
	var summary stats.Summary
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

// With 'verify', what differs from the baseline is measured again in turns with it,
// and that is what the comparison says then.
func TestDifferencesAreVerifiedInTurns(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"verify": true}`)
	c := b.register("c1")
	b.released("1.0.0", c, 1)

	ref := b.running("1.1.0")
	facts, err := b.LoadRequest(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, []bench.Stage{bench.StageOwn, bench.StageVerify}, facts.Stages)
	b.handOut(ref)
	own := b.jobs(ref)
	total := 0
	for _, j := range own {
		b.measure(j, c, 1.2)
		b.recordEnd(j.Key, "")
		total += len(j.TestCases)
	}
	verify := protocol.ExpandInput{Request: ref, Stage: bench.StageVerify}
	expanded, err := b.Expand(t.Context(), verify)
	require.NoError(t, err)
	require.Positive(t, expanded.Counts.Open)
	require.Len(t, b.handedOut(ref), expanded.Counts.Open)
	pairs, err := b.store.StageJobs(t.Context(), ref.ID, bench.StageVerify)
	require.NoError(t, err)
	cases := 0
	for _, j := range pairs {
		require.Equal(t, []string{"1.1.0", "1.0.0", "project:" + project}, []string{j.Tag, j.Versus, j.Queue})
		require.Positive(t, j.Generation)
		cases += len(j.TestCases)
		b.measureBoth(j, c, 1.2, 1.2)
		require.Equal(t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
	}
	require.Equal(t, total, cases, "all of them differed")

	// It is decided once: what differs now is what was measured in turns.
	expanded, err = b.Expand(t.Context(), verify)
	require.NoError(t, err)
	require.Zero(t, expanded.Counts.Open)
	require.Equal(t, len(pairs), expanded.Counts.Total)
	out := b.complete(ref, "")
	require.Equal(t, bench.Success, out.Outcome)
	require.Equal(t, "1.0.0", out.Baseline)
	var summary stats.Summary
	require.NoError(t, json.Unmarshal(b.request(ref).Summary, &summary))
	require.Zero(t, summary.Metrics[0].Significant, "the machine was slower, not the release")
}

func TestEqualResultsAreNotVerified(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"verify": true}`)
	c := b.register("c1")
	for _, tag := range []string{"1.0.0", "1.1.0"} { // the first has no baseline
		ref := b.running(tag)
		b.handOut(ref)
		for _, j := range b.jobs(ref) {
			b.measure(j, c, 1)
			b.recordEnd(j.Key, "")
		}
		expanded, err := b.Expand(t.Context(), protocol.ExpandInput{Request: ref, Stage: bench.StageVerify})
		require.NoError(t, err)
		require.Zero(t, expanded.Counts)
		require.Empty(t, expanded.Failed)
		b.complete(ref, "")
	}
	adhoc, err := b.LoadRequest(t.Context(), b.create(bench.AdHoc, "1.2.0", 1))
	require.NoError(t, err)
	require.Equal(t, []bench.Stage{bench.StageOwn}, adhoc.Stages)
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
