package handout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/handout"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a record and its workflows: both remember what was done.
type world struct {
	mu       sync.Mutex
	done     []string
	requests map[bench.RequestID]store.Request
	waiting  map[string][]store.HandOut // by task queue
	room     []string                   // where an account waits that was at its limit
	relevel  []store.Relevelled
	broken   bench.RequestID // cannot be told
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, fmt.Sprintf(format, args...))
}

func (w *world) HandOut(_ context.Context, taskQueue string, how store.Filling) ([]store.HandOut, error) {
	w.note("fill %s up to %d, strict %d", taskQueue, how.Depth(1), how.Strict(1))
	out := w.waiting[taskQueue]
	delete(w.waiting, taskQueue)
	return out, nil
}

func (w *world) WaitingTaskQueues(context.Context) ([]string, error) { return []string{"a", "b"}, nil }
func (w *world) Room(_ context.Context, account string) ([]string, error) {
	w.note("room of %s", account)
	return w.room, nil
}

func (w *world) TakeBack(context.Context) error {
	w.note("take back")
	return nil
}

func (w *world) Request(_ context.Context, id bench.RequestID) (store.Request, error) {
	return w.requests[id], nil
}

func (w *world) Project(context.Context, string) (store.Project, error) {
	return store.Project{Config: []byte(`{"max_job_fails": 7}`)}, nil
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

// workflows are those of the world.
type workflows struct{ *world }

func (w workflows) HandOut(_ context.Context, _ string, id bench.RequestID, jobs protocol.HandOut) error {
	w.note("signal %s %d", id, len(jobs.Jobs))
	return nil
}

func (w workflows) StartWithHandOut(_ context.Context, _ string, id bench.RequestID, jobs protocol.HandOut) error {
	if id == w.broken {
		return errors.New("no answer")
	}
	for _, j := range jobs.Jobs {
		w.note("start %s with %s, %d attempts, %v", id, j.Key, j.Attempts, j.Priority)
	}
	return nil
}

func (w workflows) SetLevel(_ context.Context, _ string, key bench.JobKey, _ int) (bool, error) {
	return key != "early", nil
}

func TestWhatIsHandedOutIsStarted(t *testing.T) {
	t.Parallel()
	job := func(request bench.RequestID, key bench.JobKey) store.HandOut {
		return store.HandOut{Request: request, Project: "go", Job: key, Queue: "user:ada", Weight: 30, Priority: 3}
	}
	w := &world{
		requests: map[bench.RequestID]store.Request{
			"open":  {ID: "open", Project: "go", Standing: bench.Standing{Status: bench.InProgress}},
			"ended": {ID: "ended", Project: "go", Standing: bench.Standing{Status: bench.Completed}},
		},
		waiting: map[string][]store.HandOut{"a": {job("open", "one"), job("ended", "two"), job("ended", "three"), job("asked", "four"), job("broken", "five")}},
		broken:  "broken",
	}
	room := handout.Room{Record: w, Workflows: workflows{w}}
	require.ErrorContains(t, room.FillFor(t.Context(), "a", "asked"), "letting request broken start its jobs: no answer")
	require.ElementsMatch(t, []string{
		"fill a up to 4, strict 16", "start open with one, 7 attempts, {3 user:ada 0.3}", "mark open", "signal ended 2",
	}, w.done, "who asked reads by itself; one that is not reached keeps no other")
}

func TestAnEndMakesRoomAndASweepFindsTheRest(t *testing.T) {
	t.Parallel()
	w := &world{room: []string{"a", "b"}, relevel: []store.Relevelled{{Job: "late", Level: 2}, {Job: "early", Level: 2}}}
	room := handout.Room{Record: w, Workflows: workflows{w}}
	require.NoError(t, room.AfterEnd(t.Context(), store.JobEnd{TaskQueue: "a", Submitter: "ada"}))
	require.Equal(t, []string{"room of ada", "fill a up to 4, strict 16", "fill b up to 4, strict 16"}, w.done)
	w.done = nil
	require.NoError(t, room.Sweep(t.Context()))
	require.Equal(t, []string{"record late at 2", "take back", "fill a up to 4, strict 16", "fill b up to 4, strict 16"}, w.done, "what is not there yet is tried again")
}
