package graphdraw_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/graphdraw"
)

// Whatever the graph, each node is in one box, boxes do not overlap, what needs something stands to the right of it, and the
// drawing is bounded.
func TestDrawingsOfRandomGraphs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		nodes := make([]graphdraw.Node, random.IntN([]int{5, 60, 600, 3000}[seed%4]))
		for i := range nodes {
			nodes[i] = graphdraw.Node{Group: fmt.Sprint("g", random.IntN(1+random.IntN(40))), State: []string{"ready", "success", "failure"}[random.IntN(3)]}
		}
		var edges []graphdraw.Edge
		for i := range len(nodes) * random.IntN(3) {
			if to := random.IntN(len(nodes)); to > 0 {
				edges = append(edges, graphdraw.Edge{From: random.IntN(to), To: to, Kind: fmt.Sprint(i % 2)})
			}
		}
		d := graphdraw.Draw(nodes, edges)
		check(t, nodes, edges, d)
		require.Equal(t, d, graphdraw.Draw(nodes, edges), "the same graph gives the same drawing")
	}
}

func check(t *testing.T, nodes []graphdraw.Node, edges []graphdraw.Edge, d graphdraw.Drawing) {
	t.Helper()
	of := make(map[int]graphdraw.Box)
	at := make(map[[2]int]bool)
	for _, b := range d.Boxes {
		require.NotEmpty(t, b.Nodes)
		require.False(t, at[[2]int{b.X, b.Y}], "two boxes in one place")
		at[[2]int{b.X, b.Y}] = true
		require.GreaterOrEqual(t, b.X, 0)
		require.GreaterOrEqual(t, b.Y, 0)
		require.LessOrEqual(t, b.X+graphdraw.BoxWidth, d.Width)
		require.LessOrEqual(t, b.Y+graphdraw.BoxHeight, d.Height)
		for _, n := range b.Nodes {
			if _, twice := of[n]; twice || nodes[n].State != b.State || b.Group != "" && b.Group != nodes[n].Group {
				t.Fatalf("node %d, %v, is in box %v", n, nodes[n], b)
			}
			of[n] = b
		}
		if !d.Grouped {
			require.Len(t, b.Nodes, 1)
		}
	}
	require.Len(t, of, len(nodes))
	for _, e := range edges {
		from, to := of[e.From], of[e.To]
		if from.X > to.X || from.X == to.X && !d.Grouped {
			t.Fatalf("node %d needs %d, which is not to the left of it", e.To, e.From)
		}
	}
	require.LessOrEqual(t, len(d.Boxes), 24*24)
	require.LessOrEqual(t, len(d.Lines), 2000)
	require.LessOrEqual(t, d.Width, 24*300)
	require.LessOrEqual(t, d.Height, 24*60)
}

func TestASmallGraphHasABoxForEachNode(t *testing.T) {
	t.Parallel()
	d := graphdraw.Draw(
		[]graphdraw.Node{
			{Group: "build", State: "success"}, {Group: "backfill", State: "failure"}, {Group: "own", State: "running"}, {Group: "own", State: "running"},
		},
		[]graphdraw.Edge{{From: 0, To: 2, Kind: "success"}, {From: 0, To: 3, Kind: "success"}, {From: 1, To: 3, Kind: "any"}},
	)
	require.Equal(t, 2, d.Layers)
	require.False(t, d.Grouped)
	require.Len(t, d.Boxes, 4)
	require.Equal(t, []int{0}, d.Boxes[0].Nodes)
	require.Equal(t, []string{"success", "success", "any"}, []string{d.Lines[0].Kind, d.Lines[1].Kind, d.Lines[2].Kind})
	require.Equal(t, "M216 30C244 30 244 30 272 30", d.Lines[0].Path)
}

func TestALargeGraphIsGrouped(t *testing.T) {
	t.Parallel()
	var nodes []graphdraw.Node
	var edges []graphdraw.Edge
	for i := range 10_000 { // a hundred layers
		nodes = append(nodes, graphdraw.Node{Group: fmt.Sprint("g", i%5), State: "success"})
		if i >= 100 {
			edges = append(edges, graphdraw.Edge{From: i - 100, To: i}, graphdraw.Edge{From: i/100*100 - 100, To: i})
		}
	}
	nodes[9_999].State = "failure"
	d := graphdraw.Draw(nodes, edges)
	check(t, nodes, nil, d)
	require.True(t, d.Grouped)
	require.Equal(t, 100, d.Layers)
	require.True(t, slices.ContainsFunc(d.Boxes, func(b graphdraw.Box) bool {
		return b.State == "failure" && slices.Equal(b.Nodes, []int{9_999})
	}), "a failure stands apart")
}

func TestOddGraphs(t *testing.T) {
	t.Parallel()
	require.Equal(t, graphdraw.Drawing{}, graphdraw.Draw(nil, nil))
	nodes := make([]graphdraw.Node, 3)
	d := graphdraw.Draw(nodes, []graphdraw.Edge{{From: 0, To: 1, Kind: ""}, {From: 1, To: 0, Kind: ""}, {From: 2, To: 2, Kind: ""}, {From: 0, To: 9, Kind: ""}, {From: -1, To: 1, Kind: ""}})
	require.Len(t, d.Boxes, 3)
	require.Empty(t, d.Lines)
}

func BenchmarkDraw(b *testing.B) {
	var nodes []graphdraw.Node
	var edges []graphdraw.Edge
	for i := range 10_000 {
		nodes = append(nodes, graphdraw.Node{Group: fmt.Sprint("g", i%50), State: "success"})
		for k := range 3 {
			if i >= 500 {
				edges = append(edges, graphdraw.Edge{From: i - 500 + k, To: i})
			}
		}
	}
	for b.Loop() {
		graphdraw.Draw(nodes, edges)
	}
}
