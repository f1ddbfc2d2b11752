package store_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

const (
	target    = bench.Target("x86_64-unknown-linux-gnu")
	project   = "go"
	offline   = 30 * time.Second
	suiteHash = "f00d"
)

var small = bench.Pool{Target: target, SizeClass: 2, Name: "small"}

// record is a store with one project and the helpers of most tests.
type record struct {
	*store.Store
	t   *testing.T
	url string
	// states holds what was read of series on artifacts in a state; see checkState.
	states map[string]string
}

func newRecord(t *testing.T) record {
	t.Helper()
	url := storetest.URL(t)
	r := record{Store: storetest.Open(t, url), t: t, url: url, states: make(map[string]string)}
	t.Cleanup(r.checkDerived)
	require.NoError(t, r.PutSuite(t.Context(), suiteHash, "go", []byte("files")))
	_, err := r.ApplyProject(t.Context(), store.Project{Name: project, Config: json.RawMessage(`{"targets": []}`), SuiteHash: suiteHash})
	require.NoError(t, err)
	return r
}

// checkDerived checks that the tally agrees with the jobs, whatever the test has done, and
// that what is packed agrees with the results, if there are any.
func (r record) checkDerived() {
	ctx := context.WithoutCancel(r.t.Context())
	conn, err := pgx.Connect(ctx, r.url)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, storetest.Untallied)
	require.NoError(r.t, err)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.t, err)
	require.Empty(r.t, wrong)
	var measured bool
	require.NoError(r.t, conn.QueryRow(ctx, `
		select exists (select from test_result) or exists (select from stale_result) or exists (select from sheet) or exists (select from strip)`).Scan(&measured))
	if measured {
		r.checkPacked()
	}
}

// checkPacked checks that what is packed agrees with the results.
func (r record) checkPacked() {
	wrong, err := storetest.Mispacked(context.WithoutCancel(r.t.Context()), r.Store, project)
	require.NoError(r.t, err)
	require.Empty(r.t, wrong)
}

// aside is the application name of sessions in which tests bypass the store.
const aside = "aside"

// connect opens a session beside the store's; the caller closes it.
func (r record) connect() *pgx.Conn {
	r.t.Helper()
	config, err := pgx.ParseConfig(r.url)
	require.NoError(r.t, err)
	config.RuntimeParams["application_name"] = aside
	conn, err := pgx.ConnectConfig(r.t.Context(), config)
	require.NoError(r.t, err)
	return conn
}

// execute changes the database without the store, for example to let time pass.
func (r record) execute(sql string, args ...any) {
	r.t.Helper()
	conn := r.connect()
	_, err := conn.Exec(r.t.Context(), sql, args...)
	require.NoError(r.t, err)
	require.NoError(r.t, conn.Close(r.t.Context()))
}

func (r record) count(sql string, args ...any) int {
	r.t.Helper()
	conn := r.connect()
	var n int
	require.NoError(r.t, conn.QueryRow(r.t.Context(), sql, args...).Scan(&n))
	require.NoError(r.t, conn.Close(r.t.Context()))
	return n
}

func newID(t *testing.T) bench.RequestID {
	t.Helper()
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(t, err)
	return id
}

func release(t *testing.T, tag string) bench.Request {
	t.Helper()
	return bench.Request{
		ID: newID(t), Project: project, Type: bench.Release, Tag: tag,
		Submission: bench.Submission{Submitter: "ada"},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	}
}

func (r record) create(request bench.Request) bench.Request {
	r.t.Helper()
	stored, created, err := r.CreateRequest(r.t.Context(), request)
	require.NoError(r.t, err)
	require.True(r.t, created)
	return stored
}

// inProgress creates a request and admits it.
func (r record) inProgress(request bench.Request) bench.Request {
	r.t.Helper()
	stored := r.create(request)
	if !request.Type.Tracked() {
		require.NoError(r.t, r.StartAdHoc(r.t.Context(), stored.ID))
		return stored
	}
	admitted, err := r.Admit(r.t.Context(), project, 1000, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{stored.ID}}, nil
	})
	require.NoError(r.t, err)
	require.Equal(r.t, []bench.RequestID{stored.ID}, admitted)
	return stored
}

func testCase(benchmark string) bench.TestCase {
	return bench.TestCase{Benchmark: benchmark, Profile: "build", Target: target}
}

func testCases(benchmarks ...string) []bench.TestCase {
	var out []bench.TestCase
	for _, b := range benchmarks {
		out = append(out, testCase(b))
	}
	return out
}

// newJob returns a job of a request for test cases of these benchmarks.
func newJob(request bench.Request, benchmarks ...string) bench.Job {
	j := bench.Job{
		Project:  project,
		Work:     bench.Work{Tag: request.Tag, Kind: bench.KindCompileTime, Target: target, Profile: "build", SuiteHash: suiteHash, TestCases: testCases(benchmarks...), Iterations: 20},
		Location: bench.Location{SizeClass: small.SizeClass, Pool: small.Name, TaskQueue: small.TaskQueue()},
		Turn:     bench.Turn{Queue: "project:" + project, Weight: 1, Priority: 3, RequestCreated: request.CreatedAt},
		JobState: bench.JobState{Status: bench.JobQueued},
	}
	j.Key = bench.JobIdentity{Tag: j.Tag, Target: j.Target, Profile: j.Profile, Kind: j.Kind, Suite: j.SuiteHash,
		TestCases: j.TestCases, SizeClass: j.SizeClass, Generation: j.Generation}.Key()
	return j
}

// newCommand returns a job that runs a command.
func newCommand(request bench.Request, line int, argv ...string) bench.Job {
	j := newJob(request, "command")
	j.Work = bench.Work{
		Kind: bench.KindCommand, Target: target, TestCases: []bench.TestCase{{Benchmark: bench.CommandBenchmark, Target: target}},
		Iterations: 1, Command: &bench.Command{Argv: argv, Iterations: 1}, Line: line,
	}
	j.Key = bench.JobIdentity{
		Request: request.ID, Project: project, Target: target, Kind: j.Kind, TestCases: j.TestCases, SizeClass: j.SizeClass, Line: line,
	}.Key()
	return j
}

func (r record) expand(request bench.Request, jobs ...bench.Job) {
	r.t.Helper()
	require.NoError(r.t, r.ExpandRequest(r.t.Context(), request.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(jobs...)}))
}

// oneJob creates a request in progress with one job.
func (r record) oneJob(tag string, benchmarks ...string) (bench.Request, bench.Job) {
	r.t.Helper()
	request := r.inProgress(release(r.t, tag))
	job := newJob(request, benchmarks...)
	r.expand(request, job)
	return request, job
}

// jobIDs lists the IDs of a request's jobs.
func (r record) jobIDs(request bench.RequestID) []int64 {
	r.t.Helper()
	jobs, err := r.RequestJobs(r.t.Context(), request)
	require.NoError(r.t, err)
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

func (r record) register(name string) bench.Collector {
	r.t.Helper()
	c, err := r.RegisterCollector(r.t.Context(), collector(name), offline)
	require.NoError(r.t, err)
	return c
}

// registerCard registers a collector with the device gpu.
func (r record) registerCard(name string) bench.Collector {
	r.t.Helper()
	c := collector(name)
	c.Devices = []string{"gpu"}
	c, err := r.RegisterCollector(r.t.Context(), c, offline)
	require.NoError(r.t, err)
	return c
}

func collector(name string) bench.Collector {
	return bench.Collector{
		Name: name, Target: target, SizeClass: small.SizeClass, Pool: small.Name, MachineID: "machine of " + name,
		Version: "1", HardwareID: "zen4", Facts: json.RawMessage(`{"cpu": "zen4"}`),
	}
}

func runID(job bench.Job, attempt int) bench.RunID {
	return bench.NewRunID(job.Key, "workflow", "activity", int32(attempt))
}

// runStart returns a collector's request to begin a run, whose task it has just got.
func (r record) runStart(run bench.RunID, c bench.Collector) store.RunStart {
	r.t.Helper()
	task, err := storetest.Dispatched(r.t.Context(), r.url, run, c.Name)
	require.NoError(r.t, err)
	return store.RunStart{Run: run, Reason: bench.Scheduled, Collector: c.Name, Epoch: c.Epoch, Dispatch: task.Dispatch, TaskQueue: task.TaskQueue}
}

func (r record) start(job bench.Job, attempt int, c bench.Collector) store.RunPlan {
	r.t.Helper()
	plan, err := r.StartRun(r.t.Context(), r.runStart(runID(job, attempt), c))
	require.NoError(r.t, err)
	return plan
}

var measuredAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// measured returns a result with one wall time per iteration.
func measured(benchmark string, values ...float64) bench.TestCaseResult {
	r := bench.TestCaseResult{TestCase: testCase(benchmark)}
	for i, v := range values {
		r.Collections = append(r.Collections, bench.Collection{
			Iteration: i, CollectedAt: measuredAt.Add(time.Duration(i) * time.Second),
			Values: map[bench.Metric]float64{bench.WallTime: v, bench.MaxRSS: 1000 * v},
			Facts:  json.RawMessage(`{"load": 0.1}`),
		})
	}
	return r
}

func (r record) block(run bench.RunID, results ...bench.TestCaseResult) bench.BlockReceipt {
	r.t.Helper()
	receipt, err := r.StoreBlock(r.t.Context(), run, results, nil)
	require.NoError(r.t, err)
	return receipt
}

func (r record) job(key bench.JobKey) bench.Job {
	r.t.Helper()
	j, err := r.Job(r.t.Context(), key)
	require.NoError(r.t, err)
	return j
}

func (r record) run(id bench.RunID) bench.Run {
	r.t.Helper()
	run, err := r.Run(r.t.Context(), id)
	require.NoError(r.t, err)
	return run
}

func (r record) request(id bench.RequestID) bench.Request {
	r.t.Helper()
	stored, err := r.Request(r.t.Context(), id)
	require.NoError(r.t, err)
	return stored
}

// twice calls do two times: repeating it must be harmless.
func twice(t *testing.T, do func() error) {
	t.Helper()
	require.NoError(t, do())
	require.NoError(t, do(), "repeated")
}

// together calls do in n goroutines and returns their errors.
func together(n int, do func(i int) error) []error {
	errs := make(chan error, n)
	begin := make(chan struct{})
	for i := range n {
		go func() {
			<-begin
			errs <- do(i)
		}()
	}
	close(begin)
	out := make([]error, n)
	for i := range out {
		out[i] = <-errs
	}
	return out
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("bench%d", i)
	}
	return out
}

// whileWaiting calls do in another goroutine and returns when it waits for an advisory
// lock or has ended without one. The returned function waits for its end.
func (r record) whileWaiting(do func() error) (wait func()) {
	r.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	require.Eventually(r.t, func() bool {
		return len(ended) > 0 || r.count(`
			select count(*) from pg_locks where locktype = 'advisory' and not granted
				and database = (select oid from pg_database where datname = current_database())`) > 0
	}, 2*time.Minute, 5*time.Millisecond)
	return func() { require.NoError(r.t, <-ended) }
}
