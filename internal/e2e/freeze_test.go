package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// freezeEnv sets how long the outages of the long tests last ('make freeze': 10m).
const freezeEnv = "BENCHLOOM_FREEZE"

// outage returns the length of the long tests' outages: far beyond every timeout of a
// dispatch.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(freezeEnv)
	if text == "" {
		return time.Minute
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err, freezeEnv)
	return length
}

// sleepScript takes a second and no processor, so that a run lasts as long as it has to.
const sleepScript = `echo "$2 $(basename "$1")" >> "$3"
sleep 1
`

// freeze stops a process of the stack, as a stalled machine or disk would. It answers
// nothing until it is thawed.
func (s *stack) freeze(t *testing.T, name string) (thaw func()) {
	t.Helper()
	pid, err := s.pid(name)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	thaw = sync.OnceFunc(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	t.Cleanup(thaw)
	return thaw
}

// Temporal is frozen for a minute, or as long as BENCHLOOM_FREEZE says. Thawed, it takes
// the collector for dead and the job's workflow adopts the run, unless a heartbeat comes
// before its timers: the run ends well, no result is missing, and nothing is measured twice.
func TestLongAFrozenTemporalEndsNoRun(t *testing.T) {
	t.Parallel()
	length := outage(t)
	blocks := int((length+30*time.Second)/time.Second)/smallIterations + 1
	s := startStack(t)
	shell := newShellSuite(t, blocks)
	shell.write(t, "count.sh", sleepScript)
	shell.artifact(t, "1.0.0", 1)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	id := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.0.0"}).ID
	require.Eventually(t, func() bool { return len(s.stored(t)) > 0 }, patience, 100*time.Millisecond, "no block was stored")

	thaw := s.freeze(t, "temporal")
	<-time.After(length) // it is the outage, not a wait for something
	thaw()
	require.Less(t, len(s.stored(t)), blocks, "the run has ended before the outage")

	d := s.await(t, id, length+patience)
	requireSuccess(t, d.Outcome, d)
	require.Empty(t, d.Errors)
	require.Len(t, d.Runs, 1)
	require.Equal(t, bench.RunSuccess, d.Runs[0].Outcome, d.Runs[0].Message)
	s.requireCollections(t, "shell", smallIterations)
	require.Equal(t, blocks*smallIterations, shell.executed(t))

	c := s.temporal(t)
	job := s.jobWorkflow(t, s.firstJob(t, id))
	if slices.Contains(activities(t, c, job), protocol.AwaitRun) {
		s.record(t, c, "Job", job, "success_after_adoption")
	} else {
		t.Log("a heartbeat came before Temporal's timers: the run was not adopted")
	}
	log, err := os.ReadFile(filepath.Join(s.dir, "logs", "collector-local-1.log"))
	require.NoError(t, err)
	require.NotContains(t, string(log), "level=ERROR")
}

// A Temporal that answers no heartbeat for some seconds costs no run.
func TestAStalledTemporalEndsNoRun(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	held := filepath.Join(t.TempDir(), "held")
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	id := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: heldCommand(held)}).ID
	s.runsOn(t, id)

	thaw := s.freeze(t, "temporal")
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(filepath.Join(s.dir, "logs", "collector-local-1.log"))
		require.NoError(t, err)
		return strings.Contains(string(log), "did not take a heartbeat")
	}, patience, 50*time.Millisecond, "the stall is not noticed")
	thaw()
	require.NoError(t, os.Remove(held))

	d := s.await(t, id, ended)
	requireSuccess(t, d.Outcome, d)
	require.Len(t, d.Runs, 1)
	require.Equal(t, bench.RunSuccess, d.Runs[0].Outcome)
}
