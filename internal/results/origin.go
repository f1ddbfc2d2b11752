package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// Place holds everything that decides whether results compare, and the pool.
type Place struct {
	Target bench.Target
	bench.Surrounding
	Segment bench.Segment
	Pool    string
	// Suite is the content hash of the suite; empty: there was none.
	Suite   string
	InTurns bool
}

// Part sums up the results of an artifact at one place.
type Part struct {
	Place
	// Collectors are sorted by name.
	Collectors []string
	TestCases  int
	// Fewest and Most are the numbers of iterations of its test cases.
	Fewest, Most int
	// First and Last are when its first and last values were taken.
	First, Last time.Time
}

// Parts sums up results by place: alone before in turns, the part with the most test cases
// first.
func Parts(origins []store.Origin) []Part {
	var parts []Part
	at := make(map[Place]int)
	i := 0
	for k := range origins {
		o := &origins[k]
		place := Place{Target: o.TestCase.Target, Surrounding: o.Surrounding, Segment: o.Segment, Pool: o.Pool, Suite: o.Suite, InTurns: o.InTurns}
		known := k > 0 && place == parts[i].Place // mostly as the one before
		if !known {
			i, known = at[place]
		}
		if !known {
			i = len(parts)
			at[place], parts = i, append(parts, Part{Place: place, Fewest: o.Iterations, First: o.First, Last: o.Last})
		}
		p := &parts[i]
		p.TestCases++
		p.Fewest, p.Most = min(p.Fewest, o.Iterations), max(p.Most, o.Iterations)
		if o.First.Before(p.First) {
			p.First = o.First
		}
		if o.Last.After(p.Last) {
			p.Last = o.Last
		}
		if !slices.Contains(p.Collectors, o.Collector) {
			p.Collectors = append(p.Collectors, o.Collector)
		}
	}
	for _, p := range parts {
		slices.Sort(p.Collectors)
	}
	slices.SortStableFunc(parts, func(x, y Part) int {
		if x.InTurns != y.InTurns {
			return side(x.InTurns) - side(y.InTurns)
		}
		return cmp.Or(y.TestCases-x.TestCases, strings.Compare(string(x.Target), string(y.Target)), int(y.SizeClass-x.SizeClass))
	})
	return parts
}

// Differences says in what the stored results of two artifacts differ, apart from their
// values. What was measured in turns differs in nothing.
func Differences(a, b []Part) []string {
	var out []string
	for _, fact := range []struct {
		name string
		of   func(Part) []string
	}{
		{"target", func(p Part) []string { return []string{string(p.Target)} }},
		{"size class", func(p Part) []string { return []string{fmt.Sprint(p.SizeClass)} }},
		{"hardware", func(p Part) []string { return []string{p.HardwareID} }},
		{"pool", func(p Part) []string { return []string{p.Pool} }},
		{"other jobs on the machine", func(p Part) []string { return []string{map[bool]string{true: "some", false: "none"}[p.CoLocated]} }},
		{"suite", func(p Part) []string { return []string{p.Suite[:min(len(p.Suite), 12)]} }},
		{"collectors", func(p Part) []string { return p.Collectors }},
		{"iterations", func(p Part) []string { return []string{fmt.Sprint(p.Fewest), fmt.Sprint(p.Most)} }},
	} {
		left, right := distinct(a, fact.of), distinct(b, fact.of)
		if len(left) > 0 && len(right) > 0 && !slices.Equal(left, right) {
			out = append(out, fmt.Sprintf("%s: %s instead of %s", fact.name, named(right), named(left)))
		}
	}
	if change := newSettings(a, b); change != "" {
		out = append(out, change)
	}
	return out
}

// newSettings names the machine settings that differ between results measured alone.
func newSettings(a, b []Part) string {
	for _, p := range a {
		for _, q := range b {
			if change := p.Segment.Change(q.Segment); change != "" && !p.InTurns && !q.InTurns {
				return change
			}
		}
	}
	return ""
}

// distinct lists the different values of parts that were measured alone.
func distinct(parts []Part, of func(Part) []string) []string {
	var all []string
	for _, p := range parts {
		if !p.InTurns {
			all = append(all, of(p)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func named(values []string) string {
	for i, v := range values {
		values[i] = cmp.Or(v, "unknown")
	}
	return strings.Join(values, ", ")
}
