package orchestration_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/activities/orchestration"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/commits"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/suitecache"
)

const (
	project = "go"
	target  = bench.Target("x86_64-unknown-linux-gnu")
	// offline is long: a busy machine takes a while between two signs of life.
	offline = 3 * time.Minute
	arm     = bench.Target("aarch64-unknown-linux-gnu")
)

// today is the time of the looks at commits.
var today = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

var pool = bench.Pool{Target: target, SizeClass: 2, Name: "main"}

// smallSuite gives a request two jobs: one compiles, one runs.
const smallSuite = `name: small
artifact: {provider: directory, parameters: {path: "/artifacts/{tag}"}}
targets: [x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu]
iterations: 2
profiles: {build: {}}
backends: {gc: {}}
procedures:
  compiletime:
    scenarios:
      full: {measure: {run: [sh, -c, "true"]}}
benchmarks:
  - {name: gin, kind: compiletime}
  - {name: sort, kind: runtime, measure: {run: [sh, -c, "true"]}}
`

// workflows remembers what was asked of workflows, in order, and may fail.
type workflows struct {
	mu    sync.Mutex
	calls []string
	err   error // what every call answers
	// states of workflows by ID; a workflow without one is missing.
	states map[string]protocol.WorkflowState
	// jobs are those that were started.
	jobs map[bench.JobKey]protocol.JobInput
	// lagging makes the list of running workflows empty, as one that lags.
	lagging bool
}

func (w *workflows) call(format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
	return w.err
}

// taken are the calls since it was last asked.
func (w *workflows) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

func (w *workflows) StartRequest(_ context.Context, request bench.RequestRef) error {
	w.is(request.WorkflowID(), protocol.WorkflowRunning)
	return w.call("start %s/%s", request.Project, request.ID)
}

func (w *workflows) Running(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for id, s := range w.states {
		if s.Status == protocol.WorkflowRunning && !w.lagging {
			ids = append(ids, id)
		}
	}
	return ids, w.err
}

func (w *workflows) Look(_ context.Context, workflowID string) (protocol.WorkflowState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, ok := w.states[workflowID]
	if !ok {
		state.Status = protocol.WorkflowMissing
	}
	state.ID = workflowID
	return state, w.err
}

// is sets what became of a workflow.
func (w *workflows) is(workflowID string, status protocol.WorkflowStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.states == nil {
		w.states = make(map[string]protocol.WorkflowState)
	}
	w.states[workflowID] = protocol.WorkflowState{Status: status}
}

func (w *workflows) RestartRequest(_ context.Context, request bench.RequestRef) error {
	w.is(request.WorkflowID(), protocol.WorkflowRunning)
	return w.call("restart %s", request.WorkflowID())
}

func (w *workflows) RestartJob(_ context.Context, in protocol.JobInput) error {
	w.is(in.Workflow, protocol.WorkflowRunning)
	return w.call("restart %s for %s, %d runs, %d attempts left%s", in.Workflow, in.Request, in.Dispatches, in.Attempts, adopts(in))
}

func adopts(in protocol.JobInput) string {
	if in.Adopt.Run == "" {
		return ""
	}
	return fmt.Sprintf(", adopts run %d", in.Adopt.Number)
}

func (w *workflows) ForgetPasses(context.Context, int) (int, error) { return 0, nil }

func (w *workflows) CancelWorkflow(_ context.Context, id string) error {
	return w.call("cancel %s", id)
}

func (w *workflows) QueueChanged(_ context.Context, project string) error {
	return w.call("queue %s", project)
}

func (w *workflows) Admitted(_ context.Context, request bench.RequestRef) error {
	return w.call("admitted %s/%s", request.Project, request.ID)
}

func (w *workflows) StartJob(_ context.Context, job protocol.JobInput) error {
	w.mu.Lock()
	if w.jobs == nil {
		w.jobs = make(map[bench.JobKey]protocol.JobInput)
	}
	w.jobs[job.Key] = job
	w.mu.Unlock()
	return w.call("%s", startJob(job.Request, job.Key))
}

// started reports whether the job's workflow was started.
func (w *workflows) started(key bench.JobKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.jobs[key]
	return ok
}

func (w *workflows) HandOut(ctx context.Context, _ bench.RequestRef, jobs protocol.HandOut) error {
	var err error
	for _, job := range jobs.Jobs {
		err = errors.Join(err, w.StartJob(ctx, job))
	}
	return err
}

func (w *workflows) HandOutAgain(_ context.Context, request bench.RequestRef, jobs protocol.HandOut) error {
	w.is(request.WorkflowID(), protocol.WorkflowRunning)
	var err error
	for _, in := range jobs.Jobs {
		w.is(in.Workflow, protocol.WorkflowRunning)
		err = errors.Join(err, w.call("hand %s to %s again, %d runs, %d attempts left%s", in.Workflow, request.ID, in.Dispatches, in.Attempts, adopts(in)))
	}
	return err
}

func (w *workflows) SetLevel(_ context.Context, job bench.JobRef, level int) (bool, error) {
	return true, w.call("level %s/%s %d", job.Project, job.Key, level)
}

func (w *workflows) JobEnded(_ context.Context, request bench.RequestRef, job protocol.JobEnded) error {
	return w.call("ended %s/%s %s %s", request.Project, request.ID, job.Key, job.Status)
}

func (w *workflows) ParentCompleted(_ context.Context, request bench.RequestRef) error {
	return w.call("parent of %s/%s", request.Project, request.ID)
}

func (w *workflows) CancelJob(_ context.Context, job bench.JobRef) error {
	return w.call("cancel %s/%s", job.Project, job.Key)
}

func (w *workflows) WatchProject(_ context.Context, project string, every time.Duration) error {
	return w.call("watch %s every %s", project, every)
}

func (w *workflows) UnwatchProject(_ context.Context, project string) error {
	return w.call("unwatch %s", project)
}

func (w *workflows) MoveJob(_ context.Context, job bench.JobRef, to protocol.Moved) error {
	return w.call("move %s/%s %s", job.Project, job.Key, to.TaskQueue)
}

// startJob is the call that starts a job which was handed out to a request.
func startJob(request bench.RequestID, key bench.JobKey) string {
	return fmt.Sprintf("start job %s for %s", key, request)
}

// bundle is the activities over a record of their own, with one project.
type bundle struct {
	*orchestration.Activities
	t         *testing.T
	url       string
	store     *store.Store
	workflows *workflows
	suite     string // its content hash
}

// Expand writes jobs and, as the request's workflow does, starts once what the answer
// names.
func (b *bundle) Expand(ctx context.Context, in protocol.ExpandInput) (protocol.ExpandResult, error) {
	out, err := b.Activities.Expand(ctx, in)
	for _, job := range out.HandedOut {
		if !b.workflows.started(job.Key) {
			require.NoError(b.t, b.workflows.StartJob(ctx, job))
		}
	}
	return out, err
}

func keysOf(jobs []protocol.JobInput) []bench.JobKey {
	keys := make([]bench.JobKey, len(jobs))
	for i, j := range jobs {
		keys[i] = j.Key
	}
	return keys
}

func (b *bundle) pass(t *testing.T) {
	t.Helper()
	_, err := b.Reconcile(t.Context())
	require.NoError(t, err)
}

// setup makes a project with a configuration and no collector.
func setup(t *testing.T, config string) *bundle {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, suite.FileName), []byte(smallSuite), 0o644))
	packed, err := suite.Pack(dir)
	require.NoError(t, err)
	url := storetest.URL(t)
	b := &bundle{t: t, url: url, store: storetest.Open(t, url), workflows: &workflows{}, suite: packed.Hash}
	require.NoError(t, b.store.PutSuite(t.Context(), packed.Hash, "small", packed.Archive))
	b.apply(config)
	b.Activities = &orchestration.Activities{
		Store: b.store, Workflows: b.workflows, Repairs: b.workflows, Suites: suitecache.New(b.store), OfflineAfter: offline, Log: slog.New(slog.DiscardHandler),
		Sizes: sizing.Sizes{Record: b.store, OfflineAfter: offline, Now: time.Now, Random: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler)},
		Watching: orchestration.Watching{
			Sources: commits.Opener{CacheDir: t.TempDir(), Environ: os.Environ()}, Random: rand.Reader, Now: func() time.Time { return today },
		},
	}
	return b
}

// dispatcher is one as the orchestrator runs it beside the activities.
func (b *bundle) dispatcher() *dispatch.Dispatcher {
	return &dispatch.Dispatcher{Record: b.store, Workflows: b.workflows, Sizes: &b.Sizes, OfflineAfter: offline, Log: b.Log}
}

func (b *bundle) apply(config string) {
	b.t.Helper()
	_, err := b.store.ApplyProject(b.t.Context(), store.Project{Name: project, Config: json.RawMessage(config), SuiteHash: b.suite})
	require.NoError(b.t, err)
}

func (b *bundle) register(name string) bench.Collector {
	b.t.Helper()
	c, err := b.store.RegisterCollector(b.t.Context(), bench.Collector{
		Name: name, Target: target, SizeClass: pool.SizeClass, Pool: pool.Name, MachineID: "machine of " + name,
		Version: "1", HardwareID: "cpu0", Facts: json.RawMessage(`{}`),
	}, offline)
	require.NoError(b.t, err)
	return c
}

func (b *bundle) registerAt(p bench.Pool) bench.Collector {
	b.t.Helper()
	c, err := b.store.RegisterCollector(b.t.Context(), bench.Collector{
		Name: fmt.Sprintf("%s-%d", p.Name, p.SizeClass), Target: p.Target, SizeClass: p.SizeClass, Pool: p.Name,
		MachineID: fmt.Sprintf("machine of %s-%d", p.Name, p.SizeClass), Version: "1", HardwareID: "cpu0", Facts: json.RawMessage(`{}`),
	}, offline)
	require.NoError(b.t, err)
	return c
}

// execute changes the database behind the store's back: time that has passed.
func (b *bundle) execute(sql string, args ...any) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	require.NoError(b.t, err)
	_, err = conn.Exec(b.t.Context(), sql, args...)
	require.NoError(b.t, err)
	require.NoError(b.t, conn.Close(b.t.Context()))
}

// create records a request; day orders releases.
func (b *bundle) create(requestType bench.RequestType, tag string, day int) protocol.RequestRef {
	b.t.Helper()
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(b.t, err)
	date := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	r := bench.Request{
		ID: id, Project: project, Type: requestType, Tag: tag,
		Submission: bench.Submission{Submitter: "ada"},
		Origin:     bench.Origin{CommitDate: &date},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	}
	_, created, err := b.store.CreateRequest(b.t.Context(), r)
	require.NoError(b.t, err)
	require.True(b.t, created)
	return protocol.RequestRef{Project: project, ID: id}
}

// running is an admitted release with its jobs written by its workflow.
func (b *bundle) running(tag string) protocol.RequestRef {
	b.t.Helper()
	ref := b.admitted(tag)
	require.NoError(b.t, b.store.MarkWorkflowStarted(b.t.Context(), ref.ID))
	out, err := b.Expand(b.t.Context(), own(ref))
	require.NoError(b.t, err)
	require.Empty(b.t, out.Failed)
	return ref
}

// own asks for a request's own jobs.
func own(ref protocol.RequestRef) protocol.ExpandInput {
	return protocol.ExpandInput{Request: ref, Stage: bench.StageOwn}
}

func (b *bundle) admitted(tag string) protocol.RequestRef {
	b.t.Helper()
	ref := b.create(bench.Release, tag, 1)
	admitted, err := b.store.Admit(b.t.Context(), project, 100, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{ref.ID}}, nil
	})
	require.NoError(b.t, err)
	require.Equal(b.t, []bench.RequestID{ref.ID}, admitted)
	return ref
}

func (b *bundle) request(ref protocol.RequestRef) bench.Request {
	b.t.Helper()
	r, err := b.store.Request(b.t.Context(), ref.ID)
	require.NoError(b.t, err)
	return r
}

func (b *bundle) jobs(ref protocol.RequestRef) []bench.Job {
	b.t.Helper()
	jobs, err := b.store.RequestJobs(b.t.Context(), ref.ID)
	require.NoError(b.t, err)
	return jobs
}

func (b *bundle) job(key bench.JobKey) bench.Job {
	b.t.Helper()
	j, err := b.store.Job(b.t.Context(), key)
	require.NoError(b.t, err)
	return j
}

// handOut writes the request's own jobs and hands out what there is room for. It
// returns those of the request's that wait in Temporal.
func (b *bundle) handOut(ref protocol.RequestRef) []bench.JobKey {
	b.t.Helper()
	_, err := b.Expand(b.t.Context(), own(ref))
	require.NoError(b.t, err)
	return b.handedOut(ref)
}

// handedOut are the jobs of a request that wait in Temporal.
func (b *bundle) handedOut(ref protocol.RequestRef) []bench.JobKey {
	b.t.Helper()
	var keys []bench.JobKey
	for _, j := range b.jobs(ref) {
		if j.Status == bench.JobHandedOut {
			require.Contains(b.t, b.workflows.jobs, j.Key, "what is handed out is started")
			keys = append(keys, j.Key)
		}
	}
	return keys
}

// runStart returns a collector's request to begin the job's n-th attempt, whose task it has just got.
func (b *bundle) runStart(key bench.JobKey, c bench.Collector, n int32) store.RunStart {
	b.t.Helper()
	run := bench.NewRunID(key, "workflow", "activity", n)
	task, err := storetest.Dispatched(b.t.Context(), b.url, run, c.Name)
	require.NoError(b.t, err)
	return store.RunStart{Run: run, Reason: bench.Scheduled, Collector: c.Name, Epoch: c.Epoch, Dispatch: task.Dispatch, TaskQueue: task.TaskQueue}
}

// start passes the fence with the job's n-th attempt.
func (b *bundle) start(key bench.JobKey, c bench.Collector, n int32) bench.RunID {
	b.t.Helper()
	plan, err := b.store.StartRun(b.t.Context(), b.runStart(key, c, n))
	require.NoError(b.t, err)
	return plan.Run.ID
}

// measure runs a job to its end, with a wall time for each of its test cases.
func (b *bundle) measure(job bench.Job, c bench.Collector, seconds float64) {
	b.t.Helper()
	b.measureValues(job, c, func(i int) map[bench.Metric]float64 {
		return map[bench.Metric]float64{bench.WallTime: seconds * (1 + float64(i)/1000)}
	})
}

// measureValues runs a job as measure does, with the values of each iteration.
func (b *bundle) measureValues(job bench.Job, c bench.Collector, values func(i int) map[bench.Metric]float64) {
	b.t.Helper()
	run := b.start(job.Key, c, int32(b.job(job.Key).Rerun)+1)
	var results []bench.TestCaseResult
	for _, tc := range job.TestCases {
		r := bench.TestCaseResult{TestCase: tc}
		for i := range cmp.Or(job.Iterations, 5) {
			r.Collections = append(r.Collections, bench.Collection{
				Iteration: i + 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Values: values(i),
			})
		}
		results = append(results, r)
	}
	_, err := b.store.StoreBlock(b.t.Context(), run, results, nil)
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
}

// recordEnd ends a job as its workflow does.
func (b *bundle) recordEnd(key bench.JobKey, gaveUp string) protocol.JobEndResult {
	b.t.Helper()
	end, err := b.RecordJobEnd(b.t.Context(), protocol.JobEndInput{Project: project, Key: key, Rerun: b.job(key).Rerun, TaskQueue: pool.TaskQueue(), GaveUp: gaveUp})
	require.NoError(b.t, err)
	return end
}

// released carries a release out from its submission to its completion.
func (b *bundle) released(tag string, c bench.Collector, seconds float64) protocol.CompleteResult {
	b.t.Helper()
	ref := b.running(tag)
	b.handOut(ref)
	for _, j := range b.jobs(ref) {
		b.measure(j, c, seconds)
		require.Equal(b.t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
	}
	return b.complete(ref, "")
}

func (b *bundle) complete(ref protocol.RequestRef, failed string) protocol.CompleteResult {
	b.t.Helper()
	require.NoError(b.t, b.JobsDone(b.t.Context(), ref))
	out, err := b.Complete(b.t.Context(), protocol.CompleteInput{Request: ref, Failed: failed})
	require.NoError(b.t, err)
	return out
}
