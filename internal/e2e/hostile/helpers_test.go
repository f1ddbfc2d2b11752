package hostile_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/protocol"
)

func randomWord(t *testing.T) string {
	t.Helper()
	raw := make([]byte, 8)
	_, err := rand.Read(raw)
	require.NoError(t, err)
	return fmt.Sprintf("%X", raw)
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident reads the resident set of a process, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	found := residentLine.FindSubmatch(text)
	require.NotNil(t, found)
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(t, err)
	return kilobytes << 10
}

// runIn runs a command of the binary in an environment, for a minute at most.
func (s service) runIn(t *testing.T, environ []string, args ...string) (output string, err error) {
	t.Helper()
	p := programs()
	require.NoError(t, p.Find())
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	command := exec.CommandContext(ctx, p.Benchloom, args...)
	command.Env = environ
	out, err := command.CombinedOutput()
	require.NoError(t, ctx.Err(), "it does not end: %s", out)
	return string(out), err
}

// writable makes an empty file to which benchmarks can write, whatever their account.
func writable(t *testing.T, name string) (file string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hostile-written-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	file = filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	require.NoError(t, os.Chmod(file, 0o666))
	return file
}

// executed counts the lines that commands have written to a file.
func executed(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return bytes.Count(text, []byte("\n"))
}

// trigger starts a pass of the reconciliation.
func trigger(ctx context.Context, c client.Client) error {
	return c.ScheduleClient().GetHandle(ctx, protocol.ReconcileScheduleID).Trigger(ctx, client.ScheduleTriggerOptions{})
}

// closedOf lists the closed workflows of the reconciliation by run.
func closedOf(t *testing.T, c client.Client) []string {
	t.Helper()
	list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: `WorkflowType = 'Reconcile' and ExecutionStatus != 'Running'`})
	require.NoError(t, err)
	var runs []string
	for _, e := range list.GetExecutions() {
		runs = append(runs, e.GetExecution().GetRunId())
	}
	slices.Sort(runs)
	return runs
}

// closed tells one set of closed workflows from another.
func closed(t *testing.T, c client.Client) string { return fmt.Sprint(closedOf(t, c)) }
