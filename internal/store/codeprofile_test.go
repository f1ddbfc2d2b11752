package store_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// profiled creates a request for a profile of a tag, with its job.
func (r record) profiled(tag, benchmark string) (bench.Request, bench.Job) {
	r.t.Helper()
	request, err := bench.NewProfileRequest(project, tag, bench.Scope{Selection: bench.Selection{Benchmarks: []string{benchmark}}, Profiler: "perf"}, bench.Submission{Submitter: "ada"})
	require.NoError(r.t, err)
	request.ID = newID(r.t)
	request = r.inProgress(request)
	job, err := bench.NewProfileJob(project, tag, suiteHash, testCase(benchmark), "perf")
	require.NoError(r.t, err)
	like := newJob(request, benchmark)
	job.Location, job.Turn = like.Location, like.Turn
	job.Key = bench.JobIdentity{Request: request.ID, Project: project, Tag: tag, Kind: job.Kind, TestCases: job.TestCases, Profiler: job.Profiler}.Key()
	r.expand(request, job)
	return request, job
}

func digest(letter string) string { return strings.Repeat(letter, 64) }

var madeByPerf = bench.CodeProfile{
	Format: "perf-script", RawDigest: digest("a"), RawSize: 900, Digest: digest("b"), Size: 100,
	SampleTypes: []bench.SampleTotal{{Type: "cpu-clock", Unit: "nanoseconds", Total: 7_000_000}},
}

func TestAProfileIsStoredOncePerJob(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, job := r.profiled("1.0.0", "sort")
	require.Equal(t, "perf", r.request(request.ID).Profiler)
	require.Equal(t, "perf", r.job(job.Key).Profiler)
	c := r.register("one")
	run := r.start(job, 1, c)
	require.Equal(t, testCases("sort"), run.Missing)

	stored, err := r.StoreCodeProfile(t.Context(), run.Run.ID, madeByPerf)
	require.NoError(t, err)
	require.Equal(t, bench.ProfileIDOf(run.Run.ID), stored.ID)
	require.Equal(t, testCase("sort"), stored.TestCase)
	require.Equal(t, []any{"1.0.0", "perf", "one", job.Key, project}, []any{stored.Tag, stored.Profiler, stored.Collector, stored.Job, stored.Project})
	require.Equal(t, madeByPerf.SampleTypes, stored.SampleTypes)
	other := madeByPerf
	other.Digest = digest("c")
	again, err := r.StoreCodeProfile(t.Context(), run.Run.ID, other)
	require.NoError(t, err)
	require.Equal(t, stored, again, "the first one counts")

	read, err := r.CodeProfile(t.Context(), stored.ID)
	require.NoError(t, err)
	require.Equal(t, stored, read)
	listed, err := r.CodeProfiles(t.Context(), store.CodeProfileFilter{Project: project, Job: job.Key, Tag: "1.0.0", Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []bench.CodeProfile{stored}, listed)
	none, err := r.CodeProfiles(t.Context(), store.CodeProfileFilter{Project: project, Tag: "2.0.0", Limit: 10})
	require.NoError(t, err)
	require.Empty(t, none)
	used, err := r.BlobsInUse(t.Context(), []string{digest("a"), digest("b"), digest("c")})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{digest("a"), digest("b")}, used)

	require.NoError(t, r.FinishRun(t.Context(), run.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)
	progress, err := r.JobProgress(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{progress.TestCases, progress.TestCasesDone})
}

func TestOnlyAnOpenRunOfAProfileJobHasAProfile(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, measuring := r.oneJob("1.0.0", "sort")
	run := r.start(measuring, 1, r.register("one")).Run.ID
	_, err := r.StoreCodeProfile(t.Context(), run, madeByPerf)
	require.ErrorIs(t, err, store.ErrNoProfileJob)
	_, err = r.StoreCodeProfile(t.Context(), "aaaaaaaaaaaaaaaa-00000001", madeByPerf)
	require.ErrorIs(t, err, store.ErrNotFound)

	_, job := r.profiled("1.0.0", "sort")
	ended := r.start(job, 1, r.register("two")).Run.ID
	_, err = r.StoreBlock(t.Context(), ended, []bench.TestCaseResult{measured("sort", 1)}, nil)
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "has no results")
	require.NoError(t, r.FinishRun(t.Context(), ended, bench.RunEnd{Outcome: bench.RunFailure, Message: "it crashed"}))
	_, err = r.StoreCodeProfile(t.Context(), ended, madeByPerf)
	require.ErrorIs(t, err, store.ErrRunClosed)

	end, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobFailure, end.Status, "it has no profile")
}

// A profile explains a measurement and never is one.
func TestAProfileJobChangesNothingThatIsMeasured(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	_, measuring := r.oneJob("1.0.0", "sort")
	r.block(r.start(measuring, 1, c).Run.ID, measured("sort", 1, 2, 3))
	type state struct {
		Coverage plan.Coverage
		Samples  any
		Tags     []string
		Series   map[bench.TestCase]bench.SizeClass
	}
	read := func() (s state) {
		t.Helper()
		var err error
		s.Coverage, err = r.CoverageOf(t.Context(), project, plan.QueryOf(measuring))
		require.NoError(t, err)
		s.Samples, err = r.SamplesOf(t.Context(), project, "1.0.0")
		require.NoError(t, err)
		s.Tags, err = r.MeasuredTags(t.Context(), project, bench.Release)
		require.NoError(t, err)
		s.Series, err = r.SeriesClasses(t.Context(), project, target, "1.0.0")
		require.NoError(t, err)
		return s
	}
	before := read()
	require.True(t, before.Coverage.Stored[testCase("sort")])

	for _, benchmark := range []string{"sort", "never-measured"} {
		_, job := r.profiled("1.0.0", benchmark)
		require.Equal(t, before, read(), "an open job is not the artifact's")
		run := r.start(job, 1, c).Run.ID
		_, err := r.StoreCodeProfile(t.Context(), run, madeByPerf)
		require.NoError(t, err)
		require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess, MeasuredSeconds: 900, PeakMemory: 1 << 40}))
		_, err = r.FinishJob(t.Context(), job.Key, 0, "")
		require.NoError(t, err)
		require.Equal(t, before, read())
	}
	require.Equal(t, 1, r.count(`select count(*) from test_result`))
	require.Zero(t, r.count(`select count(*) from size_statistics`))
	snapshot, err := r.AdmissionSnapshot(t.Context(), project, offline)
	require.NoError(t, err)
	require.Empty(t, snapshot.Past, "durations are not learned from profiles")
}
