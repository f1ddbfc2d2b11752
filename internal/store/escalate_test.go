package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

func (r record) escalate(job bench.Job) bool {
	r.t.Helper()
	escalated, err := r.EscalateJob(r.t.Context(), job.Key, small.SizeClass, store.SizeChoice{Place: bench.Place{Pool: large}})
	require.NoError(r.t, err)
	return escalated
}

// Only test cases without a result move to the larger class, and the job is done when
// both parts are. The parent is measured where each of them was.
func TestOnlyFailedTestCasesEscalate(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, job := r.oneJob("v1", "gin", "zap", "sort")
	c, big := r.register("c1"), r.registerIn("c2", large, "epyc")
	run := r.start(job, 1, c)
	r.block(run.Run.ID, measured("gin", 1, 2))
	require.NoError(t, r.FinishRun(t.Context(), run.Run.ID, bench.RunEnd{Outcome: bench.RunOutOfMemory, MeasuredSeconds: 3, PeakMemory: 4 << 30, CPUSeconds: 5}))
	ended := r.run(run.Run.ID)
	require.Equal(t, []any{3.0, int64(4 << 30), 5.0}, []any{ended.MeasuredSeconds, ended.PeakMemory, ended.CPUSeconds})

	require.True(t, r.escalate(job))
	require.False(t, r.escalate(job), "it is there already")
	moved := r.job(job.Key)
	require.Equal(t, []any{large.SizeClass, large.Name, large.TaskQueue(), 1}, []any{moved.SizeClass, moved.Pool, moved.TaskQueue, moved.Done})
	require.Empty(t, moved.MovedFrom, "nobody was missing")

	// The remaining test cases are covered by the job on the larger class only.
	coverage, err := r.CoverageOf(t.Context(), project, plan.CoverageQuery{Tag: "v1", Pool: small, SuiteHash: suiteHash})
	require.NoError(t, err)
	require.Equal(t, map[bench.TestCase]bool{testCase("gin"): true}, coverage.Stored)
	require.Empty(t, coverage.Running)
	coverage, err = r.CoverageOf(t.Context(), project, plan.CoverageQuery{Tag: "v1", Pool: large, SuiteHash: suiteHash})
	require.NoError(t, err)
	require.Equal(t, map[bench.TestCase]bench.JobKey{testCase("zap"): job.Key, testCase("sort"): job.Key}, coverage.Running)

	began := r.start(job, 2, big)
	require.Equal(t, testCases("zap", "sort"), began.Missing)
	r.block(began.Run.ID, measured("zap", 1, 2))
	require.NoError(t, r.FinishRun(t.Context(), began.Run.ID, bench.RunEnd{Outcome: bench.RunFailure}))
	end, err := r.FinishJob(t.Context(), job.Key, 0, "it failed 3 times")
	require.NoError(t, err)
	require.Equal(t, bench.JobFailure, end.Status)
	require.Equal(t, "1 of 3 test cases have no result: it failed 3 times", end.Message)

	parts, err := r.MeasuredParts(t.Context(), request.ID, bench.StageOwn)
	require.NoError(t, err)
	require.Equal(t, []plan.MeasuredPart{
		{Key: job.Key, SizeClass: small.SizeClass, Pool: small.Name, TestCases: testCases("gin")},
		{Key: job.Key, SizeClass: large.SizeClass, Pool: large.Name, TestCases: testCases("zap")},
	}, parts, "what failed on the larger class as well has no place")

	// Coverage of both classes says that it cannot be measured.
	for _, pool := range []bench.Pool{small, large} {
		coverage, err = r.CoverageOf(t.Context(), project, plan.CoverageQuery{Tag: "v1", Pool: pool, SuiteHash: suiteHash})
		require.NoError(t, err)
		require.Contains(t, coverage.Impossible, testCase("sort"))
	}
}

// Results from before and after the escalation together make a success.
func TestAnEscalatedJobSucceeds(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin", "zap")
	c, big := r.register("c1"), r.registerIn("c2", large, "epyc")
	run := r.start(job, 1, c)
	r.block(run.Run.ID, measured("gin", 1, 2))
	require.NoError(t, r.FinishRun(t.Context(), run.Run.ID, bench.RunEnd{Outcome: bench.RunTimeout}))
	require.True(t, r.escalate(job))
	began := r.start(job, 2, big)
	r.block(began.Run.ID, measured("zap", 1, 2))
	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)
	require.False(t, r.escalate(job), "it has ended")
}

// A job with all its results stays, and so does its limit; on the larger class the limit
// no longer applies.
func TestTheLimitOfASizeClassStaysThere(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	c, big := r.register("c1"), r.registerIn("c2", large, "epyc")
	r.execute(`update job_queue set timeout_seconds = 12, probe = true`)
	began := r.start(job, 1, c)
	require.Equal(t, 12.0, began.Run.TimeoutSeconds)
	require.True(t, began.Run.Probe)
	require.True(t, r.escalate(job))
	began = r.start(job, 2, big)
	require.Zero(t, began.Run.TimeoutSeconds)
	require.False(t, began.Run.Probe)
	r.block(began.Run.ID, measured("gin", 1, 2))
	escalated, err := r.EscalateJob(t.Context(), job.Key, large.SizeClass, store.SizeChoice{Place: bench.Place{Pool: small}})
	require.NoError(t, err)
	require.False(t, escalated)
}
