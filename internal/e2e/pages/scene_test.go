package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// scene is the service of a story, which others use as well. What a story makes has names of
// its own.
type scene struct {
	service
	hand hand
}

// name returns a name that no other story uses.
func (s scene) name(what string) string { return what + "-by-" + string(s.hand) }

// paused makes a project whose work waits, for a reason.
func (s scene) paused(t *testing.T, what, reason string) (project string) {
	t.Helper()
	project = s.name(what)
	_, err := s.API.ApplyProject(t.Context(), apiclient.Project{Name: project}, false)
	require.NoError(t, err)
	s.pause(t, project, reason)
	return project
}

func (s scene) pause(t *testing.T, project, reason string) {
	t.Helper()
	_, err := s.API.PauseQueue(t.Context(), project, apiclient.Act{Reason: reason})
	require.NoError(t, err)
}

func (s scene) resume(t *testing.T, project, reason string) {
	t.Helper()
	_, err := s.API.ResumeQueue(t.Context(), project, apiclient.Act{Reason: reason})
	require.NoError(t, err)
}

// printingSuite measures nothing that takes time: it prints a file of its own.
const printingSuite = `name: printing
artifact: {provider: directory, parameters: {path: %q}}
iterations: 2
benchmarks:
  - {name: print, measure: {run: [cat, "${suite}/output"], output: benchfmt, metrics: [ns/op]}}
`

// printing makes a project with the artifacts 1.0.0 and 1.1.0, of which a benchmark prints a
// number, or other lines.
func (s scene) printing(t *testing.T, what string, lines ...string) (project string) {
	t.Helper()
	artifacts, err := os.MkdirTemp("", "pages-artifacts-") // which benchmarks may read, other than those of t
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(artifacts)) })
	require.NoError(t, os.Chmod(artifacts, 0o755))
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		require.NoError(t, os.Mkdir(filepath.Join(artifacts, tag), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(artifacts, tag, "version"), []byte(tag), 0o644))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, suite.FileName), fmt.Appendf(nil, printingSuite, artifacts+"/{tag}"), 0o644))
	if len(lines) == 0 {
		lines = []string{"BenchmarkPrint 1 100 ns/op"}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "output"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	packed, err := suite.Pack(dir)
	require.NoError(t, err)
	_, err = s.API.PutSuite(t.Context(), packed.Hash, packed.Archive)
	require.NoError(t, err)
	project = s.name(what)
	_, err = s.API.ApplyProject(t.Context(), apiclient.Project{Name: project, Config: bench.ProjectConfig{Verify: bench.VerifyOff}, SuiteHash: packed.Hash}, false)
	require.NoError(t, err)
	return project
}

// submit submits a request.
func (s service) submit(t *testing.T, r apiclient.NewRequest) bench.RequestID {
	t.Helper()
	made, err := s.API.CreateRequest(t.Context(), r)
	require.NoError(t, err)
	return made.ID
}

// release submits a release of a project.
func (s service) release(t *testing.T, project, tag string) bench.RequestID {
	t.Helper()
	return s.submit(t, apiclient.NewRequest{Project: project, Type: bench.Release, Tag: tag})
}

// try submits a try build whose artifacts are not there yet.
func (s service) try(t *testing.T, project string, pr int) bench.RequestID {
	t.Helper()
	return s.submit(t, apiclient.NewRequest{Project: project, Type: bench.Try, PR: pr})
}

// commandIn submits a command for the queue of a project.
func (s service) commandIn(t *testing.T, project string, argv ...string) bench.RequestID {
	t.Helper()
	return s.submit(t, apiclient.NewRequest{Project: project, Command: &apiclient.Command{Argv: argv}})
}

// command submits a command line and returns its request.
func (s service) command(t *testing.T, argv ...string) apiclient.Request {
	t.Helper()
	r, err := s.API.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: argv}})
	require.NoError(t, err)
	return r
}

// small submits a command for the collectors of class 1.
func (s service) small(t *testing.T, argv ...string) apiclient.Request {
	t.Helper()
	r, err := s.API.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: argv}, PlacementWish: apiclient.PlacementWish{SizeClass: 1}})
	require.NoError(t, err)
	return r
}

// jobOf is the only job of a request, as soon as it is there.
func (s service) jobOf(t *testing.T, id bench.RequestID) bench.JobKey {
	t.Helper()
	detail, err := s.API.Request(t.Context(), string(id))
	require.NoError(t, err)
	require.Len(t, detail.Jobs, 1)
	return detail.Jobs[0].Key
}

// lookEvery is the interval of looks at the API.
const lookEvery = 200 * time.Millisecond

// ended waits until a request has ended.
func (s service) ended(t *testing.T, id bench.RequestID) bench.Outcome {
	t.Helper()
	var r apiclient.RequestDetail
	require.Eventually(t, func() bool {
		var err error
		r, err = s.API.Request(t.Context(), string(id))
		require.NoError(t, err)
		return r.Status == bench.Completed
	}, 2*patience, lookEvery, "request %s does not end", id)
	return r.Outcome
}

// outcome waits until a run has ended, and returns the word for how it did.
func (s service) outcome(t *testing.T, id bench.RunID) string {
	t.Helper()
	var r apiclient.RunDetail
	require.Eventually(t, func() bool {
		var err error
		r, err = s.API.Run(t.Context(), id)
		require.NoError(t, err)
		return r.Outcome != bench.RunRunning
	}, 2*patience, lookEvery, "run %s does not end", id)
	return strings.ReplaceAll(string(r.Outcome), "_", " ")
}
