package placement

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// Anew is where a job that waits in a task queue, from which a set of collectors
// takes it if it is not a pool's, belongs by what is registered now. Without a set
// nobody knows any more who that was.
//
// Where nobody meets its constraints any more, it must not stay with those who take
// jobs from there: it waits with nobody, until somebody can run it. It is nil, and
// the job stays, when all who took jobs from there were removed: they may come back.
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

// Alike tells whether the constraints of jobs see the same in both: then none is to
// be placed anew for it. Who is awake and what is cached changes all the time.
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
