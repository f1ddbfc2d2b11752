package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func (r record) graphs(id bench.RequestID) graphset.Set {
	r.t.Helper()
	set, err := r.GraphSet(r.t.Context(), id)
	require.NoError(r.t, err)
	return set
}

// stage writes jobs of a stage, twice, since nobody knows whether the first call arrived.
func (r record) stage(request bench.Request, stage bench.Stage, jobs ...bench.Job) {
	r.t.Helper()
	twice(r.t, func() error {
		return r.ExpandRequest(r.t.Context(), request.ID, store.Expansion{Stage: stage, Jobs: storetest.Planned(jobs...)})
	})
}

func buildOf(tag string) bench.Job {
	build := newJob(bench.Request{Tag: tag}, "build")
	build.Work = bench.Work{
		Kind: bench.KindBuild, Tag: tag, Target: target, Iterations: 1, TestCases: []bench.TestCase{},
		Build: &bench.BuildSpec{Key: bench.BuildKey("build of " + tag), Tag: tag, Target: target},
	}
	build.Key = bench.JobKey("build" + tag)
	return build
}

func (r record) end(key bench.JobKey, status bench.JobStatus) {
	r.t.Helper()
	r.execute(`update job_queue set status = $2, started_at = now(), completed_at = now() where key = $1`, string(key), string(status))
}

func statuses(set graphset.Set) map[bench.JobKey]graph.Status {
	out := make(map[bench.JobKey]graph.Status)
	for key, state := range set.States(time.Now()) {
		out[key] = state.Status
	}
	return out
}

func TestTheStagesOfARequestAreLinkedGraphs(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.inProgress(release(t, "b"))
	build, parent, own := buildOf("b"), newJob(bench.Request{Tag: "a"}, "gin", "kit"), newJob(request, "gin")
	r.stage(request, bench.StageBuild, build)
	r.stage(request, bench.StageParent, parent)
	r.stage(request, bench.StageOwn, own)

	set := r.graphs(request.ID)
	require.Len(t, set.Graphs, 3)
	require.Equal(t, []bench.GraphReason{bench.GraphBuild, bench.GraphParent, bench.GraphOwn}, []bench.GraphReason{set.Graphs[0].Reason, set.Graphs[1].Reason, set.Graphs[2].Reason})
	require.Equal(t, []int{0, 0, 2}, []int{set.Graphs[0].Follows, set.Graphs[1].Follows, set.Graphs[2].Follows})
	require.Equal(t, string(request.ID)+"-3", set.Graphs[2].ID().String())
	require.Equal(t, "b", set.Graphs[2].Tag)
	require.Equal(t, []graphset.Edge{
		{Number: 3, From: build.Key, To: own.Key, Condition: graph.OnSuccess}, {Number: 3, From: parent.Key, To: own.Key, Condition: graph.OnAny},
	}, set.Edges)
	only := set.Only(3)
	require.Len(t, only.Nodes, 3)
	require.Equal(t, []bool{true, true, false}, []bool{only.Nodes[0].Input, only.Nodes[1].Input, only.Nodes[2].Input})
	require.Equal(t, &own.TestCases[0], only.Nodes[2].Only)
	require.Equal(t, 2, only.Nodes[1].TestCases)
	require.Nil(t, only.Nodes[1].Only)
	require.Len(t, set.Whole().Nodes, 3)

	require.Equal(t, map[bench.JobKey]graph.Status{build.Key: graph.Ready, parent.Key: graph.Ready, own.Key: graph.Blocked}, statuses(set))
	r.end(build.Key, bench.JobSuccess)
	require.Equal(t, graph.Blocked, statuses(r.graphs(request.ID))[own.Key])
	r.end(parent.Key, bench.JobFailure)
	require.Equal(t, graph.Ready, statuses(r.graphs(request.ID))[own.Key], "a parent that was not measured costs the comparison alone")
	r.end(own.Key, bench.JobSuccess)

	set = r.graphs(request.ID)
	all, of := set.Sums(set.States(time.Now()))
	require.Equal(t, graph.Failure, all.Status)
	require.Equal(t, map[graph.Status]int{graph.Success: 2, graph.Failure: 1}, all.States)
	require.Equal(t, []any{3, 3, 0}, []any{all.Jobs, all.Ran, all.Replaced})
	require.NotNil(t, all.EndedAt)
	require.Equal(t, graph.Success, of[3].Status)
	require.Equal(t, 1, of[3].Jobs, "inputs count where they were written")
}

func TestWhatIsRetriedIsAGraphOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.inProgress(release(t, "b"))
	gin, kit := newJob(request, "gin"), newJob(request, "kit")
	r.stage(request, bench.StageOwn, gin, kit)
	other := r.inProgress(release(t, "c"))
	r.stage(other, bench.StageParent, gin)
	r.end(gin.Key, bench.JobFailure)

	_, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{Job: gin.Key}, byAda)
	require.NoError(t, err)
	for _, id := range []bench.RequestID{request.ID, other.ID} { // both wait for it
		set := r.graphs(id)
		require.Len(t, set.Graphs, 2)
		require.Equal(t, bench.GraphRetry, set.Graphs[1].Reason)
		require.Equal(t, 1, set.Graphs[1].Follows)
		again := set.Only(2).Nodes
		require.Len(t, again, 1)
		require.Equal(t, gin.Key, again[0].Replaces)
		require.NotEqual(t, gin.Key, again[0].Job)
		for _, n := range set.Nodes {
			require.Equal(t, n.Job == gin.Key, n.Replaced)
		}
		all, of := set.Sums(set.States(time.Now()))
		require.Equal(t, graph.Ready, all.Status, "the failure does not count any more")
		require.Equal(t, 1, all.Replaced)
		require.Equal(t, 1, of[1].States[graph.Failure])
	}
}

func TestCancellingARequestSparesNodesOfOthers(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, other := r.inProgress(release(t, "b")), r.inProgress(release(t, "c"))
	shared, own := newJob(request, "gin"), newJob(request, "kit")
	r.stage(request, bench.StageOwn, shared, own)
	r.stage(other, bench.StageParent, shared)
	_, _, err := r.EndRequest(t.Context(), request.ID, cancel, byAda)
	require.NoError(t, err)
	require.Equal(t, map[bench.JobKey]graph.Status{shared.Key: graph.Cancelled, own.Key: graph.Cancelled}, statuses(r.graphs(request.ID)))
	require.Equal(t, map[bench.JobKey]graph.Status{shared.Key: graph.Ready}, statuses(r.graphs(other.ID)))
	r.end(shared.Key, bench.JobSuccess)
	require.Equal(t, graph.Cancelled, statuses(r.graphs(request.ID))[shared.Key], "it ended for the other one alone")
	require.Equal(t, graph.Success, statuses(r.graphs(other.ID))[shared.Key])
}

func TestCommandsHaveNoGraph(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.commands(3)
	_, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{}, byAda)
	require.NoError(t, err)
	one := release(t, "")
	one.Type, one.Command = bench.AdHoc, &bench.Command{Argv: []string{"true"}, Iterations: 1}
	one = r.inProgress(one)
	r.stage(one, bench.StageOwn, newCommand(one, 0, "true"))
	require.Zero(t, r.count(`select count(*) from graph_set`))
	_, err = r.GraphSet(t.Context(), request.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestGraphsAreListed(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	first, second := r.inProgress(release(t, "b")), r.inProgress(release(t, "c"))
	early, late := newJob(first, "gin"), newJob(second, "gin")
	r.stage(first, bench.StageOwn, early)
	r.stage(second, bench.StageBuild, buildOf("c"))
	r.stage(second, bench.StageOwn, late)
	r.end(late.Key, bench.JobSuccess)
	list := func(f store.GraphFilter) (ids []string) {
		t.Helper()
		graphs, sets, err := r.Graphs(t.Context(), f)
		require.NoError(t, err)
		for _, g := range graphs {
			ids = append(ids, g.ID().String())
			require.NotEmpty(t, sets[g.Request].Nodes)
		}
		return ids
	}
	one, two, three := string(first.ID)+"-1", string(second.ID)+"-1", string(second.ID)+"-2"
	require.Equal(t, []string{three, two, one}, list(store.GraphFilter{Project: project, Limit: 10}))
	require.Equal(t, []string{three, two}, list(store.GraphFilter{Project: project, Limit: 2}))
	require.Equal(t, []string{three}, list(store.GraphFilter{Project: project, Ran: true, Limit: 10}))
	require.Equal(t, []string{one}, list(store.GraphFilter{Request: first.ID, Limit: 10}))
	require.Empty(t, list(store.GraphFilter{Project: "other", Limit: 10}))
	graphs, _, err := r.Graphs(t.Context(), store.GraphFilter{Project: project, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []string{one}, list(store.GraphFilter{Project: project, Before: graphs[1].Row, Limit: 10}))
}

func TestAGraphGoesWithItsRequest(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.inProgress(release(t, "b"))
	gin, kit := newJob(request, "gin"), newJob(request, "kit")
	parent := newJob(bench.Request{Tag: "a"}, "gin")
	r.stage(request, bench.StageParent, parent)
	r.stage(request, bench.StageOwn, gin, kit)
	r.execute(`delete from job_queue where key = $1`, string(parent.Key)) // as a purge does
	set := r.graphs(request.ID)
	require.Len(t, set.Nodes, 2)
	require.Empty(t, set.Edges)
	r.execute(`delete from benchmark_request where id = $1`, string(request.ID))
	require.Zero(t, r.count(`select count(*) from graph_set`)+r.count(`select count(*) from graph`)+r.count(`select count(*) from graph_node`)+r.count(`select count(*) from graph_edge`))
}

// A graph of thousands of jobs is written with few statements.
func TestAGraphIsWrittenInBulk(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request := r.inProgress(release(t, "b"))
	var jobs []bench.Job
	for _, name := range names(300) {
		jobs = append(jobs, newJob(request, name))
	}
	r.stage(request, bench.StageOwn, jobs...)
	require.Equal(t, 300, r.count(`select count(*) from graph_node`))
	require.Equal(t, 1, r.count(`select count(distinct cmin::text) from graph_node`), "statements that wrote them")
}
