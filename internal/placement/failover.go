package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Waiting is a job that waits for a collector.
type Waiting struct {
	At bench.Place
	// Pinned is set when a person chose the size class, which then stays.
	Pinned bool
	// After is the time that the job's task queue may be without a live collector; 0:
	// unlimited.
	After time.Duration
	// Requirements of the job; its class and pool do not bind it here.
	Requirements Requirements
}

// Failover decides about a waiting job whose task queue has no live collector. The zero
// value means that one lives, and nothing happens.
type Failover struct {
	// Stranded is set when no collector of the task queue lives.
	Stranded bool
	// Removed is set when none is registered either, so none is expected back.
	Removed bool
	// Away is the time since one lived; unknown, and 0, when all were removed.
	Away time.Duration
	// To is the job's new location; nil: there is none, or the job never moves.
	To *bench.Place
	// In is the time until the job moves; 0: now. It means nothing without To.
	In time.Duration
	// Never is set when the project wants its jobs to stay.
	Never bool
	// Machines lists the machines that the job accepts; empty: any.
	Machines []string
}

// Due reports whether the job moves now.
func (f Failover) Due() bool { return f.To != nil && f.In <= 0 }

// PlanFailover decides whether, when and where a waiting job moves.
//
// It moves to live collectors that meet its constraints, in a pool of its target:
// of its own size class, else of the nearest class above, for a job that fits on a
// machine fits on a larger one. Among those it takes the pool with most live
// collectors, then the first by name. It never takes a smaller class, and no other
// class at all when the class is pinned.
func PlanFailover(fleet []Collector, job Waiting) Failover {
	f := Failover{Stranded: true, Removed: true, Never: job.After <= 0, Machines: job.Requirements.Constraints.Machines}
	for _, c := range fleet {
		if !at(c, job.At) {
			continue
		}
		if c.Live {
			return Failover{}
		}
		if f.Removed || c.Away < f.Away {
			f.Away = c.Away
		}
		f.Removed = false
	}
	if f.Never {
		return f
	}
	needs := job.Requirements
	needs.Target, needs.Class, needs.Pool, needs.MinSize = job.At.Target, 0, "", job.At.SizeClass
	if job.Pinned {
		needs.Class = job.At.SizeClass
	}
	needs.Constraints.CacheDirs = nil // what helps must not hinder
	fit := slices.DeleteFunc(fitting(fleet, needs), func(c Collector) bool { return !c.Live })
	if len(fit) == 0 {
		return f
	}
	nearest := slices.MinFunc(fit, func(a, b Collector) int { return cmp.Compare(a.Pool.SizeClass, b.Pool.SizeClass) }).Pool.SizeClass
	// Collectors that are not live do not count for the pool, but for its task queue.
	needs.Class = nearest
	to := within(fleet, fitting(fleet, needs), needs, livest)
	f.To = &to.Place
	if !f.Removed {
		f.In = max(0, job.After-f.Away)
	}
	return f
}

// at reports whether a collector serves the task queue of a place.
func at(c Collector, p bench.Place) bool {
	if len(p.Set) > 0 {
		return slices.Contains(p.Set, c.Name)
	}
	return c.Pool == p.Pool
}

// Words describes the failover to people who look at the job; empty when a collector
// lives.
func (f Failover) Words(place bench.Place, now time.Time) string {
	if !f.Stranded {
		return ""
	}
	where := "pool " + place.TaskQueue()
	if len(place.Set) > 0 {
		where = "the set of " + strings.Join(place.Set, ", ") + ", which alone can run the job,"
	}
	text := fmt.Sprintf("%s has had no live collector for %s", where, f.Away.Truncate(time.Second))
	switch {
	case place.Nobody():
		text = "no collector that is registered for pool " + place.Pool.TaskQueue() + " meets the job's constraints any more"
	case f.Removed:
		text = where + " has no registered collector"
	}
	switch {
	case f.Never:
		return text + "; the job stays until one comes, for the project's failover_after is never"
	case f.To == nil:
		return text + "; no other pool that could take the job has one either; start " + StartWords(f.Machines)
	case f.Due():
		return text + "; the job moves to " + words(*f.To) + " with the next reconciliation, within 30 s"
	}
	return text + "; the job moves to " + words(*f.To) + " at " + now.Add(f.In).UTC().Format("15:04:05 MST")
}

// StartWords names the collectors to start for a job that accepts these machines; any
// collector when there are none.
func StartWords(machines []string) string {
	if len(machines) == 0 {
		return "a collector with 'benchloom collector'"
	}
	return fmt.Sprintf("one named %s, which alone can run it, with 'benchloom collector --name %s'", strings.Join(machines, " or "), machines[0])
}

func words(p bench.Place) string {
	if len(p.Set) > 0 {
		return "collectors " + strings.Join(p.Set, ", ")
	}
	return "pool " + p.TaskQueue()
}
