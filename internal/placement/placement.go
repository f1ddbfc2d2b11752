// Package placement chooses where a job runs: among the registered collectors
// those that can run it, and the task queue from which they take it.
//
// It is pure: what is registered comes in as data, and the same data gives the
// same choice. It must not know jobs' contents, queues, Temporal or the
// database.
package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Collector is a registered collector: a machine or a slot of one.
type Collector struct {
	Name string
	Pool bench.Pool
	// Type is hw, vm or dc.
	Type string
	// Group is the machine group, Host the shared host that it is a slot of; empty:
	// none.
	Group, Host string
	Devices     []string
	Labels      map[string]string
	// MemoryBytes and CPUs are what a job may use; 0: not known, see [Collector.Memory].
	MemoryBytes int64
	CPUs        int
	// CacheDirs are the cache directories that it has reported.
	CacheDirs []string
	// Live: it is active and was heard of lately. Active: it is not drained.
	Live, Active bool
	// Away is how long it has not been live; 0 while it is.
	Away time.Duration
}

// Of returns a registered collector as placement sees it, whether it lives or not:
// Live and Away are left out.
func Of(c bench.Collector) Collector {
	return Collector{
		Name: c.Name, Pool: bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool},
		Type: c.MachineType, Group: c.MachineGroup, Host: c.Host, Devices: c.Devices, Labels: c.Labels,
		MemoryBytes: c.MemoryBytes, CPUs: c.CPUs, CacheDirs: c.CacheDirs, Active: c.Active,
	}
}

// memoryPerClass stands for what a size class has where a collector does not say:
// the specification's example of a machine with 4 GiB for each core.
const memoryPerClass = 4 << 30

// Memory is how much a job may use there, in bytes.
func (c Collector) Memory() int64 {
	return cmp.Or(c.MemoryBytes, int64(c.Pool.SizeClass)*memoryPerClass)
}

// Cores is how many CPUs a job may use there.
func (c Collector) Cores() int { return cmp.Or(c.CPUs, int(c.Pool.SizeClass)) }

// Requirements of a job towards the collectors that may run it. internal/plan makes
// them; methods narrow or widen them.
type Requirements struct {
	Target bench.Target
	// MinSize is the smallest size class that will do; 0 and 1 mean any.
	MinSize bench.SizeClass
	// Class pins the job to one size class; 0: the largest registered one.
	Class bench.SizeClass
	// Pool binds the job to the pools of this name; empty: any.
	Pool string
	// Constraints narrow it further.
	Constraints bench.Constraints
	// AcrossPools lets collectors of several pools share the job: its results are
	// compared with nothing.
	AcrossPools bool
}

// On pins the requirements to one size class; 0 leaves it open. A class that is large
// enough says all that the smallest one did.
func (r Requirements) On(class bench.SizeClass) Requirements {
	if r.Class = class; class >= r.MinSize && class != 0 {
		r.MinSize = 0
	}
	return r
}

// In binds the requirements to the pools of a name; an empty one binds them to none.
func (r Requirements) In(pool string) Requirements {
	r.Pool = pool
	return r
}

// WithoutCaches drops the preference for collectors that have certain caches.
func (r Requirements) WithoutCaches() Requirements {
	r.Constraints.CacheDirs = nil
	return r
}

// Place is where a job goes.
type Place struct {
	bench.Place
	// Affine: these are not all that can run it, but those that have most of its
	// cache directories. They go first for a while.
	Affine bool
	// Live tells whether any of them is; if not, the job waits.
	Live bool
}

// Choose gives the place where a job with these requirements waits.
//
// Results compare only within one size class, so the class is decided first and
// by what is registered, not by who is awake: the pinned one, else the largest
// that has a collector which meets the constraints. Only a job that is compared
// with nothing and has constraints goes where somebody is awake, if it can.
//
// Within the class one that is compared with nothing goes to all that will do, of
// whichever pools: none of them idles while it waits for another one. What else
// there is stays in one pool: one with live collectors before one without, a larger
// one before a smaller one, then by name. Where only some of a pool will do, exactly
// those are a set.
//
// The error is an [*Unplaceable].
func Choose(fleet []Collector, needs Requirements) (Place, error) {
	fit := fitting(fleet, needs)
	if len(fit) == 0 {
		return Place{}, newUnplaceable(fleet, needs)
	}
	awake := needs.AcrossPools && needs.Constraints.Hard()
	best := slices.MinFunc(fit, func(a, b Collector) int {
		order := -cmp.Compare(a.Pool.SizeClass, b.Pool.SizeClass)
		if awake {
			order = cmp.Or(-compareBool(a.Live, b.Live), order)
		}
		return order
	})
	fit = slices.DeleteFunc(fit, func(c Collector) bool { return c.Pool.SizeClass != best.Pool.SizeClass })
	return within(fleet, fit, needs, largestPool), nil
}

// Classes lists the size classes on which a job with these requirements may run, from the
// smallest to the largest. Where the constraints name memory or CPUs, they decide
// which is the smallest.
func Classes(fleet []Collector, needs Requirements) []bench.SizeClass {
	var classes []bench.SizeClass
	for _, c := range fitting(fleet, needs) {
		classes = append(classes, c.Pool.SizeClass)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// Fitting lists, by name, the collectors that meet all requirements.
func Fitting(fleet []Collector, needs Requirements) []Collector { return fitting(fleet, needs) }

func fitting(fleet []Collector, needs Requirements) []Collector {
	rules := rulesOf(needs)
	var fit []Collector
	for _, c := range fleet {
		if !slices.ContainsFunc(rules, func(r rule) bool { return !r.met(c) }) {
			fit = append(fit, c)
		}
	}
	slices.SortFunc(fit, func(a, b Collector) int { return cmp.Compare(a.Name, b.Name) })
	return fit
}

// part are the collectors of one pool that will do.
type part struct {
	pool  bench.Pool
	names []string
	live  int
	// whole: the pool has no others.
	whole bool
}

// largestPool prefers pools with somebody awake, then larger ones.
func largestPool(a, b part) int {
	return cmp.Or(-cmp.Compare(min(a.live, 1), min(b.live, 1)), -cmp.Compare(len(a.names), len(b.names)), cmp.Compare(a.pool.Name, b.pool.Name))
}

// livest prefers pools with most collectors awake.
func livest(a, b part) int {
	return cmp.Or(-cmp.Compare(a.live, b.live), cmp.Compare(a.pool.Name, b.pool.Name))
}

// within chooses among collectors of one size class that will do.
func within(fleet, fit []Collector, needs Requirements, better func(a, b part) int) Place {
	parts := partsOf(fleet, fit)
	best := slices.MinFunc(parts, better)
	spread := needs.AcrossPools && len(parts) > 1
	place := bench.Place{Pool: best.pool}
	near := fit // who may have the caches
	if !spread {
		fit = slices.DeleteFunc(slices.Clone(fit), func(c Collector) bool { return c.Pool != best.pool })
	}
	if spread || !best.whole {
		place.Set = names(fit)
	}
	chosen := Place{Place: place, Live: slices.ContainsFunc(fit, func(c Collector) bool { return c.Live })}
	if !needs.AcrossPools {
		near = fit
	}
	return affine(fleet, near, needs.Constraints.CacheDirs, chosen)
}

// affine narrows a place to the live collectors that have most of the wished cache
// directories, where that leaves live ones out.
func affine(fleet, fit []Collector, dirs []string, all Place) Place {
	most, awake := 0, 0
	var holders []Collector
	for _, c := range fit {
		if !c.Live {
			continue
		}
		awake++
		switch held := holds(c, dirs); {
		case held > most:
			most, holders = held, []Collector{c}
		case held == most && held > 0:
			holders = append(holders, c)
		}
	}
	if most == 0 || len(holders) == awake {
		return all
	}
	parts := partsOf(fleet, holders)
	best := slices.MinFunc(parts, livest)
	narrow := Place{Place: bench.Place{Pool: best.pool}, Affine: true, Live: true}
	if len(parts) > 1 || !best.whole {
		narrow.Set = names(holders)
	}
	return narrow
}

func holds(c Collector, dirs []string) int {
	n := 0
	for _, d := range dirs {
		if slices.Contains(c.CacheDirs, d) {
			n++
		}
	}
	return n
}

func partsOf(fleet, fit []Collector) []part {
	registered := make(map[bench.Pool]int)
	for _, c := range fleet {
		registered[c.Pool]++
	}
	at := make(map[bench.Pool]int)
	var parts []part
	for _, c := range fit {
		i, known := at[c.Pool]
		if !known {
			i = len(parts)
			at[c.Pool] = i
			parts = append(parts, part{pool: c.Pool})
		}
		parts[i].names = append(parts[i].names, c.Name)
		if c.Live {
			parts[i].live++
		}
	}
	for i := range parts {
		parts[i].whole = len(parts[i].names) == registered[parts[i].pool]
	}
	return parts
}

func names(collectors []Collector) []string {
	out := make([]string, len(collectors))
	for i, c := range collectors {
		out[i] = c.Name
	}
	slices.Sort(out)
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
