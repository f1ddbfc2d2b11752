package placement

import (
	"cmp"
	"slices"
	"time"
)

// SetQueue is the task queue of a set that a collector belongs to, with its backlog.
type SetQueue struct {
	TaskQueue string
	// Current is set while the collector runs a job of it.
	Current bool
	// Ready is set when a job can be taken; otherwise all jobs run or are held.
	Ready bool
	// Level is the earliest level of the waiting jobs; Since is the time at which the
	// oldest was requested.
	Level int
	Since time.Time
}

// Serve chooses at most limit of its sets from which a collector takes jobs: the set
// whose job it runs, then those with jobs ready, the earliest level first, then the
// oldest.
//
// When the limit cuts a level, the remaining sets of that level share the last entry
// in turns, so that none starves while the others have work: turn counts them.
func Serve(sets []SetQueue, limit int, turn uint64) []string {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b SetQueue) int {
		return cmp.Or(-compareBool(a.Current, b.Current), -compareBool(a.Ready, b.Ready), cmp.Compare(a.Level, b.Level),
			a.Since.Compare(b.Since), cmp.Compare(a.TaskQueue, b.TaskQueue))
	})
	if len(sets) > limit {
		last := sets[limit-1]
		rivals := 0
		for _, s := range sets[limit-1:] {
			if s.Ready && last.Ready && s.Level == last.Level {
				rivals++
			}
		}
		if rivals > 0 {
			sets[limit-1] = sets[limit-1+int(turn%uint64(rivals))]
		}
		sets = sets[:limit]
	}
	queues := make([]string, len(sets))
	for i, s := range sets {
		queues[i] = s.TaskQueue
	}
	return queues
}
