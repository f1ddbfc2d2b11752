package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func TestSamplesAreOfTheLatestGenerationPerSurrounding(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	none, err := r.SamplesOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.Empty(t, none)

	q, job := r.oneJob("v1", "gin")
	c := r.register("one")
	other := collector("co")
	other.CoLocated = true
	co, err := r.RegisterCollector(t.Context(), other, offline)
	require.NoError(t, err)
	r.block(r.start(job, 1, c).Run.ID, measured("gin", 3, 1, 2))
	r.block(r.start(job, 2, co).Run.ID, measured("gin", 30))

	place := bench.Surrounding{SizeClass: 2, HardwareID: "zen4"}
	beside := place
	beside.CoLocated = true
	sample := func(metric bench.Metric, where bench.Surrounding, values ...float64) bench.Samples {
		return bench.Samples{
			Series:   int64(r.count(`select se.id from pstat_series se join test_case tc on tc.id = se.test_case_id where tc.benchmark = 'gin' and se.metric = $1`, string(metric))),
			TestCase: testCase("gin"), Metric: metric, Kind: bench.KindCompileTime, Surrounding: where,
			Values: values, Iterations: []int{0, 1, 2}[:len(values)], Disturbed: make([]bool, len(values)),
		}
	}
	samples, err := r.SamplesOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.Equal(t, []bench.Samples{
		sample(bench.MaxRSS, place, 3000, 1000, 2000), sample(bench.WallTime, place, 3, 1, 2),
		sample(bench.MaxRSS, beside, 30000), sample(bench.WallTime, beside, 30),
	}, samples)

	// A newer generation replaces the older one in the same surroundings.
	rerun := job
	rerun.Generation, rerun.Key = 1, bench.JobKey("abcdefghabcdefgh")
	r.expand(q, rerun)
	r.block(r.start(rerun, 1, c).Run.ID, measured("gin", 9))
	samples, err = r.SamplesOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.Equal(t, []bench.Samples{
		sample(bench.MaxRSS, place, 9000), sample(bench.WallTime, place, 9),
		sample(bench.MaxRSS, beside, 30000), sample(bench.WallTime, beside, 30),
	}, samples)
	elsewhere, err := r.SamplesOf(t.Context(), "other", "v1")
	require.NoError(t, err)
	require.Empty(t, elsewhere)
}

func TestCommandsHaveResultsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	for i := range 2 {
		q := r.inProgress(bench.Request{ID: newID(t), Project: project, Type: bench.AdHoc, Submission: bench.Submission{Submitter: "ada"}, Commands: bench.Commands{Command: &bench.Command{Argv: []string{"x"}}}})
		job := newCommand(q, 0)
		job.Command = q.Command
		r.expand(q, job)
		plan := r.start(job, 1, c)
		require.Len(t, plan.Missing, 1, "an equal command does not make it done")
		require.Equal(t, q.Command, plan.Job.Command)
		r.block(plan.Run.ID, bench.TestCaseResult{TestCase: job.TestCases[0], Collections: measured("", float64(i+1)).Collections})
		require.Equal(t, bench.JobSuccess, r.finish(job, "").Status)
		samples, err := r.SamplesOf(t.Context(), project, string(job.Key))
		require.NoError(t, err)
		require.Len(t, samples, 2)
		require.Equal(t, bench.KindCommand, samples[0].Kind)
		require.Equal(t, []float64{float64(i + 1)}, samples[1].Values)
	}
}

func TestMissingResultsHaveReasons(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	job, open, unwanted := newJob(q, "gin", "zip", "tar", "sed"), newJob(q, "zip"), newJob(q, "cut")
	r.expand(q, job, open, unwanted)
	c := r.register("one")
	lacking := func() map[string]string {
		ls, err := r.MissingResults(t.Context(), project, "v1")
		require.NoError(t, err)
		out := map[string]string{}
		for _, l := range ls {
			require.Equal(t, target, l.TestCase.Target)
			out[l.TestCase.Benchmark] = l.Reason
		}
		require.Len(t, ls, len(out))
		return out
	}
	first := r.start(job, 1, c).Run.ID
	r.block(first, measured("gin", 1), bench.TestCaseResult{TestCase: testCase("tar"), Skipped: "needs docker"})
	r.fail(first, "zip", "first")
	r.fail(first, "sed", "exit status 1")
	require.Equal(t, map[string]string{}, lacking(), "while its job is open anything may come")

	r.fail(r.start(job, 2, c).Run.ID, "sed", "exit status 2")
	r.finish(job, "gave up")
	_, err := r.CancelJob(t.Context(), unwanted.Key, 0, "cancelled by ada")
	require.NoError(t, err)
	want := map[string]string{"tar": "left out: needs docker", "sed": "failed: exit status 2", "cut": "cancelled by ada"}
	require.Equal(t, want, lacking(), "zip has another job that is open")

	r.finish(open, "no collector")
	want["zip"] = "failed: 1 of 1 test cases have no result: no collector"
	require.Equal(t, want, lacking())

	// A result from other surroundings is enough.
	rerun := newJob(q, "sed", "tar")
	rerun.Generation, rerun.Key = 1, bench.JobKey("abcdefghabcdefgh")
	r.expand(q, rerun)
	r.block(r.start(rerun, 1, c).Run.ID, measured("sed", 1), measured("tar", 1))
	r.finish(rerun, "")
	delete(want, "sed")
	delete(want, "tar")
	require.Equal(t, want, lacking())
}

func TestMeasuredTagsHaveResultsAndAnEnd(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	for tag, outcome := range map[string]bench.Outcome{"v1": bench.Success, "v2": bench.Failure, "v3": bench.Cancelled, "v4": ""} {
		q, job := r.oneJob(tag, "gin")
		r.block(r.start(job, 1, c).Run.ID, measured("gin", 1))
		if outcome != "" {
			require.NoError(t, r.CompleteRequest(t.Context(), q.ID, outcome, "", nil, ""))
		}
	}
	empty, job := r.oneJob("v5", "gin")
	r.block(r.start(job, 1, c).Run.ID, bench.TestCaseResult{TestCase: testCase("gin"), Skipped: "no"})
	require.NoError(t, r.CompleteRequest(t.Context(), empty.ID, bench.Success, "", nil, ""))
	r.execute(`update benchmark_request set created_at = created_at - interval '1 hour' where tag = 'v2'`)

	tags, err := r.MeasuredTags(t.Context(), project, bench.Release)
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "v2"}, tags)
	tags, err = r.MeasuredTags(t.Context(), project, bench.Master)
	require.NoError(t, err)
	require.Empty(t, tags)
}

func TestExportYieldsEveryCollection(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	for _, tag := range []string{"v1", "v2"} {
		_, job := r.oneJob(tag, "gin", "zip")
		r.block(r.start(job, 1, c).Run.ID, measured("zip", 5), measured("gin", 1, 2))
	}
	export := func(tags ...string) []bench.ExportedCollection {
		var rows []bench.ExportedCollection
		require.NoError(t, r.ExportCollections(t.Context(), project, tags, func(row bench.ExportedCollection) error {
			rows = append(rows, row)
			return nil
		}))
		return rows
	}
	row := func(tag, benchmark string, iteration int, wall float64) bench.ExportedCollection {
		return bench.ExportedCollection{
			Tag: tag, TestCase: testCase(benchmark), Kind: bench.KindCompileTime, Collector: "one", Pool: "small",
			Surrounding: bench.Surrounding{SizeClass: 2, HardwareID: "zen4"}, Iteration: iteration,
			CollectedAt: measuredAt.Add(time.Duration(iteration) * time.Second),
			Values:      map[bench.Metric]float64{bench.WallTime: wall, bench.MaxRSS: 1000 * wall},
		}
	}
	require.Equal(t, []bench.ExportedCollection{
		row("v2", "gin", 0, 1), row("v2", "gin", 1, 2), row("v2", "zip", 0, 5),
		row("v1", "gin", 0, 1), row("v1", "gin", 1, 2), row("v1", "zip", 0, 5),
	}, export("v2", "v1"), "in the order of the tags")
	require.Len(t, export("v1"), 3)
	require.Len(t, export(), 6)
	require.Empty(t, export("v9"))

	stop := errors.New("enough")
	n := 0
	require.ErrorIs(t, r.ExportCollections(t.Context(), project, nil, func(bench.ExportedCollection) error {
		n++
		return stop
	}), stop)
	require.Equal(t, 1, n)
	require.NoError(t, r.Ping(t.Context()))
}

// Large and small results are exported page by page, each collection once and in order.
func TestExportsHoldNoConnection(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	request := r.inProgress(release(t, "v1"))
	job := newJob(request, "gin", "kit", "sort", "zip")
	job.Iterations = 1000
	r.expand(request, job)
	rich := measured("kit", slices.Repeat([]float64{2}, 300)...)
	for i := range rich.Collections {
		for n := range 50 {
			rich.Collections[i].Values[bench.Metric(fmt.Sprintf("value%d/op", n))] = float64(n)
		}
	}
	few := slices.Repeat([]float64{1}, 1000)
	r.block(r.start(job, 1, c).Run.ID, measured("gin", few...), rich, measured("sort", few...), measured("zip", few...))

	size, err := r.SizeOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.Equal(t, store.ResultSize{Series: 3*2 + 52, Values: 3*1000*2 + 300*52}, size)
	size, err = r.SizeOf(t.Context(), project, "v9")
	require.NoError(t, err)
	require.Zero(t, size)

	single := storetest.Open(t, r.url+"&pool_max_conns=1")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // for a connection that nobody returns
	defer stop()
	var found []string
	require.NoError(t, single.ExportCollections(ctx, project, nil, func(row bench.ExportedCollection) error {
		if len(found)%100 == 0 {
			_, err := single.SizeOf(ctx, project, "v1")
			require.NoError(t, err)
		}
		found = append(found, fmt.Sprintf("%s %d %d", row.TestCase.Benchmark, row.Iteration, len(row.Values)))
		return nil
	}))
	var want []string
	for _, of := range []struct {
		benchmark          string
		iterations, values int
	}{{"gin", 1000, 2}, {"kit", 300, 52}, {"sort", 1000, 2}, {"zip", 1000, 2}} {
		for i := range of.iterations {
			want = append(want, fmt.Sprintf("%s %d %d", of.benchmark, i, of.values))
		}
	}
	require.Equal(t, want, found)
}
