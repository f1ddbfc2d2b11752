package pages

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// wideGraph has a first node for each entry of outer, and for each of inner one that needs it.
const wideGraph = `description: Many commands.
parameters:
  outer: {type: list, example: [a]}
  inner: {type: list, example: [b]}
nodes:
  - name: begin-${i}
    for: {i: "${outer}"}
    command: {target: %[1]s, steps: [{run: ["true"]}]}
  - name: then-${i}-${k}
    for: {i: "${outer}", k: "${inner}"}
    needs: begin-${i}
    command: {target: %[1]s, steps: [{run: ["true"]}]}
`

// A graph of ten nodes and one of ten thousand are read alike: the page is there, the checker
// finds nothing, and the keyboard leads to its jobs. When it was painted is logged.
func TestLongGraphsOfAnySizeAreRead(t *testing.T) {
	t.Parallel()
	s := scene{sharedService(t), mouse}
	target, err := bench.HostTarget(runtime.GOOS, runtime.GOARCH)
	require.NoError(t, err)
	for _, size := range []struct{ outer, inner int }{{2, 4}, {20, 49}, {100, 99}} {
		nodes := size.outer * (size.inner + 1)
		project := s.paused(t, fmt.Sprintf("wide-%d", nodes), "it is only looked at")
		_, err := s.API.PushDefinitions(t.Context(), project, apiclient.DefinitionsPush{Files: map[string]string{"graphs/wide.yaml": fmt.Sprintf(wideGraph, target)}}, false)
		require.NoError(t, err)
		started, err := s.API.RunGraph(t.Context(), project, apiclient.GraphCall{
			Template: "wide", Parameters: []string{"outer=" + numbered(size.outer), "inner=" + numbered(size.inner)},
		}, false)
		require.NoError(t, err)
		require.Equal(t, nodes, started.Nodes)
		begun := time.Now()
		require.Eventually(t, func() bool {
			set, err := s.API.Graph(t.Context(), started.Graph)
			return err == nil && len(set.Nodes) == nodes
		}, patience, 20*time.Millisecond)
		t.Logf("%d nodes: written %v after they were asked for", nodes, time.Since(begun).Round(time.Millisecond))

		b := s.open(t)
		b.signIn(s.token)
		for range 3 {
			b.visit("/graphs/" + started.Graph)
			b.await(`performance.getEntriesByName('first-contentful-paint').length > 0`)
			t.Logf("%d nodes: painted after %.0f ms", nodes, ask[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))
		}
		require.Contains(t, b.text(".sentence"), fmt.Sprintf("%d ready", size.outer))
		for _, found := range b.findings(axe(t)) {
			t.Error(found)
		}
		b.hand = keyboard
		b.follow("#drawing a.node")
		require.NotEqual(t, "/graphs/"+started.Graph, b.where(), "a box leads to its job, or to the table of its jobs")
		_, err = s.API.CancelRequest(t.Context(), string(started.Request.ID), apiclient.Act{Reason: "it was read"})
		require.NoError(t, err)
	}
}

// numbered lists numbers between commas.
func numbered(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return strings.Join(list, ",")
}
