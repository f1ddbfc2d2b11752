package plan_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/plan"
)

const amd64 = bench.Target("x86_64-unknown-linux-gnu")

func measuring(id int64, stage bench.Stage, tag string, cases ...int64) plan.GraphJob {
	return plan.GraphJob{ID: id, Stage: stage, Target: amd64, Tag: tag, TestCases: cases}
}

func building(id int64, stage bench.Stage, tags ...string) plan.GraphJob {
	return plan.GraphJob{ID: id, Stage: stage, Target: amd64, Tag: tags[0], Builds: tags}
}

func TestWhatJobsOfARequestNeed(t *testing.T) {
	t.Parallel()
	look := func(id int64, cases ...int64) plan.GraphJob {
		j := measuring(id, bench.StageVerify, "b", cases...)
		j.Versus = "a"
		return j
	}
	replaced := building(2, bench.StageBuild, "b")
	replaced.Replaced = true
	elsewhere := building(4, bench.StageBuild, "b")
	elsewhere.Target = "aarch64-unknown-linux-gnu"
	jobs := []plan.GraphJob{
		building(1, bench.StageBuild, "a", "a-again"), replaced, building(3, bench.StageBuild, "b"), elsewhere,
		measuring(5, bench.StageParent, "a", 10, 11), measuring(6, bench.StageParent, "a", 12),
		measuring(7, bench.StageOwn, "b", 10, 12), measuring(8, bench.StageOwn, "b", 13),
		look(9, 10), look(10, 10, 13),
	}
	written := func(ids ...int64) plan.JobGraph {
		t.Helper()
		g, err := plan.NextGraph(jobs, ids)
		require.NoError(t, err)
		for i, j := range jobs {
			for _, id := range g.Jobs {
				jobs[i].Known = jobs[i].Known || j.ID == id
			}
		}
		again, err := plan.NextGraph(jobs, ids)
		require.NoError(t, err)
		require.Equal(t, plan.JobGraph{}, again, "a repetition adds nothing")
		return g
	}
	require.Equal(t, plan.JobGraph{Jobs: []int64{1, 2, 3, 4}}, written(1, 2, 3, 4))
	require.Equal(t, plan.JobGraph{
		Jobs: []int64{5, 6}, Inputs: []int64{1}, Edges: []plan.GraphEdge{{From: 1, To: 5, Condition: graph.OnAny}, {From: 1, To: 6, Condition: graph.OnAny}},
	}, written(5, 6))
	require.Equal(t, plan.JobGraph{
		Jobs: []int64{7, 8}, Inputs: []int64{3, 5, 6},
		Edges: []plan.GraphEdge{{From: 3, To: 7, Condition: graph.OnSuccess}, {From: 5, To: 7, Condition: graph.OnAny}, {From: 6, To: 7, Condition: graph.OnAny}, {From: 3, To: 8, Condition: graph.OnSuccess}},
	}, written(7, 8))
	require.Equal(t, plan.JobGraph{
		Jobs: []int64{9}, Inputs: []int64{1, 3, 7}, Edges: []plan.GraphEdge{{From: 1, To: 9, Condition: graph.OnSuccess}, {From: 3, To: 9, Condition: graph.OnSuccess}, {From: 7, To: 9, Condition: graph.OnAny}},
	}, written(9))
	require.Equal(t, plan.JobGraph{
		Jobs: []int64{10}, Inputs: []int64{1, 3, 8, 9},
		Edges: []plan.GraphEdge{{From: 1, To: 10, Condition: graph.OnSuccess}, {From: 3, To: 10, Condition: graph.OnSuccess}, {From: 8, To: 10, Condition: graph.OnAny}, {From: 9, To: 10, Condition: graph.OnAny}},
	}, written(10), "a look needs the one before")
}

func TestAGraphOfARequestIsBounded(t *testing.T) {
	t.Parallel()
	var jobs []plan.GraphJob
	var ids []int64
	for i := range int64(graph.MaxNodes + 1) {
		jobs, ids = append(jobs, measuring(i, bench.StageOwn, "b", i)), append(ids, i)
	}
	_, err := plan.NextGraph(jobs, ids)
	var size *graph.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, 10_001, size.Got)
	g, err := plan.NextGraph(jobs, ids[1:])
	require.NoError(t, err)
	require.Len(t, g.Jobs, 10_000)
}

// Whatever is written in whatever order, all graphs of a request together have no cycle,
// each job is written for once, and inputs were written before.
func TestGraphsOfRandomRequests(t *testing.T) {
	t.Parallel()
	stages := []bench.Stage{bench.StageBuild, bench.StageParent, bench.StageOwn, bench.StageVerify}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		var jobs []plan.GraphJob
		var edges []plan.GraphEdge
		rank := make(map[int64]int) // of the graph for which a job was written, builds before others, then of its stage
		for n := range 6 {
			stage := random.IntN(4)
			var written []int64
			for range random.IntN(6) {
				id := int64(len(jobs) + 1)
				at := min(3, stage+random.IntN(2))
				j := measuring(id, stages[at], []string{"a", "b"}[random.IntN(2)], random.Int64N(4), random.Int64N(4))
				if at == 0 || at == 3 && random.IntN(3) == 0 {
					j = building(id, stages[at], j.Tag)
				}
				jobs, written = append(jobs, j), append(written, id)
				if rank[id] = n * 10; len(j.Builds) == 0 {
					rank[id] += 1 + at
				}
			}
			g, err := plan.NextGraph(jobs, append(written, written...))
			require.NoError(t, err)
			require.Equal(t, written, g.Jobs)
			for _, e := range g.Edges {
				require.Less(t, rank[e.From], rank[e.To], "seed %d: job %d needs %d", seed, e.To, e.From)
			}
			for _, id := range g.Inputs {
				require.NotContains(t, written, id)
			}
			edges = append(edges, g.Edges...)
			for i := range jobs {
				jobs[i].Known = true
				jobs[i].Replaced = jobs[i].Replaced || random.IntN(8) == 0
			}
		}
		once := make(map[[2]int64]bool)
		for _, e := range edges {
			require.False(t, once[[2]int64{e.From, e.To}])
			once[[2]int64{e.From, e.To}] = true
		}
	}
}
