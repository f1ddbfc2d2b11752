package e2e_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
)

// One job measures both artifacts in turns, iteration by iteration. Both get a new
// result even where one was stored, and the request compares them.
func TestTwoArtifactsAreMeasuredInTurns(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	shell := newShellSuite(t, 2)
	shell.artifact(t, "old", 20_000)
	shell.artifact(t, "new", 20_000)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	// The baseline has results from another day.
	before := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.AdHoc, Tag: "old"})
	d := s.await(t, before.ID, ended)
	requireSuccess(t, d.Outcome, d)
	require.Len(t, shell.order(t), 2*3)

	out, code := s.run(t, "submit", "--adhoc", "shell", "new", "--vs", "old", "--benchmark", "count-1", "--iterations", "4", "--wait", "--fail-on", "regression")
	require.Contains(t, []int{0, 3}, code, "the result is noise")
	require.Contains(t, out, "new (B) compared with old (A)")
	require.Contains(t, out, "4 in 1")
	require.NotContains(t, out, "count-2")
	require.Equal(t, []string{
		"count-1 old", "count-1 new", "count-1 new", "count-1 old", "count-1 old", "count-1 new", "count-1 new", "count-1 old",
	}, shell.order(t)[2*3:])

	list, err := s.api.Requests(t.Context(), apiclient.RequestQuery{Project: "shell", Tag: "new"})
	require.NoError(t, err)
	require.Len(t, list.Requests, 1)
	d = s.await(t, list.Requests[0].ID, ended)
	requireSuccess(t, d.Outcome, d)
	require.Equal(t, "old", d.Versus)
	require.Equal(t, "old", d.Baseline)
	require.NotEmpty(t, d.Summary)
	require.Len(t, d.Jobs, 1)
	require.Equal(t, 2, d.Jobs[0].Done, "one test case of two artifacts")
	out, code = s.run(t, "status", string(d.ID))
	require.Zero(t, code)
	require.Contains(t, out, "in turns with")
	require.Contains(t, out, "2/2")

	// The pairs of count-1 stand beside what else is stored; count-2 has no counterpart.
	c, err := s.api.Compare(t.Context(), apiclient.CompareQuery{Project: "shell", A: "old", B: "new"})
	require.NoError(t, err)
	for _, r := range c.Result.Rows {
		require.True(t, r.InTurns, r.Key)
		require.Equal(t, []int{4, 4}, []int{r.Turns.A.N, r.Turns.B.N}, r.Key)
	}
	require.Len(t, c.Missing, 1)

	again := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.AdHoc, Tag: "new", Versus: "old", Selection: bench.Selection{Iterations: 3}})
	d = s.await(t, again.ID, ended)
	requireSuccess(t, d.Outcome, d)
	require.Len(t, shell.order(t), 2*3+8+2*2*3, "a new request measures again")
}

// A collector that dies in the middle loses the whole block of both artifacts, so that no
// series mixes two runs.
func TestLongAPairIsMeasuredInOneRun(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	shell := newShellSuite(t, 2)
	shell.artifact(t, "old", 1000)
	shell.artifact(t, "new", 1000)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	release := s.hold(t, failpoint.Uploading)
	r := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.AdHoc, Tag: "new", Versus: "old", Selection: bench.Selection{Iterations: 3}})
	s.reached(t, failpoint.Uploading)
	s.kill(t, "collector-local-1")
	release()
	d := s.await(t, r.ID, ended)
	requireSuccess(t, d.Outcome, d)
	s.requireCollections(t, "shell", 3)
	var mixed int
	require.NoError(t, s.database(t).QueryRow(t.Context(), `
		select count(*) from (select test_case_id from test_result group by test_case_id having count(distinct run_id) > 1) m`).Scan(&mixed))
	require.Zero(t, mixed)
}

// The same toolchain under two names through the service, measured in turns.
func TestLongRealToolchainsCompareInTurnsThroughTheService(t *testing.T) {
	t.Parallel()
	source := bench.TagSource{Provider: "goroot", Parameters: map[string]string{"path": localGoroot(t)}}
	s := startStack(t)
	s.withStandardLibrary(t)
	s.applyProject(t, "go", filepath.Join(repository(t), "suites", "go"), bench.ProjectConfig{Artifacts: bench.ArtifactSource{
		Tags: map[string]bench.TagSource{"real": source, "same": source},
	}})
	r := s.submit(t, apiclient.NewRequest{Project: "go", Type: bench.AdHoc, Tag: "same", Versus: "real", Selection: bench.Selection{
		Benchmarks: []string{"gojq"}, Profiles: []string{"build"}, Scenarios: []string{"full"}, Backends: []string{"gc"}, Iterations: perSide,
	}})
	d := s.await(t, r.ID, 20*time.Minute)
	requireSuccess(t, d.Outcome, d)
	require.Equal(t, "real", d.Baseline)
	c, err := s.api.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "real", B: "same", OnlyInTurns: true})
	require.NoError(t, err)
	requireComplete(t, c.Result.Rows)
	for _, r := range c.Result.Rows {
		require.True(t, r.InTurns, r.Key)
	}
}
