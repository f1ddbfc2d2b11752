package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// A try build waits for its artifacts, then for its parent, then for admission. Results
// missing from its parent are measured first.
func TestATryBuildIsComparedWithItsParent(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	shell := newShellSuite(t, 2)
	for _, tag := range []string{"c1", "c2", "t1"} {
		shell.artifact(t, tag, 1000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Queue: bench.QueuePolicy{Supersede: true}})

	// The parent was measured with only one benchmark.
	parent := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Master, Tag: "c2", Parent: "c1", Selection: bench.Selection{Benchmarks: []string{"count-1"}}})
	require.Contains(t, parent.ParentNote, "c1")
	require.Equal(t, bench.Success, s.await(t, parent.ID, ended).Outcome)

	old := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Try, PR: 7})
	try := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Try, PR: 7})
	superseded := s.await(t, old.ID, ended)
	require.Equal(t, bench.Cancelled, superseded.Outcome)
	require.Contains(t, superseded.Message, string(try.ID))
	require.Equal(t, bench.WaitingForArtifacts, try.Status)

	// Its CI system announces the artifacts three times.
	said := apiclient.ArtifactsReady{Tag: "t1", Parent: "c2"}
	for i := range 3 {
		n, err := s.api.ArtifactsReady(t.Context(), string(try.ID), said)
		require.NoError(t, err)
		require.Equal(t, i > 0, n.Duplicate)
	}
	done := s.await(t, try.ID, ended)
	require.Equal(t, bench.Success, done.Outcome, done.Message)
	require.Equal(t, "c2", done.Baseline)
	require.Equal(t, map[string]int{"count-1 c2": 3, "count-2 c2": 3, "count-1 t1": 3, "count-2 t1": 3}, shell.executions(t), "only the missing results of the parent are measured")

	// An announcement after the end starts nothing.
	n, err := s.api.ArtifactsReady(t.Context(), "shell:t1", said)
	require.NoError(t, err)
	require.True(t, n.Late)
	report, err := s.api.Compare(t.Context(), apiclient.CompareQuery{Project: "shell", A: "c2", B: "t1"})
	require.NoError(t, err)
	require.Empty(t, report.Missing)
	require.WithinDuration(t, time.Now(), *done.EndedAt, patience)
}
