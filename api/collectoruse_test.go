package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
)

func TestACollectorTellsWhatItDidAndSinceWhen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	show := func() apiclient.Collector {
		t.Helper()
		shown, err := b.nobody.Collector(t.Context(), "c1")
		require.NoError(t, err)
		return shown
	}
	idle := show()
	require.Equal(t, idle.RegisteredAt, *idle.StateSince)
	require.Zero(t, idle.Use.Runs)

	j := b.measure(t, "1.26.0", 3, c)
	b.past(t, `update collector_config set registered_at = now() - interval '1 day'`)
	b.past(t, `update job_run set started_at = now() - interval '6 hours', finished_at = now() - interval '5 hours'`)
	b.past(t, `update job_run set outcome = 'lost'`)
	waiting := show()
	require.Equal(t, bench.CollectorWaiting, waiting.State)
	require.WithinDuration(t, time.Now().Add(-5*time.Hour), *waiting.StateSince, time.Minute)
	require.Equal(t, 1, waiting.Use.Runs)
	require.Equal(t, 1, waiting.Use.Lost)
	require.InDelta(t, 1.0/24, waiting.Use.Share, 0.001)
	list, err := b.nobody.Collectors(t.Context())
	require.NoError(t, err)
	require.Nil(t, list[0].Use, "it costs a query")
	list, err = b.nobody.CollectorsWithUse(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, list[0].Use.Lost)

	day, err := b.nobody.CollectorDay(t.Context(), "c1", 24)
	require.NoError(t, err)
	require.Len(t, day.Hours, 24)
	require.Equal(t, bench.RunLost, day.Outcomes[0].Outcome)
	busy := 0.0
	for _, h := range day.Hours {
		busy += h.Seconds
	}
	require.InDelta(t, 3600, busy, 1)
	_, err = b.nobody.CollectorDay(t.Context(), "c9", 24)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.Equal(t, http.StatusUnprocessableEntity, b.send(t, "", http.MethodGet, "/api/v1/collectors/c1/use?hours=200", "").status)

	// Its state begins with the run, the drain, or its last sign of life.
	plan := b.start(t, b.submit(t, "1.26.1"), c, 1)
	_, err = b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Run: plan.Run.ID})
	require.NoError(t, err)
	b.past(t, `update job_run set started_at = now() - interval '10 minutes' where outcome = ''`)
	running := show()
	require.Equal(t, bench.CollectorBenchmarking, running.State)
	require.WithinDuration(t, time.Now().Add(-10*time.Minute), *running.StateSince, time.Minute)
	drained, err := b.admin.DrainCollector(t.Context(), "c1", "its disk is replaced")
	require.NoError(t, err)
	require.Equal(t, bench.CollectorDraining, drained.State)
	require.WithinDuration(t, time.Now(), *drained.StateSince, time.Minute)
	audit, err := b.admin.Audit(t.Context(), apiclient.AuditQuery{Subject: "c1"})
	require.NoError(t, err)
	require.Equal(t, "its disk is replaced", audit.Operations[0].Reason)
	b.past(t, `update collector_config set set_aside_at = now() - interval '2 hours', active = false`)
	require.WithinDuration(t, time.Now().Add(-2*time.Hour), *show().StateSince, time.Minute)
	b.past(t, `update collector_config set last_heartbeat = now() - interval '3 hours'`)
	require.WithinDuration(t, time.Now().Add(-3*time.Hour), *show().StateSince, time.Minute)

	runs, err := b.nobody.CollectorRuns(t.Context(), "c1", "", "")
	require.NoError(t, err)
	require.Len(t, runs.Runs, 2)
	require.Empty(t, runs.Next)
	lost, err := b.nobody.CollectorRuns(t.Context(), "c1", bench.RunLost, "")
	require.NoError(t, err)
	require.Equal(t, j.key, lost.Runs[0].Job)
	first := b.send(t, "", http.MethodGet, "/api/v1/collectors/c1/runs?limit=1", "")
	require.Contains(t, first.body, `"next":"`)
	require.Contains(t, first.body, string(plan.Run.ID))
	started, err := b.nobody.Run(t.Context(), plan.Run.ID)
	require.NoError(t, err)
	require.Equal(t, "v0.1.0", started.Version)
	for _, wrong := range []string{"x", "12", "a-b"} {
		require.Equal(t, http.StatusUnprocessableEntity, b.send(t, "", http.MethodGet, "/api/v1/collectors/c1/runs?after="+wrong, "").status, wrong)
	}
}

func TestACollectorsNoiseIsComparedWithItsPools(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.measure(t, "1.26.0", 3, c)
	nothing, err := b.nobody.CollectorNoise(t.Context(), "c1")
	require.NoError(t, err)
	require.Nil(t, nothing.Summary)
	require.Empty(t, nothing.Series)

	model := func(i int, collector string, m noise.Model) store.SeriesNoise {
		return store.SeriesNoise{
			TestCase: j.cases[i], Metric: bench.WallTime, Collector: collector, Surrounding: bench.Surrounding{SizeClass: 2, HardwareID: "cpu0"}, Model: m,
		}
	}
	logarithms := func(level, within, between float64) noise.Model {
		return noise.Model{Sessions: 10, Logarithms: true, Level: level, SigmaWithin: within, SigmaSession: between, Labels: []noise.Label{noise.Skewed}}
	}
	require.NoError(t, b.store.PutNoise(t.Context(), "go", []store.SeriesNoise{
		model(0, "", logarithms(100, 0.01, 0.02)), model(0, "c1", logarithms(110, 0.04, 0.02)),
		model(1, "", noise.Model{Sessions: 10, Level: -50, SigmaWithin: 5}), model(1, "c1", noise.Model{Sessions: 4, Level: -50, SigmaWithin: 10}),
	}))
	n, err := b.nobody.CollectorNoise(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, 2, n.Total)
	require.Equal(t, 2, n.PoolSeries)
	require.Equal(t, j.cases[0], n.Series[0].TestCase, "the noisiest beside its pool first")
	require.Equal(t, []string{"skewed"}, n.Series[0].Labels)
	require.InDelta(t, 0.2, n.Series[1].Within, 1e-9, "relative to the level")
	require.InDelta(t, 0.1, n.Series[1].PoolWithin, 1e-9)
	require.InDelta(t, 3, n.Summary.Within, 1e-9, "the median of 4 and 2")
	require.InDelta(t, 1, n.Summary.Between, 1e-9)
	require.InDelta(t, 1.05, n.Summary.Level, 1e-9)
}

func TestARunTellsWhereItRanAndWhatItMeasured(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	failed := block(j.cases[:1], 3)
	failed.Errors = []apiclient.BlockError{{TestCase: &j.cases[1], Kind: bench.FailJob, Message: "it printed nothing"}}
	_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, failed)
	require.NoError(t, err)
	_, err = b.collector.AppendLog(t.Context(), plan.Run.ID, 0, []byte("hello\n"))
	require.NoError(t, err)
	run, err := b.nobody.Run(t.Context(), plan.Run.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"go", "1.26.0", "cpu0"}, []string{run.Project, run.Tag, run.HardwareID})
	require.JSONEq(t, `{"cpu":"some"}`, string(run.Facts))
	require.Equal(t, int64(6), run.LogBytes)
	require.Equal(t, 1, run.Results)
	require.Equal(t, "it printed nothing", run.Errors[0].Message)
	require.Equal(t, &j.cases[1], run.Errors[0].TestCase)

	results, err := b.nobody.RunResults(t.Context(), plan.Run.ID, "")
	require.NoError(t, err)
	require.Len(t, results.Results, 1)
	require.Equal(t, j.cases[0], results.Results[0].TestCase)
	require.Len(t, results.Results[0].Values, 4)
	require.Len(t, results.Results[0].Values[0].Values, 5)
	one := b.send(t, "", http.MethodGet, "/api/v1/runs/"+string(plan.Run.ID)+"/results?limit=1", "")
	require.Contains(t, one.body, `"next":"`)
	require.Equal(t, http.StatusUnprocessableEntity, b.send(t, "", http.MethodGet, "/api/v1/runs/"+string(plan.Run.ID)+"/results?after=x", "").status)

	unknown := bench.NewRunID(j.key, "workflow", "activity", 9)
	_, err = b.nobody.Run(t.Context(), unknown)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	_, err = b.nobody.RunResults(t.Context(), unknown, "")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}
