package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// Each collector measures an artifact in turns with itself. One that was set aside takes
// its canary all the same.
func TestLongCollectorsMeasureTheirCanaries(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "2x1", "--share-cores")
	shell := newShellSuite(t, 1)
	shell.artifact(t, "v1", 2_000)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Verify: bench.VerifySuspects})
	d := s.await(t, s.submit(t, apiclient.NewRequest{Project: "shell", Tag: "v1"}).ID, ended)
	requireSuccess(t, d.Outcome, d)
	measured := len(shell.order(t))

	db, c := s.database(t), s.temporal(t)
	execute := func(sql string) {
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	flown := func(name string) apiclient.Canary {
		var last *apiclient.Canary
		require.Eventually(t, func() bool {
			triggerReconcile(t, c)
			collector, err := s.api.Collector(t.Context(), name)
			require.NoError(t, err)
			last = collector.LastCanary
			return last != nil && last.EndedAt != nil
		}, patience, time.Second, "a canary of %s", name)
		return *last
	}
	// More than an hour later.
	execute(`update benchmark_request set jobs_done_at = jobs_done_at - interval '2 hours'`)
	for _, name := range []string{"local-1", "local-2"} {
		k := flown(name)
		require.NotEqual(t, bench.CanaryUnmeasured, k.Outcome, k.Message)
		d := s.await(t, k.Request, ended)
		requireSuccess(t, d.Outcome, d)
		require.Equal(t, []string{"v1", "v1+canary", bench.CanarySubmitter}, []string{d.Tag, d.Versus, d.Submitter})
	}
	require.Len(t, shell.order(t)[measured:], 2*2*bench.CanaryPairs)
	for _, line := range shell.order(t)[measured:] {
		require.Equal(t, "count-1 v1", line)
	}
	out, code := s.run(t, "collector", "show", "local-1")
	require.Zero(t, code)
	require.Contains(t, out, "last canary")

	first := flown("local-1").Request
	execute(`update collector_config set active = false, set_aside_at = now(), canary_failed = true, disturbed_by = 'its last canary failed' where name = 'local-1'`)
	execute(`update collector_config set canary_failed = false, disturbed_by = '' where name = 'local-2'`) // the better one
	execute(`update canary set slot = slot - interval '1 day', ended_at = ended_at - interval '1 hour' where collector = 'local-1'`)
	require.Eventually(t, func() bool { return flown("local-1").Request != first }, patience, time.Second, "another canary, while it is set aside")
	k := flown("local-1")
	require.NotEqual(t, bench.CanaryUnmeasured, k.Outcome, k.Message)
	collector, err := s.api.Collector(t.Context(), "local-1")
	require.NoError(t, err)
	require.Equal(t, k.Outcome == bench.CanaryPassed, collector.SetAsideAt == nil, "it takes other jobs again if that passed: %s", k.Message)
}
