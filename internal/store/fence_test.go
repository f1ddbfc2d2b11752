package store_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// tasks hands out whatever waits at the small pool and returns the tasks by job.
func (r record) tasks() map[bench.JobKey]bench.HandOut {
	r.t.Helper()
	jobs, err := r.HandOut(r.t.Context(), small.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(r.t, err)
	tasks := make(map[bench.JobKey]bench.HandOut)
	for _, j := range jobs {
		tasks[j.Job] = j
	}
	return tasks
}

// task returns the request of a collector that has got a job's task as it was handed out.
func task(h bench.HandOut, attempt int, c bench.Collector) store.RunStart {
	return store.RunStart{
		Run: bench.NewRunID(h.Job, "workflow", "activity", int32(attempt)), Reason: bench.Scheduled, Collector: c.Name, Epoch: c.Epoch,
		Dispatch: h.Dispatch, TaskQueue: h.TaskQueue,
	}
}

// A collector knows the secret of a dispatch only from its task, and without it begins no
// run and ends none.
func TestTheFenceDemandsTheSecretOfTheDispatch(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, thief := r.register("one"), r.register("thief")
	_, job := r.oneJob("v1", "gin")
	_, other := r.oneJob("v2", "gin")
	handedOut := r.tasks()
	require.NotEqual(t, handedOut[job.Key].Dispatch, handedOut[other.Key].Dispatch)
	for name, guessed := range map[string]bench.Dispatch{
		"none": "", "another job's": handedOut[other.Key].Dispatch, "a guess": "6a1f0f9e-4d0e-4c57-9d55-0a4f2f7a1b3c", "no UUID": "' or true --",
		"half of it": handedOut[job.Key].Dispatch[:18],
	} {
		start := task(handedOut[job.Key], 1, thief)
		start.Dispatch = guessed
		_, err := r.StartRun(t.Context(), start)
		require.ErrorIs(t, err, store.ErrStaleDispatch, name)
		require.NotContains(t, err.Error(), string(handedOut[job.Key].Dispatch))
	}
	require.Zero(t, r.count(`select count(*) from job_run`))

	begun, err := r.StartRun(t.Context(), task(handedOut[job.Key], 1, one))
	require.NoError(t, err)

	// The secret of a dispatch that has begun begins no second run beside the live one.
	_, err = r.StartRun(t.Context(), task(handedOut[job.Key], 2, thief))
	require.ErrorIs(t, err, store.ErrUnderWay)
	require.ErrorContains(t, err, "run "+string(begun.Run.ID)+" of the same dispatch has not ended")
	require.Equal(t, bench.RunRunning, r.run(begun.Run.ID).Outcome)
	require.Equal(t, begun.Run.ID, r.collector("one").CurrentRun)

	// Temporal's own attempts of a dispatch share it: the run before has ended.
	require.NoError(t, r.FinishRun(t.Context(), begun.Run.ID, bench.RunEnd{Outcome: bench.RunFailure}))
	second, err := r.StartRun(t.Context(), task(handedOut[job.Key], 2, one))
	require.NoError(t, err)
	require.Equal(t, 2, second.Run.Number)
}

// Only a new dispatch, which the job's workflow asks for, replaces a run that has not
// ended, and tasks of the one before begin nothing any more.
func TestANewDispatchReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	_, job := r.oneJob("v1", "gin")
	first := r.tasks()[job.Key]
	begun, err := r.StartRun(t.Context(), task(first, 1, one))
	require.NoError(t, err)

	again := first
	again.Dispatch, err = r.NextDispatch(t.Context(), job.Key, 0, first.Dispatch)
	require.NoError(t, err)
	require.NotEqual(t, first.Dispatch, again.Dispatch)
	repeatedly, err := r.NextDispatch(t.Context(), job.Key, 0, first.Dispatch)
	require.NoError(t, err)
	require.Equal(t, again.Dispatch, repeatedly)
	_, err = r.StartRun(t.Context(), task(first, 2, two))
	require.ErrorIs(t, err, store.ErrStaleDispatch)
	require.Equal(t, bench.RunRunning, r.run(begun.Run.ID).Outcome, "the stale task ends nothing")

	// The live run repeats its call with the task that it has, and with no other.
	repeated, err := r.StartRun(t.Context(), task(first, 1, one))
	require.NoError(t, err)
	require.Equal(t, begun.Run, repeated.Run)
	_, err = r.StartRun(t.Context(), task(again, 1, one))
	require.ErrorIs(t, err, store.ErrStaleDispatch)

	_, err = r.StartRun(t.Context(), task(again, 2, two))
	require.NoError(t, err)
	require.Equal(t, bench.RunLost, r.run(begun.Run.ID).Outcome)
	_, err = r.FinishJob(t.Context(), job.Key, 0, "given up")
	require.NoError(t, err)
	_, err = r.NextDispatch(t.Context(), job.Key, 0, first.Dispatch)
	require.ErrorIs(t, err, store.ErrJobClosed)
	_, err = r.NextDispatch(t.Context(), "aaaaaaaaaaaaaaaa", 0, "")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// The secret alone opens nothing: histories of workflows can be read.
func TestTheFenceRefusesCollectorsThatTheTaskIsNotFor(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	_, job := r.oneJob("v1", "gin")
	first := r.tasks()[job.Key]
	foreign := collector("arm")
	foreign.Target = "aarch64-unknown-linux-gnu"
	arm, err := r.RegisterCollector(t.Context(), foreign, offline)
	require.NoError(t, err)
	large := bench.Pool{Target: target, SizeClass: 4, Name: "large"}
	for name, c := range map[string]struct {
		collector bench.Collector
		from      string
		says      string
	}{
		"another target":                  {arm, first.TaskQueue, "it is for x86_64-unknown-linux-gnu, and collector arm measures aarch64-unknown-linux-gnu"},
		"another pool":                    {r.registerIn("other", bench.Pool{Target: target, SizeClass: 2, Name: "other"}, "zen4"), first.TaskQueue, "from which collector other takes no jobs"},
		"another class, its own queue":    {r.registerIn("big", large, "zen4"), large.TaskQueue(), "it waits in task queue " + small.TaskQueue()},
		"a task from nowhere":             {one, "", "it waits in task queue " + small.TaskQueue()},
		"a queue that the job never left": {one, "bench/elsewhere", "took it from"},
	} {
		start := task(first, 1, c.collector)
		start.TaskQueue = c.from
		_, err := r.StartRun(t.Context(), start)
		require.ErrorIs(t, err, store.ErrElsewhere, name)
		require.ErrorContains(t, err, c.says, name)
	}
	require.Zero(t, r.count(`select count(*) from job_run`))

	// A set's job is for its members, wherever the pool's other collectors are.
	set := bench.Place{Pool: small, Set: []string{"two"}}
	two := r.register("two")
	moved, err := r.MoveJob(t.Context(), job.Key, small.TaskQueue(), set)
	require.NoError(t, err)
	require.True(t, moved)
	start := task(first, 1, one)
	start.TaskQueue = set.TaskQueue()
	_, err = r.StartRun(t.Context(), start)
	require.ErrorIs(t, err, store.ErrElsewhere)
	start = task(first, 1, two)
	start.TaskQueue = set.TaskQueue()
	_, err = r.StartRun(t.Context(), start)
	require.NoError(t, err)
}

// A job that has moved twice is not taken from where it was first: that task is given
// back, and the next dispatch goes where the job is.
func TestATaskFromBeforeTwoMovesIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	_, job := r.oneJob("v1", "gin")
	first := r.tasks()[job.Key]
	larger := bench.Place{Pool: bench.Pool{Target: target, SizeClass: 4, Name: "large"}}
	largest := bench.Place{Pool: bench.Pool{Target: target, SizeClass: 8, Name: "largest"}}
	_, err := r.MoveJob(t.Context(), job.Key, small.TaskQueue(), larger)
	require.NoError(t, err)
	_, err = r.MoveJob(t.Context(), job.Key, larger.TaskQueue(), largest)
	require.NoError(t, err)
	_, err = r.StartRun(t.Context(), task(first, 1, one))
	require.ErrorIs(t, err, store.ErrElsewhere)
	require.ErrorContains(t, err, "it waits in task queue "+largest.TaskQueue())
	require.Equal(t, largest.TaskQueue(), r.job(job.Key).TaskQueue)
}

// Rows and runs from before there were secrets have none that a task carries.
func TestAJobFromBeforeTheSecretsIsDispatchedAgain(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := r.register("one")
	_, job := r.oneJob("v1", "gin")
	before := r.tasks()[job.Key]
	before.Dispatch = ""
	_, err := r.StartRun(t.Context(), task(before, 1, one))
	require.ErrorIs(t, err, store.ErrStaleDispatch)
	before.Dispatch, err = r.NextDispatch(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	begun, err := r.StartRun(t.Context(), task(before, 2, one))
	require.NoError(t, err)

	// A run that an older version began is replaced like any other.
	r.execute(`update job_run set dispatch = null`)
	_, err = r.StartRun(t.Context(), task(before, 3, one))
	require.NoError(t, err)
	require.Equal(t, bench.RunLost, r.run(begun.Run.ID).Outcome)
}

// Of two tasks of one dispatch, and of two dispatches, one has a run that is open.
func TestConcurrentStartsLeaveOneOpenRun(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	_, job := r.oneJob("v1", "gin")
	first := r.tasks()[job.Key]
	for round := range 5 {
		again := first
		var err error
		errs := together(3, func(i int) error {
			switch i {
			case 0:
				_, err := r.StartRun(t.Context(), task(first, 10*round+1, one))
				return err
			case 1:
				_, err := r.StartRun(t.Context(), task(first, 10*round+2, two))
				return err
			}
			again.Dispatch, err = r.NextDispatch(t.Context(), job.Key, 0, first.Dispatch)
			return err
		})
		for _, err := range errs {
			if !errors.Is(err, store.ErrStaleDispatch) && !errors.Is(err, store.ErrUnderWay) {
				require.NoError(t, err)
			}
		}
		require.NoError(t, err)
		require.LessOrEqual(t, r.count(`select count(*) from job_run where outcome = ''`), 1)
		first = again
	}
}
