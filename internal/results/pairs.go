package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
)

// Unpaired is a test case with comparable results on only one side; B is set if side B lacks them.
type Unpaired struct {
	TestCase bench.TestCase
	B        bool
	Reason   string
}

type seriesKey struct {
	testCase bench.TestCase
	metric   bench.Metric
}

// Pairs pairs the samples of two artifacts by series. If a test case was measured in several surroundings, it uses one that
// both sides share: alone before co-located, a larger size class before a smaller one.
func Pairs(facts Facts, a, b []bench.Samples) ([]stats.Series, []Unpaired) {
	unknown := func(s bench.Samples) bool { return s.Series == 0 }
	if slices.ContainsFunc(a, unknown) || slices.ContainsFunc(b, unknown) {
		return pairs(facts, a, b, func(s *bench.Samples) seriesKey { return seriesKey{s.TestCase, s.Metric} })
	}
	return pairs(facts, a, b, func(s *bench.Samples) int64 { return s.Series })
}

// grouped holds the samples of one artifact by what their series have as keys, in the order in which these come.
type grouped[K comparable] struct {
	keys  []K
	at    map[K]int
	lists [][]*bench.Samples
}

func group[K comparable](samples []bench.Samples, key func(s *bench.Samples) K) grouped[K] {
	g := grouped[K]{at: make(map[K]int, len(samples)), keys: make([]K, 0, len(samples)), lists: make([][]*bench.Samples, 0, len(samples))}
	all := make([]*bench.Samples, len(samples))
	for i := range samples {
		k := key(&samples[i])
		if at, known := g.at[k]; known {
			g.lists[at] = append(g.lists[at], &samples[i])
			continue
		}
		// Most series have one surrounding, and share this memory.
		all[i] = &samples[i]
		g.at[k], g.keys, g.lists = len(g.keys), append(g.keys, k), append(g.lists, all[i:i+1:i+1])
	}
	return g
}

// of returns the samples of a series; nil: there are none.
func (g grouped[K]) of(k K) []*bench.Samples {
	if at, known := g.at[k]; known {
		return g.lists[at]
	}
	return nil
}

// pairs pairs samples by what their series have as keys.
func pairs[K comparable](facts Facts, a, b []bench.Samples, key func(s *bench.Samples) K) ([]stats.Series, []Unpaired) {
	left, right := group(a, key), group(b, key)
	lacks := make(map[Unpaired]bool)
	var last Unpaired
	lack := func(u Unpaired) {
		if u != last { // series of one test case mostly lack the same
			last, lacks[u] = u, true
		}
	}
	names, changes := newNaming(facts), make(segmentChanges)
	found := make(map[string][][2]*bench.Samples) // by metric
	for i, k := range left.keys {
		ours, theirs := left.lists[i], right.of(k)
		testCase := ours[0].TestCase
		if theirs == nil {
			lack(Unpaired{TestCase: testCase, B: true, Reason: "no result"})
			continue
		}
		x, y, ok := shared(ours, theirs, changes)
		if ok {
			unit := names.metric(x.Metric).Metric
			found[unit] = append(found[unit], [2]*bench.Samples{x, y})
			continue
		}
		if change := newSegment(ours, theirs, changes); change != "" {
			lack(Unpaired{TestCase: testCase, B: true, Reason: "measured under " + change + "; measure both in turns (submit --vs) to compare them"})
			continue
		}
		lack(Unpaired{TestCase: testCase, B: true, Reason: "measured only in another surrounding (" + surroundings(theirs) + " instead of " + surroundings(ours) + "), which does not compare"})
	}
	for i, k := range right.keys {
		if left.of(k) == nil {
			lack(Unpaired{TestCase: right.lists[i][0].TestCase, Reason: "no result"})
		}
	}
	paired := make(map[bench.TestCase]bool)
	if len(lacks) > 0 {
		for i, k := range left.keys {
			if right.of(k) != nil {
				paired[left.lists[i][0].TestCase] = true
			}
		}
	}
	var unpaired []Unpaired
	for u := range lacks {
		// A test case that lacks a single metric on one side is not missing.
		if u.Reason != "no result" || !paired[u.TestCase] {
			unpaired = append(unpaired, u)
		}
	}
	slices.SortFunc(unpaired, func(x, y Unpaired) int {
		return cmp.Or(bench.CompareTestCases(x.TestCase, y.TestCase), strings.Compare(x.Reason, y.Reason), side(x.B)-side(y.B))
	})
	// Samples come by test case: so, series are hardly out of order.
	series := make([]stats.Series, 0, len(left.keys))
	for _, unit := range slices.Sorted(maps.Keys(found)) {
		for _, p := range found[unit] {
			series = append(series, names.series(seriesKey{p[0].TestCase, p[0].Metric}, p[0].Values, p[1].Values))
		}
	}
	slices.SortFunc(series, func(x, y stats.Series) int { return x.Key.Compare(y.Key) })
	return series, unpaired
}

func side(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Shared returns the surrounding in which stored samples of one series of two artifacts compare, see [Pairs]; ok is false if
// there is none.
func Shared(a, b []bench.Samples) (where bench.Surrounding, ok bool) {
	pointers := func(samples []bench.Samples) []*bench.Samples {
		out := make([]*bench.Samples, len(samples))
		for i := range samples {
			out[i] = &samples[i]
		}
		return out
	}
	x, _, ok := shared(pointers(a), pointers(b), make(segmentChanges))
	if !ok {
		return bench.Surrounding{}, false
	}
	return x.Surrounding, true
}

func shared(a, b []*bench.Samples, changes segmentChanges) (x, y *bench.Samples, ok bool) {
	for _, p := range a {
		for _, q := range b {
			if p.Surrounding == q.Surrounding && changes.of(p.Segment, q.Segment) == "" && (!ok || before(p.Surrounding, x.Surrounding)) {
				x, y, ok = p, q, true
			}
		}
	}
	return x, y, ok
}

// segmentChanges keeps what differs between settings of machines: thousands of series have the same.
type segmentChanges map[[2]bench.Segment]string

// of names what differs; empty if nothing does, and the results compare.
func (c segmentChanges) of(a, b bench.Segment) string {
	if a == b {
		return ""
	}
	change, known := c[[2]bench.Segment{a, b}]
	if !known {
		change = a.Change(b)
		c[[2]bench.Segment{a, b}] = change
	}
	return change
}

// newSegment names the settings of the machine that keep samples of the same surrounding from being compared; empty if none do.
func newSegment(a, b []*bench.Samples, changes segmentChanges) string {
	for _, p := range a {
		for _, q := range b {
			if change := changes.of(p.Segment, q.Segment); p.Surrounding == q.Surrounding && change != "" {
				return change
			}
		}
	}
	return ""
}

func before(a, b bench.Surrounding) bool {
	if a.CoLocated != b.CoLocated {
		return b.CoLocated
	}
	return cmp.Or(-cmp.Compare(a.SizeClass, b.SizeClass), cmp.Compare(a.HardwareID, b.HardwareID)) < 0
}

func surroundings(samples []*bench.Samples) string {
	var names []string
	for _, s := range samples {
		name := fmt.Sprintf("size class %d on hardware %s", s.SizeClass, s.HardwareID)
		if s.CoLocated {
			name += ", co-located"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "; ")
}
