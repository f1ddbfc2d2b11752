package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// FailoverAfter is how long a pool may be without a live collector before the
// jobs that wait for it move to another pool, where a project does not say.
// Shorter than a reboot would move work for nothing.
const FailoverAfter = 5 * time.Minute

// NoFailover is how a project says that its waiting jobs stay at their pool.
const NoFailover = "never"

// maxFailoverAfter bounds the wait: who wants longer means never.
const maxFailoverAfter = 30 * 24 * time.Hour

// Failover is how long a pool may be without a live collector before the
// project's jobs that wait for it move; 0: they stay.
func (c ProjectConfig) Failover() time.Duration {
	switch c.FailoverAfter {
	case "":
		return FailoverAfter
	case NoFailover:
		return 0
	}
	d, err := time.ParseDuration(c.FailoverAfter)
	if err != nil {
		return FailoverAfter // refused by Check
	}
	return d
}

func (c ProjectConfig) checkFailover() error {
	if c.FailoverAfter == "" || c.FailoverAfter == NoFailover {
		return nil
	}
	d, err := time.ParseDuration(c.FailoverAfter)
	if err != nil || d < time.Second || d > maxFailoverAfter {
		return invalid("failover_after", c.FailoverAfter, fmt.Sprintf("use a duration from 1s to 720h such as 5m, %s, or leave it out for %s", NoFailover, FailoverAfter))
	}
	return nil
}

// BenchmarkSet binds benchmarks to a pool: they are measured there and nowhere
// else, so that the noise of each is always that of the same machines.
//
// The sets of a target share no benchmark and together have all of the suite's.
// A named selection of a suite, which the suite calls a set, is something else.
type BenchmarkSet struct {
	Name string `json:"name" yaml:"name" doc:"Name of the benchmark set."`
	// Pool of any size class; see [SizePolicy] for which.
	Pool       string   `json:"pool" yaml:"pool" doc:"Pool on which its benchmarks are measured."`
	Benchmarks []string `json:"benchmarks" yaml:"benchmarks" doc:"Benchmarks of the suite."`
	// Targets for which it holds; empty: all.
	Targets []Target `json:"targets,omitempty" yaml:"targets" doc:"Targets for which it holds; empty: all."`
}

func (s BenchmarkSet) holdsFor(t Target) bool {
	return len(s.Targets) == 0 || slices.Contains(s.Targets, t)
}

// BenchmarkSetsOf are the benchmark sets of a target; none: its benchmarks are
// bound to no pool.
func (c ProjectConfig) BenchmarkSetsOf(t Target) []BenchmarkSet {
	return slices.DeleteFunc(slices.Clone(c.BenchmarkSets), func(s BenchmarkSet) bool { return !s.holdsFor(t) })
}

// checkBenchmarkSets refuses what is wrong with the sets whatever the suite is.
func (c ProjectConfig) checkBenchmarkSets() error {
	names := make(map[string]bool)
	targets := map[Target]bool{"": true} // "": targets that no set names
	for _, s := range c.BenchmarkSets {
		if err := CheckName("benchmark set", s.Name); err != nil {
			return err
		}
		if names[s.Name] {
			return invalid("benchmark set", s.Name, "two have this name; choose another")
		}
		names[s.Name] = true
		if err := CheckName("pool", s.Pool); err != nil {
			return fmt.Errorf("benchmark set %s: %w", s.Name, err)
		}
		if len(s.Benchmarks) == 0 {
			return invalid("benchmark set", s.Name, "it has no benchmarks; name some or remove it")
		}
		for _, t := range s.Targets {
			if _, err := ParseTarget(string(t)); err != nil {
				return fmt.Errorf("benchmark set %s: %w", s.Name, err)
			}
			targets[t] = true
		}
	}
	for _, t := range slices.Sorted(maps.Keys(targets)) {
		if err := disjoint(c.BenchmarkSetsOf(t)); err != nil {
			return err
		}
	}
	return nil
}

func disjoint(sets []BenchmarkSet) error {
	owner := make(map[string]string)
	for _, s := range sets {
		for _, b := range s.Benchmarks {
			switch other, taken := owner[b]; {
			case taken && other == s.Name:
				return invalid("benchmark set", s.Name, fmt.Sprintf("it has benchmark %s twice; name it once", b))
			case taken:
				return invalid("benchmark set", s.Name, fmt.Sprintf("benchmark %s is in benchmark set %s as well; a benchmark is bound to one pool: remove it from one of them", b, other))
			}
			owner[b] = s.Name
		}
	}
	return nil
}

// CheckBenchmarkSets holds the benchmark sets of the targets against the suite's
// benchmarks: each of them has to be in one, and nothing else.
func (c ProjectConfig) CheckBenchmarkSets(targets []Target, benchmarks []string) error {
	for _, t := range targets {
		sets := c.BenchmarkSetsOf(t)
		if len(sets) == 0 {
			continue
		}
		var named []string
		for _, s := range sets {
			for _, b := range s.Benchmarks {
				if !slices.Contains(benchmarks, b) {
					return invalid("benchmark set", s.Name, fmt.Sprintf("the suite has no benchmark %s; it has %s", b, shortList(benchmarks)))
				}
			}
			named = append(named, s.Benchmarks...)
		}
		missing := slices.DeleteFunc(slices.Clone(benchmarks), func(b string) bool { return slices.Contains(named, b) })
		if len(missing) > 0 {
			return invalid("benchmark sets of target", string(t), fmt.Sprintf("no set has %s; together they must have all benchmarks of the suite: add what is missing to one of them", shortList(missing)))
		}
	}
	return nil
}

// shortList names a few of many.
func shortList(names []string) string {
	const shown = 10
	text := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return cmp.Or(text, "none")
}
