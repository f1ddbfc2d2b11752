package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// heldCommand returns a command that runs until the file is removed.
func heldCommand(file string) *apiclient.Command {
	return &apiclient.Command{Argv: []string{"sh", "-c", "while [ -e " + file + " ]; do sleep 0.05; done"}}
}

// runsOn waits until a request's only job has a run, and returns its collector.
func (s *stack) runsOn(t *testing.T, id bench.RequestID) string {
	t.Helper()
	var runs []apiclient.Run
	require.Eventually(t, func() bool {
		d, err := s.api.Request(t.Context(), string(id))
		require.NoError(t, err)
		require.NotEqual(t, bench.Failure, d.Outcome, d.Message)
		runs = d.Runs
		return len(runs) > 0
	}, ended, 50*time.Millisecond, "no collector runs request %s", id)
	require.Len(t, runs, 1)
	return runs[0].Collector
}

// Commands run only on machines that meet their constraints: real collectors, each in
// its own pool, poll the task queues of the sets that they belong to.
func TestLongAJobRunsOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	caches := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(caches, "go", "mod"), 0o755))
	s.startCollector(t, "a", "left", "--label", "rack=1", "--device", "gpu")
	s.startCollector(t, "b", "left", "--label", "rack=2", "--cache-root", caches)
	s.startCollector(t, "c", "right", "--label", "rack=1", "--memory", "3GiB")
	waitForCaches := func(atMost string) {
		t.Helper()
		_, err := s.api.ApplyProject(t.Context(), apiclient.Project{Name: "mine", Config: bench.ProjectConfig{AffinityWait: atMost}}, false)
		require.NoError(t, err)
	}
	waitForCaches("1h") // longer than a busy machine takes to start a job
	submit := func(command *apiclient.Command, where bench.ConstraintSpec) apiclient.Request {
		t.Helper()
		return s.submit(t, apiclient.NewRequest{Project: "mine", Type: bench.AdHoc, Command: command, PlacementWish: apiclient.PlacementWish{Constraints: where}})
	}
	done := &apiclient.Command{Argv: []string{"true"}}

	// A label, a device, and both with a machine: one collector fits each time.
	require.Equal(t, "b", s.runsOn(t, submit(done, bench.ConstraintSpec{Labels: map[string]string{"rack": "2"}}).ID))
	require.Equal(t, "a", s.runsOn(t, submit(done, bench.ConstraintSpec{Devices: []string{"gpu"}}).ID))
	require.Equal(t, "c", s.runsOn(t, submit(done, bench.ConstraintSpec{Machines: []string{"b", "c"}, Labels: map[string]string{"rack": "1"}}).ID))
	_, err := s.api.CreateRequest(t.Context(), apiclient.NewRequest{Project: "mine", Command: done, PlacementWish: apiclient.PlacementWish{Constraints: bench.ConstraintSpec{Machines: []string{"c"}, Memory: "4 GB"}}})
	require.ErrorContains(t, err, "a job may use 3g of memory there, not 4g")

	// Any idle machine of several: three jobs for two machines of different pools. Two
	// run at once, one on each; the third follows on the first that becomes idle.
	held := filepath.Join(t.TempDir(), "held")
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	either := bench.ConstraintSpec{Machines: []string{"a", "c"}}
	first, second := submit(heldCommand(held), either), submit(heldCommand(held), either)
	require.ElementsMatch(t, []string{"a", "c"}, []string{s.runsOn(t, first.ID), s.runsOn(t, second.ID)})
	third := submit(done, either)
	require.Equal(t, "b", s.runsOn(t, submit(done, bench.ConstraintSpec{Machines: []string{"a", "b", "c"}}).ID), "the idle one")
	d, err := s.api.Request(t.Context(), string(third.ID))
	require.NoError(t, err)
	require.Empty(t, d.Runs, "both are busy, and no other may")
	require.NoError(t, os.Remove(held))
	require.Contains(t, []string{"a", "c"}, s.runsOn(t, third.ID))

	// The collector with the cache comes first while it is available; then any.
	warm := bench.ConstraintSpec{CacheDirs: []string{"go/mod"}}
	require.Equal(t, "b", s.runsOn(t, submit(done, warm).ID))
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	require.Equal(t, "b", s.runsOn(t, submit(heldCommand(held), warm).ID))
	waitForCaches("1s")
	require.NotEqual(t, "b", s.runsOn(t, submit(done, warm).ID))
	require.NoError(t, os.Remove(held))

	// An unconstrained command finds every idle machine, of whatever pool.
	all := filepath.Join(t.TempDir(), "all")
	require.NoError(t, os.WriteFile(all, nil, 0o600))
	var at []bench.RequestID
	for range 4 {
		at = append(at, submit(heldCommand(all), bench.ConstraintSpec{}).ID)
	}
	var on []string
	for _, id := range at {
		on = append(on, s.runsOn(t, id))
	}
	require.ElementsMatch(t, []string{"a", "b", "c", "local-1"}, on)
	require.NoError(t, os.Remove(all))
}
