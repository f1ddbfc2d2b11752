package graphset_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
)

var begin = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func at(minutes int) *time.Time {
	t := begin.Add(time.Duration(minutes) * time.Minute)
	return &t
}

func TestANodeFollowsFromItsJobAndItsInputs(t *testing.T) {
	t.Parallel()
	set := graphset.Set{
		Graphs: []graphset.Graph{{Number: 1}, {Number: 2, Follows: 1}},
		Nodes: []graphset.Node{
			{Number: 1, Job: "build", Kind: bench.KindBuild, Tag: "v2", Status: bench.JobFailure, CreatedAt: begin, StartedAt: at(1), EndedAt: at(5)},
			{Number: 1, Job: "parent", Kind: bench.KindRuntime, Status: bench.JobInProgress, CreatedAt: begin, StartedAt: at(2)},
			{Number: 2, Job: "build", Kind: bench.KindBuild, Input: true, Status: bench.JobFailure, CreatedAt: begin, StartedAt: at(1), EndedAt: at(5)},
			{Number: 2, Job: "own", Kind: bench.KindCompileTime, Profile: "build", Backend: "gc", TestCases: 3, Status: bench.JobQueued, CreatedAt: *at(6)},
			{Number: 2, Job: "other", Kind: bench.KindRuntime, Status: bench.JobQueued, CreatedAt: *at(6)},
			{Number: 2, Job: "given", Kind: bench.KindRuntime, Status: bench.JobHandedOut, CreatedAt: *at(6)},
		},
		Edges: []graphset.Edge{
			{Number: 2, From: "build", To: "own", Condition: graph.OnSuccess}, {Number: 2, From: "parent", To: "other", Condition: graph.OnAny},
			{Number: 2, From: "parent", To: "given", Condition: graph.OnAny},
		},
	}
	states := set.States(*at(10))
	require.Equal(t, graph.State{Status: graph.Failure, Since: *at(5)}, states["build"])
	require.Equal(t, graph.State{Status: graph.Running, Since: *at(2)}, states["parent"])
	require.Equal(t, graph.Blocked, states["own"].Status)
	require.Equal(t, graph.Reason{Code: graph.InputFailed, Node: "build"}, states["own"].Reason)
	require.Equal(t, graph.Reason{Code: graph.Waits, Node: "parent"}, states["other"].Reason)
	require.Equal(t, graph.State{Status: graph.Ready, Since: *at(6)}, states["given"], "its inputs were met when it was handed out")
	later := set.States(begin.Add(30 * 24 * time.Hour))
	require.Equal(t, graph.Skipped, later["own"].Status, "its limit has passed")

	all, of := set.Sums(states)
	require.Equal(t, graph.Running, all.Status)
	require.Equal(t, 5, all.Jobs)
	require.Equal(t, 2, all.Ran)
	require.Equal(t, at(1), all.StartedAt)
	require.Nil(t, all.EndedAt)
	require.Equal(t, graph.Ready, of[2].Status)
	require.Equal(t, 3, of[2].Jobs)
	require.Equal(t, []string{"build v2", "compiletime build gc, 3 test cases"}, []string{set.Nodes[0].Title(), set.Nodes[3].Title()})
	require.Equal(t, graph.KindBuild, set.Nodes[0].NodeKind())
	require.Len(t, set.Only(2).Nodes, 4)
	require.Len(t, set.Whole().Nodes, 5)
}

// Whatever the rows, each job of the set has a state that fits its own, and counts once.
func TestStatesOfRandomSets(t *testing.T) {
	t.Parallel()
	fitting := map[bench.JobStatus][]graph.Status{
		bench.JobQueued: {graph.Ready, graph.Blocked, graph.Skipped}, bench.JobHandedOut: {graph.Ready}, bench.JobInProgress: {graph.Running},
		bench.JobSuccess: {graph.Success}, bench.JobFailure: {graph.Failure}, bench.JobCancelled: {graph.Cancelled},
	}
	all := []bench.JobStatus{bench.JobQueued, bench.JobHandedOut, bench.JobInProgress, bench.JobSuccess, bench.JobFailure, bench.JobCancelled}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 3))
		var set graphset.Set
		jobs := make(map[bench.JobKey]bench.JobStatus)
		for number := range 1 + random.IntN(4) {
			written := len(jobs)
			for range random.IntN(8) {
				key := bench.JobKey(fmt.Sprint("j", len(jobs)))
				jobs[key] = all[random.IntN(len(all))]
				set.Nodes = append(set.Nodes, graphset.Node{Number: number + 1, Job: key, Status: jobs[key], CreatedAt: begin, EndedAt: at(1), Replaced: random.IntN(5) == 0})
				for from := range min(written, random.IntN(3)) {
					input := bench.JobKey(fmt.Sprint("j", from))
					set.Nodes = append(set.Nodes, graphset.Node{Number: number + 1, Job: input, Input: true, Status: jobs[input], CreatedAt: begin, EndedAt: at(1)})
					set.Edges = append(set.Edges, graphset.Edge{Number: number + 1, From: input, To: key, Condition: []graph.Condition{graph.OnSuccess, graph.OnResolved, graph.OnAny}[random.IntN(3)]})
				}
			}
		}
		states := set.States(*at(2))
		require.Len(t, states, len(jobs))
		for key, status := range jobs {
			require.Contains(t, fitting[status], states[key].Status, "seed %d", seed)
		}
		sum, of := set.Sums(states)
		require.Equal(t, len(jobs), sum.Jobs)
		total := 0
		for _, s := range of {
			total += s.Jobs
		}
		require.Equal(t, sum.Jobs, total)
	}
}
