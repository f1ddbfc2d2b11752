package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/suite"
)

const (
	linux = bench.Target("x86_64-unknown-linux-gnu")
	arm   = bench.Target("aarch64-unknown-linux-gnu")
)

// workflows is a starter that only remembers, or fails.
type workflows struct {
	mu        sync.Mutex
	err       error
	started   []bench.RequestID
	cancelled map[bench.RequestID][]bench.JobRef
	runs      []protocol.RunStarted
	first     []bench.JobKey // those that go first when they are tried again
	// states of workflows by ID; what was done about them, and how that ends.
	states    map[string]protocol.WorkflowState
	looked    func(id string) // called before a state is told; nil: nothing happens
	repairs   []string
	repairErr error
	notified  []bench.RequestID
	ended     []string // requests with the nodes of whose end they were told
	watches   []string // what was asked of Schedules, in order
	// jobs are those that were started, levels those that were changed,
	// moves where they were moved to.
	jobs   []protocol.JobInput
	levels map[bench.JobKey]int
	moves  map[bench.JobKey]string
	operators
}

func (w *workflows) watch(format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = append(w.watches, fmt.Sprintf(format, args...))
	return w.err
}

func (w *workflows) WatchProject(_ context.Context, project string, every time.Duration) error {
	return w.watch("watch %s every %s", project, every)
}

func (w *workflows) UnwatchProject(_ context.Context, project string) error {
	return w.watch("unwatch %s", project)
}

func (w *workflows) SyncProject(_ context.Context, project string) error {
	return w.watch("sync %s", project)
}

// watched returns the calls about Schedules since the last call.
func (w *workflows) watched() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	watches := w.watches
	w.watches = nil
	return watches
}

func (w *workflows) StartRequest(_ context.Context, request bench.RequestRef) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = append(w.started, request.ID)
	return w.err
}

func (w *workflows) StartJob(_ context.Context, job protocol.JobInput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, job)
	return w.err
}

func (w *workflows) JobEnded(_ context.Context, request bench.RequestRef, job protocol.JobEnded) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, fmt.Sprintf("%s %s %s", request.ID, job.Key, job.Status))
	return w.err
}

func (w *workflows) HandOut(_ context.Context, _ bench.RequestRef, jobs protocol.HandOut) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, jobs.Jobs...)
	return w.err
}

func (w *workflows) SetLevel(_ context.Context, job bench.JobRef, level int) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.levels == nil {
		w.levels = make(map[bench.JobKey]int)
	}
	w.levels[job.Key] = level
	return true, w.err
}

func (w *workflows) MoveJob(_ context.Context, job bench.JobRef, to protocol.Moved) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.moves == nil {
		w.moves = make(map[bench.JobKey]string)
	}
	w.moves[job.Key] = to.TaskQueue
	return w.err
}

// movedTo returns the task queue that a job was last moved to in Temporal.
func (w *workflows) movedTo(key bench.JobKey) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moves[key]
}

func (w *workflows) GoFirst(_ context.Context, job bench.JobRef) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = append(w.first, job.Key)
	return w.err
}

// startedJobs returns the number of started jobs.
func (w *workflows) startedJobs() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

func (w *workflows) CancelRequest(_ context.Context, request bench.RequestRef, jobs []bench.JobRef) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancelled == nil {
		w.cancelled = make(map[bench.RequestID][]bench.JobRef)
	}
	w.cancelled[request.ID] = jobs
	return w.err
}

func (w *workflows) ArtifactsReady(_ context.Context, request bench.RequestRef, _ protocol.ArtifactsReady) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = append(w.notified, request.ID)
	return w.err
}

func (w *workflows) RunStarted(_ context.Context, _ bench.JobRef, run protocol.RunStarted) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, run)
	return w.err
}

// bundle is the API over a record of its own.
type bundle struct {
	wait      func() // for what goes on after an answer
	store     *store.Store
	url       string // of its database
	workflows *workflows
	server    *httptest.Server
	log       *lockedBuffer
	// Clients with tokens of each role, and one without.
	// The client collector stands for all collectors: it sends each request with the own
	// token of the one that it concerns. That of the role collector is c1's.
	reader, writer, admin, collector, shared, nobody *apiclient.Client
	tokens                                           map[string]string
}

// lockedBuffer is a log that handlers of ended requests may still write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// setup starts the API; change may change its configuration.
func setup(t testing.TB, change ...func(*api.Config)) *bundle {
	t.Helper()
	url := storetest.URL(t)
	b := &bundle{store: storetest.Open(t, url), url: url, workflows: &workflows{}, log: &lockedBuffer{}, tokens: make(map[string]string)}
	config := api.Config{
		Store: b.store, Starter: b.workflows, Dispatcher: b.dispatcher(), Inspector: b.inspector(),
		Settings: api.Settings{
			Now: time.Now, Random: rand.Reader, AnnounceAfter: time.Millisecond,
			Log:     slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Version: "v0.1.0", TemporalUI: "http://127.0.0.1:8233", Namespace: "benchloom", OpenRead: true,
		},
	}
	for _, f := range change {
		f(&config)
	}
	handler, err := api.New(t.Context(), config)
	require.NoError(t, err)
	b.wait = handler.Wait
	b.server = httptest.NewServer(handler)
	t.Cleanup(b.server.Close)

	var files []api.TokenFile
	for role, owner := range map[string]string{api.RoleReader: "rita", api.RoleWriter: "wanda", api.RoleAdmin: "ada", sharedToken: "machines"} {
		token, err := api.NewToken(rand.Reader)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), role)
		require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
		files = append(files, api.TokenFile{Path: path, Owner: owner, Role: strings.TrimPrefix(role, "shared ")})
		b.tokens[role] = token
	}
	require.NoError(t, api.BootstrapTokens(t.Context(), b.store, files))
	b.reader, b.writer, b.admin = b.client(t, api.RoleReader), b.client(t, api.RoleWriter), b.client(t, api.RoleAdmin)
	b.shared, b.nobody = b.client(t, sharedToken), b.client(t, "")
	b.collector, err = apiclient.New(b.server.URL, "", &http.Client{Transport: &machines{bundle: b, runs: make(map[string]string)}})
	require.NoError(t, err)
	if !config.InvitedOnly {
		token, err := api.NewToken(rand.Reader)
		require.NoError(t, err)
		hash := sha256.Sum256([]byte(token))
		require.NoError(t, b.store.EnrollUninvited(t.Context(), "c1", nil, hash[:], time.Minute))
		b.tokens["own c1"], b.tokens[api.RoleCollector] = token, token
	}
	return b
}

func (b *bundle) inspector() *inspect.Inspector {
	return &inspect.Inspector{Record: b.store, Workflows: b.workflows, OfflineAfter: 30 * time.Second, Now: time.Now, Log: discard}
}

// dispatcher is the one that the API calls.
func (b *bundle) dispatcher() *dispatch.Dispatcher {
	return &dispatch.Dispatcher{Record: b.store, Workflows: b.workflows, OfflineAfter: 30 * time.Second, Log: discard}
}

// past changes the database behind the store's back: time that has passed.
func (b *bundle) past(t testing.TB, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

func (b *bundle) client(t testing.TB, role string) *apiclient.Client {
	t.Helper()
	c, err := apiclient.New(b.server.URL, b.tokens[role], b.server.Client())
	require.NoError(t, err)
	return c
}

// reply is an answer as it travelled.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) problem(t testing.TB) apiclient.Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"), r.body)
	var p apiclient.Problem
	require.NoError(t, json.Unmarshal([]byte(r.body), &p), r.body)
	require.Equal(t, r.status, p.Status)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	require.Contains(t, p.Type, "urn:benchloom:")
	return p
}

// send makes a request as written; role may be empty.
func (b *bundle) send(t testing.TB, role, method, path, body string, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.server.URL+path, bytes.NewBufferString(body))
	require.NoError(t, err)
	if role != "" {
		request.Header.Set("Authorization", "Bearer "+b.tokens[role])
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.server.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return reply{status: response.StatusCode, header: response.Header, body: string(text)}
}

// problemOf is the problem that a client's error is.
func problemOf(t testing.TB, err error) *apiclient.Problem {
	t.Helper()
	var p *apiclient.Problem
	require.ErrorAs(t, err, &p)
	return p
}

// smallSuite has two benchmarks with two scenarios each, and a runtime one.
const smallSuite = `name: small
description: A suite for tests.
artifact: {provider: directory, parameters: {path: "/tmp/{tag}"}}
targets: [x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu]
iterations: 2
profiles: {build: {}}
backends: {gc: {}}
procedures:
  compiletime:
    scenarios:
      full: {measure: {run: [sh, -c, "true"]}}
      incr-patched: {measure: {run: [sh, -c, "true"]}}
benchmarks:
  - {name: gin, kind: compiletime}
  - {name: kit, kind: compiletime}
  - {name: sort, kind: runtime, measure: {run: [sh, -c, "true"]}}
sets: {one: {benchmarks: [gin], scenarios: [full]}}
`

func packed(t testing.TB, text string) suite.Bundle {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, suite.FileName), []byte(text), 0o644))
	packed, err := suite.Pack(dir)
	require.NoError(t, err)
	return packed
}

// project uploads the small suite and applies the project go with it.
func (b *bundle) project(t testing.TB) apiclient.Project {
	t.Helper()
	s := packed(t, smallSuite)
	_, err := b.writer.PutSuite(t.Context(), s.Hash, s.Archive)
	require.NoError(t, err)
	applied, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", SuiteHash: s.Hash}, false)
	require.NoError(t, err)
	return applied.Project
}

// register registers a collector of size class 2 for Linux.
func (b *bundle) register(t testing.TB, name string) apiclient.Registered {
	t.Helper()
	r, err := b.collector.RegisterCollector(t.Context(), registration(name))
	require.NoError(t, err)
	return r
}

func registration(name string) apiclient.Registration {
	return apiclient.Registration{
		Name: name, Target: linux, SizeClass: 2, Pool: "main", MachineID: "machine-of-" + name, Version: "v0.1.0", HardwareID: "cpu0",
		Facts: json.RawMessage(`{"cpu":"some"}`), Unenforced: []apiclient.Unenforced{{Name: "memory", Reason: "no cgroup"}},
	}
}

// job is a request with one job as the orchestrator would have written it.
type job struct {
	request apiclient.Request
	key     bench.JobKey
	cases   []bench.TestCase
}

// submit asks for a release and expands it to one job.
func (b *bundle) submit(t testing.TB, tag string) job {
	t.Helper()
	return b.expand(t, b.admitted(t, tag))
}

// admitted asks for a release and gives it its turn.
func (b *bundle) admitted(t testing.TB, tag string) apiclient.Request {
	t.Helper()
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: tag})
	require.NoError(t, err)
	b.admit(t, r.ID)
	return r
}

// admit gives a request of project go its turn.
func (b *bundle) admit(t testing.TB, id bench.RequestID) {
	t.Helper()
	_, err := b.store.Admit(t.Context(), "go", 1000, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{id}}, nil
	})
	require.NoError(t, err)
}

// expand writes the only job of a release, and hands it out.
func (b *bundle) expand(t testing.TB, r apiclient.Request) job {
	t.Helper()
	return b.expandTo(t, r, bench.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: linux},
		bench.TestCase{Benchmark: "gin", Profile: "build", Scenario: "incr-patched", Backend: "gc", Target: linux})
}

// expandTo writes the only job of a release, of some test cases, and hands it out.
func (b *bundle) expandTo(t testing.TB, r apiclient.Request, cases ...bench.TestCase) job {
	t.Helper()
	project, err := b.writer.Project(t.Context(), "go")
	require.NoError(t, err)
	identity := bench.JobIdentity{Tag: r.Tag, Target: linux, Backend: "gc", Profile: "build", Kind: bench.KindCompileTime, Suite: project.SuiteHash, TestCases: cases, SizeClass: 2}
	pool := bench.Pool{Target: linux, SizeClass: 2, Name: "main"}
	require.NoError(t, b.store.ExpandRequest(t.Context(), r.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(bench.Job{
		Project: "go", Key: identity.Key(),
		Work:     bench.Work{Tag: r.Tag, Kind: bench.KindCompileTime, Target: linux, Backend: "gc", Profile: "build", SuiteHash: project.SuiteHash, TestCases: cases},
		Location: bench.Location{SizeClass: 2, Pool: "main", TaskQueue: pool.TaskQueue()},
		Turn:     bench.Turn{Queue: "project:go", Weight: 1, Priority: 3, RequestCreated: r.CreatedAt},
		JobState: bench.JobState{Status: bench.JobQueued},
	})}))
	_, err = b.store.HandOut(t.Context(), pool.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(t, err)
	return job{request: r, key: identity.Key(), cases: cases}
}

// runStart returns a collector's request to begin a run, whose task it has just got.
func (b *bundle) runStart(t testing.TB, run bench.RunID, collector apiclient.Registered) apiclient.RunStart {
	t.Helper()
	c := collector.Collector
	task, err := storetest.Dispatched(t.Context(), b.url, run, c.Name)
	require.NoError(t, err)
	return apiclient.RunStart{Reason: bench.Scheduled, Collector: c.Name, Epoch: c.Epoch, Dispatch: task.Dispatch, TaskQueue: task.TaskQueue}
}

// start passes the fence with the job's n-th attempt.
func (b *bundle) start(t testing.TB, j job, collector apiclient.Registered, n int32) apiclient.RunPlan {
	t.Helper()
	id := bench.NewRunID(j.key, "workflow", "activity", n)
	plan, err := b.collector.StartRun(t.Context(), id, b.runStart(t, id, collector))
	require.NoError(t, err)
	return plan
}

// block has two collections of each test case, with a wall time around seconds.
func block(cases []bench.TestCase, seconds float64) apiclient.Block {
	var out apiclient.Block
	for i, tc := range cases {
		r := apiclient.TestCaseResult{TestCase: tc}
		for iteration := range 5 {
			r.Collections = append(r.Collections, apiclient.Collection{
				Iteration: iteration + 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, iteration, 0, time.UTC),
				Values: map[bench.Metric]float64{
					bench.WallTime: seconds * (1 + float64(iteration)/1000), bench.MaxRSS: 1 << 20 * float64(i+1), "size:binary": 12345, "MB/s": 100 / seconds,
				},
				Facts: json.RawMessage(`{"load":0.1}`),
			})
		}
		out.Results = append(out.Results, r)
	}
	return out
}

// measure carries a release out: submitted, run, stored, completed.
func (b *bundle) measure(t testing.TB, tag string, seconds float64, collector apiclient.Registered) job {
	t.Helper()
	j := b.submit(t, tag)
	plan := b.start(t, j, collector, 1)
	_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, block(j.cases, seconds))
	require.NoError(t, err)
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	_, err = b.store.FinishJob(t.Context(), j.key, 0, "")
	require.NoError(t, err)
	require.NoError(t, b.store.CompleteRequest(t.Context(), j.request.ID, bench.Success, "", nil, "done"))
	return j
}
