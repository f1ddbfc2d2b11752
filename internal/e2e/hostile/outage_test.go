package hostile_test

import (
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/up"
)

// A Temporal that answers nothing for four seconds ends no run.
func TestLongAStalledTemporalEndsNoMeasurement(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	file, release := held(t)
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", "while [ -e " + file + " ]; do sleep 0.05; done"}}})
	s.runOf(t, id)
	processes, err := s.Processes()
	require.NoError(t, err)
	pid := processes["temporal"]
	require.NotZero(t, pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume := time.AfterFunc(4*time.Second, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	t.Cleanup(func() {
		resume.Stop()
		_ = syscall.Kill(pid, syscall.SIGCONT)
	})
	require.Eventually(t, func() bool { // it answers again
		_, err := s.temporal(t).CheckHealth(t.Context(), nil)
		return err == nil
	}, patience, 100*time.Millisecond)
	release()
	d := s.await(t, id)
	require.Equal(t, bench.Success, d.Outcome, d.Message)
	require.Len(t, d.Runs, 1)
	require.Equal(t, bench.RunSuccess, d.Runs[0].Outcome)
}

// A process that is older than the schema says so and ends.
func TestNoProcessRunsAgainstANewerSchema(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	_, err := s.database(t).Exec(t.Context(), `insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	require.NoError(t, err)
	for _, process := range []string{"orchestrator", "api"} {
		out, err := s.process(t, process)
		require.Error(t, err, "%s runs against a schema that it does not know: %s", process, out)
		require.Contains(t, out, "99999", "it names the version that it found")
	}
}

// memory is the resident set of a process of the stack, in bytes.
func (s service) memory(t *testing.T, process string) int64 {
	t.Helper()
	processes, err := s.Processes()
	require.NoError(t, err)
	return resident(t, processes[process])
}

// Invented methods become no series of metrics: each would stay for ever.
func TestInventedMethodsCostNoMemory(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	for range 300 {
		method := "X" + randomWord(t)
		request, err := http.NewRequestWithContext(t.Context(), method, s.url+"/api/v1/info", nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.GreaterOrEqual(t, response.StatusCode, 400)
	}
	metrics := s.call(t, s.token(t, up.TokenUser), http.MethodGet, "/metrics", nil)
	require.Equal(t, http.StatusOK, metrics.status, metrics.String())
	require.Contains(t, metrics.body, "api_requests")
	require.NotContains(t, metrics.body, `method="X`)
}

// Each pass that is asked for is a workflow. Later passes, most of which are none, delete the
// closed ones except the newest. Temporal removes them from its lists only when its own queues
// have advanced, some minutes later.
func TestLongSchedulesForgetClosedWorkflows(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	c := s.temporal(t)
	const passes = 6
	for range passes {
		before := closed(t, c)
		require.NoError(t, trigger(t.Context(), c))
		require.Eventually(t, func() bool { return closed(t, c) != before }, patience, 100*time.Millisecond, "no pass has ended")
	}
	old := closedOf(t, c)
	require.NotEmpty(t, old)
	require.NoError(t, trigger(t.Context(), c), "the newest pass stays, so that it may be none of these")
	require.Eventually(t, func() bool {
		now := closedOf(t, c)
		return !slices.ContainsFunc(old, func(run string) bool { return slices.Contains(now, run) })
	}, patience, time.Second, "of these closed passes some stay: %v", old)
}

// process runs a process of the service against the stack's database and Temporal.
func (s service) process(t *testing.T, name string) (output string, err error) {
	t.Helper()
	return s.runIn(t, append(os.Environ(), "DATABASE_URL="+s.Up.Addresses[up.AddressDatabase], "TEMPORAL_ADDRESS="+s.Up.Addresses[up.AddressTemporal]), name)
}
