package pages

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// wide returns a graph of n jobs, each of which needs two before it.
func wide(n int) apiclient.GraphDetail {
	var d apiclient.GraphDetail
	for i := range n {
		key := bench.JobKey(fmt.Sprint("job", i))
		node := apiclient.GraphNode{
			Job: key, Kind: graph.KindBenchmark, Stage: bench.StageOwn, Title: fmt.Sprint("benchmark ", i), Target: "x86_64-unknown-linux-gnu", State: graph.Statuses()[i%7],
		}
		if d.Nodes = append(d.Nodes, node); i >= 50 {
			d.Edges = append(d.Edges, apiclient.GraphEdge{From: d.Nodes[i-50].Job, To: key, Condition: graph.OnSuccess}, apiclient.GraphEdge{From: d.Nodes[i/50*50-50].Job, To: key, Condition: graph.OnAny})
		}
	}
	return d
}

func TestEveryStateHasAShapeAndAColourOfItsOwn(t *testing.T) {
	t.Parallel()
	shapes := make(map[string]bool)
	for _, s := range graph.Statuses() {
		require.NotEmpty(t, graphStyles[s].class, s)
		look := graphShapes[s]
		require.NotEmpty(t, look, s)
		require.False(t, shapes[look], "%s looks like another state", s)
		shapes[look] = true
	}
}

func TestADrawingOfTenThousandJobsIsSmall(t *testing.T) {
	t.Parallel()
	d := drawnGraph(wide(10_000), "/graphs/rabcdefghjk")
	require.True(t, d.Grouped)
	require.LessOrEqual(t, len(d.Shown), 24*24)
	jobs := 0
	for _, b := range d.Shown {
		jobs += len(b.Nodes)
		require.Contains(t, b.Href, "/graphs/rabcdefghjk?group=Own+benchmark%2C+x86_64-unknown-linux-gnu&show="+string(b.Status)+"#jobs")
		require.Contains(t, b.Words, fmt.Sprintf(": %d jobs", len(b.Nodes)))
	}
	require.Equal(t, 10_000, jobs)
	require.Equal(t, graph.Statuses(), d.Legend)

	few := drawnGraph(wide(60), "/graphs/rabcdefghjk")
	require.True(t, few.Grouped, "fifty beside each other are too many")
	single := drawnGraph(wide(20), "/graphs/rabcdefghjk")
	require.Len(t, single.Shown, 20)
	require.Equal(t, "/jobs/job0", single.Shown[0].Href)
	require.Equal(t, "benchmark 0 on x86_64-unknown-linux-gnu: blocked", single.Shown[0].Words)
}

func BenchmarkDrawingOfTenThousandJobs(b *testing.B) {
	d := wide(10_000)
	for b.Loop() {
		drawnGraph(d, "/graphs/rabcdefghjk")
	}
}
