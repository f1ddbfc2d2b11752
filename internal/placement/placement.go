// Package placement chooses where a job runs: which registered collectors can run it,
// and the task queue from which they take it.
//
// It is pure: registered collectors are passed in as data, and the same data gives the
// same choice. It must not know the contents of jobs, queues, Temporal or the
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
	// Group is the machine group, Host the shared host of a slot; empty: none.
	Group, Host string
	Devices     []string
	Labels      map[string]string
	// MemoryBytes and CPUs are available to a job; 0: not known, see [Collector.Memory].
	MemoryBytes int64
	CPUs        int
	// CacheDirs are the cache directories that it has reported.
	CacheDirs []string
	// Live is set when it is active and its last heartbeat is recent; Active when it is
	// not drained.
	Live, Active bool
	// Away is the time since it was live; 0 while it is.
	Away time.Duration
}

// Of returns a registered collector as placement sees it, without Live and Away.
func Of(c bench.Collector) Collector {
	return Collector{
		Name: c.Name, Pool: bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool},
		Type: c.MachineType, Group: c.MachineGroup, Host: c.Host, Devices: c.Devices, Labels: c.Labels,
		MemoryBytes: c.MemoryBytes, CPUs: c.CPUs, CacheDirs: c.CacheDirs, Active: c.Active,
	}
}

// memoryPerClass is the memory assumed per size class when a collector does not report
// any: 4 GiB for each core.
const memoryPerClass = 4 << 30

// Memory returns the memory available to a job, in bytes.
func (c Collector) Memory() int64 {
	return cmp.Or(c.MemoryBytes, int64(c.Pool.SizeClass)*memoryPerClass)
}

// Cores returns the number of CPUs available to a job.
func (c Collector) Cores() int { return cmp.Or(c.CPUs, int(c.Pool.SizeClass)) }

// Requirements of a job for the collectors that may run it. internal/plan makes them;
// methods narrow or widen them.
type Requirements struct {
	Target bench.Target
	// MinSize is the smallest sufficient size class; 0 and 1 mean any.
	MinSize bench.SizeClass
	// Class pins the job to one size class; 0: the largest registered one.
	Class bench.SizeClass
	// Pool binds the job to the pools of this name; empty: any.
	Pool string
	// Constraints narrow it further.
	Constraints bench.Constraints
	// AcrossPools lets collectors of several pools take the job, because its results are
	// not compared with any others.
	AcrossPools bool
}

// On pins the requirements to one size class; 0 leaves it open. A class that is large
// enough makes the minimum redundant and drops it.
func (r Requirements) On(class bench.SizeClass) Requirements {
	if r.Class = class; class >= r.MinSize && class != 0 {
		r.MinSize = 0
	}
	return r
}

// In binds the requirements to the pools of a name; an empty name binds them to none.
func (r Requirements) In(pool string) Requirements {
	r.Pool = pool
	return r
}

// WithoutCaches drops the preference for collectors with certain caches.
func (r Requirements) WithoutCaches() Requirements {
	r.Constraints.CacheDirs = nil
	return r
}

// Place is a task queue and the collectors that serve it.
type Place struct {
	bench.Place
	// Affine is set when these are only the collectors with most of the job's cache
	// directories, not all that can run it. They go first for a while.
	Affine bool
	// Live is set when one of them is live; if not, the job waits.
	Live bool
}

// Choose returns the place where a job with these requirements waits.
//
// Results compare only within one size class, so the class is decided first, by the
// registered collectors whether live or not: the pinned class, else the largest with
// a collector that meets the constraints. Only a job that has constraints and whose
// results are not compared prefers a class with a live collector.
//
// Within the class, a job whose results are not compared goes to all suitable
// collectors of all pools, so that none idles while it waits for another. Every other
// job stays in one pool: a pool with live collectors before one without, a larger
// before a smaller one, then by name. If only some collectors of a pool are suitable,
// exactly those form a set.
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

// Classes lists the size classes on which a job with these requirements may run, in
// ascending order. Constraints on memory or CPUs decide the smallest.
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

// part holds the suitable collectors of one pool.
type part struct {
	pool  bench.Pool
	names []string
	live  int
	// whole is set when all collectors of the pool are suitable.
	whole bool
}

// largestPool prefers pools with a live collector, then larger pools.
func largestPool(a, b part) int {
	return cmp.Or(-cmp.Compare(min(a.live, 1), min(b.live, 1)), -cmp.Compare(len(a.names), len(b.names)), cmp.Compare(a.pool.Name, b.pool.Name))
}

// livest prefers pools with most live collectors.
func livest(a, b part) int {
	return cmp.Or(-cmp.Compare(a.live, b.live), cmp.Compare(a.pool.Name, b.pool.Name))
}

// within chooses among the suitable collectors of one size class.
func within(fleet, fit []Collector, needs Requirements, better func(a, b part) int) Place {
	parts := partsOf(fleet, fit)
	best := slices.MinFunc(parts, better)
	spread := needs.AcrossPools && len(parts) > 1
	place := bench.Place{Pool: best.pool}
	near := fit // may have the caches
	if !spread {
		fit = slices.DeleteFunc(slices.Clone(fit), func(c Collector) bool { return c.Pool != best.pool })
	}
	if spread || !best.whole {
		place.Set = names(fit)
	}
	if needs.Constraints.Canary {
		place = bench.ForCanaries(best.pool, names(fit)...)
	}
	chosen := Place{Place: place, Live: slices.ContainsFunc(fit, func(c Collector) bool { return c.Live })}
	if !needs.AcrossPools {
		near = fit
	}
	return affine(fleet, near, needs.Constraints.CacheDirs, chosen)
}

// affine narrows a place to the live collectors with most of the requested cache
// directories, if that leaves out live ones.
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
