package placement

import (
	"cmp"
	"slices"
	"time"
)

// SetQueue is the task queue of a set to which a collector belongs, with what waits
// there.
type SetQueue struct {
	TaskQueue string
	// Current: the collector carries out a job of it.
	Current bool
	// Ready: there is something for anyone to take; else all of it runs, or is held
	// back.
	Ready bool
	// Level is the earliest of what waits; Since is when the oldest of it was asked
	// for.
	Level int
	Since time.Time
}

// Serve chooses from which of its sets a collector takes jobs, at most so many: the
// one whose job it carries out, then those where something is to be taken, the
// earliest level first, then the oldest.
//
// Where not all of one level find room, the last place is theirs in turns, so that
// none waits for as long as the others have work: turn counts them.
func Serve(sets []SetQueue, most int, turn uint64) []string {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b SetQueue) int {
		return cmp.Or(-compareBool(a.Current, b.Current), -compareBool(a.Ready, b.Ready), cmp.Compare(a.Level, b.Level),
			a.Since.Compare(b.Since), cmp.Compare(a.TaskQueue, b.TaskQueue))
	})
	if len(sets) > most {
		last := sets[most-1]
		rivals := 0
		for _, s := range sets[most-1:] {
			if s.Ready && last.Ready && s.Level == last.Level {
				rivals++
			}
		}
		if rivals > 0 {
			sets[most-1] = sets[most-1+int(turn%uint64(rivals))]
		}
		sets = sets[:most]
	}
	queues := make([]string, len(sets))
	for i, s := range sets {
		queues[i] = s.TaskQueue
	}
	return queues
}
