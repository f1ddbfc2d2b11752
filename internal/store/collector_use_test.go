package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
)

func TestTheUseOfACollectorIsThatWithinThePeriod(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, one := r.oneJob("v1", "gin")
	_, two := r.oneJob("v2", "gin")
	_, three := r.oneJob("v3", "gin")
	c := r.register("one")
	r.register("idle")
	now := time.Now().Truncate(time.Microsecond)
	run := func(job bench.Job, from, to time.Duration, outcome bench.RunOutcome) {
		id := r.start(job, 1, c).Run.ID
		if outcome == bench.RunRunning {
			r.execute(`update job_run set started_at = $2 where id = $1`, id, now.Add(-from))
			return
		}
		require.NoError(t, r.FinishRun(t.Context(), id, bench.RunEnd{Outcome: outcome}))
		r.execute(`update job_run set started_at = $2, finished_at = $3 where id = $1`, id, now.Add(-from), now.Add(-to))
	}
	run(one, 150*time.Minute, 90*time.Minute, bench.RunSuccess) // an hour, half of it within two hours
	run(two, 50*time.Minute, 40*time.Minute, bench.RunLost)
	run(three, 15*time.Minute, 0, bench.RunRunning)

	used, err := r.CollectorsUse(t.Context(), now.Add(-2*time.Hour), now)
	require.NoError(t, err)
	require.Equal(t, []store.CollectorUse{
		{Name: "one", Outcome: bench.RunRunning, Runs: 1, Seconds: 15 * 60},
		{Name: "one", Outcome: bench.RunLost, Runs: 1, Seconds: 10 * 60},
		{Name: "one", Outcome: bench.RunSuccess, Runs: 1, Seconds: 30 * 60},
	}, used)
	hours, err := r.CollectorHours(t.Context(), "one", now.Add(-2*time.Hour), 2)
	require.NoError(t, err)
	require.Len(t, hours, 2)
	require.True(t, hours[0].Since.Equal(now.Add(-2*time.Hour)))
	require.Equal(t, []float64{30 * 60, 25 * 60}, []float64{hours[0].Seconds, hours[1].Seconds})
	nothing, err := r.CollectorHours(t.Context(), "idle", now.Add(-time.Hour), 1)
	require.NoError(t, err)
	require.Zero(t, nothing[0].Seconds)

	// The newest run tells since when it does what it does.
	activities, err := r.CollectorActivities(t.Context())
	require.NoError(t, err)
	require.Equal(t, "idle", activities[0].Name)
	require.Nil(t, activities[0].StartedAt)
	require.True(t, activities[1].StartedAt.Equal(now.Add(-15*time.Minute)))
	require.Nil(t, activities[1].FinishedAt)

	page, err := r.CollectorRuns(t.Context(), "one", store.RunPage{Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []bench.RunID{runID(three, 1), runID(two, 1)}, []bench.RunID{page[0].ID, page[1].ID})
	page, err = r.CollectorRuns(t.Context(), "one", store.RunPage{Before: &page[1].StartedAt, BeforeID: page[1].ID, Limit: 2})
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Equal(t, runID(one, 1), page[0].ID)
	lost, err := r.CollectorRuns(t.Context(), "one", store.RunPage{Outcomes: []bench.RunOutcome{bench.RunLost}, Limit: 10})
	require.NoError(t, err)
	require.Len(t, lost, 1)
	require.Equal(t, bench.RunLost, lost[0].Outcome)
}

func TestTheNoiseOfACollectorStandsBesideThatOfItsPool(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.oneJob("v1", "gin", "zip")
	c := r.register("one")
	model := func(benchmark, hardware, collector string, within float64) store.SeriesNoise {
		return store.SeriesNoise{
			TestCase: testCase(benchmark), Metric: bench.WallTime, Collector: collector,
			Surrounding: bench.Surrounding{SizeClass: c.SizeClass, HardwareID: hardware},
			Model:       noise.Model{Sessions: 9, Logarithms: true, Level: 3, SigmaWithin: within},
		}
	}
	require.NoError(t, r.PutNoise(t.Context(), project, []store.SeriesNoise{
		model("gin", "zen4", "", 0.01), model("gin", "zen4", "one", 0.02), model("gin", "zen4", "two", 0.005),
		model("gin", "zen3", "", 0.01), model("gin", "zen3", "one", 0.5), // before its machine was replaced
		model("zip", "zen4", "", 0.01), // of one collector alone
	}))
	beside, pool, err := r.NoiseBeside(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 2, pool)
	require.Len(t, beside, 1)
	require.Equal(t, testCase("gin"), beside[0].TestCase)
	require.Equal(t, project, beside[0].Project)
	require.Equal(t, []float64{0.02, 0.01}, []float64{beside[0].Model.SigmaWithin, beside[0].Pool.SigmaWithin})
}

func TestTheResultsOfARunAreListedWithTheirValues(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin", "zip", "kit")
	run := r.start(job, 1, r.register("one")).Run.ID
	r.block(run, disturbed(measured("gin", 3, 1, 2, 5, 4), byOthers, 0, 1), measured("zip", 7),
		bench.TestCaseResult{TestCase: testCase("kit"), Skipped: "needs a card"})
	first, err := r.RunResults(t.Context(), run, 0, 2)
	require.NoError(t, err)
	require.Len(t, first, 2)
	rest, err := r.RunResults(t.Context(), run, first[1].ID, 2)
	require.NoError(t, err)
	require.Len(t, rest, 1)
	found := make(map[string]store.RunResult)
	for _, one := range append(first, rest...) {
		require.Equal(t, "v1", one.Tag)
		require.Nil(t, one.Invalid)
		found[one.TestCase.Benchmark] = one
	}
	require.Equal(t, []store.MetricValues{
		{Metric: bench.MaxRSS, Count: 5, Median: 3000, Least: 1000, Most: 5000, Values: []float64{3000, 1000, 2000, 5000, 4000}},
		{Metric: bench.WallTime, Count: 5, Median: 3, Least: 1, Most: 5, Values: []float64{3, 1, 2, 5, 4}},
	}, found["gin"].Values)
	require.Equal(t, 2, found["gin"].Disturbed)
	require.True(t, found["gin"].TooDisturbed)
	require.Equal(t, "needs a card", found["kit"].Skipped)
	require.Empty(t, found["kit"].Values)

	aside, err := r.RunAside(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, 3, aside.Results)
	require.Nil(t, aside.OutputRemovedAt)
	_, err = r.RunAside(t.Context(), runID(job, 2))
	require.ErrorIs(t, err, store.ErrNotFound)

	_, err = r.StoreBlock(t.Context(), run, nil, []bench.RunError{{Run: run, Kind: bench.FailJob, Message: "the job fails"}})
	require.NoError(t, err)
	failures, err := r.RunErrors(t.Context(), run, 10)
	require.NoError(t, err)
	require.Len(t, failures, 1)
	require.Nil(t, failures[0].TestCase)
	require.Equal(t, "the job fails", failures[0].Message)
}
