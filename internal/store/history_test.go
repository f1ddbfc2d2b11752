package store_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
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
	_, err := r.FinishJob(r.t.Context(), job.Key, "some failed")
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

	releases, err := r.HistoryReleases(ctx, project, firstCommit, firstCommit.Add(time.Hour))
	require.NoError(t, err)
	require.Len(t, releases, 1)
	require.Equal(t, []string{"v1", "bbb"}, []string{releases[0].Tag, releases[0].Commit})

	all, err := r.HistorySeriesOf(ctx, project)
	require.NoError(t, err)
	var series, cases []int64
	names, cased := make(map[int64]string), make(map[int64]string)
	for _, s := range all {
		if s.Metric == bench.WallTime {
			series, cases = append(series, s.ID), append(cases, s.TestCaseID)
			names[s.ID], cased[s.TestCaseID] = s.Benchmark, s.Benchmark
		}
	}
	require.Len(t, series, 2)
	require.Len(t, all, 4, "each has its memory as well")

	points, err := r.HistoryPoints(ctx, ids, series)
	require.NoError(t, err)
	require.Len(t, points, 4)
	at := slices.IndexFunc(points, func(p store.HistoryPoint) bool { return p.ArtifactID == ids[1] && names[p.SeriesID] == "gin" })
	require.Equal(t, store.HistoryPoint{
		SeriesID: points[at].SeriesID, ArtifactID: ids[1], Surrounding: bench.Surrounding{SizeClass: 2, HardwareID: "zen4"}, Run: second,
		N: 4, Min: 1, Max: 4, Mean: 2.5, Low: 1.75, Middle: 2.5, High: 3.25,
	}, points[at])

	runs, err := r.HistoryRuns(ctx, []bench.RunID{second})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, suiteHash, runs[0].Suite)

	failures, err := r.HistoryFailures(ctx, ids, cases, 10)
	require.NoError(t, err)
	require.Len(t, failures, 1)
	require.Equal(t, []any{ids[0], "lo", "lo exits with 3"}, []any{failures[0].ArtifactID, cased[failures[0].TestCaseID], failures[0].Reason})

	// What was measured in turns is no part of it, and what is invalid is none any more.
	r.inTurns("bbb", "aaa", "gin")
	r.execute(`update test_result set invalid_at = now() where artifact_id = $1`, ids[2])
	points, err = r.HistoryPoints(ctx, ids, series)
	require.NoError(t, err)
	require.Len(t, points, 3)

	require.NoError(t, r.BeginComparison(ctx, store.Comparison{
		Request: third.ID, Baseline: "bbb", Tag: "ccc", Mode: bench.VerifySuspects, RuleVersion: verdict.RuleVersion,
		Rows: []store.ComparisonRow{
			{TestCase: testCase("gin"), Metric: bench.WallTime, Surrounding: points[0].Surrounding, Against: "bbb", Exact: true, Verdict: &verdict.Verdict{Kind: verdict.Changed, Change: 1.5, P: 0.001}},
			{TestCase: testCase("lo"), Metric: bench.WallTime, Surrounding: points[0].Surrounding, Against: "bbb", Verdict: &verdict.Verdict{Kind: verdict.NoSuspicion, P: 1}},
		},
	}))
	changes, err := r.HistoryChanges(ctx, ids)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Equal(t, []any{ids[2], "gin", bench.WallTime, "bbb", 1.5}, []any{changes[0].ArtifactID, cased[changes[0].TestCaseID], changes[0].Metric, changes[0].Against, changes[0].Change})
}

// Of several surroundings, the one that comparisons prefer is read.
func TestAHistoryHasOnePointPerArtifact(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, run := r.committed("aaa", firstCommit, map[string][]float64{"gin": {1, 1}})
	r.execute(`with other as (
			insert into test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status)
			select artifact_id, test_case_id, size_class + 1, hardware_id, false, generation, run_id, status from test_result where run_id = $1 returning id, artifact_id
		), one as (insert into collection (result_id, iteration, collected_at) select id, 0, now() from other returning id)
		insert into pstat (series_id, artifact_id, collection_id, value) select s.id, o.artifact_id, one.id, 9 from pstat_series s, other o, one where s.metric = 'wall-time'`, run)
	artifacts, err := r.HistoryArtifacts(t.Context(), project, bench.Master, 10)
	require.NoError(t, err)
	series, err := r.HistorySeriesOf(t.Context(), project)
	require.NoError(t, err)
	var ids []int64
	for _, s := range series {
		ids = append(ids, s.ID)
	}
	points, err := r.HistoryPoints(t.Context(), []int64{artifacts[0].ID}, ids)
	require.NoError(t, err)
	slices.SortFunc(points, func(a, b store.HistoryPoint) int { return cmp.Compare(a.SeriesID, b.SeriesID) })
	require.Len(t, points, 1, "the larger class alone")
	require.Equal(t, []any{bench.SizeClass(3), 9.0}, []any{points[0].SizeClass, points[0].Middle})
}
