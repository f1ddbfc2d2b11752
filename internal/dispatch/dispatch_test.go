package dispatch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a record and its workflows: both remember what was done.
type world struct {
	mu       sync.Mutex
	done     []string
	requests map[bench.RequestID]bench.Request
	waiting  map[string][]bench.HandOut // by task queue
	released []string                   // task queues in which an account waits that was at its limit
	// dependents are task queues in which jobs wait that needed another one.
	dependents []string
	relevel    []store.Relevelled
	broken     bench.RequestID // its jobs cannot be started
	more       int             // how many hand-outs are not through with what waits
	config     string          // of every project; empty: one with seven attempts
	fleet      []placement.Collector
	groups     []store.JobGroup
	stranded   []store.WaitingJob
	moved      []store.WaitingJob // those to move in Temporal
	began      bench.JobKey       // a job that has begun since it was listed
	followed   []protocol.Moved   // messages to jobs that wait in Temporal
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, fmt.Sprintf(format, args...))
}

// noted returns what was done so far.
func (w *world) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.done)
}

func (w *world) HandOut(_ context.Context, taskQueue string, opts store.HandOutOptions) ([]bench.HandOut, error) {
	w.note("fill %s up to %d, strict %d", taskQueue, opts.Depth(1), opts.Strict(1))
	if opts.Spare != nil {
		w.note("and %d to spare", opts.Spare(1))
	}
	out := w.waiting[taskQueue]
	delete(w.waiting, taskQueue)
	if w.more > 0 {
		w.more--
		return out, store.ErrMore
	}
	return out, nil
}

func (w *world) WaitingTaskQueues(context.Context) ([]string, error) { return []string{"a", "b"}, nil }
func (w *world) ReleaseLimited(_ context.Context, account string) ([]string, error) {
	w.note("release limited %s", account)
	return w.released, nil
}

func (w *world) ReleaseDependents(_ context.Context, job bench.JobKey) ([]string, error) {
	w.note("release what needs %s", job)
	return w.dependents, nil
}

func (w *world) HandedOutTo(_ context.Context, id bench.RequestID) ([]bench.HandOut, error) {
	w.note("read what was handed out to %s", id)
	return w.waiting[string(id)], nil
}

func (w *world) ReleaseHeld(context.Context) error {
	w.note("release held")
	return nil
}

func (w *world) Request(_ context.Context, id bench.RequestID) (bench.Request, error) {
	return w.requests[id], nil
}

func (w *world) JobRuns(context.Context, bench.JobKey) ([]bench.Run, error) { return nil, nil }

func (w *world) Project(context.Context, string) (store.Project, error) {
	return store.Project{Config: []byte(cmp.Or(w.config, `{"max_job_fails": 7}`))}, nil
}

func (w *world) MarkWorkflowStarted(_ context.Context, id bench.RequestID) error {
	w.note("mark %s", id)
	return nil
}

func (w *world) Relevel(context.Context) ([]store.Relevelled, error) { return w.relevel, nil }
func (w *world) SetLevel(_ context.Context, key bench.JobKey, level int) error {
	w.note("record %s at %d", key, level)
	return nil
}

func (w *world) Fleet(context.Context, time.Duration) (plan.Fleet, error) {
	return w.fleet, nil
}
func (w *world) WaitingGroups(context.Context) ([]store.JobGroup, error) { return w.groups, nil }
func (w *world) Replace(_ context.Context, g store.JobGroup, to bench.Place) (int, error) {
	w.note("replace %s by %s", g.TaskQueue, to.TaskQueue())
	return g.Jobs, nil
}

func (w *world) StrandedJobs(context.Context, ...bench.JobKey) ([]store.WaitingJob, error) {
	return w.stranded, nil
}

func (w *world) MoveJob(_ context.Context, key bench.JobKey, from string, to bench.Place) (bool, error) {
	w.note("row %s from %s to %s", key, from, to.TaskQueue())
	return key != w.began, nil
}

func (w *world) MovedWaiting(context.Context, int) ([]store.WaitingJob, error) { return w.moved, nil }

// workflows notes what is asked of workflows.
type workflows struct{ *world }

func (w workflows) StartJob(_ context.Context, j protocol.JobInput) error {
	if j.Request == w.broken {
		return errors.New("no answer")
	}
	w.note("start %s, %d attempts, level %d of %s, weight %g", j.Key, j.Attempts, j.Priority.Level, j.Priority.FairnessKey(), j.Priority.Weight)
	return nil
}

func (w workflows) HandOut(_ context.Context, request bench.RequestRef, jobs protocol.HandOut) error {
	if request.ID == w.broken {
		return errors.New("no answer")
	}
	keys := make([]string, len(jobs.Jobs))
	for i, j := range jobs.Jobs {
		keys[i] = string(j.Key)
	}
	if len(keys) > 5 {
		keys = append(keys[:5], "…")
	}
	w.note("hand %d jobs to %s/%s: %s", len(jobs.Jobs), request.Project, request.ID, strings.Join(keys, " "))
	return nil
}

func (w workflows) StartRequest(_ context.Context, request bench.RequestRef) error {
	w.note("start %s", request.ID)
	return nil
}

func (w workflows) MoveJob(_ context.Context, job bench.JobRef, to protocol.Moved) error {
	w.note("move %s to %s", job.Key, to.TaskQueue)
	w.followed = append(w.followed, to)
	return nil
}

func (w workflows) SetLevel(_ context.Context, job bench.JobRef, _ int) (bool, error) {
	return job.Key != "early", nil
}

func dispatcher(w *world) *dispatch.Dispatcher {
	return &dispatch.Dispatcher{Record: w, Workflows: workflows{w}, OfflineAfter: time.Minute, Log: slog.New(slog.DiscardHandler)}
}

func TestJobsStartBeforeTheHandOutGoesOn(t *testing.T) {
	t.Parallel()
	w := &world{
		requests: map[bench.RequestID]bench.Request{"running": {ID: "running", Project: "go", Timeline: bench.Timeline{WorkflowStartedAt: new(time.Time)}}},
		waiting:  map[string][]bench.HandOut{"a": {{Request: "running", Project: "go", Job: "one", Kind: bench.KindCommand, Queue: "vip", Weight: 100, Priority: 1}}},
		more:     2,
	}
	require.NoError(t, dispatcher(w).Fill(t.Context(), "a"))
	fill := "fill a up to 4, strict 16"
	require.Equal(t, []string{fill, "start one, 7 attempts, level 1 of vip, weight 1", fill, fill}, w.done)
}

func TestHandedOutJobsAreStarted(t *testing.T) {
	t.Parallel()
	job := func(queue string, request bench.RequestID, key bench.JobKey) bench.HandOut {
		return bench.HandOut{Request: request, Project: "go", Job: key, Kind: bench.KindCommand, Queue: queue, Weight: 30, Priority: 3}
	}
	w := &world{
		requests: map[bench.RequestID]bench.Request{
			"new":     {ID: "new", Project: "go", Standing: bench.Standing{Status: bench.InProgress}},
			"running": {ID: "running", Project: "go", Standing: bench.Standing{Status: bench.InProgress}, Timeline: bench.Timeline{WorkflowStartedAt: new(time.Time)}},
			"ended":   {ID: "ended", Project: "go", Standing: bench.Standing{Status: bench.Completed}},
			"broken":  {ID: "broken", Project: "go", Standing: bench.Standing{Status: bench.InProgress}, Timeline: bench.Timeline{WorkflowStartedAt: new(time.Time)}},
		},
		waiting: map[string][]bench.HandOut{"a": {
			job("user:ada", "new", "one"), job("user:ada", "broken", "two"), job("user:ada", "ended", "three"),
			job("user:ada", "running", "four"), job("user:ada", "new", "five"),
		}},
		broken: "broken",
	}
	d := dispatcher(w)
	require.ErrorContains(t, d.Fill(t.Context(), "a"), "starting jobs of queue user:ada: no answer")
	started := func(key string) string { return "start " + key + ", 7 attempts, level 3 of user:ada, weight 0.3" }
	require.Equal(t, []string{
		"fill a up to 4, strict 16", started("one"), started("three"), started("four"), started("five"), "start new", "mark new",
	}, w.done, "jobs of a queue start in their order, before the request that had no workflow; one that cannot be started keeps no other from it")

	w.done = nil
	seven := job("user:bob", "running", "seven")
	seven.Turn = 2
	w.waiting["a"] = []bench.HandOut{job("user:ada", "running", "six"), seven}
	require.NoError(t, d.Fill(t.Context(), "a"))
	require.ElementsMatch(t, []string{"fill a up to 4, strict 16", started("six"), "start seven, 7 attempts, level 3 of user:bob#2, weight 0.3"}, w.done)
}

// Somebody waits for a command, and nobody for the workflow of its request.
func TestARequestStartsAfterItsCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		request := bench.Request{ID: "new", Project: "go", Standing: bench.Standing{Status: bench.InProgress}}
		w := &world{
			requests: map[bench.RequestID]bench.Request{"new": request},
			waiting:  map[string][]bench.HandOut{"a": {{Request: "new", Project: "go", Job: "one", Kind: bench.KindCommand, Queue: "user:ada", Weight: 30, Priority: 3}}},
		}
		d := dispatcher(w)
		d.RequestDelay = time.Second
		begun := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		require.NoError(t, d.Fill(ctx, "a"))
		stop() // the answer is sent
		require.Zero(t, time.Since(begun))
		require.Equal(t, []string{"fill a up to 4, strict 16", "start one, 7 attempts, level 3 of user:ada, weight 0.3"}, w.noted())
		d.Wait()
		require.Equal(t, d.RequestDelay, time.Since(begun))
		require.Equal(t, []string{"start new", "mark new"}, w.noted()[2:])
	})
}

func TestAfterEndAndSweepFillTaskQueues(t *testing.T) {
	t.Parallel()
	w := &world{released: []string{"a", "b"}, relevel: []store.Relevelled{{JobRef: bench.JobRef{Key: "late"}, Level: 2}, {JobRef: bench.JobRef{Key: "early"}, Level: 2}}}
	d := dispatcher(w)
	require.NoError(t, d.AfterEnd(t.Context(), "one", bench.JobEnd{TaskQueue: "a", Submitter: "ada"}))
	require.Equal(t, []string{"release limited ada", "fill a up to 4, strict 16", "fill b up to 4, strict 16"}, w.done)
	w.done, w.dependents = nil, []string{"c", "b"}
	require.NoError(t, d.AfterEnd(t.Context(), "one", bench.JobEnd{TaskQueue: "a", Submitter: "ada", Needed: true}))
	require.Equal(t, []string{"release limited ada", "release what needs one", "fill a up to 4, strict 16", "fill b up to 4, strict 16", "fill c up to 4, strict 16"}, w.done)
	w.done, w.released = nil, nil
	require.NoError(t, d.AfterEnd(t.Context(), "one", bench.JobEnd{TaskQueue: "a", Brief: true, Consequences: bench.Consequences{Unlimited: true}}))
	require.Equal(t, []string{"fill a up to 4, strict 16", "and 2 to spare"}, w.done, "brief jobs soon end again")
	filled := bench.Consequences{Unlimited: true, OneClass: true, Filled: true}
	for _, c := range []struct {
		end  bench.JobEnd
		want []string
	}{
		{bench.JobEnd{TaskQueue: "a", Consequences: filled}, nil},
		{bench.JobEnd{TaskQueue: "a", Needed: true, Consequences: filled}, []string{"release what needs one", "fill a up to 4, strict 16", "fill b up to 4, strict 16", "fill c up to 4, strict 16"}},
		{bench.JobEnd{TaskQueue: "a", Consequences: bench.Consequences{Unlimited: true, Filled: true}}, []string{"fill a up to 4, strict 16"}},
	} {
		w.done = nil
		require.NoError(t, d.AfterEnd(t.Context(), "one", c.end))
		require.Equal(t, c.want, w.done, "%+v", c.end)
	}
	w.done = nil
	require.NoError(t, d.Sweep(t.Context()))
	require.Equal(t, []string{"record late at 2", "release held", "fill a up to 4, strict 16", "fill b up to 4, strict 16"}, w.done, "what is not there yet is tried again")
}

// The jobs of suites start through the requests that they were handed out to, except for
// the one that asks; commands start at once.
func TestJobsOfSuitesAreHandedToTheirRequests(t *testing.T) {
	t.Parallel()
	job := func(request bench.RequestID, key bench.JobKey, kind bench.JobKind) bench.HandOut {
		return bench.HandOut{Request: request, Project: "go", Job: key, Kind: kind, Queue: "project:go", Weight: 100, Priority: 3}
	}
	open := bench.Standing{Status: bench.InProgress}
	w := &world{
		requests: map[bench.RequestID]bench.Request{
			"asks":   {ID: "asks", Project: "go", Standing: open, Timeline: bench.Timeline{WorkflowStartedAt: new(time.Time)}},
			"other":  {ID: "other", Project: "go", Standing: open},
			"broken": {ID: "broken", Project: "go", Standing: open, Timeline: bench.Timeline{WorkflowStartedAt: new(time.Time)}},
			"person": {ID: "person", Project: "go", Standing: open, Timeline: bench.Timeline{WorkflowStartedAt: new(time.Time)}},
		},
		waiting: map[string][]bench.HandOut{"a": {
			job("asks", "one", bench.KindRuntime), job("broken", "two", bench.KindBuild), job("other", "three", bench.KindBuild),
			job("person", "four", bench.KindCommand), job("other", "five", bench.KindCompileTime),
		}},
		broken: "broken",
	}
	d := dispatcher(w)
	require.ErrorContains(t, d.FillFor(t.Context(), "a", "asks"), "no answer")
	require.Equal(t, []string{
		"fill a up to 4, strict 16", "start four, 7 attempts, level 3 of project:go, weight 1", "start other", "mark other", "hand 2 jobs to go/other: three five",
	}, w.done, "a request that never started is started before it is told")

	// The request that asks reads what is its own; what no message could hold, it is told.
	w.done = nil
	var many []bench.HandOut
	for i := range 250 {
		many = append(many, job("asks", bench.JobKey(fmt.Sprint(i)), bench.KindRuntime))
	}
	w.waiting["asks"] = append(many, job("asks", "own", bench.KindCommand))
	first, err := d.HandedOutTo(t.Context(), "asks")
	require.NoError(t, err)
	require.Len(t, first, 100)
	require.Equal(t, bench.JobKey("99"), first[99].Key)
	require.Equal(t, []string{
		"read what was handed out to asks", "hand 100 jobs to go/asks: 100 101 102 103 104 …", "hand 50 jobs to go/asks: 200 201 202 203 204 …",
	}, w.done)
}
