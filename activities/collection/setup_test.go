//go:build linux

package collection_test

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
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/blobs"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/suite"
)

const target = bench.Target("x86_64-unknown-linux-gnu")

var pool = bench.Pool{Target: target, SizeClass: 2, Name: "main"}

// shellSuite has a benchmark for each way to end. Each command that is measured
// writes a line to the journal.
const shellSuite = `name: shell
artifact: {provider: directory, parameters: {path: "%[1]s/artifacts/{tag}"}}
targets: [x86_64-unknown-linux-gnu]
iterations: 2
benchmarks:
  - {name: one, kind: runtime, measure: {run: [sh, -c, "echo one >>%[1]s/journal; echo said"]}}
  - {name: two, kind: runtime, measure: {run: [sh, -c, "echo two >>%[1]s/journal"]}}
  - {name: which, kind: runtime, measure: {run: [sh, -c, 'echo "which-$$(basename "$$1")" >>%[1]s/journal', sh, "${artifact}"]}}
  - {name: fills, kind: runtime, measure: {run: [sh, -c, "if rm %[1]s/fill-now 2>/dev/null; then cat /dev/zero >../ballast; exit 1; fi; echo fills >>%[1]s/journal"]}}
  - {name: fails, kind: runtime, measure: {run: [sh, -c, "echo fails >>%[1]s/journal; echo broken; exit 3"]}}
  - {name: slow, kind: runtime, timeouts: {measure: 100ms}, measure: {run: [sh, -c, "echo slow >>%[1]s/journal; sleep 1000"]}}
  - {name: endless, kind: runtime, measure: {run: [sh, -c, "echo endless >>%[1]s/journal; sleep 1000"]}}
  - name: profiled
    kind: runtime
    measure: {run: [sh, -c, "echo profiled >>%[1]s/journal"]}
    profilers:
      good: {run: [sh, -c, 'f=$$1; shift; "$$@"; echo "main;slow 90" >$$f.1; echo "main;quick 10" >$$f.2', sh, "${profile_file}", "${measured}"], file: benchloom-profile.*, format: folded}
      one: {run: [sh, -c, 'f=$$1; shift; "$$@"; echo "main;slow 9" >$$f', sh, "${profile_file}", "${measured}"], format: folded}
      bad: {run: [sh, -c, 'f=$$1; shift; "$$@"; echo "so sad"; echo x y z >$$f', sh, "${profile_file}", "${measured}"], format: folded}
      crashes: {run: [sh, -c, 'echo so sad; kill -SEGV $$$$', sh, "${profile_file}"], format: folded}
  - name: hot
    kind: runtime
    # Beside other work, most samples fall on the preemption of the only busy goroutine.
    measure: {run: ["${artifact}/hot"], env: {GODEBUG: asyncpreemptoff=1}}
    profilers: {pprof-cpu: {run: ["${measured}", "${profile_file}"], format: pprof}}
  - {name: hot-c, kind: runtime, measure: {run: ["${artifact}/hot-c"]}}
  - {name: keeps, kind: runtime, measure: {run: [sh, -c, "echo kept >${cache}/kept"]}}
`

// starter is a workflow starter that does nothing.
type starter struct{ dispatch.Workflows }

func (starter) WatchProject(context.Context, string, time.Duration) error { return nil }
func (starter) UnwatchProject(context.Context, string) error              { return nil }
func (starter) SyncProject(context.Context, string) error                 { return nil }

func (starter) StartRequest(context.Context, bench.RequestRef) error                { return nil }
func (starter) JobEnded(context.Context, bench.RequestRef, protocol.JobEnded) error { return nil }
func (starter) StartJob(context.Context, protocol.JobInput) error                   { return nil }
func (starter) MoveJob(context.Context, bench.JobRef, protocol.Moved) error         { return nil }

func (starter) HandOut(context.Context, bench.RequestRef, protocol.HandOut) error { return nil }
func (starter) SetLevel(context.Context, bench.JobRef, int) (bool, error)         { return true, nil }
func (starter) GoFirst(context.Context, bench.JobRef) error                       { return nil }
func (starter) CancelRequest(context.Context, bench.RequestRef, []bench.JobRef) error {
	return nil
}
func (starter) ArtifactsReady(context.Context, bench.RequestRef, protocol.ArtifactsReady) error {
	return nil
}

func (starter) RunStarted(context.Context, bench.JobRef, protocol.RunStarted) error {
	return nil
}

// gate is a proxy in front of the API that refuses selected calls, like a proxy
// whose API is down, or as told.
type gate struct {
	mu     sync.Mutex
	away   func(path string) bool
	answer http.HandlerFunc
	// older refuses what an older API does not know.
	older bool
	paths []string // of all calls
}

// isOlder makes the gate refuse the rest of a run with its end, as an older API does.
func (g *gate) isOlder() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.older = true
}

// called lists the last parts of the paths of all calls.
func (g *gate) called() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.paths)
}

// reply makes the gate answer the selected calls in the API's place.
func (g *gate) reply(away func(path string) bool, answer http.HandlerFunc) {
	g.refuse(away)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
}

func (g *gate) refuse(away func(path string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = away
}

func (g *gate) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.paths = append(g.paths, path.Base(r.URL.Path))
		away := g.away != nil && g.away(r.URL.Path)
		answer, older := g.answer, g.older
		g.mu.Unlock()
		if older && strings.HasSuffix(r.URL.Path, "/finish") {
			body, err := io.ReadAll(r.Body)
			if err != nil || bytes.Contains(body, []byte(`"rest":`)) {
				w.Header().Set(apiclient.HeaderAPI, "1")
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, `{"type": "urn:benchloom:invalid", "status": 422, "detail": "unexpected property"}`)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		if away && answer != nil {
			answer(w, r)
			return
		}
		if away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func uploads(path string) bool { return strings.Contains(path, "/blocks/") }

// bundle is a collector with its own API and record.
type bundle struct {
	*collection.Collector
	t        *testing.T
	root     string
	store    *store.Store
	url      string // of the store
	files    blobs.Store
	gate     *gate
	suite    *suite.Suite
	hash     string
	spool    string
	fenced   atomic.Int32
	unwanted atomic.Int32
	stop     chan struct{} // the worker's
}

func setup(t *testing.T) *bundle {
	t.Helper()
	root := t.TempDir()
	url := storetest.URL(t)
	b := &bundle{t: t, root: root, store: storetest.Open(t, url), url: url, gate: &gate{}, spool: filepath.Join(root, "spool"), stop: make(chan struct{})}
	files, err := blobs.OpenDirectory(t.Context(), filepath.Join(root, "blobs"), 1<<30)
	require.NoError(t, err)
	b.files = files
	handler, err := api.New(t.Context(), api.Config{
		Store: b.store, Blobs: files, Starter: starter{}, Dispatcher: &dispatch.Dispatcher{Record: b.store, Workflows: starter{}, OfflineAfter: 30 * time.Second, Log: slog.New(slog.DiscardHandler)},
		Inspector: &inspect.Inspector{},
		Settings:  api.Settings{Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), Version: "v0.1.0", Namespace: "benchloom"},
	})
	require.NoError(t, err)
	server := httptest.NewServer(b.gate.before(handler))
	t.Cleanup(func() {
		server.Close()
		handler.Wait()
	})
	token, err := api.NewToken(rand.Reader)
	require.NoError(t, err)
	hash := sha256.Sum256([]byte(token))
	require.NoError(t, b.store.EnrollUninvited(t.Context(), "c1", nil, hash[:], time.Minute))
	client, err := apiclient.New(server.URL, token, server.Client())
	require.NoError(t, err)

	b.project()
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "collection-" + filepath.Base(filepath.Dir(root)), WorkDir: filepath.Join(root, "slot"), DisableCgroups: true, Isolation: measure.Isolation{Off: true}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sandbox.Close()) })
	builds := collection.StoredBuilds{API: client, Retry: apiclient.RetryPolicy{Attempts: 2, First: time.Millisecond, Longest: time.Millisecond}}
	artifacts, err := artifact.Open(artifact.Options{Dir: filepath.Join(root, "cache"), Providers: []artifact.Provider{artifact.Directory{}, &artifact.Built{Source: builds}}})
	require.NoError(t, err)
	suites, err := collection.OpenSuiteCache(filepath.Join(root, "suites"))
	require.NoError(t, err)
	spool, err := collection.OpenSpool(b.spool)
	require.NoError(t, err)
	epoch := b.register()
	b.Collector = &collection.Collector{
		Name: "c1", API: tasked{client}, Artifacts: artifacts, Suites: suites, Spool: spool, CacheDir: filepath.Join(root, "suite-cache"),
		Machine:   jobrun.Machine{Sandbox: sandbox, CPUs: 1, Now: time.Now},
		Revisions: revision.New(filepath.Join(root, "repositories"), os.Environ()),
		Epoch:     func() int64 { return epoch }, Fenced: func() { b.fenced.Add(1) }, Unwanted: func() { b.unwanted.Add(1) },
		Begin:  apiclient.RetryPolicy{Attempts: 2, First: time.Millisecond, Longest: time.Millisecond},
		Upload: apiclient.RetryPolicy{Attempts: 2, First: time.Millisecond, Longest: time.Millisecond},
		Log:    slog.New(slog.DiscardHandler),
	}
	return b
}

// tasked names the task queue of the pool at the fence: that of test environments has
// another name.
type tasked struct{ *apiclient.Client }

func (c tasked) StartRun(ctx context.Context, run bench.RunID, start apiclient.RunStart) (apiclient.RunPlan, error) {
	start.TaskQueue = pool.TaskQueue()
	return c.Client.StartRun(ctx, run, start)
}

// project stores the suite and an artifact with the tag v1.
func (b *bundle) project() {
	b.t.Helper()
	require.NoError(b.t, os.MkdirAll(filepath.Join(b.root, "artifacts", "v1"), 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(b.root, "artifacts", "v1", "file"), []byte("x"), 0o644))
	dir := b.t.TempDir()
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, suite.FileName), fmt.Appendf(nil, shellSuite, b.root), 0o644))
	packed, err := suite.Pack(dir)
	require.NoError(b.t, err)
	b.hash = packed.Hash
	b.suite, err = suite.LoadDir(dir)
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.PutSuite(b.t.Context(), packed.Hash, "shell", packed.Archive))
	_, err = b.store.ApplyProject(b.t.Context(), store.Project{Name: "go", Config: json.RawMessage(`{}`), SuiteHash: packed.Hash})
	require.NoError(b.t, err)
}

// execute changes the database directly.
func (b *bundle) execute(sql string) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	require.NoError(b.t, err)
	_, err = conn.Exec(b.t.Context(), sql)
	require.NoError(b.t, err)
	require.NoError(b.t, conn.Close(b.t.Context()))
}

func (b *bundle) register() (epoch int64) {
	b.t.Helper()
	c, err := b.store.RegisterCollector(b.t.Context(), bench.Collector{
		Name: "c1", Target: target, SizeClass: pool.SizeClass, Pool: pool.Name, MachineID: "machine of c1", Version: "1", HardwareID: "cpu0", Facts: json.RawMessage(`{}`),
	}, time.Minute)
	require.NoError(b.t, err)
	return c.Epoch
}

// request records an ad-hoc request with one job, which is dispatched.
func (b *bundle) request(job bench.Job, benchmarks ...string) bench.JobKey {
	b.t.Helper()
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(b.t, err)
	r, _, err := b.store.CreateRequest(b.t.Context(), bench.Request{
		ID: id, Project: "go", Type: bench.AdHoc, Tag: job.Tag,
		Submission: bench.Submission{Submitter: "ada"},
		Commands:   bench.Commands{Command: job.Command},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	})
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.StartAdHoc(b.t.Context(), id))
	for _, name := range benchmarks {
		job.TestCases = append(job.TestCases, bench.TestCase{Benchmark: name, Target: target})
	}
	job.Project, job.Target, job.SizeClass, job.Pool, job.TaskQueue = "go", target, pool.SizeClass, pool.Name, pool.TaskQueue()
	job.Queue, job.Weight, job.Priority, job.RequestCreated = "user:ada", 1, 3, r.CreatedAt
	job.Key = bench.JobIdentity{Request: id, Project: "go", Tag: job.Tag, Target: target, Kind: job.Kind, Suite: job.SuiteHash, TestCases: job.TestCases, Profiler: job.Profiler, SizeClass: pool.SizeClass}.Key()
	require.NoError(b.t, b.store.ExpandRequest(b.t.Context(), id, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(job)}))
	_, err = b.store.HandOut(b.t.Context(), pool.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(b.t, err)
	return job.Key
}

// job records a job that measures benchmarks of the suite on an artifact.
func (b *bundle) job(tag string, benchmarks ...string) bench.JobKey {
	b.t.Helper()
	return b.request(bench.Job{Work: bench.Work{Tag: tag, Kind: bench.KindRuntime, SuiteHash: b.hash}}, benchmarks...)
}

// dispatched returns the input of a new dispatch's task.
func (b *bundle) dispatched(key bench.JobKey) protocol.RunJobInput {
	b.t.Helper()
	task, err := storetest.Dispatched(b.t.Context(), b.url, bench.RunID(key+"-00000000"), "c1")
	require.NoError(b.t, err)
	return protocol.RunJobInput{Project: "go", Key: key, Reason: bench.Scheduled, Dispatch: task.Dispatch}
}

// run runs the job's n-th dispatch, as Temporal would.
func (b *bundle) run(key bench.JobKey, n int) (protocol.RunJobResult, error) {
	b.t.Helper()
	var tests testsuite.WorkflowTestSuite
	env := tests.NewTestActivityEnvironment()
	env.SetWorkerStopChannel(b.stop)
	b.Register(env, nil)
	// The environment numbers activities from 1: each dispatch has its own ID.
	env.RegisterActivityWithOptions(func(context.Context) error { return nil }, nothing)
	for range n - 1 {
		_, err := env.ExecuteActivity(nothing.Name)
		require.NoError(b.t, err)
	}
	value, err := env.ExecuteActivity(protocol.RunJob, b.dispatched(key))
	if err != nil {
		return protocol.RunJobResult{}, err
	}
	var out protocol.RunJobResult
	require.NoError(b.t, value.Get(&out))
	return out, nil
}

// fails requires an application error of a type.
func (b *bundle) fails(err error, errorType string, retryable bool, text string) {
	b.t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(b.t, err, &application)
	require.Equal(b.t, errorType, application.Type(), err)
	require.Equal(b.t, retryable, !application.NonRetryable())
	require.ErrorContains(b.t, err, text)
}

// runs returns the recorded runs.
func (b *bundle) runs(key bench.JobKey) []bench.Run {
	b.t.Helper()
	runs, err := b.store.JobRuns(b.t.Context(), key)
	require.NoError(b.t, err)
	return runs
}

func (b *bundle) done(key bench.JobKey) int {
	b.t.Helper()
	j, err := b.store.Job(b.t.Context(), key)
	require.NoError(b.t, err)
	return j.Done
}

// journal returns the benchmarks of all commands that were started.
func (b *bundle) journal() []string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.root, "journal"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(b.t, err)
	return strings.Fields(string(text))
}

func (b *bundle) spooled() []collection.Spooled {
	b.t.Helper()
	list, err := b.Spool.List()
	require.NoError(b.t, err)
	return list
}
