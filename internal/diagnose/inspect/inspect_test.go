package inspect_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const target = bench.Target("x86_64-unknown-linux-gnu")

var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// record holds the facts of a test. It counts how often pauses and limits are read.
type record struct {
	inspect.Record // panics: the test has no such facts
	jobs           []bench.Job
	inputs         map[bench.JobKey][]graphset.Missing
	stranded       []store.WaitingJob
	submitters     map[bench.JobKey]string
	full           map[string]bool // accounts at their limit
	paused         map[string]bool // projects
	reads          map[string]int
}

func (r *record) RequestJobPage(context.Context, bench.RequestID, store.JobPage) ([]bench.Job, error) {
	return r.jobs, nil
}

func (r *record) Job(_ context.Context, key bench.JobKey) (bench.Job, error) {
	for _, j := range r.jobs {
		if j.Key == key {
			return j, nil
		}
	}
	return bench.Job{}, store.ErrNotFound
}

func (r *record) OpenJobsOf(context.Context, bench.RequestID, int) ([]store.OpenJob, error) {
	return nil, nil
}

func (r *record) Request(context.Context, bench.RequestID) (bench.Request, error) {
	return request(), nil
}
func (r *record) Collectors(context.Context) ([]bench.Collector, error)     { return nil, nil }
func (r *record) Fleet(context.Context, time.Duration) (plan.Fleet, error)  { return nil, nil }
func (r *record) Project(context.Context, string) (store.Project, error)    { return store.Project{}, nil }
func (r *record) SetMembers(context.Context, string) ([]string, error)      { return nil, nil }
func (r *record) InFlightOf(context.Context, bench.RequestID) (bool, error) { return true, nil }
func (r *record) StrandedJobs(_ context.Context, keys ...bench.JobKey) ([]store.WaitingJob, error) {
	return r.stranded, nil
}

// needing maps the job one to what it needs.
func needing(missing ...graphset.Missing) map[bench.JobKey][]graphset.Missing {
	return map[bench.JobKey][]graphset.Missing{"one": missing}
}

func (r *record) MissingInputs(context.Context, ...bench.JobKey) (map[bench.JobKey][]graphset.Missing, error) {
	return r.inputs, nil
}

func (r *record) Submitters(_ context.Context, keys []bench.JobKey) (map[bench.JobKey]string, error) {
	out := make(map[bench.JobKey]string)
	for _, key := range keys {
		out[key] = r.submitters[key]
	}
	return out, nil
}

func (r *record) QueuePause(_ context.Context, project string) (*store.Pause, error) {
	r.reads["pause of "+project]++
	if !r.paused[project] {
		return nil, nil //nolint:nilnil // no pause is an answer
	}
	return &store.Pause{Project: project, By: "ada", Reason: "the machine moves"}, nil
}

func (r *record) AccountHold(_ context.Context, account, _ string) (store.AccountHold, error) {
	r.reads["limit of "+account]++
	if !r.full[account] {
		return store.AccountHold{}, nil
	}
	most := 2
	return store.AccountHold{MaxRunning: &most, UnderWay: 2}, nil
}

// temporal describes workflows; every one that is not listed is missing.
type temporal struct {
	states  map[string]protocol.WorkflowState
	err     error // of descriptions
	failing error // of repairs
	repairs []string
}

func (t *temporal) Explain(_ context.Context, id string) (protocol.WorkflowState, error) {
	state, ok := t.states[id]
	if !ok {
		state.Status = protocol.WorkflowMissing
	}
	state.ID = id
	return state, t.err
}

func (t *temporal) repair(what string) error {
	t.repairs = append(t.repairs, what)
	return t.failing
}

func (t *temporal) RestartRequest(_ context.Context, r bench.RequestRef) error {
	return t.repair("restart " + string(r.ID))
}
func (t *temporal) QueueChanged(_ context.Context, p string) error { return t.repair("queue " + p) }
func (t *temporal) ResetToStart(_ context.Context, id, why string) error {
	return t.repair("reset " + id + ": " + why)
}
func (t *temporal) TriggerReconcile(context.Context) error { return t.repair("reconcile") }

func request() bench.Request {
	return bench.Request{ID: "rabcdefghij", Project: "go", Type: bench.Release, Standing: bench.Standing{Status: bench.InProgress}}
}

func job(key bench.JobKey, status bench.JobStatus) bench.Job {
	j := bench.Job{Key: key, Project: "go", JobState: bench.JobState{Status: status}}
	j.TaskQueue = "bench/" + string(target) + "/1/main"
	return j
}

func inspector(r *record, t *temporal) *inspect.Inspector {
	r.reads = make(map[string]int)
	return &inspect.Inspector{Record: r, Workflows: t, OfflineAfter: time.Minute, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
}

// A pause goes before everything that holds a job, a stranded task queue before a limit.
func TestWaitsNameWhatHoldsAJobFirst(t *testing.T) {
	t.Parallel()
	pool := bench.Pool{Target: target, SizeClass: 1, Name: "main"}
	waiting := func(key bench.JobKey) store.WaitingJob {
		return store.WaitingJob{JobRef: bench.JobRef{Project: "go", Key: key}, Target: target, SizeClass: 1, Pool: "main", TaskQueue: pool.TaskQueue(), Status: bench.JobQueued}
	}
	for name, c := range map[string]struct {
		record record
		want   string
	}{
		"its turn":            {record{}, "its turn at pool"},
		"a limit":             {record{full: map[string]bool{"ada": true}}, "its limit max_running 2"},
		"no live collector":   {record{full: map[string]bool{"ada": true}, stranded: []store.WaitingJob{waiting("one")}}, "collector"},
		"an input":            {record{full: map[string]bool{"ada": true}, inputs: needing(graphset.Missing{Job: "two", Status: "queued"})}, "it needs job two, which has not ended; 'benchloom explain two' says why"},
		"inputs":              {record{inputs: needing(graphset.Missing{Job: "two", Status: "queued"}, graphset.Missing{Job: "three", Status: "queued"})}, "it needs job two and 1 other, which have not ended"},
		"a failed input":      {record{inputs: needing(graphset.Missing{Job: "two", Name: "prepare", Status: "failure"})}, "it needs node prepare, which ended as failure; another run that ends as this one needs releases it"},
		"a sign-off":          {record{inputs: needing(graphset.Missing{Job: "two", Name: "agree", Service: true, Status: "waiting"})}, "it needs node agree, which the service carries out, or a person answers"},
		"a pause of all":      {record{paused: map[string]bool{"go": true}, full: map[string]bool{"ada": true}, stranded: []store.WaitingJob{waiting("one")}}, "was paused by ada: the machine moves"},
		"another one's limit": {record{full: map[string]bool{"bob": true}}, "its turn at pool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.record
			r.submitters = map[bench.JobKey]string{"one": "ada"}
			waits, err := inspector(&r, &temporal{}).Waits(t.Context(), []bench.Job{job("one", bench.JobQueued)}, nil)
			require.NoError(t, err)
			require.Contains(t, waits["one"], c.want)
			if len(r.stranded) > 0 && len(r.paused) == 0 {
				require.NotContains(t, waits["one"], "max_running")
			}
		})
	}
}

func TestWaitsLeaveOutWhatRunsOrHasEndedAndReadEachFactOnce(t *testing.T) {
	t.Parallel()
	r := &record{submitters: map[bench.JobKey]string{"one": "ada", "two": "ada"}}
	jobs := []bench.Job{job("one", bench.JobQueued), job("two", bench.JobQueued), job("out", bench.JobHandedOut), job("runs", bench.JobInProgress), job("ended", bench.JobSuccess)}
	waits, err := inspector(r, &temporal{}).Waits(t.Context(), jobs, map[bench.JobKey]bool{"runs": true})
	require.NoError(t, err)
	require.Len(t, waits, 3)
	require.Contains(t, waits["out"], "an idle collector of pool")
	require.Equal(t, map[string]int{"pause of go": 1, "limit of ada": 1}, r.reads)
}

func TestASilentTemporalIsAFindingOfAnExplanationAndEndsARepair(t *testing.T) {
	t.Parallel()
	w := &temporal{err: errors.New("connection refused")}
	i := inspector(&record{}, w)
	explained, err := i.Request(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, []diagnose.Finding{{
		Subject: "Temporal", What: "Temporal cannot be asked: connection refused; is it running, and TEMPORAL_ADDRESS right?", Stuck: true,
	}}, explained.Findings)

	_, err = i.Unstick(t.Context(), request(), inspect.Repairs{By: "ada", Force: true})
	var away *inspect.TemporalError
	require.ErrorAs(t, err, &away)
	require.ErrorIs(t, err, w.err)
	require.Empty(t, w.repairs)
}

func TestRepairsAreCarriedOutOnceAndOnlyAsAllowed(t *testing.T) {
	t.Parallel()
	out := func(key bench.JobKey) bench.Job {
		j := job(key, bench.JobHandedOut)
		long := now.Add(-time.Hour)
		j.HandedOutAt = &long
		return j
	}
	r := &record{jobs: []bench.Job{out("one"), out("two")}}
	w := &temporal{failing: errors.New("no such namespace")}
	w.states = map[string]protocol.WorkflowState{bench.QueueWorkflowID("go"): {Status: protocol.WorkflowRunning}}
	i := inspector(r, w)

	looked, err := i.Unstick(t.Context(), request(), inspect.Repairs{By: "ada", DryRun: true, Force: true})
	require.NoError(t, err)
	require.NotEmpty(t, looked)
	for _, f := range looked {
		require.False(t, f.Tried)
	}
	require.Empty(t, w.repairs)

	// Two jobs lack their workflows: one pass of the reconciliation is for both. Its
	// failure is told of each.
	tried, err := i.Unstick(t.Context(), request(), inspect.Repairs{By: "ada"})
	require.NoError(t, err)
	require.Equal(t, []string{"restart rabcdefghij", "reconcile"}, w.repairs)
	failed := 0
	for _, f := range tried {
		if f.Tried {
			require.ErrorIs(t, f.Err, w.failing)
			failed++
		}
	}
	require.Equal(t, 3, failed)

	// A reset loses decisions: it is carried out only when it is asked for.
	id := request().Ref().WorkflowID()
	w.states[id] = protocol.WorkflowState{Status: protocol.WorkflowRunning, TaskAttempt: 7, TaskFailure: "nondeterminism"}
	for _, force := range []bool{false, true} {
		w.repairs = nil
		_, err = i.Unstick(t.Context(), request(), inspect.Repairs{By: "ada", Force: force})
		require.NoError(t, err)
		require.Equal(t, force, slices.Contains(w.repairs, "reset "+id+": unstick, asked for by ada"), w.repairs)
	}
}
