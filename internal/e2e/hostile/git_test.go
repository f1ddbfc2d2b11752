package hostile_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// planted is in the environment of all processes of the shared stack, and git has to see
// nothing of it.
const planted = "planted-in-the-environment"

// spy stands in for git on the PATH of the shared stack. It writes down who calls it, and
// with which environment.
type spy struct{ bin, seen string }

func newSpy() (*spy, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hostile-git-")
	if err != nil {
		return nil, err
	}
	s := &spy{bin: filepath.Join(dir, "bin"), seen: filepath.Join(dir, "seen")}
	for _, made := range []string{s.bin, s.seen} {
		if err := os.MkdirAll(made, 0o777); err != nil {
			return nil, err
		}
	}
	script := fmt.Sprintf("#!/bin/sh\n{ tr '\\0' ' ' </proc/$PPID/cmdline; echo; env; } >%s/$$\nexec %s \"$@\"\n", s.seen, git)
	return s, os.WriteFile(filepath.Join(s.bin, "git"), []byte(script), 0o755)
}

func (s *spy) remove() error { return os.RemoveAll(filepath.Dir(s.bin)) }

// environ returns the environment of the shared stack's processes.
func (s *spy) environ() []string {
	return []string{
		"PATH=" + s.bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"AWS_SECRET_ACCESS_KEY=" + planted, "GITHUB_TOKEN=" + planted, "GIT_DIR=/" + planted,
	}
}

// reports returns the environments that a process of the service gave to git.
func (s *spy) reports(t *testing.T, process string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.seen, "*"))
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		caller, environ, _ := strings.Cut(string(text), "\n")
		if strings.Contains(caller, " "+process+" ") {
			found = append(found, environ)
		}
	}
	return found
}

// A build's revision is looked up by the orchestrator and exported by a collector. The git
// that they run has no business with tokens, the database's address and other secrets.
func TestGitSeesNoSecretsOfItsProcess(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	repository := filepath.Join(t.TempDir(), "repository")
	script := `set -e; mkdir "$1"; cd "$1"; echo one >id; git init -q -b main; git add id
git -c user.name=A -c user.email=a@example.org -c commit.gpgsign=false commit -q -m first`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", repository).CombinedOutput()
	require.NoError(t, err, string(out))
	s.apply(t, "spied", fmt.Sprintf(`name: spied
artifact: {provider: build, parameters: {repository: %s, command: [sh, -c, "mkdir out && cp id out/id"], output: out}}
iterations: 1
benchmarks:
  - {name: id, measure: {run: [grep, -q, one, "${artifact}/id"]}}
`, repository))
	id := s.submit(t, apiclient.NewRequest{Project: "spied", Type: bench.AdHoc, Tag: "main", PlacementWish: apiclient.PlacementWish{SizeClass: 1}})
	d := s.await(t, id)
	require.Equal(t, bench.Success, d.Outcome, d.Message)

	processes, err := s.Processes()
	require.NoError(t, err)
	for _, process := range []string{"orchestrator", "collector"} {
		own, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", processes[process]))
		require.NoError(t, err)
		require.Contains(t, string(own), planted, "the %s has no secret that it could give away", process)
		seen := shared.spy.reports(t, process)
		require.NotEmpty(t, seen, "the %s never called git", process)
		for _, environ := range seen {
			require.NotContains(t, environ, planted, process)
			for line := range strings.Lines(environ) {
				name, _, _ := strings.Cut(line, "=")
				require.NotRegexp(t, `^BENCHLOOM_|^DATABASE_|^TEMPORAL_|TOKEN|SECRET|PASSWORD`, name, process)
			}
		}
	}
}
