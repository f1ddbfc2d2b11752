package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// A customised graph is another graph, with its difference in words; the original stays.
func TestAGraphIsCustomised(t *testing.T) {
	t.Parallel()
	job := func(d graph.Definition) graph.Job {
		j, err := graph.NewJob(d)
		require.NoError(t, err)
		return j
	}
	const linux = bench.Target("x86_64-unknown-linux-gnu")
	g, err := graph.New([]graph.Node{
		{Name: "measure", Job: job(graph.Benchmark{Tag: "v2", Target: linux, Iterations: 5, Selection: bench.Selection{Set: "demo"}})},
		{Name: "compare", Job: job(graph.Compare{Tag: "v2"})}, {Name: "tell", Job: job(graph.Notify{Tag: "v2"})},
	}, []graph.Edge{{From: "measure", To: "compare", Condition: graph.OnSuccess}, {From: "compare", To: "tell", Condition: graph.OnSuccess}})
	require.NoError(t, err)
	before := g.Hash()
	changed, words, err := g.Customise([]graph.NodeChange{
		{Node: "measure", Set: map[string]any{"iterations": 20, "selection.set": nil, "constraints.machines": []any{"bench-1"}}}, {Node: "tell", Remove: true},
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"tell is gone", `measure: constraints.machines is new: ["bench-1"]`, "measure: iterations was 5, is 20", `measure: selection.set is gone; it was "demo"`,
	}, words)
	require.NotEqual(t, before, changed.Hash())
	require.Equal(t, before, g.Hash())
	require.Len(t, changed.Edges(), 1)
	same, words, err := g.Customise(nil)
	require.NoError(t, err)
	require.Empty(t, words)
	require.Equal(t, before, same.Hash())

	for says, c := range map[string]graph.NodeChange{
		`no node "nothing"`:         {Node: "nothing", Remove: true},
		"unknown field":             {Node: "measure", Set: map[string]any{"colour": "red"}},
		"iterations":                {Node: "measure", Set: map[string]any{"iterations": -1}},
		"has a value, and no parts": {Node: "measure", Set: map[string]any{"tag.name": "x"}},
		"cannot unmarshal":          {Node: "measure", Set: map[string]any{"iterations": "many"}},
	} {
		_, _, err := g.Customise([]graph.NodeChange{c})
		require.ErrorIs(t, err, bench.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
	_, _, err = changed.Customise([]graph.NodeChange{{Node: "measure", Remove: true}, {Node: "compare", Remove: true}})
	require.Error(t, err, "a graph has a node")
}
