package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// templated is a request that runs a graph.
type templated struct {
	record
	request bench.Request
	graph   *graph.Graph
	keys    map[string]bench.JobKey // by the names of nodes
}

func defined(t *testing.T, d graph.Definition) graph.Job {
	t.Helper()
	j, err := graph.NewJob(d)
	require.NoError(t, err)
	return j
}

func aCommand(t *testing.T, argv ...string) graph.Job {
	return defined(t, graph.Command{Target: target, Steps: []graph.Step{{Argv: argv}}})
}

// runTemplate creates a request for a graph and writes its jobs: commands for nodes that need
// a machine.
func (r record) runTemplate(nodes []graph.Node, edges ...graph.Edge) templated {
	r.t.Helper()
	g, err := graph.New(nodes, edges)
	require.NoError(r.t, err)
	request, err := bench.NewGraphRequest(project, bench.TemplateCall{Name: "nightly", Definitions: "d", Graph: g.Hash()}, bench.Submission{Submitter: "ada", IdempotencyKey: "tonight"})
	require.NoError(r.t, err)
	request.ID = newID(r.t)
	stored, created, err := r.CreateGraphRequest(r.t.Context(), request, g)
	require.NoError(r.t, err)
	require.True(r.t, created)
	w := templated{r, stored, g, make(map[string]bench.JobKey)}
	of, jobs := store.TemplateGraph{Edges: g.Edges()}, []bench.Job(nil)
	for i, n := range g.Nodes() {
		node := store.TemplateNode{Node: n, Key: plan.ServiceKey(stored.ID, n, 0)}
		w.keys[n.Name] = node.Key
		if n.Job.Kind() == graph.KindCommand {
			j := newCommand(stored, i+1, "true")
			j.Name = n.Name
			jobs, node.Jobs = append(jobs, j), []bench.JobKey{j.Key}
			w.keys[n.Name] = j.Key
		}
		of.Nodes = append(of.Nodes, node)
	}
	twice(r.t, func() error {
		return r.ExpandRequest(r.t.Context(), stored.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(jobs...), Template: &of})
	})
	return w
}

// states returns the states of the nodes that count by now, by their names.
func (w templated) states(now time.Time) map[string]graph.Status {
	w.t.Helper()
	set, out := w.graphs(w.request.ID), make(map[string]graph.Status)
	states := set.States(now)
	for _, n := range set.Nodes {
		if !n.Replaced && !n.Input {
			out[n.Name], w.keys[n.Name] = states[n.Job].Status, n.Job
		}
	}
	return out
}

// handed returns the names of the nodes that are handed out now.
func (w templated) handed() []string {
	w.t.Helper()
	names := []string{}
	for _, key := range w.handedOut() {
		names = append(names, w.job(key).Name)
	}
	return names
}

func (w templated) finish(name string, status bench.JobStatus) {
	w.t.Helper()
	w.record.end(w.keys[name], status)
	_, err := w.ReleaseDependents(w.t.Context(), w.keys[name])
	require.NoError(w.t, err)
}

// nightly is prepare, then measure, then a question, then a notice; clean follows prepare
// whatever becomes of it.
func (r record) nightly() templated {
	r.t.Helper()
	return r.runTemplate([]graph.Node{
		{Name: "prepare", Job: aCommand(r.t, "prepare")}, {Name: "clean", Job: aCommand(r.t, "clean")}, {Name: "measure", Job: aCommand(r.t, "measure"), LimitSeconds: 60},
		{Name: "agree", Job: defined(r.t, graph.SignOff{Question: "Publish?", LimitSeconds: 3600})}, {Name: "tell", Job: defined(r.t, graph.Notify{Tag: "b"})},
	}, graph.Edge{From: "prepare", To: "measure", Condition: graph.OnSuccess}, graph.Edge{From: "prepare", To: "clean", Condition: graph.OnAny},
		graph.Edge{From: "measure", To: "agree", Condition: graph.OnSuccess}, graph.Edge{From: "agree", To: "tell", Condition: graph.OnSuccess})
}

// A job of a template starts only once what it needs has ended as its edge demands.
func TestNodesOfATemplateStartAsTheirEdgesDemand(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	w := r.nightly()
	set := w.graphs(w.request.ID)
	require.Len(t, set.Graphs, 1)
	require.Equal(t, bench.GraphTemplate, set.Graphs[0].Reason)
	require.True(t, set.FromTemplate())
	require.Len(t, set.Edges, 4)
	require.Equal(t, map[string]graph.Status{"prepare": graph.Ready, "clean": graph.Blocked, "measure": graph.Blocked, "agree": graph.Blocked, "tell": graph.Blocked}, w.states(time.Now()))
	require.Equal(t, []string{"prepare"}, w.handed())

	w.finish("prepare", bench.JobFailure)
	require.Equal(t, []string{"clean"}, w.handed())
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Empty(t, w.handed(), "measure needs a success")
	require.Equal(t, graph.Blocked, w.states(time.Now())["measure"])
	missing, err := r.MissingInputs(t.Context(), w.keys["measure"])
	require.NoError(t, err)
	require.Equal(t, []graphset.Missing{{Job: w.keys["prepare"], Name: "prepare", Status: "failure"}}, missing[w.keys["measure"]])
	require.True(t, missing[w.keys["measure"]][0].Ended())

	// Another run of prepare succeeds within the limit.
	done, err := r.Reopen(t.Context(), w.request.ID, retrigger(graphset.DownstreamNone, w.keys["prepare"]), key("again"))
	require.NoError(t, err)
	require.Equal(t, 1, done.Result.Jobs)
	set = w.graphs(w.request.ID)
	require.Equal(t, bench.GraphRetrigger, set.Graphs[1].Reason)
	require.Equal(t, graph.Blocked, w.states(time.Now().Add(time.Hour))["measure"], "the failure counts no longer")
	require.Equal(t, []string{"prepare"}, w.handed())
	require.NoError(t, r.ReleaseHeld(t.Context()))
	require.Empty(t, w.handed())
	w.finish("prepare", bench.JobSuccess)
	require.Equal(t, []string{"measure"}, w.handed())
	w.finish("measure", bench.JobSuccess)
	require.Equal(t, graph.Ready, w.states(time.Now())["agree"])

	progress, err := r.StageProgress(t.Context(), w.request.ID, bench.StageOwn, false)
	require.NoError(t, err)
	require.Equal(t, 5, progress.Total, "nodes that need no machine count, replaced jobs do not")
	require.Equal(t, 3, progress.Open())
}

// What does not succeed within the limit skips what needs it, which is recorded once.
func TestAPassedLimitSkipsNodesOfATemplate(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	w := r.nightly()
	require.Equal(t, []string{"prepare"}, w.handed())
	w.finish("prepare", bench.JobFailure)
	require.Equal(t, []string{"clean"}, w.handed())
	now := time.Now()
	set := w.graphs(w.request.ID)
	due := set.Due(now)
	require.Empty(t, due.Skipped)
	require.WithinDuration(t, now.Add(time.Minute), due.Until, 10*time.Second)
	due = set.Due(now.Add(2 * time.Minute))
	require.Len(t, due.Skipped, 3)
	var ends []store.NodeEnd
	for _, s := range due.Skipped {
		require.Equal(t, "prepare did not succeed within the time limit", s.Words)
		ends = append(ends, store.SkippedNode(s))
	}
	for _, want := range []int{3, 0} {
		ended, _, err := r.EndNodes(t.Context(), w.request.ID, ends)
		require.NoError(t, err)
		require.Equal(t, want, ended)
	}
	require.Equal(t, map[string]graph.Status{"prepare": graph.Failure, "clean": graph.Ready, "measure": graph.Skipped, "agree": graph.Skipped, "tell": graph.Skipped}, w.states(now))
	require.Empty(t, w.graphs(w.request.ID).Due(now.Add(time.Hour)).Skipped)
	require.Equal(t, "skipped: prepare did not succeed within the time limit", w.job(w.keys["measure"]).Message)

	// A success is too late now.
	_, err := r.Reopen(t.Context(), w.request.ID, retrigger(graphset.DownstreamNone, w.keys["prepare"]), key("again"))
	require.NoError(t, err)
	w.states(now)
	require.Equal(t, []string{"prepare"}, w.handed())
	w.finish("prepare", bench.JobSuccess)
	require.Empty(t, w.handed())
	require.Equal(t, graph.Skipped, w.states(now)["measure"])

	// It runs again if it is asked for.
	_, err = r.Reopen(t.Context(), w.request.ID, retrigger(graphset.DownstreamAll, w.keys["measure"]), key("late"))
	require.NoError(t, err)
	require.Equal(t, map[string]graph.Status{"prepare": graph.Success, "clean": graph.Ready, "measure": graph.Ready, "agree": graph.Blocked, "tell": graph.Blocked}, w.states(now))
	require.Equal(t, []string{"measure"}, w.handed())
}

func TestASignOffIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	w := r.nightly()
	ask := w.keys["agree"]
	done, _, err := r.SignOff(t.Context(), w.request.ID, ask, true, store.Act{Who: "grace", Reason: "looks good"})
	require.NoError(t, err)
	require.True(t, done.Result.Changed)
	require.Equal(t, "agreed by grace: looks good", done.Result.Message)
	done, _, err = r.SignOff(t.Context(), w.request.ID, ask, true, store.Act{Who: "ada"})
	require.NoError(t, err)
	require.False(t, done.Result.Changed)
	_, _, err = r.SignOff(t.Context(), w.request.ID, ask, false, store.Act{Who: "ada"})
	require.ErrorIs(t, err, store.ErrAnswered)
	_, _, err = r.SignOff(t.Context(), w.request.ID, "nonexistent", true, store.Act{Who: "ada"})
	require.ErrorIs(t, err, store.ErrNotFound)
	set := w.graphs(w.request.ID)
	require.Equal(t, graph.Ready, w.states(time.Now())["tell"], "set: %v", set)
	due := set.Due(time.Now())
	require.Len(t, due.Ready, 1)
	require.Equal(t, "tell", due.Ready[0].Name)
}

// A cancelled request leaves nothing that waits.
func TestCancellingAGraphEndsAllOfItsNodes(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	w := r.nightly()
	require.Equal(t, []string{"prepare"}, w.handed())
	twice(t, func() error {
		_, err := r.CancelRequest(t.Context(), w.request.ID, "ada", "never mind")
		return err
	})
	for name, state := range w.states(time.Now()) {
		require.Equal(t, graph.Cancelled, state, name)
	}
	p, err := r.JobProgress(t.Context(), w.request.ID)
	require.NoError(t, err)
	require.Equal(t, bench.JobProgress{Total: 5, Cancelled: 5, TestCases: 3}, p)
	ended, _, err := r.EndNodes(t.Context(), w.request.ID, []store.NodeEnd{{Key: w.keys["tell"], Status: graph.Success}})
	require.NoError(t, err)
	require.Zero(t, ended, "an end that comes late changes nothing")
}

func TestAGraphIsRequestedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	w := r.nightly()
	again := w.request
	again.ID = newID(t)
	stored, created, err := r.CreateGraphRequest(t.Context(), again, w.graph)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, w.request.ID, stored.ID)
	require.Equal(t, w.request.Template, stored.Template)
	other := again
	other.Template = &bench.TemplateCall{Name: "nightly", Definitions: "d", Graph: "another"}
	_, _, err = r.CreateGraphRequest(t.Context(), other, w.graph)
	require.ErrorIs(t, err, store.ErrConflict)
	g, err := r.GraphDefinition(t.Context(), w.request.ID)
	require.NoError(t, err)
	require.Equal(t, w.graph.Hash(), g.Hash())
	_, err = r.GraphDefinition(t.Context(), newID(t))
	require.ErrorIs(t, err, store.ErrNotFound)
}

// Two nodes that are one job are refused, and a build that is stored needs none.
func TestNodesWithoutJobs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	g, err := graph.New([]graph.Node{{Name: "a", Job: aCommand(t, "a")}, {Name: "b", Job: aCommand(t, "b")}}, []graph.Edge{{From: "a", To: "b", Condition: graph.OnSuccess}})
	require.NoError(t, err)
	request, err := bench.NewGraphRequest(project, bench.TemplateCall{Name: "n", Definitions: "d", Graph: g.Hash()}, bench.Submission{Submitter: "ada"})
	require.NoError(t, err)
	request.ID = newID(t)
	stored, _, err := r.CreateGraphRequest(t.Context(), request, g)
	require.NoError(t, err)
	job := newCommand(stored, 1, "true")
	expand := func(first, second store.TemplateNode) error {
		first.Node, second.Node = g.Nodes()[0], g.Nodes()[1]
		first.Key, second.Key = plan.ServiceKey(stored.ID, first.Node, 0), plan.ServiceKey(stored.ID, second.Node, 0)
		return r.ExpandRequest(t.Context(), stored.ID, store.Expansion{
			Stage: bench.StageOwn, Jobs: storetest.Planned(job), Template: &store.TemplateGraph{Nodes: []store.TemplateNode{first, second}, Edges: g.Edges()},
		})
	}
	one := []bench.JobKey{job.Key}
	err = expand(store.TemplateNode{Jobs: one}, store.TemplateNode{Jobs: one})
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "the nodes a and b are one job")
	require.NoError(t, expand(store.TemplateNode{Done: "it is stored"}, store.TemplateNode{Jobs: one}))
	set := r.graphs(stored.ID)
	states := make(map[string]string)
	for _, n := range set.Nodes {
		states[n.Name] = fmt.Sprint(set.States(time.Now())[n.Job].Status, " ", n.Message)
	}
	require.Equal(t, map[string]string{"a": "success it is stored", "b": "ready "}, states)
	require.Equal(t, one, r.handedOut())
}
