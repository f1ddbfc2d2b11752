package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// inTurns creates an ad-hoc request whose one job measures tag in turns with versus.
func (r record) inTurns(tag, versus string, benchmarks ...string) (bench.Request, bench.Job) {
	r.t.Helper()
	request := r.inProgress(bench.Request{
		ID: newID(r.t), Project: project, Type: bench.AdHoc, Tag: tag,
		Submission: bench.Submission{Submitter: "ada"},
		Scope:      bench.Scope{Versus: versus},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	})
	require.Equal(r.t, versus, request.Versus)
	job := newJob(request, benchmarks...)
	job.Versus = versus
	job.Key = bench.JobIdentity{Request: request.ID, Tag: tag, Versus: versus, TestCases: job.TestCases}.Key()
	r.expand(request, job)
	return request, job
}

// of returns a result of one side.
func of(tag string, result bench.TestCaseResult) bench.TestCaseResult {
	result.Tag = tag
	return result
}

// plain measures benchmarks of one artifact alone, with these values.
func (r record) plain(tag string, values []float64, benchmarks ...string) {
	r.t.Helper()
	_, job := r.oneJob(tag, benchmarks...)
	c := r.register("c1")
	r.start(job, 1, c)
	for _, b := range benchmarks {
		r.block(runID(job, 1), measured(b, values...))
	}
	_, err := r.FinishJob(r.t.Context(), job.Key, 0, "")
	require.NoError(r.t, err)
}

func TestBothSidesAreMeasuredDespiteStoredResults(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.plain("v1", []float64{1, 1}, "gin", "lo")
	r.plain("v2", []float64{2, 2}, "gin")

	_, job := r.inTurns("v2", "v1", "gin", "lo")
	stored := r.job(job.Key)
	require.Equal(t, "v1", stored.Versus)
	require.Equal(t, 1, stored.Generation, "above what either side has")
	plan := r.start(job, 1, r.register("c1"))
	require.Equal(t, testCases("gin", "lo"), plan.Missing, "each once, in order")
	require.Equal(t, "v1", plan.Job.Versus)

	receipt := r.block(runID(job, 1), of("v1", measured("gin", 10, 11)), of("v2", measured("gin", 20, 21)))
	require.Equal(t, bench.BlockReceipt{Accepted: 2}, receipt)
	again := r.block(runID(job, 1), of("v1", measured("gin", 10, 11)), of("v2", measured("gin", 20, 21)))
	require.Equal(t, receipt, again)
	require.Equal(t, 2, r.job(job.Key).Done, "both sides count")

	// The next run continues the same job: only the rest is missing.
	require.Equal(t, testCases("lo"), r.start(job, 2, r.register("c1")).Missing)
	r.block(runID(job, 2), of("v1", measured("lo", 30)), of("", measured("lo", 40)))
	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)

	walls := func(samples []bench.Samples) map[string][]float64 {
		out := make(map[string][]float64)
		for _, s := range samples {
			if s.Metric == bench.WallTime {
				out[s.TestCase.Benchmark] = s.Values
			}
		}
		return out
	}
	for tag, want := range map[string]map[string][]float64{
		"v1": {"gin": {1, 1}, "lo": {1, 1}},
		"v2": {"gin": {2, 2}},
	} {
		samples, err := r.SamplesOf(t.Context(), project, tag)
		require.NoError(t, err)
		require.Equal(t, want, walls(samples), "what was measured in turns replaces nothing of %s", tag)
	}
	ofA, ofB, err := r.SamplesInTurns(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Equal(t, map[string][]float64{"gin": {10, 11}, "lo": {30}}, walls(ofA))
	require.Equal(t, map[string][]float64{"gin": {20, 21}, "lo": {40}}, walls(ofB))
	require.True(t, ofA[0].InTurns)
	require.Equal(t, 2*(2+3), r.count(`select count(*) from pstat p join artifact a on a.id = p.artifact_id where a.tag = 'v2'`),
		"two metrics of the two former collections and of three new ones")
}

// Two results are a pair only if one run measured both.
func TestOneSideAloneIsNotAccepted(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.inTurns("v2", "v1", "gin", "lo")
	c := r.register("c1")
	r.start(job, 1, c)
	gin := testCase("gin")
	receipt, err := r.StoreBlock(t.Context(), runID(job, 1), []bench.TestCaseResult{of("v1", measured("gin", 1))},
		[]bench.RunError{{TestCase: &gin, Kind: bench.FailJob, Message: "gin [v2] 1/2: exit code 3"}})
	require.NoError(t, err)
	require.Equal(t, bench.BlockReceipt{Superseded: 1}, receipt)
	_, err = r.StoreBlock(t.Context(), runID(job, 1), []bench.TestCaseResult{of("v3", measured("gin", 1))}, nil)
	require.ErrorIs(t, err, store.ErrConflict)

	// The collector dies; the next one measures the whole block on both sides.
	plan := r.start(job, 2, r.register("c2"))
	require.Equal(t, testCases("gin", "lo"), plan.Missing)
	require.Equal(t, bench.BlockReceipt{Accepted: 2}, r.block(runID(job, 2), of("v1", measured("gin", 2)), of("v2", measured("gin", 3))))
	// Late results of the lost run are superseded: pairs never mix two runs.
	require.Equal(t, bench.BlockReceipt{Superseded: 2}, r.block(runID(job, 1), of("v1", measured("gin", 8)), of("v2", measured("gin", 9))))

	skipped := bench.TestCaseResult{TestCase: testCase("lo"), Skipped: "no docker", Tag: "v2"}
	require.Equal(t, bench.BlockReceipt{Accepted: 2}, r.block(runID(job, 2), of("v1", measured("lo", 2)), skipped), "left out is a result")
	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)
	ofA, ofB, err := r.SamplesInTurns(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Len(t, ofA, 2, "both metrics of gin; lo was measured on one side only")
	require.Len(t, ofB, 2)
}

func TestMissingResultsOfAPairCountForBothSides(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, job := r.inTurns("v2", "v1", "gin", "lo")
	for _, tag := range []string{"v1", "v2"} {
		coverage, err := r.CoverageOf(t.Context(), project, plan.CoverageQuery{Tag: tag, Pool: small, SuiteHash: suiteHash})
		require.NoError(t, err)
		require.Empty(t, coverage.Running, "nobody else waits for a job that measures in turns")
		lacking, err := r.MissingResults(t.Context(), project, tag)
		require.NoError(t, err)
		require.Empty(t, lacking, "it may still come")
	}
	r.start(job, 1, r.register("c1"))
	gin := testCase("gin")
	_, err := r.StoreBlock(t.Context(), runID(job, 1),
		[]bench.TestCaseResult{of("v1", measured("lo", 1)), of("v2", measured("lo", 2))},
		[]bench.RunError{{TestCase: &gin, Kind: bench.FailJob, Message: "gin [v2]: exit code 3"}})
	require.NoError(t, err)
	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobFailure, end.Status)
	require.Contains(t, end.Message, "2 of 4 test cases have no result")
	for _, tag := range []string{"v1", "v2"} {
		coverage, err := r.CoverageOf(t.Context(), project, plan.CoverageQuery{Tag: tag, Pool: small, SuiteHash: suiteHash})
		require.NoError(t, err)
		require.Empty(t, coverage.Stored, "the pair is no result of its own")
		require.Empty(t, coverage.Impossible, "the other side may have failed")
		lacking, err := r.MissingResults(t.Context(), project, tag)
		require.NoError(t, err)
		require.Equal(t, []bench.MissingResult{{TestCase: gin, Reason: "failed: gin [v2]: exit code 3", Failed: true}}, lacking)
	}
	errs, err := r.ErrorsOf(t.Context(), request.ID, r.jobIDs(request.ID))
	require.NoError(t, err)
	require.Len(t, errs, 1)
	p, err := r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, []int{4, 2}, []int{p.TestCases, p.TestCasesDone})
}

// Requests with the same baseline keep their own pairs.
func TestPairsWithTheSameBaselineCoexist(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")
	_, first := r.inTurns("v2", "v1", "gin")
	_, second := r.inTurns("v3", "v1", "gin")
	require.Equal(t, 1, r.job(first.Key).Generation)
	require.Equal(t, 2, r.job(second.Key).Generation)
	r.start(first, 1, c)
	r.block(runID(first, 1), of("v1", measured("gin", 10)), of("v2", measured("gin", 20)))
	r.start(second, 1, c)
	r.block(runID(second, 1), of("v1", measured("gin", 11)), of("v3", measured("gin", 30)))

	wall := func(a, b string) (float64, float64) {
		t.Helper()
		ofA, ofB, err := r.SamplesInTurns(t.Context(), project, a, b)
		require.NoError(t, err)
		if len(ofA) == 0 {
			require.Empty(t, ofB)
			return 0, 0
		}
		require.Len(t, ofA, 2)
		require.Len(t, ofB, 2)
		return ofA[1].Values[0], ofB[1].Values[0]
	}
	x, y := wall("v1", "v2")
	require.Equal(t, []float64{10, 20}, []float64{x, y}, "v1 as it was beside v2")
	x, y = wall("v3", "v1")
	require.Equal(t, []float64{30, 11}, []float64{x, y})
	x, y = wall("v2", "v3")
	require.Equal(t, []float64{0, 0}, []float64{x, y}, "never measured together")
	x, y = wall("v1", "unknown")
	require.Equal(t, []float64{0, 0}, []float64{x, y})
}

func TestARequestInTurnsIsAdHoc(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	wrong := release(t, "v2")
	wrong.Versus = "v1"
	_, _, err := r.CreateRequest(t.Context(), wrong)
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, "versus is for ad-hoc measurements")

	asked := bench.Request{
		ID: newID(t), Project: project, Type: bench.AdHoc, Tag: "v2",
		Submission: bench.Submission{Submitter: "ada", IdempotencyKey: "once"},
		Scope:      bench.Scope{Versus: "v1"},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	}
	r.create(asked)
	asked.ID, asked.Versus = newID(t), "v0"
	_, _, err = r.CreateRequest(t.Context(), asked)
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "in turns")
}

func TestResultsAfterAPairAreNewerForEitherSide(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for _, tag := range []string{"v1", "v2"} {
		request, job := r.oneJob(tag, "gin")
		_, err := r.CancelJob(t.Context(), job.Key, 0, "not for this one")
		require.NoError(t, err)
		require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Cancelled, "", nil, ""))
	}
	_, pair := r.inTurns("v2", "v1", "gin")
	require.Equal(t, 1, r.job(pair.Key).Generation)
	for _, tag := range []string{"v1", "v2"} {
		generation, err := r.GenerationFor(t.Context(), newID(t), newJob(release(t, tag), "gin"))
		require.NoError(t, err)
		require.Equal(t, 2, generation, "of %s", tag)
	}
}
