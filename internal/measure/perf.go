package measure

import (
	"fmt"
	"slices"
	"strings"
)

// Counter is a performance counter, by its name in perf(1), which is also the metric's name.
type Counter string

const (
	// CounterInstructions counts retired instructions in user space.
	CounterInstructions Counter = "instructions:u"
	// CounterCycles counts CPU cycles in user space.
	CounterCycles Counter = "cycles:u"
	// CounterBranchMisses counts mispredicted branches in user space.
	CounterBranchMisses Counter = "branch-misses"
	// CounterCacheMisses counts last-level cache misses in user space.
	CounterCacheMisses Counter = "cache-misses"
	// CounterTaskClock is CPU time in nanoseconds as the scheduler counts it; every machine has it.
	CounterTaskClock Counter = "task-clock"
	// CounterMigrations counts moves from one CPU to another. They happen in the kernel, so reading them needs
	// perf_event_paranoid <= 1 or root.
	CounterMigrations Counter = "cpu-migrations"
)

// HardwareCounters returns the counters of the CPU itself: one group, few enough to count all at once.
func HardwareCounters() []Counter {
	return []Counter{CounterInstructions, CounterCycles, CounterBranchMisses, CounterCacheMisses}
}

// AllCounters returns all counters that this package knows.
func AllCounters() []Counter { return append(HardwareCounters(), CounterTaskClock, CounterMigrations) }

// CounterSupport maps every known counter to the reason why this machine cannot count it; nil means that it can.
type CounterSupport map[Counter]error

// Available lists the counters that work, in the order of [AllCounters].
func (s CounterSupport) Available() []Counter {
	return slices.DeleteFunc(AllCounters(), func(c Counter) bool {
		err, known := s[c]
		return !known || err != nil
	})
}

// Require returns a [*MissingCountersError] if any of the counters does not work here.
func (s CounterSupport) Require(counters ...Counter) error {
	missing := map[Counter]error{}
	for _, counter := range counters {
		if err, known := s[counter]; !known {
			missing[counter] = fmt.Errorf("unknown counter; known are %v", AllCounters())
		} else if err != nil {
			missing[counter] = err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &MissingCountersError{Missing: missing}
}

// MissingCountersError lists the required counters that this machine lacks, with the reasons.
type MissingCountersError struct {
	Missing map[Counter]error
}

func (e *MissingCountersError) Error() string {
	// Counters are usually missing for one common reason: say it once.
	counters := map[string][]string{}
	for counter, err := range e.Missing {
		counters[err.Error()] = append(counters[err.Error()], string(counter))
	}
	var parts []string
	for reason, names := range counters {
		slices.Sort(names)
		parts = append(parts, strings.Join(names, ", ")+": "+reason)
	}
	slices.Sort(parts)
	return "performance counters are missing: " + strings.Join(parts, "; ")
}

func (e *MissingCountersError) Unwrap() []error {
	var errs []error
	for _, counter := range AllCounters() {
		if err := e.Missing[counter]; err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
