package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// exampleSuite makes the example repositories and a suite that builds its
// artifacts from one of them.
func exampleSuite(t *testing.T, name string) (suiteDir, repositories string) {
	t.Helper()
	examples := filepath.Join(repository(t), "suites", "example")
	repositories = filepath.Join(t.TempDir(), "repositories")
	out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(examples, "make-repositories"), repositories).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(examples, name, "suite.yaml"))
	require.NoError(t, err)
	suiteDir = t.TempDir()
	text = []byte(strings.ReplaceAll(string(text), "/tmp/benchloom-example", repositories))
	require.NoError(t, os.WriteFile(filepath.Join(suiteDir, "suite.yaml"), text, 0o644))
	return suiteDir, repositories
}

// Each tree of an unpublished artifact is built once, by a build job, and measured
// under all its names. A failing build gives its reason and delays no other request.
func TestRevisionsAreBuiltOnceAndMeasured(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	dir, repositories := exampleSuite(t, "shell-program")
	s.applyProject(t, "example", dir, bench.ProjectConfig{})

	unknown := s.submit(t, apiclient.NewRequest{Project: "example", Type: bench.Release, Tag: "0.9.0"})
	first := s.submit(t, apiclient.NewRequest{Project: "example", Type: bench.Release, Tag: "1.0.0"})
	second := s.submit(t, apiclient.NewRequest{Project: "example", Type: bench.Release, Tag: "1.1.0"})
	tip := s.submit(t, apiclient.NewRequest{Project: "example", Type: bench.AdHoc, Tag: "main"}) // the tree of 1.1.0

	d := s.await(t, unknown.ID, ended)
	require.Equal(t, bench.Failure, d.Outcome)
	require.Contains(t, d.Message, "no such revision")
	require.Contains(t, d.Message, "0.9.0")
	for _, r := range []apiclient.Request{first, second, tip} {
		d = s.await(t, r.ID, ended)
		requireSuccess(t, d.Outcome, d)
	}
	require.Equal(t, "1.0.0", s.await(t, second.ID, ended).Baseline)
	s.requireCollections(t, "example", 5)
	var builds, jobs int
	conn := s.database(t)
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from build`).Scan(&builds))
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from job_queue where kind = 'build'`).Scan(&jobs))
	require.Equal(t, 2, builds)
	require.Equal(t, 2, jobs)

	// The repository vanishes: built artifacts can still be measured, the others
	// fail with the reason.
	require.NoError(t, os.Rename(repositories, repositories+".away"))
	gone := s.submit(t, apiclient.NewRequest{Project: "example", Type: bench.Release, Tag: "1.2.0"})
	d = s.await(t, gone.ID, ended)
	require.Equal(t, bench.Failure, d.Outcome)
	require.Contains(t, d.Message, "there is no directory")
}
