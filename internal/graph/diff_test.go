package graph_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

func TestDifferencesInWords(t *testing.T) {
	t.Parallel()
	measure := func(iterations int, set string) graph.Node {
		j, err := graph.NewJob(graph.Benchmark{Tag: "1.26.0", Target: x86, Iterations: iterations, Selection: bench.Selection{Set: set}})
		require.NoError(t, err)
		return graph.Node{Name: "measure", Job: j}
	}
	before, err := graph.New(append(nodes(t, "build", "gone", "notify", "free"), measure(5, "")), []graph.Edge{
		needs("measure", "build"), needs("notify", "measure"), needs("gone", "build"), needs("free", "build"),
	})
	require.NoError(t, err)
	changed := nodes(t, "build", "fresh", "notify", "free")
	changed[2].LimitSeconds = 60
	after, err := graph.New(append(changed, measure(10, "demo")), []graph.Edge{
		needs("measure", "build"), {From: "measure", To: "notify", Condition: graph.OnAny}, needs("fresh", "build"), needs("free", "measure"),
	})
	require.NoError(t, err)

	d, err := graph.Diff(before, after)
	require.NoError(t, err)
	require.False(t, d.Empty())
	require.Equal(t, []string{
		"fresh is new",
		"gone is gone",
		"measure: iterations was 5, is 10",
		`measure: selection.set is new: "demo"`,
		"notify: limit_seconds is new: 60",
		"free now needs measure (success)",
		"notify needs measure (any) instead of (success)",
		"free no longer needs build",
	}, d.Words())
	back, err := graph.Diff(after, before)
	require.NoError(t, err)
	require.Contains(t, back.Words(), `measure: selection.set is gone; it was "demo"`)
	same, err := graph.Diff(before, before)
	require.NoError(t, err)
	require.True(t, same.Empty())
	require.Empty(t, same.Words())
}

// Two graphs have no difference exactly if they have one hash; and the words of one way
// tell of as many nodes as those of the other.
func TestNoDifferenceMeansTheSameHash(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 9))
	equal := 0
	for range 3000 {
		a, b := randomGraph(t, random), randomGraph(t, random)
		if random.IntN(3) == 0 {
			list, edges := slices.Clone(a.Nodes()), slices.Clone(a.Edges())
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			if random.IntN(2) == 0 {
				list[0].Latest = !list[0].Latest
			}
			var err error
			b, err = graph.New(list, edges)
			require.NoError(t, err)
		}
		there, err := graph.Diff(a, b)
		require.NoError(t, err)
		back, err := graph.Diff(b, a)
		require.NoError(t, err)
		require.Equal(t, a.Hash() == b.Hash(), there.Empty())
		require.Equal(t, there.Added, back.Removed)
		require.Equal(t, there.EdgesAdded, back.EdgesRemoved)
		require.Len(t, back.Changed, len(there.Changed))
		if there.Empty() {
			equal++
			continue
		}
		require.NotEmpty(t, there.Words())
	}
	require.Greater(t, equal, 100)
}
