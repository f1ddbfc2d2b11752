package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// Jobs follow those who can run them; where nobody can any more, they wait with
// nobody rather than with those who must not have them.
func TestAnew(t *testing.T) {
	t.Parallel()
	fleet := pool(x86, 2, "main", 2, 2)
	home := fleet[0].Pool
	needs := placement.Requirements{Target: x86, Class: 2, Constraints: bench.Constraints{Devices: []string{"gpu"}}}
	queue := home.TaskQueue()
	anew := func(taskQueue string, set ...string) *bench.Place {
		return placement.Anew(fleet, needs, taskQueue, set)
	}
	nobody := bench.WithNobody(home)

	require.Equal(t, &nobody, anew(queue), "nobody has one")
	require.Equal(t, &nobody, anew(bench.Place{Pool: home, Set: []string{"main-1"}}.TaskQueue(), "main-1"), "its owner has it no longer")
	require.Nil(t, anew(nobody.TaskQueue(), nobody.Set...), "it waits there already")
	require.Nil(t, anew(bench.Place{Pool: home, Set: []string{"gone"}}.TaskQueue(), "gone"), "its owner may come back")
	require.Nil(t, anew(bench.Pool{Target: x86, SizeClass: 2, Name: "gone"}.TaskQueue()))
	require.Equal(t, &nobody, anew(bench.Place{Pool: home, Set: []string{"gone"}}.TaskQueue()), "who that was is forgotten")
	elsewhere := needs
	elsewhere.Pool = "other"
	require.Equal(t, "other", placement.Anew(fleet, elsewhere, queue, nil).Name, "results stay its pool's")

	fleet[1].Devices = []string{"gpu"}
	require.Equal(t, &bench.Place{Pool: home, Set: []string{"main-1"}}, anew(queue))
	require.Equal(t, &bench.Place{Pool: home, Set: []string{"main-1"}}, anew(nobody.TaskQueue(), nobody.Set...))
	fleet[0].Devices = []string{"gpu"}
	require.Equal(t, &bench.Place{Pool: home}, anew(nobody.TaskQueue(), nobody.Set...))

	words := placement.PlanFailover(nil, placement.Waiting{At: nobody, After: time.Minute, Requirements: needs}).Words(nobody, time.Time{})
	require.Contains(t, words, "meets the job's constraints any more; no other pool")
	require.Error(t, bench.CheckName("collector", nobody.Set[0]), "no collector can be called so")
}

func TestAlike(t *testing.T) {
	t.Parallel()
	one := pool(x86, 2, "main", 1, 1)[0]
	awake := one
	awake.Live, awake.Away, awake.CacheDirs, awake.Devices, awake.Labels = false, time.Hour, []string{"go"}, []string{}, map[string]string{}
	require.True(t, placement.Alike(one, awake), "that changes all the time")
	for _, change := range []func(*placement.Collector){
		func(c *placement.Collector) { c.Labels = map[string]string{"a": "b"} },
		func(c *placement.Collector) { c.Devices = []string{"gpu"} },
		func(c *placement.Collector) { c.MemoryBytes = 1 },
		func(c *placement.Collector) { c.CPUs = 1 },
		func(c *placement.Collector) { c.Group = "a" },
		func(c *placement.Collector) { c.Type = "vm" },
		func(c *placement.Collector) { c.Host = "a" },
		func(c *placement.Collector) { c.Name = "a" },
		func(c *placement.Collector) { c.Pool.Name = "a" },
		func(c *placement.Collector) { c.Pool.SizeClass = 4 },
	} {
		other := one
		change(&other)
		require.False(t, placement.Alike(one, other), "%+v", other)
		require.True(t, placement.Alike(other, other))
	}
}
