package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// FailoverAfter is the default time that a pool may be without a live collector
// before its waiting jobs move to another pool. It is longer than a reboot, which
// should not move any.
const FailoverAfter = 5 * time.Minute

// NoFailover, as a project's failover_after, keeps waiting jobs at their pool.
const NoFailover = "never"

// maxFailoverAfter bounds the wait: a longer one should be "never".
const maxFailoverAfter = 30 * 24 * time.Hour

// Failover returns how long a pool may be without a live collector before the
// project's waiting jobs leave it; 0: they stay.
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

// BenchmarkSet binds benchmarks to a pool, so that each is always measured on the
// same machines, with the same noise.
//
// The sets of a target are disjoint and together contain all benchmarks of the suite.
// A suite's own sets are something else: named selections.
type BenchmarkSet struct {
	Name string `json:"name" yaml:"name" doc:"Name of the benchmark set."`
	// Pool may be of any size class; [SizePolicy] selects it.
	Pool       string   `json:"pool" yaml:"pool" doc:"Pool on which its benchmarks are measured."`
	Benchmarks []string `json:"benchmarks" yaml:"benchmarks" doc:"Benchmarks of the suite."`
	// Targets that the set applies to; empty: all.
	Targets []Target `json:"targets,omitempty" yaml:"targets" doc:"Targets for which it holds; empty: all."`
}

func (s BenchmarkSet) appliesTo(t Target) bool {
	return len(s.Targets) == 0 || slices.Contains(s.Targets, t)
}

// BenchmarkSetsOf returns the benchmark sets of a target; without any its benchmarks
// are bound to no pool.
func (c ProjectConfig) BenchmarkSetsOf(t Target) []BenchmarkSet {
	return slices.DeleteFunc(slices.Clone(c.BenchmarkSets), func(s BenchmarkSet) bool { return !s.appliesTo(t) })
}

// checkBenchmarkSets refuses sets that are invalid for every suite.
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

// CheckBenchmarkSets compares the benchmark sets of each target with the suite's
// benchmarks: every benchmark must be in one set, and no others may be.
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
