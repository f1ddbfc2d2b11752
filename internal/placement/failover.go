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
	// Pinned: its size class was chosen by a person and stays.
	Pinned bool
	// After is how long its place may be without a live collector; 0: for ever.
	After time.Duration
	// Requirements of the job; its class and its pool do not bind it.
	Requirements Requirements
}

// Failover is what becomes of a waiting job whose place has nobody who could take
// it. The zero value is that of one with a live collector: nothing.
type Failover struct {
	// Stranded: no collector of the place lives.
	Stranded bool
	// Removed: none is registered either, so nobody is expected back.
	Removed bool
	// Away is how long none has lived; unknown, and 0, when all were removed.
	Away time.Duration
	// To is where the job goes; nil: no other place will do, or it never moves.
	To *bench.Place
	// In is how long it still stays; 0: it moves now. Without To it means nothing.
	In time.Duration
	// Never: the project wants its jobs to stay.
	Never bool
	// Machines are those of which it needs one; none: any will do.
	Machines []string
}

// Due tells that the job moves now.
func (f Failover) Due() bool { return f.To != nil && f.In <= 0 }

// PlanFailover says what becomes of a waiting job.
//
// It goes to live collectors that meet its constraints, in a pool of its target:
// of its own size class, else of the nearest class above, for what fits on a
// machine fits on a larger one. Among those the pool with most live collectors is
// taken, then the name decides. A smaller class is never taken, and no other one
// at all when the class is pinned.
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
	// Who is not awake is none of the pool's here, but of its task queue.
	needs.Class = nearest
	to := within(fleet, fitting(fleet, needs), needs, livest)
	f.To = &to.Place
	if !f.Removed {
		f.In = max(0, job.After-f.Away)
	}
	return f
}

// at tells whether a collector takes jobs from the task queue of a place.
func at(c Collector, p bench.Place) bool {
	if len(p.Set) > 0 {
		return slices.Contains(p.Set, c.Name)
	}
	return c.Pool == p.Pool
}

// Words say it to whoever reads a job that waits there; empty for a place with a
// live collector.
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

// StartWords say which collector would take a job that needs one of these machines;
// with none of them any collector.
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
