package results

import (
	"cmp"
	"fmt"
	"iter"
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
	return paired(new(memory), facts, a, b)
}

// paired pairs samples as [Pairs] does, in the memory of a comparison.
func paired(in *memory, facts Facts, a, b []bench.Samples) ([]stats.Series, []Unpaired) {
	matched := matchedByName(a, b)
	if inOrder(a) && inOrder(b) {
		matched = matchedInOrder(a, b)
	}
	lacks := make(map[Unpaired]bool)
	var last Unpaired
	lack := func(u Unpaired) {
		if u != last { // series of one test case mostly lack the same
			last, lacks[u] = u, true
		}
	}
	names, changes := newNaming(facts), make(segmentChanges)
	found := make(map[string][][2]*bench.Samples) // by metric
	for ours, theirs := range matched {
		switch {
		case len(theirs) == 0:
			lack(Unpaired{TestCase: ours[0].TestCase, B: true, Reason: noResult})
			continue
		case len(ours) == 0:
			lack(Unpaired{TestCase: theirs[0].TestCase, Reason: noResult})
			continue
		}
		testCase := ours[0].TestCase
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
	paired := make(map[bench.TestCase]bool)
	if len(lacks) > 0 {
		for ours, theirs := range matched {
			if len(ours) > 0 && len(theirs) > 0 {
				paired[ours[0].TestCase] = true
			}
		}
	}
	var unpaired []Unpaired
	for u := range lacks {
		// A test case that lacks a single metric on one side is not missing.
		if u.Reason != noResult || !paired[u.TestCase] {
			unpaired = append(unpaired, u)
		}
	}
	slices.SortFunc(unpaired, func(x, y Unpaired) int {
		return cmp.Or(bench.CompareTestCases(x.TestCase, y.TestCase), strings.Compare(x.Reason, y.Reason), side(x.B)-side(y.B))
	})
	series := slices.Grow(in.stored[:0], max(len(a), len(b)))
	for _, unit := range slices.Sorted(maps.Keys(found)) {
		for _, p := range found[unit] {
			series = append(series, names.series(seriesKey{p[0].TestCase, p[0].Metric}, p[0].Values, p[1].Values))
		}
	}
	sortByKey(series, func(s *stats.Series) *stats.Key { return &s.Key })
	in.stored = series
	return series, unpaired
}

// noResult is the reason of a series that one side does not have.
const noResult = "no result"

// matchedByName yields the samples of each series, those of a and those of b, one of which may be empty.
func matchedByName(a, b []bench.Samples) iter.Seq2[[]*bench.Samples, []*bench.Samples] {
	return func(yield func(ours, theirs []*bench.Samples) bool) {
		var keys []seriesKey
		lists := make(map[seriesKey]*[2][]*bench.Samples)
		for i, side := range [...][]bench.Samples{a, b} {
			for k := range side {
				of := seriesKey{side[k].TestCase, side[k].Metric}
				if lists[of] == nil {
					keys, lists[of] = append(keys, of), &[2][]*bench.Samples{}
				}
				lists[of][i] = append(lists[of][i], &side[k])
			}
		}
		for _, k := range keys {
			if of := lists[k]; !yield(of[0], of[1]) {
				return
			}
		}
	}
}

// inOrder reports whether samples are in the order of their series, each series once, as they are if all were measured in
// one surrounding.
func inOrder(samples []bench.Samples) bool {
	for i := 1; i < len(samples); i++ {
		if compareSeries(&samples[i-1], &samples[i]) >= 0 {
			return false
		}
	}
	return true
}

func compareSeries(x, y *bench.Samples) int {
	if x.Series == y.Series && x.Series != 0 {
		return 0
	}
	if x.TestCase != y.TestCase {
		return bench.CompareTestCases(x.TestCase, y.TestCase)
	}
	return strings.Compare(string(x.Metric), string(y.Metric))
}

// matchedInOrder yields what [matchedByName] does, for samples in order. Lists are valid until the next.
func matchedInOrder(a, b []bench.Samples) iter.Seq2[[]*bench.Samples, []*bench.Samples] {
	return func(yield func(ours, theirs []*bench.Samples) bool) {
		a, b := a, b // from their beginning each time
		var ours, theirs [1]*bench.Samples
		for len(a) > 0 || len(b) > 0 {
			var order int
			switch {
			case len(a) == 0:
				order = 1
			case len(b) == 0:
				order = -1
			default:
				order = compareSeries(&a[0], &b[0])
			}
			var x, y []*bench.Samples
			if order <= 0 {
				ours[0], a = &a[0], a[1:]
				x = ours[:]
			}
			if order >= 0 {
				theirs[0], b = &b[0], b[1:]
				y = theirs[:]
			}
			if !yield(x, y) {
				return
			}
		}
	}
}

// sortByKey sorts a list by the keys of its elements, which are mostly in order. It checks that by pointers: copying
// thousands of elements would take as long as sorting.
func sortByKey[T any](list []T, key func(*T) *stats.Key) {
	for i := 1; i < len(list); i++ {
		if key(&list[i-1]).Compare(*key(&list[i])) > 0 {
			slices.SortFunc(list, func(x, y T) int { return key(&x).Compare(*key(&y)) })
			return
		}
	}
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

// segmentChanges caches the differences between machine settings, which thousands of series share.
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
