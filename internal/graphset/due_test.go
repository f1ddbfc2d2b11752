package graphset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
)

// What the service has to do follows from the states of nodes.
func TestWhatIsDue(t *testing.T) {
	t.Parallel()
	service := func(name string, d graph.Definition, status bench.JobStatus) graphset.Node {
		j, err := graph.NewJob(d)
		require.NoError(t, err)
		n := graphset.Node{Number: 1, Job: bench.JobKey(name), Name: name, Service: j, Status: status, CreatedAt: begin}
		if !status.Open() {
			n.EndedAt = at(5)
		}
		return n
	}
	job := func(name string, status bench.JobStatus) graphset.Node {
		n := graphset.Node{Number: 1, Job: bench.JobKey("k-" + name), Name: name, Kind: bench.KindCommand, Status: status, CreatedAt: begin}
		if !status.Open() {
			n.EndedAt = at(5)
		}
		return n
	}
	needs := func(from, to string) graphset.Edge {
		return graphset.Edge{Number: 1, From: bench.JobKey(from), To: bench.JobKey(to), Condition: graph.OnSuccess}
	}
	last := job("last", bench.JobQueued)
	last.LimitSeconds = 600
	set := graphset.Set{
		Graphs: []graphset.Graph{{Number: 1, Reason: bench.GraphTemplate}},
		Nodes: []graphset.Node{
			job("good", bench.JobSuccess), job("bad", bench.JobFailure), last,
			service("compare", graph.Compare{Tag: "v2"}, bench.JobQueued), service("ask", graph.SignOff{Question: "Well?", LimitSeconds: 3600}, bench.JobQueued),
			service("tell", graph.Notify{Tag: "v2"}, bench.JobQueued), service("told", graph.Notify{Tag: "v2"}, bench.JobSuccess),
		},
		Edges: []graphset.Edge{needs("k-good", "compare"), needs("k-good", "ask"), needs("k-bad", "k-last"), needs("k-last", "tell")},
	}
	names := func(nodes []graphset.Node) (out []string) {
		for _, n := range nodes {
			out = append(out, n.Name)
		}
		return out
	}
	due := set.Due(*at(6))
	require.Equal(t, []string{"compare"}, names(due.Ready), "a person answers a sign-off")
	require.Empty(t, due.Skipped)
	require.Equal(t, at(15).UTC(), due.Until)
	require.Equal(t, graph.KindCompare, due.Ready[0].NodeKind())

	late := set.Due(begin.Add(2 * time.Hour))
	words := make(map[string]string)
	for _, s := range late.Skipped {
		words[s.Node.Name] = s.Words
	}
	require.Equal(t, map[string]string{
		"last": "bad did not succeed within the time limit", "tell": "bad did not succeed within the time limit", "ask": "nobody signed off ask within the time limit",
	}, words)
	for i, n := range set.Nodes {
		for _, s := range late.Skipped {
			if s.Node.Job == n.Job {
				set.Nodes[i].Skipped, set.Nodes[i].Status = &s.Reason, bench.JobCancelled
			}
		}
	}
	require.Empty(t, set.Due(begin.Add(2*time.Hour)).Skipped, "once")
	require.Equal(t, graph.Skipped, set.States(begin.Add(2 * time.Hour))["k-last"].Status)

	// What was replaced does not count for what has not ended.
	set.Nodes[1].Replaced = true
	set.Nodes[2].Skipped, set.Nodes[2].Status = nil, bench.JobQueued
	require.Equal(t, graph.Ready, set.States(begin.Add(2 * time.Hour))["k-last"].Status)

	set.Graphs[0].Reason = bench.GraphOwn
	require.Equal(t, graphset.Due{}, set.Due(begin.Add(2*time.Hour)), "stages ask for nothing")
}
