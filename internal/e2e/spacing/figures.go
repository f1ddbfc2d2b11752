package main

import (
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/profiler"
)

const (
	// late is the longest interval that nearly all shall keep.
	late = profiler.Interval * 3 / 2
	// veryLate is the longest one that needs no reason.
	veryLate = profiler.Interval * 5 / 2
	// burst is the shortest interval. Times are stored in microseconds.
	burst = profiler.Interval/2 - 2*time.Microsecond
)

// figures count the intervals between samples.
type figures struct {
	intervals, late, veryLate int
	// unexplained are very late without CPU time that was stolen or tasks that waited for it meanwhile; bursts are too short.
	unexplained, bursts int
	longest             time.Duration
}

func (f *figures) add(g figures) {
	f.intervals += g.intervals
	f.late += g.late
	f.veryLate += g.veryLate
	f.unexplained += g.unexplained
	f.bursts += g.bursts
	f.longest = max(f.longest, g.longest)
}

// kept is the share of intervals that are not late.
func (f figures) kept() float64 {
	if f.intervals == 0 {
		return 1
	}
	return 1 - float64(f.late)/float64(f.intervals)
}

// measureSpacing counts the intervals of one attempt, which has lost no values. The group of a job is read at once, a
// machine in parts, of which one stands for all.
func measureSpacing(batches []profiler.Batch) figures {
	times := make(map[profiler.Scope][]time.Time)
	waited := make(map[time.Time]bool)
	for _, b := range batches {
		metric := profiler.Metric(b.Name)
		if b.Scope == profiler.ScopeJob || b.Scope == profiler.ScopeMachine && metric == profiler.MemoryFree {
			times[b.Scope] = append(times[b.Scope], b.Times...)
		}
		if metric == profiler.CPUPressure || metric == profiler.CPUSteal {
			for i, at := range b.Times {
				waited[at] = waited[at] || b.Values[i] > 0
			}
		}
	}
	var f figures
	for _, all := range times {
		slices.SortFunc(all, time.Time.Compare)
		all = slices.CompactFunc(all, time.Time.Equal)
		for i := 1; i < len(all); i++ {
			gap := all[i].Sub(all[i-1])
			f.intervals++
			f.longest = max(f.longest, gap)
			switch {
			case gap < burst:
				f.bursts++
			case gap > veryLate:
				f.veryLate++
				f.late++
				if !waitedBetween(waited, all[i-1], all[i].Add(profiler.Interval)) {
					f.unexplained++
				}
			case gap > late:
				f.late++
			}
		}
	}
	return f
}

func waitedBetween(waited map[time.Time]bool, from, to time.Time) bool {
	for at, is := range waited {
		if is && at.After(from) && at.Before(to) {
			return true
		}
	}
	return false
}

// sampledCPU is the CPU time of a job's control group, in seconds, by its samples; 0 if there are none. Each value covers the
// time since the sample before, the first one since the first reading, which other series of the group show.
func sampledCPU(batches []profiler.Batch) (seconds float64) {
	type value struct {
		at   time.Time
		cpus float64
	}
	var values []value
	var first time.Time
	for _, b := range batches {
		if b.Scope != profiler.ScopeJob || len(b.Times) == 0 {
			continue
		}
		if at := slices.MinFunc(b.Times, time.Time.Compare); first.IsZero() || at.Before(first) {
			first = at
		}
		for i, at := range b.Times {
			if b.Name == string(profiler.CPUUsed) {
				values = append(values, value{at, b.Values[i]})
			}
		}
	}
	slices.SortFunc(values, func(a, b value) int { return a.at.Compare(b.at) })
	for _, v := range values {
		seconds += v.cpus * v.at.Sub(first).Seconds()
		first = v.at
	}
	return seconds
}
