package definitions_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/graph"
)

// Whatever stands in the files of a folder, it is read or refused with problems that have a
// place; and each graph that it makes reads back as the same one.
func FuzzRead(f *testing.F) {
	f.Add(branchesYAML, buildYAML, nightlyYAML)
	f.Add("branches: {\"*\": {}}", "notify: {tag: \"${branch}\"}", "nodes:\n  - {name: a, if: \"branch.size() > 2\", job: build}\n  - {name: b, needs: [{node: \"*\", on: any, optional: true}], command: {target: x86_64-unknown-linux-gnu, steps: [{run: [a]}]}}\n")
	f.Add("switches: {a: {type: list, default: [x]}}\nbranches: {main: {switches: {a: []}}}", "parameters: {a: {type: int, default: 1}}\nprofile: {tag: a, target: x86_64-unknown-linux-gnu, benchmark: b, profiler: c}", "nodes: [{name: \"${x}\", for: {x: \"${switches.a}\"}, job: build, with: {a: 5}}]")
	f.Fuzz(func(t *testing.T, branches, job, nodes string) {
		folder, err := definitions.Read(folder("branches.yaml", branches, "jobs/build.yaml", job, "graphs/nightly.yaml", nodes))
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			list, ok := errors.AsType[*definitions.Error](err)
			require.True(t, ok)
			for _, p := range list.Problems {
				require.NotEmpty(t, p.File)
				require.NotEmpty(t, p.Message)
				require.GreaterOrEqual(t, p.Line, 0)
			}
			return
		}
		if _, err := folder.Check(t.Context()); err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
		}
		e, err := folder.Expand(t.Context(), definitions.Call{Template: "nightly", Branch: "main"})
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		again, err := graph.Parse(e.Graph.Canonical())
		require.NoError(t, err)
		require.Equal(t, e.Hash, again.Hash())
	})
}
