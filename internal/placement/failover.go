package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Waiting is a job that waits for a collector of its pool.
type Waiting struct {
	Pool bench.Pool
	// Pinned: its size class was chosen by a person and stays.
	Pinned bool
	// After is how long its pool may be without a live collector; 0: for ever.
	After time.Duration
}

// Failover is what becomes of a waiting job whose pool has nobody who could take
// it. The zero value is that of a pool with a live collector: nothing.
type Failover struct {
	// Stranded: no collector of the pool lives.
	Stranded bool
	// Removed: none is registered either, so nobody is expected back.
	Removed bool
	// Away is how long none has lived; unknown, and 0, when all were removed.
	Away time.Duration
	// To is where the job goes; nil: no other pool will do, or it never moves.
	To *bench.Pool
	// In is how long it still stays; 0: it moves now. Without To it means nothing.
	In time.Duration
	// Never: the project wants its jobs to stay.
	Never bool
}

// Due tells that the job moves now.
func (f Failover) Due() bool { return f.To != nil && f.In <= 0 }

// PlanFailover says what becomes of a waiting job.
//
// It goes to a pool of its target with a live collector: one of its own size
// class, else of the nearest class above, for what fits on a machine fits on a
// larger one. Among those the pool with most live collectors is taken, then the
// name decides. A smaller class is never taken, and no other one at all when the
// class is pinned.
func PlanFailover(pools []Pool, job Waiting) Failover {
	f := Failover{Stranded: true, Removed: true, Never: job.After <= 0}
	for _, p := range pools {
		if p.Pool == job.Pool && p.Total > 0 {
			f.Removed, f.Away = false, p.Away
			if p.Live > 0 {
				return Failover{}
			}
		}
	}
	if f.Never {
		return f
	}
	var fit []Pool
	for _, p := range pools {
		if p.Live > 0 && p.Target == job.Pool.Target &&
			(p.SizeClass == job.Pool.SizeClass || p.SizeClass > job.Pool.SizeClass && !job.Pinned) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return f
	}
	best := slices.MinFunc(fit, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.SizeClass, b.SizeClass), -cmp.Compare(a.Live, b.Live), cmp.Compare(a.Name, b.Name))
	})
	f.To = &best.Pool
	if !f.Removed {
		f.In = max(0, job.After-f.Away)
	}
	return f
}

// Words say it to whoever reads a job that waits for the pool; empty for a pool
// with a live collector.
func (f Failover) Words(pool bench.Pool, now time.Time) string {
	if !f.Stranded {
		return ""
	}
	text := fmt.Sprintf("pool %s has had no live collector for %s", pool.TaskQueue(), f.Away.Truncate(time.Second))
	if f.Removed {
		text = fmt.Sprintf("pool %s has no registered collector", pool.TaskQueue())
	}
	switch {
	case f.Never:
		return text + "; the job stays until one comes, for the project's failover_after is never"
	case f.To == nil:
		return text + "; no other pool that could take the job has one either; start a collector with 'benchloom collector'"
	case f.Due():
		return text + "; the job moves to pool " + f.To.TaskQueue() + " with the next reconciliation, within 30 s"
	}
	return text + "; the job moves to pool " + f.To.TaskQueue() + " at " + now.Add(f.In).UTC().Format("15:04:05 MST")
}
