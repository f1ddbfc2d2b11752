package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/store"
)

func rerun(downstream graphset.Downstream, jobs ...bench.JobKey) store.ReopenOptions {
	return store.ReopenOptions{Retrigger: &graphset.Choice{Jobs: jobs, Downstream: downstream, Rerun: true}}
}

// A job that runs again keeps its key, and its newest results count. One that runs again by
// the same call waits for it.
func TestAJobRunsAgainAsItself(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("bench-1")
	request, parent, gin, kit := r.measuredRelease(c)

	done, err := r.Reopen(t.Context(), request.ID, rerun(graphset.DownstreamPortion, parent.Key), byAda)
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.Zero(t, done)
	dry := byAda
	dry.DryRun = true
	done, err = r.Reopen(t.Context(), request.ID, rerun(graphset.DownstreamAll, parent.Key), dry)
	require.NoError(t, err)
	require.Equal(t, "3 jobs, 4 test cases; 2 of them downstream", done.Result.Message)
	require.Len(t, done.Result.Preview.Jobs, 3)
	require.Positive(t, done.Result.Preview.MachineSeconds)
	require.Equal(t, 0, r.job(gin.Key).Rerun)

	for _, repeated := range []bool{false, true} {
		done, err = r.Reopen(t.Context(), request.ID, rerun(graphset.DownstreamAll, parent.Key), key("again"))
		require.NoError(t, err)
		require.Equal(t, repeated, done.Repeated)
	}
	require.Equal(t, "rerun", done.Action)
	require.Empty(t, done.Result.Graph)
	require.Len(t, r.graphs(request.ID).Graphs, 2, "no graph is written")
	require.Equal(t, map[bench.JobKey]graph.Status{parent.Key: graph.Ready, gin.Key: graph.Blocked, kit.Key: graph.Blocked}, statuses(r.graphs(request.ID)))

	require.Equal(t, []bench.RequestID{request.ID}, r.admit())
	require.Equal(t, []bench.JobKey{parent.Key}, r.handedOut())
	again := r.job(parent.Key)
	require.Equal(t, []any{1, "ada", bench.JobHandedOut}, []any{again.Rerun, again.AskedBy, again.Status})
	require.Zero(t, again.Done, "its former results are of another generation")
	require.Contains(t, again.Ref().WorkflowID(), ",rerun-1/")

	// What the former workflow still says counts no longer.
	end, err := r.FinishJob(t.Context(), parent.Key, 0, "gave up")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)
	require.Empty(t, end.Waiters)
	require.NoError(t, r.CloseLostRuns(t.Context(), parent.Key, 0, "lost"))
	_, err = r.NextDispatch(t.Context(), parent.Key, 0, "")
	require.ErrorIs(t, err, store.ErrJobClosed)
	require.Equal(t, bench.JobHandedOut, r.job(parent.Key).Status)

	run := r.start(again, 2, c).Run
	require.Equal(t, []any{bench.Rerun, "ada", 2, 1}, []any{run.Reason, run.AskedBy, run.Number, run.Rerun})
	r.block(run.ID, measured("gin", 10), measured("kit", 20))
	// A late result of the former run is of its own generation.
	r.block(runID(parent, 1), measured("gin", 99))
	end, err = r.FinishJob(t.Context(), parent.Key, 1, "")
	require.NoError(t, err)
	require.Equal(t, bench.JobSuccess, end.Status)
	require.Len(t, end.Waiters, 1)
	require.Equal(t, map[string][]float64{"gin": {10}, "kit": {20}}, r.values("a"))
	_, err = r.ReleaseDependents(t.Context(), parent.Key)
	require.NoError(t, err)
	require.ElementsMatch(t, []bench.JobKey{gin.Key, kit.Key}, r.handedOut())

	set := r.graphs(request.ID)
	for _, n := range set.Nodes {
		if n.Job == parent.Key && !n.Input {
			require.Equal(t, []int{1, 2, 1}, []int{n.Rerun, n.Passed(), len(n.Former)})
		}
	}
}

// A job that is asked for several times runs one time after the other, and counts how often
// it has passed. To cancel it ends all of them.
func TestAJobRunsSeveralTimes(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("bench-1")
	request, _, gin, kit := r.measuredRelease(c)
	three := rerun(graphset.DownstreamNone, gin.Key, kit.Key)
	three.Times = store.MaxTimes + 1
	_, err := r.Reopen(t.Context(), request.ID, three, byAda)
	require.ErrorIs(t, err, bench.ErrInvalid)
	three.Times, three.Budget = 3, time.Nanosecond
	_, err = r.Reopen(t.Context(), request.ID, three, byAda)
	var budget *store.BudgetError
	require.ErrorAs(t, err, &budget)
	three.Budget = time.Hour
	done, err := r.Reopen(t.Context(), request.ID, three, byAda)
	require.NoError(t, err)
	require.Equal(t, "2 jobs, 2 test cases, 3 times each", done.Result.Message)
	r.admit()
	for time := 1; time <= 3; time++ {
		require.Contains(t, r.handedOut(), gin.Key)
		j := r.job(gin.Key)
		require.Equal(t, time, j.Rerun)
		run := r.start(j, time+1, c).Run
		require.Equal(t, []any{bench.Rerun, "ada"}, []any{run.Reason, run.AskedBy})
		if time == 2 {
			r.block(run.ID, measured("gin", float64(time)))
			require.NoError(t, r.FinishRun(t.Context(), run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
		} else {
			require.NoError(t, r.FinishRun(t.Context(), run.ID, bench.RunEnd{Outcome: bench.RunFailure}))
		}
		end, err := r.FinishJob(t.Context(), gin.Key, time, "it failed")
		require.NoError(t, err)
		require.Len(t, end.Waiters, 1)
		again, err := r.FinishJob(t.Context(), gin.Key, time, "it failed")
		require.NoError(t, err)
		require.Equal(t, end.Status, again.Status, "a repetition ends no later time")
	}
	require.Equal(t, bench.JobFailure, r.job(gin.Key).Status)
	for _, n := range r.graphs(request.ID).Nodes {
		if n.Job == gin.Key {
			require.Equal(t, []int{3, 2}, []int{n.Rerun, n.Passed()})
		}
	}
	_, err = r.CancelJob(t.Context(), kit.Key, 1, "enough")
	require.NoError(t, err)
	require.Equal(t, []any{bench.JobCancelled, 1}, []any{r.job(kit.Key).Status, r.job(kit.Key).Rerun})

	// New jobs run several times, too.
	four := retrigger(graphset.DownstreamNone, gin.Key)
	four.Times = 2
	_, err = r.Reopen(t.Context(), request.ID, four, byAda)
	require.NoError(t, err)
	next := inPlaces(r.graphs(request.ID))[gin.Key]
	require.Contains(t, r.handedOut(), next)
	r.measure(r.job(next), 1, c, measured("gin", 7))
	require.Equal(t, []any{1, bench.JobQueued}, []any{r.job(next).Rerun, r.job(next).Status})
}

// What needs a job that has succeeded once starts although the job runs again, and is marked
// when that has ended.
func TestADependentSeesTheFirstSuccess(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	w := r.nightly()
	require.Equal(t, []string{"prepare"}, w.handed())
	w.finish("prepare", bench.JobSuccess)
	_, err := r.Reopen(t.Context(), w.request.ID, rerun("", w.keys["prepare"]), byAda)
	require.NoError(t, err)
	require.Equal(t, map[string]graph.Status{"prepare": graph.Ready, "clean": graph.Ready, "measure": graph.Ready, "agree": graph.Blocked, "tell": graph.Blocked}, w.states(time.Now()))
	require.ElementsMatch(t, []string{"prepare", "clean", "measure"}, w.handed())
	r.start(r.job(w.keys["measure"]), 1, r.register("bench-1"))
	w.finish("measure", bench.JobSuccess)
	require.Empty(t, w.graphs(w.request.ID).Outdated())

	w.finish("prepare", bench.JobFailure)
	require.Equal(t, graph.Ready, w.states(time.Now())["agree"])
	require.Empty(t, w.graphs(w.request.ID).Outdated(), "the first success counts")
	_, err = r.Reopen(t.Context(), w.request.ID, rerun(graphset.DownstreamNone, w.keys["prepare"]), byAda)
	require.NoError(t, err)
	w.handed()
	w.finish("prepare", bench.JobSuccess)
	require.Equal(t, map[bench.JobKey]bool{w.keys["measure"]: true}, w.graphs(w.request.ID).Outdated())
	require.Equal(t, 2, r.job(w.keys["prepare"]).Rerun)
}

// A sign-off is asked again, and what was skipped does not come back.
func TestARerunComesTooLateForWhatWasSkipped(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	w := r.nightly()
	w.handed()
	w.finish("prepare", bench.JobSuccess)
	w.handed()
	w.finish("measure", bench.JobSuccess)
	for range 2 {
		_, _, err := r.SignOff(t.Context(), w.request.ID, w.keys["agree"], true, byAda)
		require.NoError(t, err)
		require.Equal(t, graph.Ready, w.states(time.Now())["tell"])
		_, err = r.Reopen(t.Context(), w.request.ID, rerun("", w.keys["agree"]), byAda)
		require.NoError(t, err)
		require.Equal(t, graph.Ready, w.states(time.Now())["agree"], "a person is asked again")
		require.Equal(t, graph.Ready, w.states(time.Now())["tell"], "it agreed once")
	}

	r = newRecord(t)
	w = r.nightly()
	w.handed()
	w.finish("prepare", bench.JobFailure)
	r.execute(`update job_queue set completed_at = completed_at - interval '1 hour', created_at = created_at - interval '1 hour' where key = any($1)`, []string{string(w.keys["prepare"]), string(w.keys["measure"])})
	r.execute(`update graph set created_at = created_at - interval '1 hour'`)
	for _, c := range []store.ReopenOptions{rerun(graphset.DownstreamNone, w.keys["measure"]), rerun(graphset.DownstreamAll, w.keys["prepare"])} {
		_, err := r.Reopen(t.Context(), w.request.ID, c, byAda)
		var refused *graphset.ChoiceError
		require.ErrorAs(t, err, &refused)
		require.True(t, refused.TooLate, "%s", refused)
	}
	_, err := r.Reopen(t.Context(), w.request.ID, rerun(graphset.DownstreamNone, w.keys["prepare"]), byAda)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"prepare"}, w.handed())
}
