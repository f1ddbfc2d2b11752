package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// Three releases requested at once run in the order of their versions, each compared
// with the next lower one. A repeated submission changes nothing, and the stored results
// match the executions.
func TestReleasesAreMeasuredInOrderAndCompared(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	shell := newShellSuite(t, 2)
	shell.artifact(t, "1.9.0", 20_000)
	shell.artifact(t, "1.10.0", 20_000)
	shell.artifact(t, "1.11.0", 60_000)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})

	var ids []bench.RequestID
	for _, tag := range []string{"1.9.0", "1.11.0", "1.10.0"} {
		r := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: tag})
		require.True(t, r.Created)
		ids = append(ids, r.ID)
	}
	again := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.9.0"})
	require.Equal(t, ids[0], again.ID)
	require.False(t, again.Created)

	details := make(map[string]apiclient.RequestDetail)
	for _, id := range ids {
		d := s.await(t, id, ended)
		requireSuccess(t, d.Outcome, d)
		details[d.Tag] = d
	}
	require.True(t, details["1.10.0"].AdmittedAt.Before(*details["1.11.0"].AdmittedAt), "1.10.0 goes before 1.11.0")
	require.Empty(t, details["1.9.0"].Baseline)
	require.Equal(t, "1.9.0", details["1.10.0"].Baseline)
	require.Equal(t, "1.10.0", details["1.11.0"].Baseline)
	s.requireCollections(t, "shell", 3)
	require.Equal(t, map[string]int{
		"count-1 1.9.0": 3, "count-1 1.10.0": 3, "count-1 1.11.0": 3,
		"count-2 1.9.0": 3, "count-2 1.10.0": 3, "count-2 1.11.0": 3,
	}, shell.executions(t))

	out, code := s.run(t, "results", "export", "shell", "-o", "benchfmt")
	require.Zero(t, code)
	reader := benchfmt.NewReader(strings.NewReader(out), "export")
	lines := 0
	for reader.Scan() {
		if _, ok := reader.Result().(*benchfmt.Result); ok {
			lines++
		}
	}
	require.NoError(t, reader.Err())
	require.Equal(t, 2*3*3, lines)

	out, code = s.run(t, "compare", "shell", "1.10.0", "1.11.0", "--all")
	require.Zero(t, code)
	require.Contains(t, out, "count-1")
}
