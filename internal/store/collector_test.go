package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestACollectorRegistersAndTakesOver(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	asked := collector("one")
	asked.CoLocated, asked.Unenforced = true, json.RawMessage(`["memory"]`)
	asked.Labels, asked.BenchmarkSets = map[string]string{"rack": "2"}, []string{"first", "second"}
	asked.MachineType, asked.MachineGroup, asked.Devices = "vm", "taishan", []string{"nvme"}
	asked.MemoryBytes, asked.CPUs, asked.CacheDirs, asked.Host = 8<<30, 4, []string{"go/mod"}, "big"
	c, err := r.RegisterCollector(t.Context(), asked, offline)
	require.NoError(t, err)
	want := asked
	want.Epoch, want.Active, want.RegisteredAt, want.LastHeartbeat = c.Epoch, true, c.RegisteredAt, c.LastHeartbeat
	want.Facts = c.Facts
	require.Equal(t, want, c)
	require.JSONEq(t, string(asked.Facts), string(c.Facts))
	require.Positive(t, c.Epoch)
	require.Equal(t, c, r.collector("one"))

	// The same machine again, with another version: it stays drained.
	require.NoError(t, r.SetActive(t.Context(), "one", false))
	asked.Version, asked.Facts, asked.Unenforced = "2", nil, nil
	again, err := r.RegisterCollector(t.Context(), asked, offline)
	require.NoError(t, err)
	require.Greater(t, again.Epoch, c.Epoch)
	require.Equal(t, "2", again.Version)
	require.False(t, again.Active)

	// Another machine must wait until the owner has been silent for long enough.
	thief := asked
	thief.MachineID = "another"
	_, err = r.RegisterCollector(t.Context(), thief, offline)
	require.ErrorIs(t, err, store.ErrNameTaken)
	require.Equal(t, again, r.collector("one"))
	r.execute(`update collector_config set last_heartbeat = now() - interval '31 seconds'`)
	taken, err := r.RegisterCollector(t.Context(), thief, offline)
	require.NoError(t, err)
	require.Greater(t, taken.Epoch, again.Epoch)
	require.Equal(t, "another", taken.MachineID)

	// After removal and another registration, an old process is still refused.
	require.NoError(t, r.RemoveCollector(t.Context(), "one"))
	require.ErrorIs(t, r.RemoveCollector(t.Context(), "one"), store.ErrNotFound)
	_, err = r.Heartbeat(t.Context(), "one", taken.Epoch, "", nil)
	require.ErrorIs(t, err, store.ErrFenced)
	anew, err := r.RegisterCollector(t.Context(), asked, offline)
	require.NoError(t, err)
	require.Greater(t, anew.Epoch, taken.Epoch)
	require.True(t, anew.Active)
}

func TestOnlyOneMachineGetsAName(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	refused := 0
	for _, err := range together(6, func(i int) error {
		c := collector("one")
		c.MachineID = names(6)[i]
		_, err := r.RegisterCollector(t.Context(), c, offline)
		return err
	}) {
		if err != nil {
			require.ErrorIs(t, err, store.ErrNameTaken)
			refused++
		}
	}
	require.Equal(t, 5, refused)
}

func TestHeartbeatsRecordTheCurrentRun(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	c := r.register("one")
	run := r.start(job, 1, c).Run.ID
	r.execute(`update collector_config set last_heartbeat = now() - interval '1 hour', current_run = null`)

	got, err := r.Heartbeat(t.Context(), "one", c.Epoch, run, json.RawMessage(`{"done": 1}`))
	require.NoError(t, err)
	require.Equal(t, run, got.CurrentRun)
	require.WithinDuration(t, time.Now(), got.LastHeartbeat, time.Minute)
	require.Equal(t, got, r.collector("one"))
	require.JSONEq(t, `{"done":1}`, string(r.run(run).Progress))

	// A heartbeat may name a run that has not started yet; an idle collector names none.
	_, err = r.Heartbeat(t.Context(), "one", c.Epoch, runID(job, 2), json.RawMessage(`{}`))
	require.NoError(t, err)
	got, err = r.Heartbeat(t.Context(), "one", c.Epoch, "", nil)
	require.NoError(t, err)
	require.Empty(t, got.CurrentRun)

	// While it stays idle, not every heartbeat is recorded. A clock that was put back is no
	// reason to record none.
	for age, recorded := range map[string]bool{"2 s": false, "20 s": true, "-1 hour": true} {
		r.execute(`update collector_config set last_heartbeat = now() - $1::interval, available_at = now() - $1::interval`, age)
		before := r.collector("one").LastHeartbeat
		got, err = r.Heartbeat(t.Context(), "one", c.Epoch, "", nil)
		require.NoError(t, err)
		require.Equal(t, got, r.collector("one"))
		require.Equal(t, recorded, !got.LastHeartbeat.Equal(before), age)
	}

	// A drained collector learns of it with its heartbeat.
	require.NoError(t, r.SetActive(t.Context(), "one", false))
	got, err = r.Heartbeat(t.Context(), "one", c.Epoch, "", nil)
	require.NoError(t, err)
	require.False(t, got.Active)
	require.ErrorIs(t, r.SetActive(t.Context(), "two", true), store.ErrNotFound)

	r.register("one")
	_, err = r.Heartbeat(t.Context(), "one", c.Epoch, "", nil)
	require.ErrorIs(t, err, store.ErrFenced)
	_, err = r.Heartbeat(t.Context(), "two", 1, "", nil)
	require.ErrorIs(t, err, store.ErrFenced)
}

func TestPoolsCountTheirCollectors(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	pools := r.pools(offline)
	require.Empty(t, pools)

	r.register("one")
	r.register("silent")
	r.execute(`update collector_config set last_heartbeat = now() - interval '1 minute' where name = 'silent'`)
	r.register("inactive")
	require.NoError(t, r.SetActive(t.Context(), "inactive", false))
	odd := collector("odd")
	odd.HardwareID = "zen5"
	_, err := r.RegisterCollector(t.Context(), odd, offline)
	require.NoError(t, err)
	large := collector("large")
	large.SizeClass, large.Pool = 16, "large"
	_, err = r.RegisterCollector(t.Context(), large, offline)
	require.NoError(t, err)

	pools = r.pools(offline)
	require.Equal(t, []bench.PoolCount{
		{Pool: small, Live: 2, Total: 4, HardwareIDs: []string{"zen4", "zen5"}},
		{Pool: bench.Pool{Target: target, SizeClass: 16, Name: "large"}, Live: 1, Total: 1, HardwareIDs: []string{"zen4"}},
	}, pools)
	pools = r.pools(time.Hour)
	require.Equal(t, 3, pools[0].Live)
}

func TestStatesOfCollectors(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, c := range map[bench.CollectorState]bench.Collector{
		bench.CollectorOffline:      {LastHeartbeat: now.Add(-time.Minute), Active: true, CurrentRun: "r"},
		bench.CollectorDraining:     {LastHeartbeat: now, CurrentRun: "r"},
		bench.CollectorInactive:     {LastHeartbeat: now},
		bench.CollectorBenchmarking: {LastHeartbeat: now, Active: true, CurrentRun: "r"},
		bench.CollectorWaiting:      {LastHeartbeat: now, Active: true},
	} {
		require.Equal(t, want, c.State(now, offline))
	}
	ahead := bench.Collector{LastHeartbeat: now.Add(time.Hour), Active: true, CurrentRun: "r"}
	require.Equal(t, bench.CollectorOffline, ahead.State(now, offline), "the clock was set back since")
}

// A heartbeat recorded before the database's clock was set back does not count as recent.
func TestAHeartbeatFromTheFutureIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.register("one")
	r.execute(`update collector_config set last_heartbeat = now() + interval '1 hour'`)
	pools := r.pools(offline)
	require.Equal(t, 0, pools[0].Live)
	other := collector("one")
	other.MachineID = "another"
	taken, err := r.RegisterCollector(t.Context(), other, offline)
	require.NoError(t, err)
	require.Equal(t, "another", taken.MachineID)
}
