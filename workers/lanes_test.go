package workers_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/devstack/devstacktest"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/up"
	"github.com/benchloom/benchloom/workers"
)

const (
	namespace = "lanes"
	// startBound is the time within which a task must start if a machine is
	// idle; it limits a wait, it is not a measurement.
	startBound = time.Minute
	// silence bounds the time that a task may be with a machine that says nothing. A task that Temporal
	// gives to a machine in the very moment in which it stops asking has begun for Temporal, and
	// nobody runs it: this is what brings it back, as the collector's heartbeats do.
	silence = 15 * time.Second
	// controls is the number of tasks that may come before a late one.
	controls = 20
)

// farm is an embedded Temporal with a workflow that dispatches a task until a
// machine has taken it, as the Job workflow does. Each test has separate task
// queues.
type farm struct {
	t      *testing.T
	client client.Client
	number atomic.Int64
	// control starts a machine that shows how long an unhindered task takes.
	control sync.Once
	// returned counts the tasks that machines returned.
	returned atomic.Int64

	mu    sync.Mutex
	tasks map[string]*task
}

// task is one task on its way.
type task struct {
	began chan string // of the machine that runs it
	goOn  chan struct{}
}

const dispatchWorkflow = "dispatch"

// TestLanes runs the tests of this file against one Temporal.
func TestLanes(t *testing.T) {
	t.Parallel()
	c := startTemporal(t)
	for name, test := range map[string]func(*farm){
		"stops that race with dispatches":       stopsThatRaceWithDispatches(someRounds),
		"a task that slips through is not lost": aTaskThatSlipsThroughIsNotLost(someRounds),
		"queues with backlog take turns":        queuesWithBacklogTakeTurns,
		"queues come and go while jobs run":     queuesComeAndGoWhileJobsRun,
		"slots share a budget":                  slotsShareABudget,
		"a large job is let through":            aLargeJobIsLetThrough,
		"a drained slot holds nobody back":      aDrainedSlotHoldsNobodyBack,
		"a slot without room takes nothing":     aSlotWithoutRoomTakesNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&farm{t: t, client: c, tasks: map[string]*task{}})
		})
	}
}

// TestLongLanes repeats the races often enough to meet every order of events.
func TestLongLanes(t *testing.T) {
	t.Parallel()
	c := startTemporal(t)
	for name, test := range map[string]func(*farm){
		"stops that race with dispatches":       stopsThatRaceWithDispatches(manyRounds),
		"a task that slips through is not lost": aTaskThatSlipsThroughIsNotLost(manyRounds),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&farm{t: t, client: c, tasks: map[string]*task{}})
		})
	}
}

// in returns the name of a task queue of the test.
func (f *farm) in(queue string) string { return f.t.Name() + "/" + queue }

func startTemporal(t *testing.T) client.Client {
	t.Helper()
	c := devstacktest.Temporal(t, up.Namespace(namespace))
	w := worker.New(c, protocol.OrchestratorTaskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(dispatch, workflow.RegisterOptions{Name: dispatchWorkflow})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return c
}

func dispatch(ctx workflow.Context, queue, id string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: queue, StartToCloseTimeout: time.Hour, HeartbeatTimeout: silence, DisableEagerExecution: true,
		Priority:    temporal.Priority{PriorityKey: 3, FairnessKey: "user", FairnessWeight: 1},
		RetryPolicy: &temporal.RetryPolicy{NonRetryableErrorTypes: []string{protocol.ErrTypeInfrastructure}},
	})
	for {
		var taken bool
		if err := workflow.ExecuteActivity(ctx, protocol.RunJob, id).Get(ctx, &taken); err == nil {
			return nil
		} else if ctx.Err() != nil {
			return err
		}
	}
}

// submit sends a task to a queue.
func (f *farm) submit(queue string) *task {
	id := fmt.Sprintf("%s/%d", f.t.Name(), f.number.Add(1))
	sent := &task{began: make(chan string, 1), goOn: make(chan struct{})}
	f.mu.Lock()
	f.tasks[id] = sent
	f.mu.Unlock()
	_, err := f.client.ExecuteWorkflow(f.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: protocol.OrchestratorTaskQueue}, dispatchWorkflow, f.in(queue), id)
	if err != nil {
		f.t.Errorf("starting %s: %v", id, err)
	}
	return sent
}

// begins waits until a machine runs the task and returns its name: within the
// bound or, if everything is slow, no later than tasks that are sent after the
// bound to an otherwise idle machine.
func (f *farm) begins(sent *task, what any) string {
	f.t.Helper()
	select {
	case name := <-sent.began:
		return name
	case <-time.After(startBound):
	}
	f.control.Do(func() { f.machine("control", "control") })
	for range controls {
		control := f.submit("control")
		select {
		case name := <-sent.began:
			close(control.goOn)
			return name
		case <-control.began:
			close(control.goOn)
		}
	}
	require.FailNow(f.t, "a task does not start", "%v", what)
	return ""
}

// machine is a collector's machine that runs tasks.
type machine struct {
	*workers.Lanes
	farm *farm
	name string
	runs atomic.Int64 // at this moment
}

func (f *farm) machine(name string, queues ...string) *machine {
	f.t.Helper()
	gate, err := workers.NewGate(1)
	require.NoError(f.t, err)
	return f.slot(name, gate, 1, queues...)
}

func (f *farm) slot(name string, gate *workers.Gate, cost int64, queues ...string) *machine {
	f.t.Helper()
	require.NoError(f.t, gate.Add(name, cost))
	m := &machine{farm: f, name: name}
	m.Lanes = workers.OpenLanes(name, gate, f.client, m, slog.New(slog.NewTextHandler(f.t.Output(), nil)))
	m.serve(queues...)
	f.t.Cleanup(m.Close)
	return m
}

// serve polls these queues of the test from now on.
func (m *machine) serve(queues ...string) {
	named := make([]string, len(queues))
	for i, q := range queues {
		named[i] = m.farm.in(q)
	}
	m.Serve(named...)
}

// Register makes the machine run tasks: each waits until the test lets it
// continue.
func (m *machine) Register(r collection.Registry, admit collection.Admit) {
	r.RegisterActivityWithOptions(func(ctx context.Context, id string) (bool, error) {
		release, ok := admit()
		if !ok {
			m.farm.returned.Add(1)
			return false, temporal.NewNonRetryableApplicationError("not taken", protocol.ErrTypeInfrastructure, nil)
		}
		defer release()
		if n := m.runs.Add(1); n != 1 {
			m.farm.t.Errorf("%s runs %d tasks", m.name, n)
		}
		defer m.runs.Add(-1)
		m.farm.mu.Lock()
		taken := m.farm.tasks[id]
		m.farm.mu.Unlock()
		taken.began <- m.name
		alive := time.NewTicker(time.Second)
		defer alive.Stop()
		for {
			select {
			case <-taken.goOn:
				return true, nil
			case <-ctx.Done():
				return false, ctx.Err()
			case <-alive.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}, activity.RegisterOptions{Name: protocol.RunJob})
}

// Numbers of dispatches that race with stops.
const someRounds, manyRounds = 25, 150

// Machine x serves two queues, y one of them, and there is a task for each at
// nearly the same moment. When x takes the one that only x can run, it stops
// polling for the other, which may already be on its way to x. Both start at
// once: y is idle and must get the other one, and none is lost.
func stopsThatRaceWithDispatches(rounds int) func(*farm) {
	return func(f *farm) {
		t := f.t
		f.machine("x", "pool", "set")
		f.machine("y", "set")
		random := rand.New(rand.NewPCG(1, 2))
		for round := range rounds {
			sent := f.submitTogether(random)
			pool, set := sent[0], sent[1]
			if f.begins(set, round) == "x" {
				close(set.goOn) // x had it first: what x alone can run comes after it
				require.Equal(t, "x", f.begins(pool, round))
			} else {
				require.Equal(t, "x", f.begins(pool, round))
				close(set.goOn)
			}
			close(pool.goOn)
		}
		t.Logf("%d tasks were given back", f.returned.Load())
	}
}

// submitTogether sends a task to each queue at nearly the same moment; the
// random delay makes the race.
func (f *farm) submitTogether(random *rand.Rand) [2]*task {
	delays := [2]time.Duration{time.Duration(random.IntN(6)) * time.Millisecond, time.Duration(random.IntN(6)) * time.Millisecond}
	var sent [2]*task
	var both sync.WaitGroup
	for i, queue := range []string{"pool", "set"} {
		both.Go(func() {
			time.Sleep(delays[i])
			sent[i] = f.submit(queue)
		})
	}
	both.Wait()
	return sent
}

// One machine, and a task for each of its queues at nearly the same moment: the one
// that cannot be taken waits, and starts when the other has ended.
func aTaskThatSlipsThroughIsNotLost(rounds int) func(*farm) {
	return func(f *farm) {
		f.machine("x", "pool", "set")
		random := rand.New(rand.NewPCG(3, 4))
		for round := range rounds {
			sent := f.submitTogether(random)
			for _, s := range sent {
				close(s.goOn)
			}
			for _, s := range sent {
				f.begins(s, round)
			}
		}
		f.t.Logf("%d tasks were given back", f.returned.Load())
	}
}

// Bound and pool work take turns when both wait.
func queuesWithBacklogTakeTurns(f *farm) {
	t := f.t
	m := f.machine("x", "pool")
	first := f.submit("pool")
	f.begins(first, "the first one")
	m.serve("pool", "set")
	const backlog = 10
	order := make(chan string, 2*backlog)
	var following sync.WaitGroup
	for _, queue := range []string{"pool", "set"} {
		for range backlog {
			sent := f.submit(queue)
			following.Go(func() {
				<-sent.began
				order <- queue
				close(sent.goOn)
			})
		}
	}
	close(first.goOn)
	following.Wait()
	changes, last := 0, ""
	for range 2 * backlog {
		if queue := <-order; queue != last {
			changes, last = changes+1, queue
		}
	}
	// All of one queue first would be two; a busy machine may miss a turn.
	require.Greater(t, changes, backlog)
}

// A queue is polled once it is named, also while a job runs, and left when it
// is no longer named, after its job has ended.
func queuesComeAndGoWhileJobsRun(f *farm) {
	t := f.t
	m := f.machine("x", "pool")
	early := f.submit("set")
	m.serve("pool", "set")
	f.begins(early, "what waited for the queue to be served")
	m.serve("pool")
	late, next := f.submit("set"), f.submit("pool")
	require.Equal(t, int64(1), m.runs.Load(), "the job goes on")
	close(early.goOn)
	f.begins(next, "the queue that stays")
	close(next.goOn)
	require.Empty(t, late.began, "nobody serves its queue")
	f.machine("y", "set")
	require.Equal(t, "y", f.begins(late, "another machine serves it"))
	close(late.goOn)
}

// Jobs of a shared host run concurrently within its budget: of three 8 GB jobs
// on 20 GB two run, and a 4 GB job behind them starts at once.
func slotsShareABudget(f *farm) {
	t := f.t
	gate, err := workers.NewGate(20)
	require.NoError(t, err)
	for i := range 5 {
		f.slot(fmt.Sprintf("c1-%d", i), gate, 4, "class 1")
	}
	f.slot("c2-1", gate, 8, "class 2")
	f.slot("c2-2", gate, 8, "class 2")
	f.slot("c4-1", gate, 16, "class 4")
	for round := range 5 {
		eights := []*task{f.submit("class 2"), f.submit("class 2")}
		for _, e := range eights {
			f.begins(e, round)
		}
		third, large, small := f.submit("class 2"), f.submit("class 4"), f.submit("class 1")
		f.begins(small, round)
		require.Empty(t, third.began)
		require.Empty(t, large.began)
		close(small.goOn)
		close(eights[0].goOn)
		f.begins(third, round)
		close(third.goOn)
		close(eights[1].goOn)
		f.begins(large, round)
		close(large.goOn)
	}
}

// The API's report about waiting jobs reserves capacity for a large one: a
// small one that would delay it does not start, although it came first and
// would fit.
func aLargeJobIsLetThrough(f *farm) {
	t := f.t
	gate, err := workers.NewGate(20)
	require.NoError(t, err)
	for i := range 5 {
		f.slot(fmt.Sprintf("c1-%d", i), gate, 4, "class 1")
	}
	f.slot("c4-1", gate, 16, "class 4")
	running := []*task{f.submit("class 1"), f.submit("class 1")}
	for _, r := range running {
		f.begins(r, "a small one")
	}
	gate.Report("c4-1", map[string]float64{f.in("class 4"): 120})
	small, large := f.submit("class 1"), f.submit("class 4")
	close(running[0].goOn)
	f.begins(large, "the large one")
	require.Empty(t, small.began)
	close(running[1].goOn)
	f.begins(small, "the small one, beside it")
	close(large.goOn)
	close(small.goOn)
}

// A slot that no longer takes jobs reserves no capacity for jobs waiting there,
// although its heartbeats still report them.
func aDrainedSlotHoldsNobodyBack(f *farm) {
	gate, err := workers.NewGate(8)
	require.NoError(f.t, err)
	large := f.slot("c2-1", gate, 8, "class 2")
	f.slot("c1-1", gate, 4, "class 1")
	large.Close()
	gate.Report("c2-1", map[string]float64{f.in("class 2"): 120})
	small := f.submit("class 1")
	f.begins(small, "the small one")
	close(small.goOn)
}

// What waits where the only machine has no room goes to one that has, and to the first when it has room again.
func aSlotWithoutRoomTakesNothing(f *farm) {
	t := f.t
	gate, err := workers.NewGate(1)
	require.NoError(t, err)
	var room atomic.Bool
	gate.KeepRoom("x", room.Load)
	f.slot("x", gate, 1, "pool")
	waits := f.submit("pool")
	y := f.machine("y", "pool")
	require.Equal(t, "y", f.begins(waits, "another machine has room"))
	close(waits.goOn)
	y.Close()
	late := f.submit("pool")
	room.Store(true)
	require.Equal(t, "x", f.begins(late, "there is room again"))
	close(late.goOn)

	// Its poll was open when the room was used.
	room.Store(false)
	late = f.submit("pool")
	f.machine("z", "pool")
	require.Equal(t, "z", f.begins(late, "a task that is given back"))
	close(late.goOn)
}
