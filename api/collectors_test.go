package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func TestACollectorsLife(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	b := setup(t, withClock(now), func(c *api.Config) { c.HeartbeatEvery = 3 * time.Second })
	c := b.register(t, "c1")
	require.Equal(t, "bench/x86_64-unknown-linux-gnu/2/main", c.TaskQueue)
	require.Equal(t, 3, c.HeartbeatSeconds)
	require.Equal(t, bench.CollectorWaiting, c.Collector.State)
	require.Equal(t, []apiclient.Unenforced{{Name: "memory", Reason: "no cgroup"}}, c.Collector.Unenforced)
	require.JSONEq(t, `{"cpu":"some"}`, string(c.Collector.Facts))

	beat := apiclient.Heartbeat{Epoch: c.Collector.Epoch}
	answer, err := b.collector.Heartbeat(t.Context(), "c1", beat)
	require.NoError(t, err)
	require.True(t, answer.Active)

	// Drained, it learns so with its next heartbeat.
	drained, err := b.admin.DrainCollector(t.Context(), "c1", "")
	require.NoError(t, err)
	require.Equal(t, bench.CollectorInactive, drained.State)
	answer, err = b.collector.Heartbeat(t.Context(), "c1", beat)
	require.NoError(t, err)
	require.False(t, answer.Active)
	// A restart keeps it so.
	c = b.register(t, "c1")
	require.Equal(t, bench.CollectorInactive, c.Collector.State)
	active, err := b.admin.ActivateCollector(t.Context(), "c1", "")
	require.NoError(t, err)
	require.Equal(t, bench.CollectorWaiting, active.State)

	// Its older registration is fenced off.
	_, err = b.collector.Heartbeat(t.Context(), "c1", beat)
	require.ErrorIs(t, err, apiclient.ErrFenced)
	// Another machine cannot take the name of a live one.
	other := registration("c1")
	other.MachineID = "another machine"
	_, err = b.collector.RegisterCollector(t.Context(), other)
	require.ErrorIs(t, err, apiclient.ErrNameTaken)
	require.ErrorContains(t, err, "choose another name with --name")

	require.Equal(t, http.StatusConflict, problemOf(t, b.admin.RemoveCollector(t.Context(), "c1", false)).Status)
	now.advance(time.Hour)
	list, err := b.nobody.Collectors(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, bench.CollectorOffline, list[0].State)
	require.NoError(t, b.admin.RemoveCollector(t.Context(), "c1", false))
	_, err = b.nobody.Collector(t.Context(), "c1")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	require.ErrorContains(t, err, "none is registered; start one with 'benchloom collector'")
	_, err = b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch})
	require.ErrorIs(t, err, apiclient.ErrUnauthorized, "its token is gone as well")
}

func TestAHeartbeatShowsTheProgressOfARun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	progress := apiclient.RunProgress{Phase: "measuring", TestCase: j.cases[0].String(), Iteration: 2, Iterations: 5, Done: 1, Total: 2}
	_, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Run: plan.Run.ID, Progress: progress})
	require.NoError(t, err)
	d, err := b.nobody.Job(t.Context(), j.key)
	require.NoError(t, err)
	require.Equal(t, progress, d.Runs[0].Progress)
	shown, err := b.nobody.Collector(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, plan.Run.ID, shown.CurrentRun)
	require.Equal(t, bench.CollectorBenchmarking, shown.State)
	_, err = b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Run: "nonsense"})
	require.ErrorContains(t, err, "a run's ID is")
}

// A collector learns with its next heartbeat that its run has ended in the record, even
// while Temporal is away. It learns nothing of others' runs.
func TestAHeartbeatIsToldThatItsRunHasEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c, other := b.register(t, "c1"), b.register(t, "c2")
	j := b.submit(t, "1.26.0")
	plan := b.start(t, j, c, 1)
	closed := func(run bench.RunID) string {
		t.Helper()
		answer, err := b.client(t, "own c1").Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Run: run})
		require.NoError(t, err)
		return answer.RunClosed
	}
	require.Empty(t, closed(""))
	require.Empty(t, closed(plan.Run.ID))
	require.Empty(t, closed(bench.NewRunID(j.key, "workflow", "activity", 2)), "it has not passed the fence yet")

	_, err := b.store.CancelJob(t.Context(), j.key, 0, "cancelled by ada")
	require.NoError(t, err)
	require.Equal(t, "it ended as cancelled: the job ended as cancelled", closed(plan.Run.ID))
	_, err = b.client(t, "own c2").Heartbeat(t.Context(), "c2", apiclient.Heartbeat{Epoch: other.Collector.Epoch, Run: plan.Run.ID})
	require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type)
}

func TestInvalidRegistrationsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for want, change := range map[string]func(*apiclient.Registration){
		"collector c1: target \"linux\"":                func(r *apiclient.Registration) { r.Target = "linux" },
		"collector c1: size class":                      func(r *apiclient.Registration) { r.SizeClass = 0 },
		"collector c1: pool \"\"":                       func(r *apiclient.Registration) { r.Pool = "" },
		"body.machine_id: expected length >= 8":         func(r *apiclient.Registration) { r.MachineID = "m" },
		"its version and hardware_id must not be empty": func(r *apiclient.Registration) { r.Version = "" },
		"hardware_id must not be empty":                 func(r *apiclient.Registration) { r.HardwareID = "" },
	} {
		r := registration("c1")
		change(&r)
		_, err := b.collector.RegisterCollector(t.Context(), r)
		require.ErrorContains(t, err, want)
		require.Equal(t, http.StatusUnprocessableEntity, problemOf(t, err).Status)
	}
	for _, f := range []func() error{
		func() error { _, err := b.admin.DrainCollector(t.Context(), "c9", ""); return err },
		func() error { _, err := b.admin.ActivateCollector(t.Context(), "c9", ""); return err },
		func() error { return b.admin.RemoveCollector(t.Context(), "c9", false) },
	} {
		require.ErrorIs(t, f(), apiclient.ErrNotFound)
	}
}

func TestACollectorIsSetAsideAfterDisturbedRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	b.register(t, "c2")
	for _, tag := range []string{"1.24.0", "1.25.0", "1.26.0"} {
		j := b.submit(t, tag)
		plan := b.start(t, j, c, 1)
		measured := block(j.cases, 1)
		for i := range measured.Results {
			for n := range measured.Results[i].Collections {
				measured.Results[i].Collections[n].Disturbed = "foreign CPU time: 43 % of the job's CPUs"
			}
		}
		_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, measured)
		require.NoError(t, err)
		require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	}
	shown, err := b.nobody.Collector(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, bench.CollectorInactive, shown.State)
	require.NotNil(t, shown.SetAsideAt)
	require.Equal(t, "its last 3 runs were disturbed, mostly by foreign CPU time", shown.DisturbedBy)
	require.Contains(t, b.log.String(), "set aside")

	// It reads its machine from now on.
	quiet := ""
	for _, report := range []*string{nil, &quiet} {
		answer, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Disturbed: report})
		require.NoError(t, err)
		require.True(t, answer.SetAside)
		require.False(t, answer.Active)
	}
	_, err = b.admin.ActivateCollector(t.Context(), "c1", "")
	require.NoError(t, err)
	answer, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch})
	require.NoError(t, err)
	require.True(t, answer.Active)
	require.False(t, answer.SetAside)
}

// A collector that can measure nothing is set aside whatever else its pool has, until it is started anew: a quiet machine
// and a person's wish change nothing about its processes.
func TestACollectorThatIsStuckIsSetAside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	const why = "its slot can run nothing more: processes survive being killed: [4711]"
	beat := func(stuck string) apiclient.HeartbeatAnswer {
		t.Helper()
		quiet := ""
		answer, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Disturbed: &quiet, Stuck: stuck})
		require.NoError(t, err)
		return answer
	}
	require.True(t, beat("").Active)
	for range 2 {
		answer := beat(why)
		require.False(t, answer.Active)
		require.False(t, answer.SetAside, "it need not read its machine")
		shown, err := b.nobody.Collector(t.Context(), "c1")
		require.NoError(t, err)
		require.Equal(t, bench.CollectorInactive, shown.State)
		require.True(t, shown.Stuck)
		require.Equal(t, why, shown.DisturbedBy)
		_, err = b.admin.ActivateCollector(t.Context(), "c1", "")
		require.NoError(t, err)
	}
	require.False(t, beat(why).Active)
	without, err := b.store.CollectorsWithoutCanary(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, without)

	c = b.register(t, "c1")
	require.True(t, beat("").Active)
	shown, err := b.nobody.Collector(t.Context(), "c1")
	require.NoError(t, err)
	require.Nil(t, shown.SetAsideAt)
	require.Empty(t, shown.DisturbedBy)
	require.False(t, shown.Stuck)

	// What a person has drained stays so.
	_, err = b.admin.DrainCollector(t.Context(), "c1", "")
	require.NoError(t, err)
	require.False(t, beat(why).Active)
	c = b.register(t, "c1")
	require.False(t, beat("").Active)
}
