package main

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/definitions"
)

// The template of the measured graph, at full size, has the edges of the bare workflow.
func TestTheTemplateOfTheMeasuredGraph(t *testing.T) {
	t.Parallel()
	for _, p := range []graphsPlan{{layers: 3, width: 3}, {layers: 100, width: 50}} {
		folder, err := definitions.Read(fstest.MapFS{"graphs/layers.yaml": {Data: []byte(p.template("x86_64-unknown-linux-gnu"))}})
		require.NoError(t, err)
		expanded, err := folder.Expand(t.Context(), definitions.Call{Template: "layers"})
		require.NoError(t, err)
		needs := make(map[string][]string)
		for _, e := range expanded.Graph.Edges() {
			needs[e.To] = append(needs[e.To], e.From)
		}
		names := make(map[[2]int]string) // by layer and column
		for _, n := range expanded.Graph.Nodes() {
			var at [2]int
			_, err := fmt.Sscanf(n.Name, "n-%d-%d", &at[0], &at[1])
			require.NoError(t, err)
			names[at] = n.Name
		}
		require.Len(t, names, p.nodes())
		for at, name := range names {
			var want []string
			for _, k := range p.needsOf(at[0], at[1]) {
				want = append(want, names[[2]int{at[0] - 1, k}])
			}
			slices.Sort(want)
			slices.Sort(needs[name])
			require.Equal(t, want, needs[name], name)
		}
	}
}
