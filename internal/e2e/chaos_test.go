package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
)

// victims lists the processes to kill.
var victims = []string{"collector", "orchestrator", "api", "temporal", "postgres", "up"}

// Killing a process in the middle of a job changes nothing: the requests complete,
// every series has exactly its collections, and at most one block per kill is
// measured twice.
// Each process is killed at another point of a job; BENCHLOOM_CHAOS=all ('make chaos') runs
// all 36 combinations.
func TestLongChaos(t *testing.T) {
	t.Parallel()
	for i, victim := range victims {
		for j, point := range failpoint.All() {
			if os.Getenv("BENCHLOOM_CHAOS") != "all" && j != (i+2)%len(victims) { // a collector while it measures
				continue
			}
			t.Run(victim+" at "+point, func(t *testing.T) {
				t.Parallel()
				chaos(t, victim, point)
			})
		}
	}
}

func chaos(t *testing.T, victim, point string) {
	t.Helper()
	const benchmarks, iterations = 3, 3
	s := startWhole(t, "--collectors", "2x1", "--share-cores")
	shell := newShellSuite(t, benchmarks)
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		shell.artifact(t, tag, 20_000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})

	release := s.hold(t, point)
	defer release()
	var ids []bench.RequestID
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		ids = append(ids, s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: tag}).ID)
	}
	s.reached(t, point)
	before := benchmarkProcesses(t, shell)
	s.kill(t, s.victim(t, victim, point))
	release()
	if victim == "up" {
		s.start(t)
	}
	for _, id := range ids {
		d := s.await(t, id, patience)
		requireSuccess(t, d.Outcome, d)
	}
	s.requireCollections(t, "shell", iterations)
	total := 0
	for _, n := range shell.executions(t) {
		total += n
	}
	planned := 2 * benchmarks * iterations
	require.GreaterOrEqual(t, total, planned)
	require.LessOrEqual(t, total, planned+iterations, "at most one block more than planned")
	for _, pid := range before {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		require.Error(t, err, "process %d of the first run is still alive", pid)
	}
}

// victim returns a process's name in the stack: of the two collectors, the one that
// has reached the failure point.
func (s *stack) victim(t *testing.T, victim, point string) string {
	t.Helper()
	if victim != "collector" {
		return victim
	}
	collectors, err := s.api.Collectors(t.Context())
	require.NoError(t, err)
	for _, c := range collectors {
		if c.CurrentRun != "" {
			return "collector-" + c.Name
		}
	}
	// When recording and completing, the run is over: either will do.
	return "collector-local-1"
}

// benchmarkProcesses lists the processes that are executing the suite's script.
func benchmarkProcesses(t *testing.T, shell shellSuite) []int {
	t.Helper()
	tests := filepath.Dir(filepath.Dir(shell.dir)) + "/" // all directories of this test
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.Contains(string(line), "count.sh") && strings.Contains(string(line), tests) {
			pids = append(pids, pid)
		}
	}
	return pids
}
