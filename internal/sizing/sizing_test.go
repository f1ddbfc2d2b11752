package sizing_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

const (
	project = "p"
	target  = bench.Target("x86_64-unknown-linux-gnu")
	offline = 30 * time.Second
)

func pool(class bench.SizeClass) bench.Pool {
	return bench.Pool{Target: target, SizeClass: class, Name: "pool"}
}

// bundle is sizes over a record of their own.
type bundle struct {
	sizing.Sizes
	t          *testing.T
	url        string
	store      *store.Store
	log        *bytes.Buffer
	random     float64
	clock      time.Time // when the last run ended, see ended
	collectors map[bench.SizeClass]bench.Collector
}

func setup(t *testing.T, config string, classes ...bench.SizeClass) *bundle {
	t.Helper()
	url := storetest.URL(t)
	b := &bundle{t: t, url: url, store: storetest.Open(t, url), log: &bytes.Buffer{}, collectors: map[bench.SizeClass]bench.Collector{}}
	b.Sizes = sizing.Sizes{
		Record: b.store, OfflineAfter: offline, Now: time.Now, Random: func() float64 { return b.random },
		Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	require.NoError(t, b.store.PutSuite(t.Context(), "f00d", "suite", []byte("files")))
	_, err := b.store.ApplyProject(t.Context(), store.Project{Name: project, Config: json.RawMessage(config), SuiteHash: "f00d"})
	require.NoError(t, err)
	for _, class := range classes {
		b.collectors[class], err = b.store.RegisterCollector(t.Context(), bench.Collector{
			Name: fmt.Sprintf("c%d", class), Target: target, SizeClass: class, Pool: "pool", MachineID: fmt.Sprintf("machine of c%d", class),
			Version: "1", HardwareID: "cpu", Facts: json.RawMessage(`{}`),
		}, offline)
		require.NoError(t, err)
	}
	return b
}

func (b *bundle) execute(sql string, args ...any) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	require.NoError(b.t, err)
	_, err = conn.Exec(b.t.Context(), sql, args...)
	require.NoError(b.t, err)
	require.NoError(b.t, conn.Close(b.t.Context()))
}

// submit is a request for a command that waits on the largest class, with its job.
func (b *bundle) submit(argv ...string) bench.JobKey {
	b.t.Helper()
	command := &bench.Command{Argv: argv, TimeoutSeconds: 1800, Iterations: 1}
	return b.job(bench.Job{
		Work:   bench.Work{Kind: bench.KindCommand, Command: command, TestCases: []bench.TestCase{{Benchmark: "command", Target: target}}},
		Sizing: bench.Sizing{Shape: string(bench.CommandShape(target, argv, nil, 1).Shape())},
	})
}

func (b *bundle) job(job bench.Job) bench.JobKey {
	b.t.Helper()
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(b.t, err)
	r, _, err := b.store.CreateRequest(b.t.Context(), bench.Request{
		ID: id, Project: project, Type: bench.AdHoc, Tag: job.Tag,
		Submission: bench.Submission{Submitter: "ada"},
		Commands:   bench.Commands{Command: job.Command},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	})
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.StartAdHoc(b.t.Context(), id))
	job.Project, job.Target, job.SizeClass, job.Pool, job.TaskQueue = project, target, 4, "pool", pool(4).TaskQueue()
	job.Queue, job.Weight, job.Priority, job.RequestCreated = "user:ada", 1, 3, r.CreatedAt
	job.Key = bench.JobIdentity{Request: id, Project: project, Target: target, Kind: job.Kind, TestCases: job.TestCases, SizeClass: 4}.Key()
	require.NoError(b.t, b.store.ExpandRequest(b.t.Context(), id, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(job)}))
	return job.Key
}

// place selects for what waits at a class, and tells where the rest went.
func (b *bundle) place(at bench.SizeClass) []string {
	b.t.Helper()
	view, err := b.View(b.t.Context())
	require.NoError(b.t, err)
	elsewhere, err := view.Select(b.t.Context(), pool(at).TaskQueue(), 100, 100)
	require.NoError(b.t, err)
	return elsewhere
}

func (b *bundle) at(key bench.JobKey) bench.Job {
	b.t.Helper()
	j, err := b.store.Job(b.t.Context(), key)
	require.NoError(b.t, err)
	return j
}

// run is one run of a job on its class, which ends so after that many seconds.
func (b *bundle) run(key bench.JobKey, n int32, outcome bench.RunOutcome, seconds float64) {
	b.t.Helper()
	run, missing := b.begin(key, n)
	if outcome == bench.RunSuccess {
		var results []bench.TestCaseResult
		for _, tc := range missing {
			results = append(results, bench.TestCaseResult{TestCase: tc, Collections: []bench.Collection{{
				Iteration: 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Values: map[bench.Metric]float64{bench.WallTime: seconds},
			}}})
		}
		_, err := b.store.StoreBlock(b.t.Context(), run, results, nil)
		require.NoError(b.t, err)
	}
	require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: outcome, MeasuredSeconds: seconds}))
}

// begin begins a run of a job on its class, and tells what it has to measure.
func (b *bundle) begin(key bench.JobKey, n int32) (bench.RunID, []bench.TestCase) {
	b.t.Helper()
	c := b.collectors[b.at(key).SizeClass]
	run := bench.NewRunID(key, "workflow", "activity", n)
	task, err := storetest.Dispatched(b.t.Context(), b.url, run, c.Name)
	require.NoError(b.t, err)
	plan, err := b.store.StartRun(b.t.Context(), store.RunStart{
		Run: run, Reason: bench.Scheduled, Collector: c.Name, Epoch: c.Epoch, Dispatch: task.Dispatch, TaskQueue: task.TaskQueue,
	})
	require.NoError(b.t, err)
	return plan.Run.ID, plan.Missing
}

// end is the end of a job, as its workflow records it.
func (b *bundle) end(key bench.JobKey) {
	b.t.Helper()
	_, err := b.store.FinishJob(b.t.Context(), key, 0, "")
	require.NoError(b.t, err)
	b.Learn(b.t.Context(), key)
}

func (b *bundle) known(key bench.JobKey) store.SizeStatistics {
	b.t.Helper()
	s, err := b.store.SizeStatistics(b.t.Context(), project, bench.Shape(b.at(key).Shape))
	require.NoError(b.t, err)
	return s
}

// Of jobs alike of which nothing is known one is tried on the smallest class, with a
// limit; the others go to the largest. What it teaches decides for those that follow,
// also for those that wait already.
func TestOneProbeTeachesTheOthers(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"size": {"minimum": "3s"}}`, 1, 2, 4)
	first, second := b.submit("make"), b.submit("make")
	require.Equal(t, []string{pool(1).TaskQueue()}, b.place(4))
	j := b.at(first)
	require.Equal(t, []any{bench.SizeClass(1), 3.0, false}, []any{j.SizeClass, j.TimeoutSeconds, j.Probe})
	require.Equal(t, pool(1).TaskQueue(), j.TaskQueue)
	j = b.at(second)
	require.Equal(t, []any{bench.SizeClass(4), 0.0, false}, []any{j.SizeClass, j.TimeoutSeconds, j.Probe})
	require.Empty(t, b.place(4), "all are decided")

	third := b.submit("make")
	b.run(first, 1, bench.RunSuccess, 2)
	b.end(first)
	require.Equal(t, bench.SizeClass(1), b.known(first).Best)
	require.Contains(t, string(b.known(first).About), "make")
	j = b.at(third)
	require.Equal(t, pool(1).TaskQueue(), j.TaskQueue, "it waits where it will run")
	require.Nil(t, j.SelectedAt)
	require.Empty(t, b.place(1))
	require.False(t, b.at(third).Probe)

	version := b.known(first).Version
	b.Learn(t.Context(), first)
	require.Equal(t, version, b.known(first).Version, "a run teaches once")

	// A probe enters no comparison, although its job is done.
	require.Equal(t, 1, b.count(`select count(*) from latest_result`))
	b.execute(`update job_queue set probe = true where key = $1`, third)
	b.run(third, 1, bench.RunSuccess, 2)
	require.Equal(t, 1, b.at(third).Done)
	require.Equal(t, 1, b.count(`select count(*) from latest_result`))
	require.NotContains(t, b.log.String(), "level=WARN")
}

func (b *bundle) count(sql string) int {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	require.NoError(b.t, err)
	var n int
	require.NoError(b.t, conn.QueryRow(b.t.Context(), sql).Scan(&n))
	require.NoError(b.t, conn.Close(b.t.Context()))
	return n
}

// What is told of a shape is as much of its command as people need.
func TestCommandsAreShortened(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 2)
	key := b.submit("./sort", strings.Repeat("ü", 100_000))
	b.place(4)
	b.run(key, 1, bench.RunSuccess, 1)
	b.end(key)
	known, err := b.store.SizeStatistics(t.Context(), project, bench.Shape(b.at(key).Shape))
	require.NoError(t, err)
	require.JSONEq(t, `{"target": "`+string(target)+`", "command": ["./sort", "`+strings.Repeat("ü", 74)+`…"], "iterations": 1}`, string(known.About))
}

// The reason for a class is what was known when it was selected: it is kept with it.
func TestReasonForTheClassIsRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 2, 4)
	first, second := b.submit("sort"), b.submit("sort")
	b.place(4)
	require.Equal(t, bench.SizeClass(1), b.at(first).SizeClass)
	require.Equal(t, "nothing is known yet: the smallest class is tried for the minimum acceptable time", b.at(first).SelectedWhy)
	require.Equal(t, bench.SizeClass(4), b.at(second).SizeClass)
	require.Equal(t, "no run has succeeded on any class yet; no other class is tried, for a run that is under way does that already", b.at(second).SelectedWhy)
	// What is learned afterwards changes nothing about it.
	b.run(first, 1, bench.RunSuccess, 1)
	b.end(first)
	require.Contains(t, b.at(first).SelectedWhy, "nothing is known yet")
}

// What was too small for its class and succeeds on the largest is not tried there
// again.
func TestTooSmallClassesAreLearned(t *testing.T) {
	t.Parallel()
	for outcome, seconds := range map[bench.RunOutcome]float64{bench.RunOutOfMemory: 1, bench.RunTimeout: 10} {
		b := setup(t, `{}`, 1, 4)
		key := b.submit("make")
		b.place(4)
		b.run(key, 1, outcome, seconds)
		b.Learn(t.Context(), key)
		view, err := b.View(t.Context())
		require.NoError(t, err)
		larger, err := view.Larger(t.Context(), bench.ProjectConfig{}, key, 4)
		require.NoError(t, err)
		require.Equal(t, store.SizeChoice{Place: bench.Place{Pool: pool(4)}}, larger)
		moved, err := b.store.EscalateJob(t.Context(), key, 1, larger)
		require.NoError(t, err)
		require.True(t, moved)
		b.run(key, 2, bench.RunSuccess, 60)
		b.end(key)
		require.Equal(t, bench.SizeClass(4), b.known(key).Best, outcome)
		if outcome == bench.RunTimeout {
			continue // the limit was shorter than what is acceptable, as is known now
		}
		next := b.submit("make")
		b.place(4)
		require.Equal(t, bench.SizeClass(4), b.at(next).SizeClass)
	}
}

// What a run used says which classes cannot do: they are not tried. One of which a
// collector does not say how much memory it has is.
func TestAClassWithLessMemoryThanWasUsedIsNotTried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		memory map[bench.SizeClass]int64
		want   bench.SizeClass
	}{
		"too little on class 1": {map[bench.SizeClass]int64{1: 1 << 30, 2: 4 << 30, 4: 8 << 30}, 2},
		"class 1 does not say":  {map[bench.SizeClass]int64{2: 4 << 30, 4: 8 << 30}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`, 1, 2, 4)
			for class, memory := range c.memory {
				b.execute(`update collector_config set memory_bytes = $2 where size_class = $1`, class, memory)
			}
			first := b.submit("link")
			b.execute(`update job_queue set selected_at = now() where key = $1`, first) // somebody wanted it there
			b.run(first, 1, bench.RunSuccess, 60)
			b.execute(`update job_run set peak_memory = $1`, int64(3<<30))
			b.end(first)
			next := b.submit("link")
			b.place(4)
			require.Equal(t, c.want, b.at(next).SizeClass)
		})
	}
}

// On the way up a class in between has a limit of its own.
func TestTheNextClassHasALimit(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"size": {"stepwise": true, "minimum": "3s"}}`, 1, 2, 4)
	key := b.submit("make")
	b.place(4)
	b.run(key, 1, bench.RunTimeout, 3)
	b.Learn(t.Context(), key)
	view, err := b.View(t.Context())
	require.NoError(t, err)
	config := bench.ProjectConfig{Size: bench.SizePolicy{Stepwise: true, Minimum: "3s"}}
	at, err := view.Standing(t.Context(), config, key)
	require.NoError(t, err)
	require.Equal(t, bench.SizeClass(2), at.Next)
	larger, err := view.Larger(t.Context(), config, key, 2)
	require.NoError(t, err)
	require.Equal(t, 3.0, larger.TimeoutSeconds)
	attempts, err := view.Attempts(t.Context(), config, key, nil)
	require.NoError(t, err)
	require.Equal(t, 1, attempts)
}

// A probe whose job never ran, or was lost, keeps no other from being tried.
func TestAbandonedProbesAreReleased(t *testing.T) {
	t.Parallel()
	for _, ran := range []bool{true, false} {
		b := setup(t, `{}`, 1, 4)
		first := b.submit("make")
		b.place(4)
		require.Equal(t, bench.SizeClass(1), b.at(first).SizeClass)
		if ran {
			b.run(first, 1, bench.RunCancelled, 1)
		}
		_, err := b.store.CancelJob(t.Context(), first, 0, "cancelled")
		require.NoError(t, err)
		b.Learn(t.Context(), first)
		next := b.submit("make")
		b.place(4)
		require.Equal(t, bench.SizeClass(1), b.at(next).SizeClass)
	}
}

// What is known cannot be read, or the configuration is wrong: jobs run all the same.
func TestUnreadableStatisticsDoNotStopJobs(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 4)
	first := b.submit("make")
	b.place(4)
	b.run(first, 1, bench.RunSuccess, 2)
	b.end(first)
	b.execute(`update size_statistics set statistics = '{"format": "?"}'`)
	next := b.submit("make")
	b.place(4)
	require.NotNil(t, b.at(next).SelectedAt)
	require.Contains(t, b.log.String(), "learned anew")

	b.execute(`update project set config = '{"max_job_fails": -1}' where name = $1`, project)
	last := b.submit("make")
	b.place(4)
	j := b.at(last)
	require.NotNil(t, j.SelectedAt)
	require.Equal(t, []any{bench.SizeClass(4), 0.0}, []any{j.SizeClass, j.TimeoutSeconds}, "it stays where it waits")
	b.run(last, 1, bench.RunSuccess, 2)
	b.end(last)
	require.Contains(t, b.log.String(), "nothing was learned")
}

// Results of a suite are compared, so that none of its jobs runs to learn. The first
// one founds the series.
func TestAJobOfASuiteIsNoProbe(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 2, 4)
	suite := func(tag string) bench.JobKey {
		cases := []bench.TestCase{{Benchmark: "gin", Target: target}}
		return b.job(bench.Job{
			Work:   bench.Work{Tag: tag, Kind: bench.KindRuntime, SuiteHash: "f00d", TestCases: cases},
			Sizing: bench.Sizing{Shape: string(bench.SuiteShape(bench.KindRuntime, target, cases, 0).Shape())},
		})
	}
	first := suite("v1")
	b.place(4)
	require.Equal(t, []any{bench.SizeClass(1), false}, []any{b.at(first).SizeClass, b.at(first).Probe})
	b.run(first, 1, bench.RunTimeout, 10)
	b.Learn(t.Context(), first)
	_, err := b.store.EscalateJob(t.Context(), first, 1, store.SizeChoice{Place: bench.Place{Pool: pool(4)}})
	require.NoError(t, err)
	b.run(first, 2, bench.RunSuccess, 30)
	b.end(first)
	for range 5 {
		next := suite("v2")
		b.place(4)
		require.Equal(t, []any{bench.SizeClass(4), false}, []any{b.at(next).SizeClass, b.at(next).Probe})
		b.run(next, 1, bench.RunSuccess, 30)
		b.end(next)
	}
}

// A single class, a chosen one, or a benchmark set's pool leave nothing to select.
func TestNoSelectionWithoutAChoice(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 4)
	view, err := b.View(t.Context())
	require.NoError(t, err)
	require.False(t, view.Several())
	key := b.submit("make")
	b.place(4)
	require.Equal(t, []any{bench.SizeClass(4), 0.0}, []any{b.at(key).SizeClass, b.at(key).TimeoutSeconds})
	attempts, err := view.Attempts(t.Context(), bench.ProjectConfig{}, key, nil)
	require.NoError(t, err)
	require.Equal(t, 3, attempts)

	b = setup(t, `{"size": {"policy": "pinned:4"}}`, 1, 4)
	key = b.submit("make")
	b.place(4)
	require.Equal(t, []any{bench.SizeClass(4), 0.0}, []any{b.at(key).SizeClass, b.at(key).TimeoutSeconds})
	view, err = b.View(t.Context())
	require.NoError(t, err)
	require.True(t, view.Several())
}
