package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Unplaceable reports that no registered collector can ever run a job.
type Unplaceable struct {
	Requirements Requirements
	// Registered lists the pools with collectors, by target, class and name.
	Registered []bench.Pool
	// Unmet explains each constraint that no collector meets, or those that no collector
	// meets together.
	Unmet []string
	// Nearest is the collector that meets most constraints, Lacks those it does not meet;
	// both are empty without constraints.
	Nearest string
	Lacks   []string
}

// shownPools bounds the number of pools that a message names.
const shownPools = 10

func (u *Unplaceable) Error() string {
	want := string(u.Requirements.Target)
	if u.Requirements.Class > 0 {
		want += fmt.Sprintf(" of size class %d", u.Requirements.Class)
	} else if u.Requirements.MinSize > 1 {
		want += fmt.Sprintf(" of size class %d or more", u.Requirements.MinSize)
	}
	if u.Requirements.Pool != "" {
		want += " in pool " + u.Requirements.Pool
	}
	if len(u.Registered) == 0 {
		return fmt.Sprintf("no collector is registered that can run %s: none is registered at all; start one with 'benchloom collector'", want)
	}
	if u.Nearest != "" {
		return fmt.Sprintf("no collector is registered that can run %s as it is constrained: %s; nearest is %s: %s; change what it cannot meet, or start such a collector",
			want, strings.Join(u.Unmet, "; "), u.Nearest, strings.Join(u.Lacks, ", "))
	}
	var names []string
	for _, p := range u.Registered[:min(len(u.Registered), shownPools)] {
		names = append(names, fmt.Sprintf("%s size %d (pool %s)", p.Target, p.SizeClass, p.Name))
	}
	if more := len(u.Registered) - shownPools; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("no collector is registered that can run %s: registered are %s; choose one of these, or start such a collector", want, strings.Join(names, ", "))
}

func newUnplaceable(fleet []Collector, needs Requirements) *Unplaceable {
	u := &Unplaceable{Requirements: needs}
	for _, c := range fleet {
		u.Registered = append(u.Registered, c.Pool)
	}
	slices.SortFunc(u.Registered, comparePools)
	u.Registered = slices.Compact(u.Registered)
	if !needs.Constraints.Hard() || len(fleet) == 0 {
		return u
	}
	rules := rulesOf(needs)
	u.Unmet = unmet(fleet, rules)
	nearest := slices.MinFunc(fleet, func(a, b Collector) int {
		return cmp.Or(
			cmp.Compare(len(WhyNot(a, needs)), len(WhyNot(b, needs))),
			-compareBool(a.Pool.Target == needs.Target, b.Pool.Target == needs.Target),
			-compareBool(named(a, needs.Constraints.Machines), named(b, needs.Constraints.Machines)),
			-cmp.Compare(a.Memory(), b.Memory()),
			-compareBool(a.Live, b.Live),
			cmp.Compare(a.Name, b.Name),
		)
	})
	u.Nearest, u.Lacks = nearest.Name, WhyNot(nearest, needs)
	return u
}

// named reports whether a collector, or its host, is one of these machines.
func named(c Collector, machines []string) bool {
	return slices.Contains(machines, c.Name) || c.Host != "" && slices.Contains(machines, c.Host)
}

func comparePools(a, b bench.Pool) int {
	return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.SizeClass, b.SizeClass), cmp.Compare(a.Name, b.Name))
}

// unmet names the rules that no collector meets, else two that none meets together,
// else all of them together.
func unmet(fleet []Collector, rules []rule) []string {
	anyone := func(met func(Collector) bool) bool { return slices.ContainsFunc(fleet, met) }
	var words, all []string
	for _, r := range rules {
		all = append(all, r.name)
		if !anyone(r.met) {
			words = append(words, "no collector has "+r.name)
		}
	}
	if len(words) > 0 {
		return words
	}
	for i, a := range rules {
		for _, b := range rules[i+1:] {
			if !anyone(func(c Collector) bool { return a.met(c) && b.met(c) }) {
				words = append(words, fmt.Sprintf("%s and %s exclude each other: no collector has both", a.name, b.name))
			}
		}
	}
	if len(words) == 0 {
		words = []string{"no collector has all of " + strings.Join(all, ", ")}
	}
	return words
}

// Warning says that a job has to wait because no collector that can run it is live;
// empty when one is.
func Warning(fleet []Collector, needs Requirements, place Place) string {
	if place.Live {
		return ""
	}
	var who []string
	for _, c := range Fitting(fleet, needs) {
		state := "offline"
		if !c.Active {
			state = "drained"
		}
		if c.Away >= time.Second {
			state += " for " + c.Away.Truncate(time.Second).String()
		}
		who = append(who, c.Name+" ("+state+")")
	}
	const shown = 5
	if more := len(who) - shown; more > 0 {
		who = append(who[:shown], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("it waits: no collector that can run it is live now, of those registered: %s", strings.Join(who, ", "))
}
