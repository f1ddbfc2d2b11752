package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// committed measures a merged commit and ends its jobs: each benchmark has these values.
func (r record) committed(sha string, at time.Time, values map[string][]float64) (bench.Request, bench.RunID) {
	r.t.Helper()
	wish := master(r.t, sha)
	wish.CommitDate = &at
	request := r.inProgress(wish)
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	job := newJob(request, names...)
	r.expand(request, job)
	r.start(job, 1, r.register("c1"))
	for _, name := range names {
		if len(values[name]) > 0 {
			r.block(runID(job, 1), measured(name, values[name]...))
			continue
		}
		failed := testCase(name)
		_, err := r.StoreBlock(r.t.Context(), runID(job, 1), nil, []bench.RunError{{TestCase: &failed, Kind: bench.FailJob, Message: name + " exits with 3"}})
		require.NoError(r.t, err)
	}
	_, err := r.FinishJob(r.t.Context(), job.Key, 0, "some failed")
	require.NoError(r.t, err)
	require.NoError(r.t, r.FinishJobsOf(r.t.Context(), request.ID))
	return request, runID(job, 1)
}

func TestAHistoryIsRead(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ctx := t.Context()
	r.commits(line("", "aaa", "bbb", "ccc"))
	require.NoError(t, r.RecordReleases(ctx, project, []store.ReleaseTag{{Tag: "v1", SHA: "bbb", TaggedAt: firstCommit.Add(90 * time.Minute)}}))
	// Measured in another order than they were merged.
	_, second := r.committed("bbb", firstCommit.Add(time.Hour), map[string][]float64{"gin": {4, 1, 2, 3}, "lo": {7}})
	first, _ := r.committed("aaa", firstCommit, map[string][]float64{"gin": {1}, "lo": {}})
	third, _ := r.committed("ccc", firstCommit.Add(2*time.Hour), map[string][]float64{"gin": {5}})
	r.create(master(t, "ddd")) // its jobs have not ended

	artifacts, err := r.HistoryArtifacts(ctx, project, bench.Master, 10)
	require.NoError(t, err)
	var tags []string
	var ids []int64
	for _, a := range artifacts {
		tags, ids = append(tags, a.Tag), append(ids, a.ID)
		require.True(t, a.Dated)
	}
	require.Equal(t, []string{"aaa", "bbb", "ccc"}, tags)
	require.True(t, firstCommit.Equal(artifacts[0].At))
	newest, err := r.HistoryArtifacts(ctx, project, bench.Master, 2)
	require.NoError(t, err)
	require.Equal(t, artifacts[1:], newest)
	none, err := r.HistoryArtifacts(ctx, project, bench.Try, 10)
	require.NoError(t, err)
	require.Empty(t, none)

	details, err := r.HistoryDetails(ctx, project, bench.Master, []string{"aaa"})
	require.NoError(t, err)
	require.Equal(t, []store.HistoryDetail{{Tag: "aaa", Request: first.ID, Type: bench.Master, Subject: "commit aaa", Author: "Ada"}}, details)

	releases, left, err := r.HistoryReleases(ctx, project, firstCommit, firstCommit.Add(time.Hour), tags, 10)
	require.NoError(t, err)
	require.Zero(t, left)
	require.Len(t, releases, 1, "made of a commit of the part, though it was tagged later")
	others, _, err := r.HistoryReleases(ctx, project, firstCommit, firstCommit.Add(time.Hour), []string{"aaa"}, 10)
	require.NoError(t, err)
	require.Empty(t, others)
	require.Equal(t, []string{"v1", "bbb"}, []string{releases[0].Tag, releases[0].Commit})

	all, left, err := r.SeriesOf(ctx, project, 10)
	require.NoError(t, err)
	require.Zero(t, left)
	var series, cases []int64
	names, cased := make(map[int64]string), make(map[int64]string)
	for _, s := range all {
		if s.Metric == bench.WallTime {
			series, cases = append(series, s.ID), append(cases, s.TestCaseID)
			names[s.ID], cased[s.TestCaseID] = s.TestCase.Benchmark, s.TestCase.Benchmark
		}
	}
	require.Len(t, series, 2)
	require.Len(t, all, 4, "each has its memory as well")
	some, left, err := r.SeriesOf(ctx, project, 3)
	require.NoError(t, err)
	require.Equal(t, all[:3], some)
	require.Equal(t, 1, left)

	where := bench.Surrounding{SizeClass: 2, HardwareID: "zen4"}
	points := make(map[string]packed.Point)
	for _, h := range r.histories(ids, series, packed.AllFields) {
		require.Equal(t, where, h.Surrounding)
		for _, p := range h.Points {
			points[fmt.Sprint(names[h.Series], " ", slices.Index(ids, p.Artifact))] = p
		}
	}
	require.Len(t, points, 4)
	require.Equal(t, packed.Summary{Min: 1, LowerQuartile: 1.75, Median: 2.5, UpperQuartile: 3.25, Max: 4, Mean: 2.5}, points["gin 1"].Summary)
	require.Equal(t, suiteHash, points["gin 1"].Origin.Suite)

	runs, err := r.HistoryRuns(ctx, ids[1:2], series[:1])
	require.NoError(t, err)
	require.Equal(t, []store.HistoryRun{{SeriesID: series[0], ArtifactID: ids[1], Surrounding: where, Run: second}}, runs)

	failures, left, err := r.HistoryFailures(ctx, ids, cases, 10)
	require.NoError(t, err)
	require.Zero(t, left)
	require.Len(t, failures, 1)
	require.Equal(t, []any{ids[0], "lo", "lo exits with 3"}, []any{failures[0].ArtifactID, cased[failures[0].TestCaseID], failures[0].Reason})

	// What was measured in turns is no part of it, and what is invalid is none any more.
	r.inTurns("bbb", "aaa", "gin")
	r.execute(`update test_result set invalid_at = now() where artifact_id = $1`, ids[2])
	n := 0
	for _, h := range r.histories(ids, series, packed.AllFields) {
		n += len(h.Points)
	}
	require.Equal(t, 3, n)

	require.NoError(t, r.BeginComparison(ctx, store.Comparison{
		Request: third.ID, Baseline: "bbb", Tag: "ccc", Mode: bench.VerifySuspects, RuleVersion: verdict.RuleVersion,
		Rows: []store.ComparisonRow{
			{TestCase: testCase("gin"), Metric: bench.WallTime, Surrounding: where, Against: "bbb", Exact: true, Verdict: &verdict.Verdict{Kind: verdict.Changed, Change: 1.5, P: 0.001}},
			{TestCase: testCase("lo"), Metric: bench.WallTime, Surrounding: where, Against: "bbb", Verdict: &verdict.Verdict{Kind: verdict.NoSuspicion, P: 1}},
		},
	}))
	const far = 1 << 40 // from all artifacts, so that each is looked up
	var many []int64    // which are planned for
	for id := ids[0]; len(many) < 2000; id++ {
		many = append(many, id)
	}
	for _, c := range []struct {
		metrics   []bench.Metric
		artifacts []int64
		want      int
	}{
		{[]bench.Metric{bench.WallTime}, ids, 1},
		{[]bench.Metric{bench.WallTime}, []int64{ids[2], far}, 1},
		{[]bench.Metric{bench.WallTime}, many, 1},
		{[]bench.Metric{bench.WallTime}, ids[:2], 0},
		{[]bench.Metric{bench.WallTime}, []int64{ids[2] - 1, ids[2] + 1}, 0},
		{[]bench.Metric{bench.WallTime}, nil, 0},
		{[]bench.Metric{bench.MaxRSS}, ids, 0},
		{[]bench.Metric{bench.MaxRSS, bench.WallTime}, ids, 1},
		{nil, ids, 0},
	} {
		changes, left, err := r.HistoryChanges(ctx, c.artifacts, c.metrics, 10)
		require.NoError(t, err)
		require.Zero(t, left)
		require.Len(t, changes, c.want, "%+v", c)
		for _, change := range changes {
			require.Equal(t, []any{ids[2], "gin", bench.WallTime, "bbb", 1.5}, []any{change.ArtifactID, cased[change.TestCaseID], change.Metric, change.Against, change.Change})
		}
	}
}

// Where there is too much, the newest artifacts come first, and the others are counted.
func TestTheMarksOfAHistoryAreBounded(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.commits(line("", "aaa", "bbb", "ccc"))
	var ids []int64
	for i, sha := range []string{"aaa", "bbb", "ccc"} {
		r.committed(sha, firstCommit.Add(time.Duration(i)*time.Hour), map[string][]float64{"gin": {}, "lo": {1}})
	}
	artifacts, err := r.HistoryArtifacts(t.Context(), project, bench.Master, 10)
	require.NoError(t, err)
	for _, a := range artifacts {
		ids = append(ids, a.ID)
	}
	series, _, err := r.SeriesOf(t.Context(), project, 10)
	require.NoError(t, err)
	var cases []int64
	for _, s := range series {
		cases = append(cases, s.TestCaseID)
	}
	cases = append(cases, int64(r.count(`select id from test_case where benchmark = 'gin'`)))
	failures, left, err := r.HistoryFailures(t.Context(), ids, cases, 2)
	require.NoError(t, err)
	require.Equal(t, 1, left)
	require.Equal(t, []int64{ids[2], ids[1]}, []int64{failures[0].ArtifactID, failures[1].ArtifactID})
}
