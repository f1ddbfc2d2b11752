package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// machine is a live bare machine; change makes it a special one.
func machine(name, poolName string, class bench.SizeClass, change ...func(*placement.Collector)) placement.Collector {
	c := placement.Collector{Name: name, Pool: bench.Pool{Target: x86, SizeClass: class, Name: poolName}, Type: "hw", Live: true, Active: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func label(key, value string) func(*placement.Collector) {
	return func(c *placement.Collector) { c.Labels = map[string]string{key: value} }
}

func devices(names ...string) func(*placement.Collector) {
	return func(c *placement.Collector) { c.Devices = names }
}

func group(name string) func(*placement.Collector) {
	return func(c *placement.Collector) { c.Group = name }
}

func caches(dirs ...string) func(*placement.Collector) {
	return func(c *placement.Collector) { c.CacheDirs = dirs }
}

func memory(bytes int64, cpus int) func(*placement.Collector) {
	return func(c *placement.Collector) { c.MemoryBytes, c.CPUs = bytes, cpus }
}

func offline(c *placement.Collector) { c.Live, c.Away = false, 90*time.Second }

func slotOf(host string) func(*placement.Collector) {
	return func(c *placement.Collector) { c.Host, c.Type = host, "dc" }
}

const gib = int64(1) << 30

// needing gives a command's requirements with constraints as a person writes them.
func needing(t *testing.T, s bench.ConstraintSpec) placement.Requirements {
	t.Helper()
	c, err := s.Read()
	require.NoError(t, err)
	return placement.Requirements{Target: x86, Constraints: c, AcrossPools: true}
}

func TestChooseWithConstraints(t *testing.T) {
	t.Parallel()
	fleet := []placement.Collector{
		machine("a", "main", 4, label("rack", "1"), devices("gpu"), group("epyc")),
		machine("b", "main", 4, label("rack", "2"), group("epyc")),
		machine("c", "main", 4, label("rack", "1"), devices("gpu", "nvme")),
		machine("d", "spare", 4, label("rack", "3"), devices("nvme")),
		machine("e", "tiny", 1, label("rack", "1"), memory(2*gib, 1)),
		machine("f", "gone", 4, label("rack", "9"), offline),
		machine("h1", "shared", 2, slotOf("big"), memory(8*gib, 2)),
		machine("h2", "shared", 2, slotOf("big"), memory(8*gib, 2)),
		machine("h3", "shared", 2, slotOf("other"), memory(6*gib, 2)),
	}
	for name, c := range map[string]struct {
		spec bench.ConstraintSpec
		set  []string // empty: all of the pool
		pool string
	}{
		"nothing: all of the largest class":      {bench.ConstraintSpec{}, []string{"a", "b", "c", "d", "f"}, "main"},
		"a label some of a pool have":            {bench.ConstraintSpec{Labels: map[string]string{"rack": "1"}}, []string{"a", "c"}, "main"},
		"a label that all of a pool have":        {bench.ConstraintSpec{Labels: map[string]string{"rack": "3"}}, nil, "spare"},
		"a label that only an offline one has":   {bench.ConstraintSpec{Labels: map[string]string{"rack": "9"}}, nil, "gone"},
		"all devices, across pools":              {bench.ConstraintSpec{Devices: []string{"nvme"}}, []string{"c", "d"}, "main"},
		"both devices":                           {bench.ConstraintSpec{Devices: []string{"nvme", "gpu"}}, []string{"c"}, "main"},
		"one machine":                            {bench.ConstraintSpec{Machines: []string{"b"}}, []string{"b"}, "main"},
		"several machines: whichever idles":      {bench.ConstraintSpec{Machines: []string{"d", "b"}}, []string{"b", "d"}, "main"},
		"several machines, one of them unknown":  {bench.ConstraintSpec{Machines: []string{"b", "nobody"}}, []string{"b"}, "main"},
		"several machines, the larger one away":  {bench.ConstraintSpec{Machines: []string{"e", "f"}}, nil, "tiny"},
		"a shared host means all its slots":      {bench.ConstraintSpec{Machines: []string{"big"}}, []string{"h1", "h2"}, "shared"},
		"a group":                                {bench.ConstraintSpec{Groups: []string{"epyc", "xeon"}}, []string{"a", "b"}, "main"},
		"a type":                                 {bench.ConstraintSpec{Type: "dc"}, nil, "shared"},
		"a sized type":                           {bench.ConstraintSpec{Type: "dc-7g"}, []string{"h1", "h2"}, "shared"},
		"memory that is not known: 4g per class": {bench.ConstraintSpec{Memory: "16g"}, []string{"a", "b", "c", "d", "f"}, "main"},
		"CPUs":                                   {bench.ConstraintSpec{CPUs: 3}, []string{"a", "b", "c", "d", "f"}, "main"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := placement.Choose(fleet, needing(t, c.spec))
			require.NoError(t, err)
			require.Equal(t, c.set, got.Set)
			require.Equal(t, c.pool, got.Name)
			require.Equal(t, len(c.set) > 0, bench.IsSet(got.TaskQueue()), got.TaskQueue())
			require.Equal(t, c.pool != "gone", got.Live)
		})
	}

	// What belongs to a pool is not shared with another one.
	needs := needing(t, bench.ConstraintSpec{Machines: []string{"b", "d"}})
	needs.AcrossPools = false
	got, err := placement.Choose(fleet, needs)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, got.Set)
}

func TestUnplaceableNamesEachConstraintAndTheNearest(t *testing.T) {
	t.Parallel()
	fleet := []placement.Collector{
		machine("a", "main", 4, label("rack", "1"), devices("gpu"), group("epyc")),
		machine("b", "main", 4, label("rack", "2"), group("xeon"), memory(8*gib, 4)),
	}
	for name, c := range map[string]struct {
		spec bench.ConstraintSpec
		want []string
	}{
		"machine and group exclude each other": {
			bench.ConstraintSpec{Machines: []string{"a"}, Groups: []string{"xeon"}},
			[]string{"machine a and group xeon exclude each other: no collector has both", "nearest is a: its group is epyc, not xeon"},
		},
		"an unknown device": {
			bench.ConstraintSpec{Devices: []string{"fpga", "gpu"}},
			[]string{"no collector has device fpga;", "nearest is a: it has no device fpga"},
		},
		"999 GB": {
			bench.ConstraintSpec{Memory: "999"},
			[]string{"no collector has memory of 999g", "nearest is a: a job may use 16g of memory there, not 999g"},
		},
		"a label that nobody has, and a machine that is not there": {
			bench.ConstraintSpec{Labels: map[string]string{"color": "red", "rack": "7"}, Machines: []string{"z"}},
			[]string{
				"no collector has machine z; no collector has label color=red; no collector has label rack=7",
				"nearest is a: it is a, not z, it has no label color, its label rack is 1, not 7",
			},
		},
		"too many CPUs on another type": {
			bench.ConstraintSpec{Type: "vm-64p"},
			[]string{"no collector has type vm", "no collector has 64 CPUs", "its type is hw, not vm", "a job may use 4 CPUs there, not 64"},
		},
		"too little memory on the machine that is named": {
			bench.ConstraintSpec{Machines: []string{"b"}, Memory: "10g"},
			[]string{"machine b and memory of 10g exclude each other", "nearest is b: a job may use 8g of memory there, not 10g"},
		},
		"no two exclude each other, all three do": {
			bench.ConstraintSpec{Groups: []string{"epyc", "xeon"}, Memory: "10g", Labels: map[string]string{"rack": "2"}},
			[]string{"memory of 10g exclude each other", "nearest is a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := placement.Choose(fleet, needing(t, c.spec))
			var unplaceable *placement.Unplaceable
			require.ErrorAs(t, err, &unplaceable)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
	_, err := placement.Choose([]placement.Collector{
		machine("p", "m", 1, label("x", "1"), devices("d")), machine("q", "m", 1, label("x", "1"), group("g")), machine("r", "m", 1, devices("d"), group("g")),
	}, needing(t, bench.ConstraintSpec{Labels: map[string]string{"x": "1"}, Devices: []string{"d"}, Groups: []string{"g"}}))
	require.ErrorContains(t, err, "no collector has all of x86_64-unknown-linux-gnu, group g, device d, label x=1; nearest is p: it is of no group")
}

func TestClasses(t *testing.T) {
	t.Parallel()
	fleet := []placement.Collector{
		machine("a", "s", 1), machine("b", "m", 2, offline), machine("c", "l", 4), machine("d", "l", 4, devices("gpu")),
	}
	for _, c := range []struct {
		spec bench.ConstraintSpec
		want []bench.SizeClass
	}{
		{bench.ConstraintSpec{}, []bench.SizeClass{1, 2, 4}},
		{bench.ConstraintSpec{Memory: "5g"}, []bench.SizeClass{2, 4}},
		{bench.ConstraintSpec{CPUs: 4}, []bench.SizeClass{4}},
		{bench.ConstraintSpec{Devices: []string{"gpu"}}, []bench.SizeClass{4}},
		{bench.ConstraintSpec{Memory: "1t"}, nil},
	} {
		require.Equal(t, c.want, placement.Classes(fleet, needing(t, c.spec)), "%+v", c.spec)
	}
}

// Who has most of the wished caches goes first, among those who are awake; that
// excludes nobody for good.
func TestAffinity(t *testing.T) {
	t.Parallel()
	a, b, c := machine("a", "main", 2, caches("go", "go/mod")), machine("b", "main", 2, caches("go")), machine("c", "main", 2)
	for name, of := range map[string]struct {
		fleet []placement.Collector
		set   []string
		soft  bool
	}{
		"most of them":               {[]placement.Collector{a, b, c}, []string{"a"}, true},
		"as many":                    {[]placement.Collector{b, machine("d", "main", 2, caches("go/mod")), c}, []string{"b", "d"}, true},
		"nobody has any":             {[]placement.Collector{c}, nil, false},
		"everybody has as many":      {[]placement.Collector{b, machine("d", "main", 2, caches("go/mod"))}, nil, false},
		"the one who has is offline": {[]placement.Collector{machine("a", "main", 2, caches("go", "go/mod"), offline), c}, nil, false},
		"only the offline has not":   {[]placement.Collector{a, machine("c", "main", 2, offline)}, nil, false},
		"all of another pool have":   {[]placement.Collector{machine("z", "other", 2, caches("go")), c, machine("c2", "main", 2)}, nil, true},
		"one of another class has":   {[]placement.Collector{machine("z", "other", 1, caches("go")), c, machine("c2", "main", 2)}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := placement.Choose(of.fleet, needing(t, bench.ConstraintSpec{CacheDirs: []string{"go", "go/mod", "rust"}}))
			require.NoError(t, err)
			require.Equal(t, of.set, got.Set)
			require.Equal(t, of.soft, got.Affine)
		})
	}
}

func TestWarning(t *testing.T) {
	t.Parallel()
	fleet := []placement.Collector{
		machine("a", "main", 2, label("x", "1"), offline), machine("b", "main", 2, label("x", "1"), func(c *placement.Collector) { c.Live, c.Active = false, false }), machine("c", "main", 2),
	}
	needs := needing(t, bench.ConstraintSpec{Labels: map[string]string{"x": "1"}})
	place, err := placement.Choose(fleet, needs)
	require.NoError(t, err)
	require.Equal(t, "it waits: no collector that can run it is live now, of those registered: a (offline for 1m30s), b (drained)", placement.Warning(fleet, needs, place))
	needs = needing(t, bench.ConstraintSpec{})
	place, err = placement.Choose(fleet, needs)
	require.NoError(t, err)
	require.Empty(t, placement.Warning(fleet, needs, place))
}

// A job of a set fails over to others that meet its constraints, never to any that
// do not.
func TestASetFailsOver(t *testing.T) {
	t.Parallel()
	gpu := needing(t, bench.ConstraintSpec{Devices: []string{"gpu"}})
	home := bench.Place{Pool: bench.Pool{Target: x86, SizeClass: 2, Name: "main"}, Set: []string{"a"}}
	waiting := placement.Waiting{At: home, After: time.Minute, Requirements: gpu}
	dead, plain := machine("a", "main", 2, devices("gpu"), offline), machine("b", "main", 2)

	f := placement.PlanFailover([]placement.Collector{dead, plain}, waiting)
	require.True(t, f.Stranded)
	require.Nil(t, f.To, "b has none")
	require.Contains(t, f.Words(home, time.Time{}), "the set of a, which alone can run the job, has had no live collector for 1m30s; no other")

	f = placement.PlanFailover([]placement.Collector{dead, plain, machine("c", "large", 4, devices("gpu")), machine("d", "large", 4)}, waiting)
	require.True(t, f.Due())
	require.Equal(t, []string{"c"}, f.To.Set)
	require.Contains(t, f.Words(home, time.Time{}), "the job moves to collectors c with the next reconciliation")

	f = placement.PlanFailover([]placement.Collector{plain}, waiting)
	require.True(t, f.Removed)
	require.Zero(t, placement.PlanFailover([]placement.Collector{machine("a", "main", 2), plain}, waiting))
}

// A chosen place meets every hard constraint; a set is exactly those of its class
// (and pool) who meet it, a pool has nobody who does not; the order of collectors
// does not matter; who is refused could not have been placed.
func TestChooseProperties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	placed, sets, affine := 0, 0, 0
	for range 6000 {
		fleet := randomFleet(random)
		needs := randomNeeds(random)
		got, err := placement.Choose(fleet, needs)
		random.Shuffle(len(fleet), func(i, j int) { fleet[i], fleet[j] = fleet[j], fleet[i] })
		again, errAgain := placement.Choose(fleet, needs)
		require.Equal(t, got, again)
		if err != nil {
			require.EqualError(t, errAgain, err.Error())
			for _, c := range fleet {
				require.NotEmpty(t, placement.WhyNot(c, needs))
			}
			require.Empty(t, placement.Classes(fleet, needs))
			continue
		}
		placed++
		require.Contains(t, placement.Classes(fleet, needs), got.SizeClass)
		require.Equal(t, needs.Target, got.Target)
		require.GreaterOrEqual(t, got.SizeClass, needs.MinSize)
		require.True(t, needs.Class == 0 || got.SizeClass == needs.Class)
		var may []string
		pools, mayPools := make(map[bench.Pool]bool), make(map[bench.Pool]bool)
		live := false
		for _, c := range fleet {
			takes := c.Pool == got.Pool
			if len(got.Set) > 0 {
				takes = slices.Contains(got.Set, c.Name)
			}
			if takes {
				require.Empty(t, placement.WhyNot(c, needs), "%s takes jobs of %+v", c.Name, got)
				require.Equal(t, got.SizeClass, c.Pool.SizeClass)
				pools[c.Pool] = true
				live = live || c.Live
			}
			if len(placement.WhyNot(c, needs)) == 0 && c.Pool.SizeClass == got.SizeClass {
				may = append(may, c.Name)
				mayPools[c.Pool] = true
			}
		}
		require.Equal(t, live, got.Live)
		if !needs.AcrossPools {
			require.Len(t, pools, 1)
		}
		switch {
		case got.Affine:
			affine++
		case len(got.Set) > 0:
			sets++
			slices.Sort(may)
			if needs.AcrossPools {
				require.Equal(t, may, got.Set, "exactly those who meet it: none idles while the job waits for another")
			}
		case needs.AcrossPools:
			require.Len(t, mayPools, 1, "whoever may run it takes it")
		}
	}
	require.Greater(t, placed, 2000)
	require.Greater(t, sets, 200)
	require.Greater(t, affine, 30)
}

func randomFleet(random *rand.Rand) []placement.Collector {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	var fleet []placement.Collector
	for i := range random.IntN(8) {
		c := machine(fmt.Sprintf("c%d", i), pick("p", "q"), bench.SizeClass(1+random.IntN(3)), label("rack", pick("1", "2")), group(pick("", "g")), devices(pick("d", "e")))
		c.Pool.Target = []bench.Target{x86, x86, arm}[random.IntN(3)]
		c.Live = random.IntN(3) > 0
		c.MemoryBytes = int64(random.IntN(3)) * 4 * gib
		if random.IntN(2) == 0 {
			c.CacheDirs = []string{pick("k", "l")}
		}
		fleet = append(fleet, c)
	}
	return fleet
}

func randomNeeds(random *rand.Rand) placement.Requirements {
	w := placement.Requirements{Target: x86, AcrossPools: random.IntN(2) == 0}
	some := func() bool { return random.IntN(4) == 0 }
	if some() {
		w.MinSize = bench.SizeClass(random.IntN(4))
	}
	if some() {
		w.Class = bench.SizeClass(random.IntN(4))
	}
	if some() {
		w.Pool = "p"
	}
	if some() {
		w.Constraints.Labels = map[string]string{"rack": "1"}
	}
	if some() {
		w.Constraints.Groups = []string{"g"}
	}
	if some() {
		w.Constraints.Devices = []string{"d"}
	}
	if some() {
		w.Constraints.Machines = []string{"c1", "c3", "c5"}
	}
	if some() {
		w.Constraints.MemoryBytes = 6 * gib
	}
	if random.IntN(2) == 0 {
		w.Constraints.CacheDirs = []string{"k"}
	}
	return w
}
