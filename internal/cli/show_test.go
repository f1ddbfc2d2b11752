package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

const linux = bench.Target("x86_64-unknown-linux-gnu")

var now = time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

func pointer[T any](v T) *T { return &v }

// running is a request with a finished, a running, a failed and a waiting job.
func running() apiclient.RequestDetail {
	tc := func(benchmark, scenario string) bench.TestCase {
		return bench.TestCase{Benchmark: benchmark, Profile: "build", Scenario: scenario, Backend: "gc", Target: linux}
	}
	job := func(key bench.JobKey, profile string, status bench.JobStatus, done int) apiclient.Job {
		return apiclient.Job{
			Key: key, Project: "go", Tag: "1.26.0", Kind: bench.KindCompileTime, Target: linux, Backend: "gc", Profile: profile,
			TestCases: []bench.TestCase{tc("gin", "full"), tc("gin", "incr-patched"), tc("lo", "full"), tc("lo", "incr-patched")}, Done: done,
			SizeClass: 4, Pool: "main", TaskQueue: "bench/" + string(linux) + "/4/main", Status: status, CreatedAt: before(10 * time.Minute),
		}
	}
	done := job("aaaaaaaaaaaaaaaa", "build", bench.JobSuccess, 4)
	done.StartedAt, done.EndedAt = pointer(before(9*time.Minute)), pointer(before(6*time.Minute))
	going := job("bbbbbbbbbbbbbbbb", "vet", bench.JobInProgress, 1)
	going.StartedAt = pointer(before(2 * time.Minute))
	failed := job("cccccccccccccccc", "race", bench.JobFailure, 3)
	failed.StartedAt, failed.EndedAt, failed.Message = pointer(before(6*time.Minute)), pointer(before(2*time.Minute)), "1 of 4 test cases has no result"
	waiting := job("dddddddddddddddd", "build", bench.JobQueued, 0)
	waiting.Waits = "waits for its turn at pool bench/" + string(linux) + "/4/main"
	broken := tc("lo", "full")
	return apiclient.RequestDetail{
		Request: apiclient.Request{
			ID: "r7k2m4q9xt2", Project: "go", Type: bench.Release, Tag: "1.26.0", Status: bench.InProgress, Submitter: "ada",
			Selection:  bench.Selection{Set: "demo", Benchmarks: []string{"gin", "lo"}, Iterations: 3},
			CommitDate: pointer(time.Date(2026, 2, 10, 0, 0, 0, 0, time.UTC)),
			CreatedAt:  before(10 * time.Minute), AdmittedAt: pointer(before(9 * time.Minute)), WorkflowID: "request/go/1.26.0/r7k2m4q9xt2",
			Verdicts: "1 changed, 2 being measured in turns; 13 without suspicion (would have seen ≥ 1.4 %, median)",
		},
		Verification: &apiclient.Verification{Baseline: "1.25.0", Provisional: true, Looks: 2, OwnSeconds: 360, SpentSeconds: 45, BudgetSeconds: 600},
		Progress:     apiclient.Progress{Jobs: 4, JobsDone: 2, JobsFailed: 1, TestCases: 16, TestCasesDone: 8, EstimateSeconds: pointer(540.0)},
		Jobs:         []apiclient.Job{done, going, failed, waiting},
		Runs: []apiclient.Run{
			{
				ID: "aaaaaaaaaaaaaaaa-00000001", Job: "aaaaaaaaaaaaaaaa", Number: 1, Reason: bench.Scheduled, Collector: "bench-1", Pool: "main", SizeClass: 4,
				Outcome: bench.RunSuccess, StartedAt: before(9 * time.Minute), FinishedAt: pointer(before(6 * time.Minute)),
			},
			{
				ID: "bbbbbbbbbbbbbbbb-00000001", Job: "bbbbbbbbbbbbbbbb", Number: 1, Reason: bench.Scheduled, Collector: "bench-2", Pool: "main", SizeClass: 4,
				Outcome: bench.RunLost, Message: "the collector was silent", StartedAt: before(3 * time.Minute), FinishedAt: pointer(before(2 * time.Minute)),
			},
			{
				ID: "bbbbbbbbbbbbbbbb-00000002", Job: "bbbbbbbbbbbbbbbb", Number: 2, Reason: bench.Retry, Collector: "bench-1", Pool: "main", SizeClass: 4,
				StartedAt: before(2 * time.Minute),
				Progress:  apiclient.RunProgress{Phase: "measuring", TestCase: "gin vet full gc " + string(linux), Iteration: 3, Iterations: 5, Done: 1, Total: 4},
			},
		},
		Errors: []apiclient.RunError{{
			Run: "cccccccccccccccc-00000001", TestCase: &broken, Kind: bench.FailJob, Message: "exit status 2", OutputTail: "lo.go:7: undefined: x\n\x1b[2J\n",
		}},
	}
}

// command is an ad-hoc request that has ended.
func command() apiclient.RequestDetail {
	return apiclient.RequestDetail{Request: apiclient.Request{
		ID: "rabcdefghjk", Project: "adhoc", Type: bench.AdHoc, Status: bench.Completed, Outcome: bench.Success, Submitter: "ada",
		Command: &apiclient.Command{Argv: []string{"./measure.sh", "--quick"}}, CreatedAt: before(3 * time.Hour), EndedAt: pointer(before(2*time.Hour + 30*time.Minute)),
	}, Progress: apiclient.Progress{Jobs: 1, JobsDone: 1, TestCases: 1, TestCasesDone: 1}}
}

// The whole output, in golden files.
func TestShow(t *testing.T) {
	t.Parallel()
	collector := apiclient.Collector{
		Name: "bench-1", Target: linux, SizeClass: 4, Pool: "main", State: bench.CollectorBenchmarking, Version: "v0.1.0", Epoch: 3, HardwareID: "e3b0c442",
		CoLocated: true, Unenforced: []apiclient.Unenforced{{Name: "memory", Reason: "no control group can be written"}}, CurrentRun: "bbbbbbbbbbbbbbbb-00000002",
		Facts: json.RawMessage(`{"cpu_model":"Fast","logical_cpus":4,"turbo":false}`), RegisteredAt: before(50 * time.Hour), LastHeartbeat: before(2 * time.Second),
	}
	project := apiclient.Project{
		Name: "go", Suite: "go", SuiteHash: strings.Repeat("ab", 32), CreatedAt: before(100 * time.Hour), UpdatedAt: before(time.Hour),
		Config: bench.ProjectConfig{
			Description: "The Go toolchain", Targets: []bench.Target{linux, "aarch64-unknown-linux-gnu"}, Size: bench.SizePolicy{Class: 4}, FailoverAfter: "never",
			BenchmarkSets: []bench.BenchmarkSet{
				{Name: "front", Pool: "main", Benchmarks: []string{"gin", "lo"}}, {Name: "back", Pool: "arm", Benchmarks: []string{"gin"}, Targets: []bench.Target{"aarch64-unknown-linux-gnu"}},
			},
			Artifacts: bench.ArtifactSource{Tags: map[string]bench.TagSource{"tip": {Provider: "goroot", Parameters: map[string]string{"path": "/go"}}}},
		},
	}
	d := running()
	tests := map[string]func(w *strings.Builder, v cli.View) error{
		"requests": func(w *strings.Builder, v cli.View) error {
			return cli.Requests(w, []apiclient.Request{d.Request, command().Request}, v)
		},
		"request": func(w *strings.Builder, v cli.View) error { return cli.Request(w, d, v) },
		"command": func(w *strings.Builder, v cli.View) error { return cli.Request(w, command(), v) },
		"job": func(w *strings.Builder, v cli.View) error {
			run := d.Runs[1]
			run.OutputTail = "one\ntwo\n"
			return cli.Job(w, apiclient.JobDetail{Job: d.Jobs[1], Runs: []apiclient.Run{run, d.Runs[2]}}, v)
		},
		"job-waiting": func(w *strings.Builder, v cli.View) error {
			j := d.Jobs[3]
			j.MovedFrom, j.MovedAt = "bench/"+string(linux)+"/4/attic", pointer(before(time.Minute))
			return cli.Job(w, apiclient.JobDetail{Job: j}, v)
		},
		"collectors": func(w *strings.Builder, v cli.View) error {
			return cli.Collectors(w, []apiclient.Collector{collector}, v)
		},
		"collector": func(w *strings.Builder, v cli.View) error { return cli.Collector(w, collector, v) },
		"projects":  func(w *strings.Builder, v cli.View) error { return cli.Projects(w, []apiclient.Project{project}, v) },
		"project":   func(w *strings.Builder, v cli.View) error { return cli.Project(w, project, v) },
		"applied": func(w *strings.Builder, _ cli.View) error {
			return cli.Applied(w, apiclient.Applied{Project: project, Changed: true, DryRun: true, Changes: []string{"size.class is set to 4"}})
		},
		"live": func(w *strings.Builder, v cli.View) error {
			return lines(w, cli.LiveLines([]apiclient.RequestDetail{command(), d}, v.Now, cli.Size{}))
		},
		"live-narrow": func(w *strings.Builder, v cli.View) error {
			return lines(w, cli.LiveLines([]apiclient.RequestDetail{command(), d}, v.Now, cli.Size{Width: 60, Height: 6}))
		},
	}
	for name, show := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			require.NoError(t, show(&b, cli.View{Now: now}))
			golden(t, name, b.String())
		})
	}
}

func lines(w *strings.Builder, list []string) error {
	w.WriteString(strings.Join(list, "\n") + "\n")
	return nil
}

func TestACollectorShowsWhatDisturbsIt(t *testing.T) {
	t.Parallel()
	const reason = "its last 3 runs were disturbed, mostly by steal"
	c := apiclient.Collector{Name: "c1", State: bench.CollectorWaiting, DisturbedBy: reason}
	shown := func() string {
		var b strings.Builder
		require.NoError(t, cli.Collectors(&b, []apiclient.Collector{c}, cli.View{Now: now}))
		require.NoError(t, cli.Collector(&b, c, cli.View{Now: now}))
		return b.String()
	}
	require.Contains(t, shown(), "disturbed: "+reason)
	require.Contains(t, shown(), "'benchloom doctor' on its machine")
	require.NotContains(t, shown(), "set aside")
	c.State, c.SetAsideAt = bench.CollectorInactive, pointer(before(time.Minute))
	require.Contains(t, shown(), "set aside: "+reason)
	require.Contains(t, shown(), "until its machine is quiet, or 'benchloom collector activate c1'")

	require.NotContains(t, shown(), "canary")
	c.LastCanary = &apiclient.Canary{Request: "rcanary", CreatedAt: before(time.Hour)}
	require.Contains(t, shown(), "in progress (request rcanary)")
	c.CanaryFailed, c.LastCanary.Outcome, c.LastCanary.Message, c.LastCanary.EndedAt = true, bench.CanaryChanged, "an artifact differs from itself", pointer(before(time.Minute))
	require.Contains(t, shown(), "canary changed 1m00s ago")
	require.Contains(t, shown(), "changed: an artifact differs from itself (request rcanary)")
	require.Contains(t, shown(), "until a canary passes, or 'benchloom collector activate c1'")
}

// An empty list names the remedy.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.NoError(t, cli.Requests(&b, nil, cli.View{}))
	require.Contains(t, b.String(), "'benchloom submit PROJECT TAG'")
	require.NoError(t, cli.Projects(&b, nil, cli.View{}))
	require.Contains(t, b.String(), "'benchloom project apply -f FILE'")
	require.NoError(t, cli.Collectors(&b, nil, cli.View{}))
	require.Contains(t, b.String(), "'benchloom up'")
}

func TestLiveLinesFitTheTerminal(t *testing.T) {
	t.Parallel()
	for width := 1; width < 200; width += 7 {
		for height := 1; height < 20; height++ {
			list := cli.LiveLines([]apiclient.RequestDetail{running(), running(), command()}, now, cli.Size{Width: width, Height: height})
			require.LessOrEqual(t, len(list), max(4, height-1))
			for _, line := range list {
				require.LessOrEqual(t, len([]rune(line)), width)
			}
		}
	}
}
