package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// A Temporal that answers no heartbeat for some seconds costs no run.
func TestAStalledTemporalEndsNoRun(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	held := filepath.Join(t.TempDir(), "held")
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	id := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: heldCommand(held)}).ID
	s.runsOn(t, id)

	pid, err := s.pid("temporal")
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(filepath.Join(s.dir, "logs", "collector-local-1.log"))
		require.NoError(t, err)
		return strings.Contains(string(log), "did not take a heartbeat")
	}, patience, 50*time.Millisecond, "the stall is not noticed")
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	require.NoError(t, os.Remove(held))

	d := s.await(t, id, ended)
	requireSuccess(t, d.Outcome, d)
	require.Len(t, d.Runs, 1)
	require.Equal(t, bench.RunSuccess, d.Runs[0].Outcome)
}
