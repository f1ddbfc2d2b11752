package api_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// fullGin is the test case of [fullWallTime].
var fullGin = bench.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}

// besides sums up a warm-up and n measured commands of each artifact, all of which used so many CPUs.
func besides(n int, cpus float64, artifacts ...string) *profiler.Summary {
	var s profiler.Summary
	sum := func(series profiler.Series, value float64) profiler.SeriesSummary {
		one := profiler.SeriesSummary{Series: series, Unit: series.Unit()}
		for batch := range (n + 1) * len(artifacts) {
			one.Batches, one.Mean, one.Max = append(one.Batches, batch+1), append(one.Mean, value), append(one.Max, 2*value)
		}
		return one
	}
	for i := range n + 1 {
		for _, tag := range artifacts {
			s.Commands = append(s.Commands, profiler.Command{Batch: len(s.Commands) + 1, Artifact: tag, Case: fullGin.String(), Iteration: max(i, 1), WarmUp: i == 0})
		}
	}
	for _, series := range []profiler.Series{of(profiler.ScopeJob, profiler.CPUUsed, ""), of(profiler.ScopeMachine, profiler.CPUSteal, ""), of(profiler.ScopeMachine, profiler.CPUUtil, "cpu3")} {
		s.Series = append(s.Series, sum(series, cpus))
	}
	return &s
}

// sums uploads the last part of an attempt at recording a run.
func (b *bundle) sums(t *testing.T, run bench.RunID, attempt string, s *profiler.Summary) {
	t.Helper()
	require.NoError(t, b.collector.SendProfile(t.Context(), run, profiler.Upload{Attempt: attempt, Host: "m1", Summary: s}))
}

func TestBothSidesOfARowAreSeenBesideEachOther(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	row := url.Values{"a": {"1.25.0"}, "b": {"1.26.0"}, "row": {fullWallTime}}
	at := compareGo + "/machine?" + row.Encode()
	require.Contains(t, b.page(t, "", compareGo+"?a=1.25.0&b=1.26.0").links(), at, "each row leads there")
	require.Contains(t, b.page(t, "", compareGo+"?a=1.25.0&b=1.26.0&open="+url.QueryEscape(fullWallTime)).links(), at)

	found, err := b.nobody.ComparedMachine(t.Context(), "go", "1.25.0", "1.26.0", fullWallTime)
	require.NoError(t, err)
	runs := make(map[string]bench.RunID)
	for _, side := range found.Sides {
		require.Len(t, side.Runs, 1)
		runs[side.Side] = side.Runs[0].Run
		require.Equal(t, apiclient.MachinePending, side.Runs[0].State)
	}
	for _, run := range runs {
		require.NoError(t, b.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	}
	b.past(t, `update job_run set finished_at = finished_at - interval '31 seconds'`)
	none := b.sound(t, at)
	require.Contains(t, none.text(), "A was not recorded.")
	require.Contains(t, none.text(), "B was not recorded.")
	require.Contains(t, none.section("runs"), "nothing was recorded, or it was removed for its age")
	require.Contains(t, none.links(), "/runs/"+string(runs["a"])+"#profile")
	require.Contains(t, none.links(), "/runs/"+string(runs["b"])+"#profile")

	// One side is recorded as a whole, the other was cut off, and then has three of its five iterations.
	b.past(t, `update job_run set finished_at = now()`)
	b.sums(t, runs["a"], "a1", besides(5, 0.5, "1.25.0"))
	require.NoError(t, b.collector.SendProfile(t.Context(), runs["b"], samples("a1", sampled(cpuUsed, "a1", 0, 3))))
	b.past(t, `update job_run set finished_at = finished_at - interval '31 seconds'`)
	cut := b.sound(t, at)
	require.Contains(t, cut.text(), "B was recorded in part only.")
	require.NotContains(t, cut.text(), "A was")
	require.Contains(t, cut.section("runs"), "the recording was cut off before its end")
	require.Contains(t, cut.section("series"), "CPUs in use the job 0.5 CPUs not recorded 1 CPUs not recorded")
	b.past(t, `update job_run set finished_at = now()`)
	b.sums(t, runs["b"], "a2", besides(3, 0.25, "1.26.0"))
	p := b.sound(t, at)
	require.Contains(t, p.section("series"), "CPUs in use the job 0.5 CPUs 0.25 CPUs 1 CPUs 0.5 CPUs")
	require.Contains(t, p.section("series"), "CPU time for others (steal) the machine 50.0 % 25.0 % 100.0 % 50.0 %")
	require.Contains(t, p.section("series"), "1 more series of single CPUs")
	require.Contains(t, p.section("runs"), "3 of 5 iterations were recorded")
	require.Contains(t, p.section("commands"), "A 6 iteration 5 0.5 CPUs most 1 CPUs")
	require.NotContains(t, p.section("commands"), "iteration 0")
	b.sums(t, runs["b"], "a3", besides(40, 0.25, "1.26.0"))
	p = b.sound(t, at)
	require.NotContains(t, p.text(), "in part")
	require.Contains(t, p.section("commands"), "Show 20 other commands")
	require.NotContains(t, b.sound(t, at+"&open=commands").section("commands"), "other command")

	// The same for programs.
	found, err = b.nobody.ComparedMachine(t.Context(), "go", "", "1.26.0", fullWallTime)
	require.NoError(t, err)
	require.Equal(t, "1.25.0", found.A, "the baseline of B")
	require.Equal(t, apiclient.MachineWhole, found.Sides[0].Runs[0].State)
	require.Equal(t, profiler.SeriesTotal{Series: of(profiler.ScopeJob, profiler.CPUUsed, ""), Unit: profiler.CPUs, Commands: 5, Mean: 0.5, Max: 1}, found.Sides[0].Series[0])
	answered := b.send(t, "", http.MethodGet, p.linkWith("format=csv"), "")
	require.Equal(t, "text/csv; charset=utf-8", answered.header.Get("Content-Type"))
	records, err := csv.NewReader(strings.NewReader(answered.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 1+3*(5+40))
	require.Equal(t, []string{"a", "1.25.0", string(runs["a"]), "c1", "false", "whole", "2", "1", "job", "cpu_used", "", "CPUs", "0.5", "1"}, records[1])
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, p.linkWith("/api/v1/compare/machine?a"), "").status)
}

// What is asked for in a wrong way is refused with what may be asked, and nothing is guessed.
func TestAnAddressOfBothSidesThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	escaped := url.QueryEscape(fullWallTime)
	for query, status := range map[string]int{
		"b=1.26.0&row=gin": http.StatusBadRequest, "b=1.26.0": http.StatusBadRequest, "a=1.25.0&row=" + escaped: http.StatusBadRequest, "b=1.26.0&open=all&row=" + escaped: http.StatusBadRequest,
		"b=1.26.0&metric=x&row=" + escaped: http.StatusBadRequest, "a=9.9&b=1.26.0&row=" + escaped: http.StatusOK, "b=1.26.0&row=" + escaped: http.StatusOK,
		"a=1.25.0&b=1.26.0&row=" + url.QueryEscape(`"><script>/x/y/z/w/wall-time`): http.StatusOK,
	} {
		p := b.send(t, "", http.MethodGet, compareGo+"/machine?"+query, "")
		require.Equal(t, status, p.status, "%s: %.300s", query, p.body)
		require.NotContains(t, p.body, "<script>/x")
	}
	require.Equal(t, http.StatusNotFound, b.page(t, "", "/projects/none/compare/machine?b=1.26.0&row="+escaped).status)
	for query, status := range map[string]int{"b=1.26.0&row=gin": http.StatusUnprocessableEntity, "row=" + escaped: http.StatusUnprocessableEntity, "b=1.26.0&format=xml&row=" + escaped: http.StatusUnprocessableEntity} {
		require.Equal(t, status, b.send(t, "", http.MethodGet, "/api/v1/compare/machine?project=go&"+query, "").status, query)
	}
}
