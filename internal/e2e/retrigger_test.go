package e2e_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/graph"
)

// A job of the parent runs again with all that needs it, asked for twice with one key:
// while it runs, a second collector stands idle rather than begin what needs it.
func TestWhatIsRetriggeredWaitsForWhatItNeeds(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "2x1", "--share-cores")
	shell := newShellSuite(t, 2)
	for _, tag := range []string{"c1", "c2", "c3"} {
		shell.artifact(t, tag, 1000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	// The parent was measured with only one benchmark.
	parent := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Master, Tag: "c2", Parent: "c1", Selection: bench.Selection{Benchmarks: []string{"count-1"}}})
	require.Equal(t, bench.Success, s.await(t, parent.ID, ended).Outcome)
	request := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Master, Tag: "c3", Parent: "c2"})
	require.Equal(t, bench.Success, s.await(t, request.ID, ended).Outcome)
	before := len(shell.order(t))
	set, err := s.api.Graph(t.Context(), string(request.ID))
	require.NoError(t, err)
	needed := func(n apiclient.GraphNode) bool { return n.Stage == bench.StageParent && !n.Replaced }
	at := slices.IndexFunc(set.Nodes, needed)
	require.GreaterOrEqual(t, at, 0, "the parent lacked a benchmark")

	in := apiclient.Retrigger{
		Act: apiclient.Act{Reason: "a noisy machine", IdempotencyKey: "once"}, Jobs: []bench.JobKey{set.Nodes[at].Job}, Downstream: "all",
	}
	preview, err := s.api.Retrigger(t.Context(), string(request.ID), in, true)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(preview.Operation.Preview.Jobs), 2)
	require.Positive(t, preview.Operation.Preview.MachineSeconds)
	release := s.hold(t, failpoint.Measuring)
	for again := range 2 {
		done, err := s.api.Retrigger(t.Context(), string(request.ID), in, false)
		require.NoError(t, err)
		require.Equal(t, again == 1, done.Operation.Repeated)
		require.Equal(t, len(preview.Operation.Preview.Jobs), done.Operation.Jobs)
	}
	s.reached(t, failpoint.Measuring)
	set, err = s.api.Graph(t.Context(), string(request.ID))
	require.NoError(t, err)
	running := slices.IndexFunc(set.Nodes, func(n apiclient.GraphNode) bool { return n.State == graph.Running })
	require.True(t, needed(set.Nodes[running]))
	for _, n := range set.Nodes {
		if n.State.Ended() || n.Job == set.Nodes[running].Job || !slices.ContainsFunc(set.Edges, func(e apiclient.GraphEdge) bool { return e.To == n.Job && e.From == set.Nodes[running].Job }) {
			continue
		}
		require.Equal(t, graph.Blocked, n.State)
		why, err := s.api.ExplainJob(t.Context(), n.Job)
		require.NoError(t, err)
		require.Contains(t, why.Summary, "it needs job "+string(set.Nodes[running].Job)+", which has not ended")
	}
	release()
	require.Equal(t, bench.Success, s.await(t, request.ID, ended).Outcome)

	// Each once more, and the parent before what needs it.
	order := shell.order(t)[before:]
	require.Equal(t, []string{"count-2 c2", "count-2 c2", "count-2 c2"}, order[:3])
	set, err = s.api.Graph(t.Context(), string(request.ID))
	require.NoError(t, err)
	require.Equal(t, bench.GraphRetrigger, set.Graphs[len(set.Graphs)-1].Reason)
	require.Equal(t, graph.Success, set.State)

	// The same jobs once more, as themselves: no graph is added, and each has passed twice.
	at = slices.IndexFunc(set.Nodes, needed)
	before = len(shell.order(t))
	in = apiclient.Retrigger{Act: apiclient.Act{Reason: "a doubt", IdempotencyKey: "again"}, Jobs: []bench.JobKey{set.Nodes[at].Job}, Downstream: "all"}
	done, err := s.api.Rerun(t.Context(), string(request.ID), in, false)
	require.NoError(t, err)
	require.Equal(t, "rerun", done.Operation.Action)
	require.Equal(t, bench.Success, s.await(t, request.ID, ended).Outcome)
	require.Equal(t, order[:3], shell.order(t)[before:][:3], "what needs the job of the parent starts after it")
	again, err := s.api.Graph(t.Context(), string(request.ID))
	require.NoError(t, err)
	require.Len(t, again.Graphs, len(set.Graphs))
	reran := 0
	for _, n := range again.Nodes {
		if n.Reruns > 0 {
			reran++
			require.Equal(t, []any{1, 2, graph.Success}, []any{n.Reruns, n.Passed, n.State})
		}
	}
	require.Equal(t, done.Operation.Jobs, reran)
}
