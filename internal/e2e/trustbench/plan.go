package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// plan sets what is tried. A state file belongs to one plan.
type plan struct {
	Seed      uint64 `json:"seed"`
	Requests  int    `json:"requests"`  // of code that did not change, half of them under load
	Slowdowns int    `json:"slowdowns"` // of each size, without load and with it
}

// slowdowns are the planted ones, in per cent.
func slowdowns() []int { return []int{10, 2} }

// trial is one request with a known answer.
type trial struct {
	ID      string
	Slower  int // by so many per cent; 0: the code did not change
	Loaded  bool
	pattern uint64 // seeds the times of a load that starts and stops
}

// unchanged begins the IDs of trials of code that did not change.
const unchanged = "same"

func trialID(slower int, loaded bool, n int) string {
	what, where := unchanged, "quiet"
	if slower > 0 {
		what = fmt.Sprintf("slower%d", slower)
	}
	if loaded {
		where = "loaded"
	}
	return fmt.Sprintf("%s-%s-%02d", what, where, n+1)
}

// kind groups trials by slowdown and load.
type kind struct {
	slower int
	loaded bool
}

func (t trial) kind() kind { return kind{t.Slower, t.Loaded} }

// trials returns the plan's trials in the order in which they are tried. Each kind is spread evenly over the whole, at random
// places, so that whatever has been tried so far is a sample of all.
func (p plan) trials() []trial {
	random := rand.New(rand.NewPCG(p.Seed, 0))
	type placed struct {
		trial
		place float64
	}
	var all []placed
	add := func(slower int, loaded bool, count int) {
		for n := range count {
			all = append(all, placed{
				trial{ID: trialID(slower, loaded, n), Slower: slower, Loaded: loaded, pattern: random.Uint64()},
				(float64(n) + random.Float64()) / float64(count),
			})
		}
	}
	add(0, false, p.Requests-p.Requests/2)
	add(0, true, p.Requests/2)
	for _, slower := range slowdowns() {
		add(slower, false, p.Slowdowns)
		add(slower, true, p.Slowdowns)
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	trials := make([]trial, len(all))
	for i, a := range all {
		trials[i] = a.trial
	}
	return trials
}
