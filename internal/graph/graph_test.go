package graph_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

func node(t testing.TB, name string) graph.Node {
	t.Helper()
	j, err := graph.NewJob(graph.Notify{Tag: "1", Text: name})
	require.NoError(t, err)
	return graph.Node{Name: name, Job: j}
}

func nodes(t testing.TB, names ...string) []graph.Node {
	t.Helper()
	list := make([]graph.Node, 0, len(names))
	for _, name := range names {
		list = append(list, node(t, name))
	}
	return list
}

func needs(to, from string) graph.Edge {
	return graph.Edge{From: from, To: to, Condition: graph.OnSuccess}
}

func TestAGraphIsTheSameInWhateverOrderItIsGiven(t *testing.T) {
	t.Parallel()
	list := nodes(t, "build", "arm", "x86", "compare", "notify")
	edges := []graph.Edge{
		needs("arm", "build"), needs("x86", "build"), needs("compare", "arm"), needs("compare", "x86"),
		{From: "compare", To: "notify", Condition: graph.OnAny},
	}
	first, err := graph.New(list, edges)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		random.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
		again, err := graph.New(list, edges)
		require.NoError(t, err)
		require.Equal(t, string(first.Canonical()), string(again.Canonical()))
		require.Equal(t, first.Hash(), again.Hash())
	}
	require.Equal(t, [][]string{{"build"}, {"arm", "x86"}, {"compare"}, {"notify"}}, first.Layers())
	require.Equal(t, []string{"build", "arm", "x86", "compare", "notify"}, first.Order())
	require.Equal(t, []graph.Edge{needs("compare", "arm"), needs("compare", "x86")}, first.Inputs("compare"))
	require.Equal(t, []graph.Edge{needs("arm", "build"), needs("x86", "build")}, first.Dependents("build"))
	require.Empty(t, first.Inputs("nobody"))
	require.Equal(t, 5, first.Len())
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(map[string]any{"nodes": first.Nodes(), "edges": first.Edges()}))
	require.JSONEq(t, plain.String(), string(first.Canonical()))
	read, err := graph.Parse(first.Canonical())
	require.NoError(t, err)
	require.Equal(t, first, read)

	// Whatever is part of the graph is part of its hash.
	list[0].LimitSeconds = 60
	other, err := graph.New(list, edges)
	require.NoError(t, err)
	require.NotEqual(t, first.Hash(), other.Hash())
}

// Graphs name jobs, and jobs no graph: one definition stands in as many places as it is
// needed at, within a graph and in others.
func TestNodesMayShareAJob(t *testing.T) {
	t.Parallel()
	one, other := node(t, "a"), node(t, "a")
	other.Name = "b"
	first, err := graph.New([]graph.Node{one, other}, []graph.Edge{needs("b", "a")})
	require.NoError(t, err)
	second, err := graph.New([]graph.Node{other}, nil)
	require.NoError(t, err)
	require.NotEqual(t, first.Hash(), second.Hash())
	a, _ := first.Node("a")
	b, _ := first.Node("b")
	again, _ := second.Node("b")
	require.Equal(t, a.Job.Hash(), b.Job.Hash())
	require.Equal(t, b.Job.Hash(), again.Job.Hash())
}

func TestGraphsThatAreRefused(t *testing.T) {
	t.Parallel()
	var cycle *graph.CycleError
	_, err := graph.New(nodes(t, "a", "b", "c", "d", "e"), []graph.Edge{needs("b", "a"), needs("c", "b"), needs("d", "c"), needs("b", "d"), needs("e", "d")})
	require.ErrorAs(t, err, &cycle)
	require.Equal(t, []string{"b", "c", "d"}, cycle.Nodes)
	require.ErrorContains(t, err, "b → c → d → b; remove one of these edges")

	var size *graph.SizeError
	many := make([]graph.Node, 10_001)
	for i := range many {
		many[i] = node(t, fmt.Sprintf("n%d", i))
	}
	_, err = graph.New(many, nil)
	require.ErrorAs(t, err, &size)
	require.ErrorContains(t, err, "the graph has 10001 nodes; at most 10000 are allowed")
	full, err := graph.New(many[1:], nil)
	require.NoError(t, err)
	require.Equal(t, graph.MaxNodes, full.Len())
	_, err = graph.New(many[:2], make([]graph.Edge, graph.MaxEdges+1))
	require.ErrorAs(t, err, &size)
	require.ErrorContains(t, err, "500001 edges")
	_, err = graph.New(nil, nil)
	require.ErrorAs(t, err, &size)
	require.ErrorContains(t, err, "nothing to run")

	var wrongNode *graph.NodeError
	_, err = graph.New(nodes(t, "a", "a"), nil)
	require.ErrorAs(t, err, &wrongNode)
	require.ErrorContains(t, err, `two nodes are named "a"`)
	_, err = graph.New([]graph.Node{{Name: "a"}}, nil)
	require.ErrorAs(t, err, &wrongNode)
	_, err = graph.New(nodes(t, "a\n"), nil)
	require.ErrorAs(t, err, &wrongNode)
	late := nodes(t, "a")
	late[0].LimitSeconds = -1
	_, err = graph.New(late, nil)
	require.ErrorAs(t, err, &wrongNode)

	for _, c := range []struct {
		edges []graph.Edge
		says  string
	}{
		{[]graph.Edge{needs("b", "nowhere")}, `no node "nowhere"`},
		{[]graph.Edge{needs("nowhere", "b")}, `no node "nowhere"`},
		{[]graph.Edge{needs("a", "a")}, "cannot need itself"},
		{[]graph.Edge{needs("a", "b"), {From: "b", To: "a", Condition: graph.OnAny}}, "twice"},
		{[]graph.Edge{{From: "a", To: "b", Condition: "sometimes"}}, "success, resolved or any"},
	} {
		var edge *graph.EdgeError
		_, err := graph.New(nodes(t, "a", "b"), c.edges)
		require.ErrorAs(t, err, &edge)
		require.ErrorContains(t, err, c.says)
		require.ErrorIs(t, err, bench.ErrInvalid)
	}
	for _, text := range []string{"", "[]", `{"nodes":[],"edges":[]}`, `{"nodes":[{"name":"a","job":{}}],"edges":[]}`} {
		_, err := graph.Parse([]byte(text))
		require.ErrorIs(t, err, bench.ErrInvalid, "%s", text)
	}
}

// Of every cycle that is hidden in a large graph, the error names one that is there.
func TestANamedCycleIsOne(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	cycles := 0
	for range 2000 {
		count := 2 + random.IntN(30)
		var list []graph.Node
		for i := range count {
			list = append(list, node(t, fmt.Sprint("n", i)))
		}
		there := map[graph.Edge]bool{}
		for range random.IntN(3 * count) {
			from, to := random.IntN(count), random.IntN(count)
			if from != to {
				there[needs(list[to].Name, list[from].Name)] = true
			}
		}
		var edges []graph.Edge
		for e := range there {
			edges = append(edges, e)
		}
		g, err := graph.New(list, edges)
		var cycle *graph.CycleError
		if errors.As(err, &cycle) {
			cycles++
			for i, name := range cycle.Nodes {
				require.True(t, there[needs(cycle.Nodes[(i+1)%len(cycle.Nodes)], name)])
			}
			continue
		}
		require.NoError(t, err)
		order := g.Order()
		require.Len(t, order, count)
		at := map[string]int{}
		for i, name := range order {
			at[name] = i
		}
		for e := range there {
			require.Less(t, at[e.From], at[e.To])
		}
		depth := map[string]int{}
		for i, layer := range g.Layers() {
			require.True(t, slices.IsSorted(layer))
			for _, name := range layer {
				depth[name] = i
			}
		}
		for name, d := range depth {
			deepest := -1
			for _, e := range g.Inputs(name) {
				deepest = max(deepest, depth[e.From])
			}
			require.Equal(t, deepest+1, d, "a node stands right after its inputs")
		}
	}
	require.Greater(t, cycles, 500)
}
