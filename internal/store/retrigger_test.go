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

// measuredRelease is a request that has ended, with a job of its parent and two of its own
// that need it, all measured by c.
func (r record) measuredRelease(c bench.Collector) (request bench.Request, parent, gin, kit bench.Job) {
	r.t.Helper()
	request = r.inProgress(release(r.t, "b"))
	parent, gin, kit = newJob(bench.Request{Tag: "a"}, "gin", "kit"), newJob(request, "gin"), newJob(request, "kit")
	r.stage(request, bench.StageParent, parent)
	r.measure(parent, 1, c, measured("gin", 1), measured("kit", 2))
	r.stage(request, bench.StageOwn, gin, kit)
	r.measure(gin, 1, c, measured("gin", 3))
	r.measure(kit, 1, c, measured("kit", 4))
	r.complete(request, bench.Success)
	return request, parent, gin, kit
}

func retrigger(downstream graphset.Downstream, jobs ...bench.JobKey) store.ReopenOptions {
	return store.ReopenOptions{Retrigger: &graphset.Choice{Jobs: jobs, Downstream: downstream}}
}

// inPlaces maps former jobs of a request to those in their places.
func inPlaces(set graphset.Set) map[bench.JobKey]bench.JobKey {
	out := make(map[bench.JobKey]bench.JobKey)
	for _, n := range set.Nodes {
		if n.Replaces != "" {
			out[n.Replaces] = n.Job
		}
	}
	return out
}

// A retrigger measures again what has results, as a graph of its own; what needs a job
// starts after it.
func TestWhatIsRetriggeredStartsAfterWhatItNeeds(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("bench-1")
	request, parent, gin, kit := r.measuredRelease(c)

	_, err := r.Reopen(t.Context(), request.ID, retrigger("", parent.Key), byAda)
	var needs *graphset.DownstreamError
	require.ErrorAs(t, err, &needs)
	require.Equal(t, 2, needs.Dependents)
	require.Equal(t, bench.Completed, r.request(request.ID).Status)

	done, err := r.Reopen(t.Context(), request.ID, retrigger(graphset.DownstreamAll, parent.Key), key("again"))
	require.NoError(t, err)
	require.Equal(t, "retrigger", done.Action)
	require.Equal(t, "3 jobs, 4 test cases; 2 of them downstream", done.Result.Message)
	require.Equal(t, string(request.ID)+"-3", done.Result.Graph)
	require.JSONEq(t, `{"downstream": "all", "jobs": ["`+string(parent.Key)+`"]}`, string(done.Detail))
	set := r.graphs(request.ID)
	require.Equal(t, bench.GraphRetrigger, set.Graphs[2].Reason)
	require.Equal(t, 2, set.Graphs[2].Follows)
	next := inPlaces(set)
	require.Len(t, next, 3)
	require.Equal(t, map[bench.JobKey]graph.Status{
		parent.Key: graph.Success, gin.Key: graph.Success, kit.Key: graph.Success, next[parent.Key]: graph.Ready, next[gin.Key]: graph.Blocked, next[kit.Key]: graph.Blocked,
	}, statuses(set))

	// The same call once more does nothing.
	again, err := r.Reopen(t.Context(), request.ID, retrigger(graphset.DownstreamAll, parent.Key), key("again"))
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.Equal(t, done.Result.Graph, again.Result.Graph)
	require.Len(t, r.graphs(request.ID).Graphs, 3)

	// Only what needs nothing is handed out. The others say what they wait for.
	require.Empty(t, r.handedOut(), "the request has not had its turn again")
	require.Equal(t, []bench.RequestID{request.ID}, r.admit())
	require.Equal(t, []bench.JobKey{next[parent.Key]}, r.handedOut())
	require.Equal(t, 2, r.count(`select count(*) from job_queue where held = 'input'`))
	inputs, err := r.MissingInputs(t.Context(), next[parent.Key], next[gin.Key], next[kit.Key])
	require.NoError(t, err)
	needed := []graphset.Missing{{Job: next[parent.Key], Status: string(bench.JobHandedOut)}}
	require.Equal(t, map[bench.JobKey][]graphset.Missing{next[gin.Key]: needed, next[kit.Key]: needed}, inputs)
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Empty(t, r.handedOut(), "a sweep changes nothing")

	// Its end releases them, however it ends.
	end, err := r.FinishJob(t.Context(), next[parent.Key], 0, "gave up")
	require.NoError(t, err)
	require.Equal(t, bench.JobFailure, end.Status)
	require.True(t, end.Needed)
	queues, err := r.ReleaseDependents(t.Context(), next[parent.Key])
	require.NoError(t, err)
	require.Equal(t, []string{small.TaskQueue()}, queues)
	require.ElementsMatch(t, []bench.JobKey{next[gin.Key], next[kit.Key]}, r.handedOut())
	end, err = r.FinishJob(t.Context(), next[parent.Key], 0, "gave up")
	require.NoError(t, err)
	require.False(t, end.Needed)
	r.measure(r.job(next[gin.Key]), 1, c, measured("gin", 5))
	require.Equal(t, []float64{5}, r.values("b")["gin"], "the newest counts")
}

// If nobody learns of the end of an input, a sweep releases what waits for it.
func TestASweepReleasesWhatWaitsForNothing(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, parent, gin, _ := r.measuredRelease(r.register("bench-1"))
	_, err := r.Reopen(t.Context(), request.ID, retrigger(graphset.DownstreamAll, parent.Key), byAda)
	require.NoError(t, err)
	r.admit()
	next := inPlaces(r.graphs(request.ID))
	require.Len(t, r.handedOut(), 1)
	r.end(next[parent.Key], bench.JobSuccess)
	require.Empty(t, r.handedOut())
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Contains(t, r.handedOut(), next[gin.Key])
}

// A job that two requests share waits only until it may run for one of them.
func TestASharedJobWaitsOnlyForInputsOfEachRequest(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, parent, gin, _ := r.measuredRelease(r.register("bench-1"))
	_, err := r.Reopen(t.Context(), request.ID, retrigger(graphset.DownstreamAll, parent.Key), byAda)
	require.NoError(t, err)
	r.admit()
	require.Len(t, r.handedOut(), 1)
	next := inPlaces(r.graphs(request.ID))[gin.Key]
	other := r.inProgress(release(t, "c"))
	r.stage(other, bench.StageParent, r.job(next)) // as its parent's, it needs nothing there
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Equal(t, []bench.JobKey{next}, r.handedOut())
}

func TestARetriggerMayBePreviewedAndNarrowed(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, parent, gin, kit := r.measuredRelease(r.register("bench-1"))
	selected := func(s string, d graphset.Downstream) store.ReopenOptions {
		sel, err := graphset.ParseSelector(s)
		require.NoError(t, err)
		return store.ReopenOptions{Retrigger: &graphset.Choice{Select: sel, Downstream: d}}
	}
	dry := key("k")
	dry.DryRun = true
	done, err := r.Reopen(t.Context(), request.ID, selected("stage=parent,benchmark=kit", graphset.DownstreamAll), dry)
	require.NoError(t, err)
	require.Equal(t, "2 jobs, 2 test cases; 1 of them downstream", done.Result.Message)
	require.Empty(t, done.Result.Graph)
	require.Equal(t, []bench.JobKey{parent.Key, kit.Key}, []bench.JobKey{done.Result.Preview.Jobs[0].Job.Key, done.Result.Preview.Jobs[1].Job.Key})
	require.Equal(t, 1, done.Result.Preview.Jobs[0].TestCases, "half of its test cases")
	require.Positive(t, done.Result.Preview.MachineSeconds)
	require.Equal(t, bench.Completed, r.request(request.ID).Status)
	require.Len(t, r.graphs(request.ID).Graphs, 2)

	_, err = r.Reopen(t.Context(), request.ID, selected("state=failure", ""), byAda)
	var nothing *graphset.NothingChosenError
	require.ErrorAs(t, err, &nothing)
	options := selected("kind=benchmark", graphset.DownstreamNone)
	options.Retrigger.Number = 9
	_, err = r.Reopen(t.Context(), request.ID, options, byAda)
	require.ErrorIs(t, err, store.ErrNotFound)

	done, err = r.Reopen(t.Context(), request.ID, selected("stage=parent,benchmark=kit", graphset.DownstreamNone), key("k"))
	require.NoError(t, err)
	require.Equal(t, "1 job, 1 test case; 1 job downstream left alone", done.Result.Message)
	next := r.job(inPlaces(r.graphs(request.ID))[parent.Key])
	require.Equal(t, testCases("kit"), next.TestCases)
	require.Equal(t, bench.JobSuccess, r.job(gin.Key).Status)
}

// While its request is open, a job that has ended runs again beside the others.
func TestAnOpenRequestIsRetriggeredInPart(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("bench-1")
	request := r.inProgress(release(t, "b"))
	gin, kit := newJob(request, "gin"), newJob(request, "kit")
	r.stage(request, bench.StageOwn, gin, kit)
	r.measure(gin, 1, c, measured("gin", 3))
	_, err := r.Reopen(t.Context(), request.ID, retrigger("", kit.Key), byAda)
	var refused *graphset.ChoiceError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, kit.Key, refused.Job)
	done, err := r.Reopen(t.Context(), request.ID, retrigger("", gin.Key), byAda)
	require.NoError(t, err)
	require.Equal(t, "1 job, 1 test case", done.Result.Message)
	require.Equal(t, bench.InProgress, r.request(request.ID).Status)
	next := inPlaces(r.graphs(request.ID))[gin.Key]
	require.ElementsMatch(t, []bench.JobKey{next, kit.Key}, r.handedOut())
	require.WithinDuration(t, time.Now(), r.job(next).CreatedAt, time.Hour)
}

// A run says why it exists, and who asked: what a person asks for is no automatic attempt.
func TestARunSaysWhyItExists(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("bench-1")
	request, _, gin, _ := r.measuredRelease(c)
	first := r.run(runID(gin, 1))
	require.Equal(t, []any{bench.Scheduled, ""}, []any{first.Reason, first.AskedBy})
	_, err := r.Reopen(t.Context(), request.ID, retrigger(graphset.DownstreamNone, gin.Key), store.Act{Who: "grace", Reason: "a noisy machine"})
	require.NoError(t, err)
	r.admit()
	next := r.job(inPlaces(r.graphs(request.ID))[gin.Key])
	require.Equal(t, "grace", next.AskedBy)
	require.Equal(t, []bench.JobKey{next.Key}, r.handedOut())
	again := r.start(next, 1, c).Run
	require.Equal(t, []any{bench.Rerun, "grace", 1}, []any{again.Reason, again.AskedBy, again.Number})
	require.NoError(t, r.FinishRun(t.Context(), again.ID, bench.RunEnd{Outcome: bench.RunFailure}))
	start := r.runStart(runID(next, 2), c)
	start.Reason = bench.Retry
	plan, err := r.StartRun(t.Context(), start)
	require.NoError(t, err)
	require.Equal(t, []any{bench.Retry, "", 2}, []any{plan.Run.Reason, plan.Run.AskedBy, plan.Run.Number}, "an automatic attempt of the job is one")
}
