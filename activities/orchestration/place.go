package orchestration

import (
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
)

// wish is what a job of the request for a target needs at least.
func (e expansion) wish(target bench.Target) placement.Requirements {
	constraints, err := e.config.Narrowed(e.request.Constraints)
	if err != nil { // see jobs
		constraints, _ = e.config.Narrowed(nil)
	}
	return plan.Needs{Target: target, Constraints: &constraints}.Requirements()
}

// narrowed is where a job that belongs to a pool waits: with those collectors of
// the pool that meet its constraints.
func (e expansion) narrowed(pool bench.Pool) (placement.Place, error) {
	wish := e.wish(pool.Target)
	wish.Class, wish.Pool = pool.SizeClass, pool.Name
	if wish.Constraints.IsZero() {
		return placement.Place{Place: bench.Place{Pool: pool}}, nil
	}
	return placement.Choose(e.fleet, wish)
}

// settle says where a job waits, for how long only with those that have its
// caches, and what narrows it.
func (e expansion) settle(j *bench.PlannedJob, place placement.Place) {
	j.PutAt(place.Place)
	j.AffinityFor = 0
	if place.Affine {
		j.AffinityFor = e.config.Affinity()
	}
	if c := e.wish(place.Target).Constraints; !c.IsZero() {
		j.Constraints = &c
	}
}
