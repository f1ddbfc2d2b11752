package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// recorded are n values of a series, one every 100 ms, the first one some seconds after the beginning of a run.
func recorded(series profiler.Series, began time.Time, after float64, value func(i int) float64, n int) profiler.Batch {
	b := profiler.Batch{Series: series, Unit: series.Unit(), Attempt: "a1", Host: "m1"}
	for i := range n {
		b.Values = append(b.Values, value(i))
		b.Batches = append(b.Batches, 1)
		b.Times = append(b.Times, began.Add(time.Duration(after*float64(time.Second))).Add(time.Duration(i)*profiler.Interval).UTC())
	}
	return b
}

// phase is a timing that ends some seconds after the beginning of a run.
func phase(name string, began time.Time, batch int, end, took float64) profiler.Batch {
	b := recorded(profiler.Series{Scope: profiler.ScopeTiming, Name: name}, began, end, func(int) float64 { return took }, 1)
	b.Batches[0] = batch
	return b
}

// of writes a series as samples list it.
func of(scope profiler.Scope, metric profiler.Metric, device string) profiler.Series {
	return profiler.Series{Scope: scope, Name: string(metric), Device: device}
}

// rising is a value that grows from one sample to the next.
func rising(step float64) func(int) float64 { return func(i int) float64 { return float64(i) * step } }

// recordedRun is a run with an upload of 20 seconds, in which two commands are measured.
func recordedRun(t *testing.T, b *bundle) (bench.RunID, profiler.Upload, string) {
	t.Helper()
	b.project(t)
	c := b.register(t, "c1")
	plan := b.start(t, b.submit(t, "1.25.0"), c, 1)
	// The clock of the service's database.
	b.past(t, `update job_run set started_at = now() - interval '25 seconds'`)
	r, err := b.nobody.Run(t.Context(), plan.Run.ID)
	require.NoError(t, err)
	began := r.StartedAt
	u := profiler.Upload{Attempt: "a1", Host: "m1", Batches: []profiler.Batch{
		recorded(of(profiler.ScopeJob, profiler.CPUUsed, ""), began, 0.1, rising(0.01), 200),
		recorded(of(profiler.ScopeJob, profiler.MemoryUsed, ""), began, 0.1, func(int) float64 { return 1 << 30 }, 200),
		recorded(of(profiler.ScopeJob, profiler.CPUPressure, ""), began, 0.1, rising(0.001), 200),
		recorded(of(profiler.ScopeMachine, profiler.CPUPressure, ""), began, 0.1, rising(0.002), 200),
		recorded(of(profiler.ScopeMachine, profiler.CPUUtil, ""), began, 0.1, func(int) float64 { return 0.5 }, 200),
		phase("fetching", began, 0, 2, 1.5), phase("measuring/linking-all", began, 2, 15, 2), phase("setting up", began, 0, 4, 1), phase("uploading", began, 2, 19, 1),
	}}
	measuring := phase("measuring", began, 1, 8, 4)
	measuring.Values, measuring.Batches, measuring.Times = append(measuring.Values, 6), append(measuring.Batches, 2), append(measuring.Times, began.Add(16*time.Second).UTC())
	u.Batches = append(u.Batches, measuring)
	for core := range 7 {
		u.Batches = append(u.Batches, recorded(of(profiler.ScopeMachine, profiler.CPUUtil, fmt.Sprintf("cpu%d", core)), began, 0.1, rising(0.001), 200))
	}
	return plan.Run.ID, u, "/runs/" + string(plan.Run.ID)
}

// summaryOf sums up n measured commands.
func summaryOf(n int) *profiler.Summary {
	s := profiler.Summary{Phases: []profiler.PhaseSummary{{Name: "fetching", Count: 1, TotalSeconds: 1.5, LongestSeconds: 1.5}, {Name: "measuring", Count: n, TotalSeconds: 10, LongestSeconds: 6}}}
	used := profiler.SeriesSummary{Series: of(profiler.ScopeJob, profiler.CPUUsed, ""), Unit: profiler.CPUs}
	for i := range n {
		s.Commands = append(s.Commands, profiler.Command{Batch: i + 1, Artifact: "1.25.0", Case: "gin build full gc", Iteration: i + 1, WarmUp: i == 0})
		used.Batches, used.Mean, used.Max = append(used.Batches, i+1), append(used.Mean, 0.75), append(used.Max, 0.9375)
	}
	s.Series = []profiler.SeriesSummary{used}
	return &s
}

// charts returns the titles of the drawings of a run's page.
func (p shownPage) charts() (titles []string) {
	p.each("figcaption", func(n *html.Node) {
		if strings.HasPrefix(attribute(n.Parent, "id"), "profile-") {
			titles = append(titles, textOf(n.FirstChild))
		}
	})
	return titles
}

func TestARunShowsWhatWasSampled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run, u, at := recordedRun(t, b)
	require.Contains(t, b.sound(t, at).section("s-profile"), "Nothing has been sampled yet")
	revision := func() string {
		r, err := b.store.JobRevision(t.Context(), run.Job())
		require.NoError(t, err)
		return r
	}
	before := revision()

	// While it is recorded.
	require.NoError(t, b.collector.SendProfile(t.Context(), run, u))
	require.NotEqual(t, before, revision(), "the page follows samples")
	p := b.sound(t, at)
	shown := p.section("s-profile")
	for _, words := range []string{
		"what has arrived so far", "CPUs in use", "mean 0.995 CPUs, most 1.99 CPUs", "the job mean 1.0 GiB, most 1.0 GiB", "the machine mean 50.0 %, most 50.0 %",
		"3 other lines", "From second 0 to 20 of the run", "measuring 2 10 s 6 s", "fetching", "setting up",
	} {
		require.Contains(t, shown, words)
	}
	require.NotContains(t, shown, "clocks")
	require.Empty(t, p.section("commands"), "the summary names them, which comes at the end")
	require.Equal(t, []string{"Phases", "CPUs in use", "Use of CPUs", "Memory in use", "CPU pressure"}, p.charts())
	require.Contains(t, p.section("profile-3"), "Seconds 0 to 20 of the run; the job: mean 10.0 %, most 19.9 %; the machine: mean 19.9 %, most 39.8 %.", "one chart has both")
	require.Contains(t, p.section("profile-phases"), "measuring measure measuring/linking-all linkin… uploading upload 1 2 0 s 5 s 10 s 15 s 20 s", "the numbers of the commands, and the seconds")

	// After its end.
	last := profiler.Upload{Attempt: "a1", Host: "m1", Summary: summaryOf(2), Absent: []profiler.Absence{{Scope: profiler.ScopeMachine, Metric: profiler.CPUFrequency, Reason: "a <virtual> machine"}}, DroppedTotal: 7}
	require.NoError(t, b.collector.SendProfile(t.Context(), run, last))
	require.NoError(t, b.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	p = b.sound(t, at)
	shown = p.section("s-profile")
	for _, words := range []string{
		"1.25.0 gin build full gc iteration 1 (warm-up) 0.75 CPUs most 0.9375 CPUs", "Measured and lost: 7 values", "1 metric absent", "cpu_frequency of the machine a <virtual> machine", "Of the whole run",
		"benchloom run show " + string(run) + " --metrics -o csv",
	} {
		require.Contains(t, shown, words)
	}
	require.NotContains(t, shown, "so far")
	require.Subset(t, p.links(), []string{
		at + "?from=0&to=10#profile", at + "?from=10&to=20#profile", at + "?from=4&to=8#profile", at + "?from=10&to=16#profile", at + "?scope=job#profile", at + "?metric=cpu_util#profile",
		"/api/v1/runs/" + string(run) + "/profile/metrics",
	})

	// A part of it, of one metric.
	p = b.sound(t, at+"?from=10&to=16")
	require.Contains(t, p.section("s-profile"), "mean 1.29 CPUs, most 1.59 CPUs")
	require.Subset(t, p.links(), []string{at + "?from=4&to=10#profile", at + "?from=16&to=22#profile", at + "#profile"})
	p = b.sound(t, at+"?metric=cpu_util")
	require.Len(t, p.charts(), 3, "the phases, and eight series in two charts")
	require.Contains(t, p.section("s-profile"), "cpu6")
	p = b.sound(t, at+"?scope=job&from=100&to=200")
	require.Equal(t, []string{"CPUs in use", "Memory in use", "CPU pressure"}, p.charts())
	require.Contains(t, p.section("s-profile"), "no value")
	require.Contains(t, b.sound(t, at+"?metric=gpu_util").section("s-profile"), "No series of the system fits what is asked for")

	for _, wrong := range []string{
		"from=x", "from=-1", "to=NaN", "to=Inf", "to=1e999", "from=3&to=3", "to=0", "scope=timing", "scope=host", "metric=free_memory", "attempt=0", "attempt=x", "attempt=2", "open=all", "series=a",
	} {
		require.Equal(t, http.StatusBadRequest, b.page(t, "", at+"?"+wrong).status, wrong)
	}
}

func TestARunSaysWhyNothingWasSampled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run, _, at := recordedRun(t, b)
	require.NoError(t, b.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	b.past(t, `update job_run set finished_at = finished_at - interval '31 seconds'`)
	p := b.sound(t, at)
	require.Contains(t, p.section("s-profile"), "Nothing was sampled, or it was removed for its age")
	require.Contains(t, p.section("s-profile"), "benchloom retention show")
	b.past(t, `update project set config = jsonb_set(config::jsonb, '{profiling}', '{"enabled": false}')`)
	require.Contains(t, b.sound(t, at).section("s-profile"), "the project switches profiling off")
	require.Equal(t, http.StatusBadRequest, b.page(t, "", at+"?attempt=1").status)
}

func TestARunShowsAnAttemptThatWasCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run, u, at := recordedRun(t, b)
	require.NoError(t, b.collector.SendProfile(t.Context(), run, u))
	second := u
	second.Attempt, second.Batches = "a2", nil
	for _, one := range u.Batches[:1] {
		one.Attempt = "a2"
		second.Batches = append(second.Batches, one)
	}
	second.Summary = summaryOf(40)
	require.NoError(t, b.collector.SendProfile(t.Context(), run, second))
	p := b.sound(t, at)
	require.Equal(t, []string{"CPUs in use"}, p.charts(), "the last attempt")
	require.NotContains(t, p.section("s-profile"), "A part only")
	require.Contains(t, p.section("s-profile"), "Show 15 other commands")
	require.Contains(t, b.sound(t, at+"?open=commands").section("s-profile"), "iteration 40")
	require.Contains(t, p.links(), at+"?attempt=1#profile")

	p = b.sound(t, at+"?attempt=1")
	require.Contains(t, p.section("s-profile"), "A part only: this attempt was cut off")
	require.Contains(t, p.section("s-profile"), "What has arrived")
	require.Contains(t, p.section("s-profile"), "Memory in use")
}

// A collector whose clock is off shows its samples all the same, and the page says so.
func TestARunShowsSamplesOfAnotherClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run, u, at := recordedRun(t, b)
	b.past(t, `update job_run set started_at = started_at + interval '1 hour'`)
	require.NoError(t, b.collector.SendProfile(t.Context(), run, u))
	shown := b.sound(t, at).section("s-profile")
	require.Contains(t, shown, "seconds count from the first sample")
	require.Contains(t, shown, "mean 0.995 CPUs, most 1.99 CPUs")
}
