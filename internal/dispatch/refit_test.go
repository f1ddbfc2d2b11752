package dispatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

const target = bench.Target("x86_64-unknown-linux-gnu")

func pool(name string) bench.Pool { return bench.Pool{Target: target, SizeClass: 2, Name: name} }

func collector(name, pool string) bench.Collector {
	return bench.Collector{Name: name, Target: target, SizeClass: 2, Pool: pool, MachineType: "hw", Active: true}
}

func live(c bench.Collector) placement.Collector {
	out := placement.Of(c)
	out.Live = true
	return out
}

// Commands wait for one pool; a second one of their size class comes: they belong to both.
// In Temporal they are moved by what the record says, not by what was moved just now.
func TestJobsFollowTheFleet(t *testing.T) {
	t.Parallel()
	from := pool("main").TaskQueue()
	commands := store.JobGroup{Target: target, SizeClass: 2, TaskQueue: from, AcrossPools: true, Jobs: 3}
	one, two := collector("c1", "main"), collector("c2", "other")
	w := &world{
		fleet: []placement.Collector{live(one)}, groups: []store.JobGroup{commands},
		moved: []store.WaitingJob{{JobRef: bench.JobRef{Key: "earlier"}, TaskQueue: "there"}},
	}
	d := dispatcher(w)
	require.NoError(t, d.FollowFleet(t.Context()))
	require.Empty(t, w.done, "all of them can run where they wait")

	w.fleet = append(w.fleet, live(two))
	both := bench.Place{Pool: pool("main"), Set: []string{"c1", "c2"}}.TaskQueue()
	require.NoError(t, d.FollowFleet(t.Context()))
	require.Equal(t, []string{"replace " + from + " by " + both, "move earlier to there"}, w.done)

	// A collector that registers again as it was changes nothing.
	w.done = nil
	moved, err := d.RefitFor(t.Context(), &two, two)
	require.NoError(t, err)
	require.Empty(t, moved)
	require.Empty(t, w.done)
	before := two
	before.Devices = []string{"fpga"}
	for _, before := range []*bench.Collector{nil, &before} {
		moved, err = d.RefitFor(t.Context(), before, two)
		require.NoError(t, err)
		require.Equal(t, []string{both}, moved)
	}
}

func TestJobsLeaveADeadPool(t *testing.T) {
	t.Parallel()
	dead := placement.Of(collector("c1", "main"))
	dead.Away = 11 * time.Minute
	waiting := func(key bench.JobKey) store.WaitingJob {
		return store.WaitingJob{JobRef: bench.JobRef{Project: "go", Key: key}, Target: target, SizeClass: 2, Pool: "main", TaskQueue: pool("main").TaskQueue(), Status: bench.JobQueued}
	}
	w := &world{
		config: `{"failover_after": "10m"}`, fleet: []placement.Collector{dead, live(collector("r1", "refuge"))},
		stranded: []store.WaitingJob{waiting("one"), waiting("two")}, began: "one",
		moved: []store.WaitingJob{{JobRef: bench.JobRef{Key: "two"}, TaskQueue: pool("refuge").TaskQueue(), SizeClass: 2}},
	}
	d := dispatcher(w)
	row := func(key string) string {
		return "row " + key + " from " + pool("main").TaskQueue() + " to " + pool("refuge").TaskQueue()
	}
	require.NoError(t, d.Failover(t.Context()))
	require.Equal(t, []string{row("one"), row("two"), "move two to " + pool("refuge").TaskQueue()}, w.done, "rows first; one that has begun keeps no other from it")
	require.Equal(t, []protocol.Moved{{TaskQueue: pool("refuge").TaskQueue(), SizeClass: 2}}, w.followed)

	w.done, w.fleet[0].Away = nil, 9*time.Minute
	require.NoError(t, d.Failover(t.Context()))
	require.Equal(t, []string{"move two to " + pool("refuge").TaskQueue()}, w.done, "not for long enough")

	w.config = `{"failover_after": 3}`
	require.ErrorIs(t, d.Failover(t.Context()), bench.ErrInvalid)
}
