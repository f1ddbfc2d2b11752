package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/plan"
)

func node(t *testing.T, name string, d graph.Definition) graph.Node {
	t.Helper()
	j, err := graph.NewJob(d)
	require.NoError(t, err)
	return graph.Node{Name: name, Job: j}
}

// planNode plans a node of a graph that a person runs.
func planNode(t *testing.T, n graph.Node) ([]bench.PlannedJob, error) {
	t.Helper()
	f := commit(t, func(f *plan.Facts) {
		f.Request.Type, f.Request.Origin, f.Request.Tag = bench.AdHoc, bench.Origin{}, ""
		f.Request.Template = &bench.TemplateCall{Name: "nightly", Definitions: "d", Graph: "g"}
	})
	f.Request = plan.NodeRequest(f.Request, n)
	return f.NodeJobs(n)
}

func TestNodesThatNeedAMachineBecomeJobs(t *testing.T) {
	t.Parallel()
	jobs, err := planNode(t, node(t, "measure", graph.Benchmark{Tag: "c7", Target: linux, Selection: bench.Selection{Benchmarks: []string{"gin"}}, Iterations: 4}))
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.Equal(t, []any{"c7", "measure", 4, []bench.TestCase{gin}}, []any{jobs[0].Tag, jobs[0].Name, jobs[0].Iterations, jobs[0].TestCases})
	require.NoError(t, jobs[0].Validate())
	twin, err := planNode(t, node(t, "measure-again", graph.Benchmark{Tag: "c7", Target: linux, Selection: bench.Selection{Benchmarks: []string{"gin"}}, Iterations: 4}))
	require.NoError(t, err)
	require.NotEqual(t, jobs[0].Key, twin[0].Key, "two equal nodes are two jobs")

	listed, err := planNode(t, node(t, "measure", graph.Benchmark{Tag: "c7", Target: linux, TestCases: []bench.TestCase{gin}}))
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Equal(t, []bench.TestCase{gin}, listed[0].TestCases)
	unknown := gin
	unknown.Scenario = "nonexistent"
	_, err = planNode(t, node(t, "measure", graph.Benchmark{Tag: "c7", Target: linux, TestCases: []bench.TestCase{unknown}}))
	require.Error(t, err)

	jobs, err = planNode(t, node(t, "run", graph.Command{Target: linux, Steps: []graph.Step{{Argv: []string{"true"}}}}))
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.Equal(t, []any{bench.KindCommand, "run", []string{"true"}, 1}, []any{jobs[0].Kind, jobs[0].Name, jobs[0].Command.Argv, jobs[0].Iterations})
	require.Positive(t, jobs[0].Command.TimeoutSeconds, "the project's limit")

	require.Nil(t, jobs[0].Command.Script)
	jobs, err = planNode(t, node(t, "script", graph.Command{
		Target: linux, Checkouts: []graph.Checkout{{Repository: "/repository", Revision: "main", Path: "src"}},
		Steps: []graph.Step{{Argv: []string{"make"}, Dir: "src", TimeoutSeconds: 60}, {Argv: []string{"./check"}, Dir: "src/out"}}, Rules: graph.Rules{Success: []int{0, 3}, RetryCodes: []int{75}, Retries: 2},
	}))
	require.NoError(t, err)
	script := jobs[0].Command.Script
	require.Equal(t, []string{"./check"}, jobs[0].Command.Argv, "the last program is measured")
	require.Equal(t, []bench.ScriptStep{{Argv: []string{"make"}, Dir: "src", TimeoutSeconds: 60}}, script.Before)
	require.Equal(t, []any{"src/out", []int{0, 3}, []int{75}, 2}, []any{script.Dir, script.Success, script.RetryCodes, script.Retries})
	require.Equal(t, []bench.ScriptCheckout{{Repository: "/repository", Revision: "main", Path: "src"}}, script.Checkouts)

	for _, d := range []graph.Definition{
		graph.Notify{Tag: "c7"}, graph.Compare{Tag: "c7"}, graph.SignOff{Question: "Well?", LimitSeconds: 60},
		graph.Build{Tag: "c7", Target: linux, BuildRecipe: bench.BuildRecipe{Repository: "/repository", Command: []string{"make"}}},
	} {
		jobs, err := planNode(t, node(t, "other", d))
		require.NoError(t, err)
		require.Empty(t, jobs, "%T", d)
	}
}

func TestWhatNoCollectorRunsYetIsRefused(t *testing.T) {
	t.Parallel()
	step := graph.Step{Argv: []string{"true"}}
	for says, d := range map[string]graph.Definition{
		"longest that the project allows": graph.Command{Target: linux, Steps: []graph.Step{{Argv: []string{"true"}, TimeoutSeconds: 86400}}},
	} {
		_, err := planNode(t, node(t, "odd", d))
		require.ErrorIs(t, err, bench.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
	_, err := planNode(t, node(t, "odd", graph.Command{Target: "sparc64-unknown-linux-gnu", Steps: []graph.Step{step}}))
	require.NotNil(t, plan.Unplaceable(err))
	g, err := graph.New([]graph.Node{node(t, "odd", graph.Build{Tag: "c7", Target: "sparc64-unknown-linux-gnu", BuildRecipe: bench.BuildRecipe{Repository: "/repository", Command: []string{"make"}}})}, nil)
	require.NoError(t, err)
	_, err = plan.Checked(g, func(n graph.Node) (plan.Facts, error) { return facts(plan.NodeRequest(request(), n)), nil })
	require.NotNil(t, plan.Unplaceable(err))
	require.ErrorContains(t, err, "node odd: ")
}

// What replaces jobs needs what those needed, in its place by now; what has not ended needs
// the replacements.
func TestRepeatedJobsNeedWhatThoseBeforeNeeded(t *testing.T) {
	t.Parallel()
	edge := func(from, to int64) plan.GraphEdge {
		return plan.GraphEdge{From: from, To: to, Condition: graph.OnSuccess}
	}
	// 1 → 2 → 3 → 4; 1 was replaced by 11 before, and 2 and 3 are now, by 12 and 13.
	next := map[int64]int64{1: 11, 2: 12, 3: 13}
	require.Equal(t, plan.JobGraph{
		Jobs: []int64{12, 13}, Inputs: []int64{4, 11}, Edges: []plan.GraphEdge{edge(11, 12), edge(12, 13), edge(13, 4)},
	}, plan.Repeated([]plan.GraphEdge{edge(1, 2), edge(2, 3), edge(3, 4), edge(11, 2)}, []int64{13, 12}, next))
}
