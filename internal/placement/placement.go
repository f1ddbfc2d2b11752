// Package placement chooses where a job runs: the pool whose task queue it goes
// to, among the pools that have registered collectors.
//
// It is pure: what is registered comes in as data, and the same data gives the
// same choice. It must not know jobs' contents, queues, Temporal or the
// database.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Pool is a pool with its registered collectors.
type Pool struct {
	bench.Pool
	// Live of its Total collectors have been heard of lately.
	Live, Total int
	// Away is how long none of them has been live; 0 while one is.
	Away time.Duration
}

// Wish is what a job needs.
type Wish struct {
	Target bench.Target
	// MinSize is the smallest size class that will do; 0 and 1 mean any.
	MinSize bench.SizeClass
	// Class pins the job to one size class; 0: the largest registered one.
	Class bench.SizeClass
	// Pool binds the job to the pools of this name; empty: any.
	Pool string
}

// Unplaceable says that no registered collector can ever run the job.
type Unplaceable struct {
	Wish Wish
	// Nearest names what is registered.
	Nearest []Pool
}

func (u *Unplaceable) Error() string {
	want := string(u.Wish.Target)
	if u.Wish.Class > 0 {
		want += fmt.Sprintf(" of size class %d", u.Wish.Class)
	} else if u.Wish.MinSize > 1 {
		want += fmt.Sprintf(" of size class %d or more", u.Wish.MinSize)
	}
	if u.Wish.Pool != "" {
		want += " in pool " + u.Wish.Pool
	}
	if len(u.Nearest) == 0 {
		return fmt.Sprintf("no collector is registered that can run %s: none is registered at all; start one with 'benchloom collector'", want)
	}
	names := make([]string, len(u.Nearest))
	for i, p := range u.Nearest {
		names[i] = fmt.Sprintf("%s size %d (pool %s)", p.Target, p.SizeClass, p.Name)
	}
	return fmt.Sprintf("no collector is registered that can run %s: registered are %s; choose one of these, or start such a collector", want, strings.Join(names, ", "))
}

// Choose gives the pool on which a job with this wish runs. Results compare only
// within one size class, so the class is decided first and by what is registered,
// not by who is awake: the pinned one, else the largest that will do. Within it
// a pool with live collectors goes before one without, a larger pool before a
// smaller one, then the name decides.
//
// The error is an [*Unplaceable].
func Choose(pools []Pool, wish Wish) (bench.Pool, error) {
	var fit []Pool
	for _, p := range pools {
		if p.Total > 0 && p.Target == wish.Target && p.SizeClass >= wish.MinSize &&
			(wish.Class == 0 || p.SizeClass == wish.Class) && (wish.Pool == "" || p.Name == wish.Pool) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		nearest := slices.DeleteFunc(slices.Clone(pools), func(p Pool) bool { return p.Total == 0 })
		slices.SortFunc(nearest, func(a, b Pool) int {
			return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.SizeClass, b.SizeClass), cmp.Compare(a.Name, b.Name))
		})
		return bench.Pool{}, &Unplaceable{Wish: wish, Nearest: nearest}
	}
	best := slices.MinFunc(fit, func(a, b Pool) int {
		return cmp.Or(
			-cmp.Compare(a.SizeClass, b.SizeClass),
			-cmp.Compare(min(a.Live, 1), min(b.Live, 1)),
			-cmp.Compare(a.Total, b.Total),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return best.Pool, nil
}
