package placement

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// Anew places a waiting job by the collectors registered now. The job waits in a task
// queue, served by a set of collectors if it is not a pool's. Without a set its members
// are no longer known.
//
// If no collector meets the constraints any more, the job must leave those that serve
// the task queue: it waits where no collector takes it, until one can run it. Anew
// returns nil, and the job stays, when all collectors that served the task queue were
// removed: they may come back.
func Anew(fleet []Collector, needs Requirements, taskQueue string, set []string) *bench.Place {
	place, err := Choose(fleet, needs)
	if err == nil {
		return &place.Place
	}
	at := slices.IndexFunc(fleet, func(c Collector) bool {
		if c.Pool.Target != needs.Target || c.Pool.SizeClass != needs.Class {
			return false
		}
		return c.Pool.TaskQueue() == taskQueue || bench.IsSet(taskQueue) && (len(set) == 0 || slices.Contains(set, c.Name))
	})
	if at < 0 {
		return nil
	}
	pool := fleet[at].Pool
	pool.Name = cmp.Or(needs.Pool, pool.Name)
	nobody := bench.WithNobody(pool)
	return &nobody
}

// Alike reports whether constraints see no difference between two collectors, so that
// no job has to be placed anew. Liveness and caches are ignored: they change all the
// time.
func Alike(a, b Collector) bool {
	for _, c := range []*Collector{&a, &b} {
		c.CacheDirs, c.Live, c.Active, c.Away = nil, false, false, 0
		if len(c.Devices) == 0 {
			c.Devices = nil
		}
		if len(c.Labels) == 0 {
			c.Labels = nil
		}
	}
	return reflect.DeepEqual(a, b)
}
