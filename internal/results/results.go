// Package results compares stored or new results of two artifacts: it pairs comparable samples and passes them to package
// stats.
//
// Two results are comparable only when measured on the same target, pool
// hardware and size class, both alone on their machine or both co-located. The
// package must not know how samples were measured or how a comparison is shown.
package results

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// Record reads stored samples; *store.Store implements it. It is called under no lock, and calls are independent: results
// stored between two calls may be seen only by the second. It must not be nil.
type Record interface {
	Project(ctx context.Context, name string) (store.Project, error)
	SamplesOf(ctx context.Context, project, tag string) ([]bench.Samples, error)
	// SamplesInTurns returns the samples of two artifacts that were measured in turns with each other.
	SamplesInTurns(ctx context.Context, project, a, b string) (ofA, ofB []bench.Samples, err error)
	MissingResults(ctx context.Context, project, tag string) ([]bench.MissingResult, error)
}

// Suites loads suites by content hash; *suitecache.Cache implements it. It is called under no lock, from any number of
// goroutines, and must not be nil. Suites are shared and never change.
type Suites interface {
	Suite(ctx context.Context, hash string) (*suite.Suite, error)
}

// Pair names the artifacts to compare; A is the baseline.
type Pair struct {
	Project, A, B string
	// OnlyInTurns leaves out results that were not measured in turns.
	OnlyInTurns bool
}

// Missing is a test case of one artifact without a comparable result.
type Missing struct {
	Tag      string
	TestCase bench.TestCase
	Reason   string
}

// Report is the comparison of two artifacts.
type Report struct {
	Comparison stats.Comparison
	Summary    stats.Summary
	Missing    []Missing
}

// Compare compares the stored results of two artifacts of a project.
func Compare(ctx context.Context, record Record, suites Suites, pair Pair) (Report, error) {
	project, err := record.Project(ctx, pair.Project)
	if err != nil {
		return Report{}, fmt.Errorf("reading project %s: %w", pair.Project, err)
	}
	var facts Facts = noFacts{}
	if project.SuiteHash != "" {
		loaded, err := suites.Suite(ctx, project.SuiteHash)
		if err != nil {
			return Report{}, err
		}
		facts = loaded
	}
	sides := [2][]bench.Samples{}
	var missing []Missing
	for i, tag := range []string{pair.A, pair.B} {
		if sides[i], err = record.SamplesOf(ctx, pair.Project, tag); err != nil {
			return Report{}, fmt.Errorf("reading the results of %s: %w", tag, err)
		}
		if pair.OnlyInTurns {
			sides[i] = nil
		}
		without, err := record.MissingResults(ctx, pair.Project, tag)
		if err != nil {
			return Report{}, fmt.Errorf("listing the missing results of %s: %w", tag, err)
		}
		for _, m := range without {
			missing = append(missing, Missing{Tag: tag, TestCase: m.TestCase, Reason: m.Reason})
		}
	}
	ofA, ofB, err := record.SamplesInTurns(ctx, pair.Project, pair.A, pair.B)
	if err != nil {
		return Report{}, fmt.Errorf("reading the results measured in turns: %w", err)
	}
	sides[0], sides[1] = preferred(sides[0], ofA), preferred(sides[1], ofB)
	series, unpaired := Pairs(facts, sides[0], sides[1])
	for _, u := range unpaired {
		tag := pair.A
		if u.B {
			tag = pair.B
		}
		known := func(m Missing) bool { return m.Tag == tag && m.TestCase == u.TestCase }
		if !slices.ContainsFunc(missing, known) {
			missing = append(missing, Missing{Tag: tag, TestCase: u.TestCase, Reason: u.Reason})
		}
	}
	comparison, err := stats.Compare(series, stats.DefaultOptions())
	if err != nil {
		return Report{}, fmt.Errorf("comparing %s with %s: %w", pair.B, pair.A, err)
	}
	return Report{Comparison: comparison, Summary: stats.Summarize(comparison, measured(sides[0], sides[1])), Missing: missing}, nil
}

// preferred returns the samples of one side, replacing those of a surrounding by samples measured in turns if there are any:
// drift affects both sides alike.
func preferred(samples, inTurns []bench.Samples) []bench.Samples {
	type place struct {
		testCase bench.TestCase
		where    bench.Surrounding
	}
	taken := make(map[place]bool)
	for _, s := range inTurns {
		taken[place{s.TestCase, s.Surrounding}] = true
	}
	out := slices.Clone(inTurns)
	for _, s := range samples {
		if !taken[place{s.TestCase, s.Surrounding}] {
			out = append(out, s)
		}
	}
	return out
}

// measured returns the test cases with results, by side.
func measured(a, b []bench.Samples) stats.TestCases {
	list := func(samples []bench.Samples) []stats.TestCase {
		var out []stats.TestCase
		for _, s := range samples {
			if tc := statsTestCase(s.TestCase); !slices.Contains(out, tc) {
				out = append(out, tc)
			}
		}
		return out
	}
	return stats.TestCases{A: list(a), B: list(b)}
}

func statsTestCase(tc bench.TestCase) stats.TestCase {
	return stats.TestCase{Benchmark: tc.Benchmark, Profile: tc.Profile, Scenario: tc.Scenario, Backend: tc.Backend, Target: string(tc.Target)}
}

// Facts describes benchmarks and metrics; *suite.Suite implements it. It must not be nil: if the suite is unknown, [Compare]
// uses its own facts, by which every benchmark is primary.
type Facts interface {
	Category(benchmark string) bench.Category
	Aggregation(metric bench.Metric) suite.Aggregation
}

type noFacts struct{}

func (noFacts) Category(string) bench.Category { return bench.Primary }
func (noFacts) Aggregation(m bench.Metric) suite.Aggregation {
	if m.Direction() == bench.HigherIsBetter {
		return suite.AggregateMax
	}
	return suite.AggregateMin
}

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
// both sides share: measured in turns before others, alone before co-located, a larger size class before a smaller one.
func Pairs(facts Facts, a, b []bench.Samples) ([]stats.Series, []Unpaired) {
	bySeries := func(samples []bench.Samples) map[seriesKey][]bench.Samples {
		out := make(map[seriesKey][]bench.Samples)
		for _, s := range samples {
			k := seriesKey{s.TestCase, s.Metric}
			out[k] = append(out[k], s)
		}
		return out
	}
	left, right := bySeries(a), bySeries(b)
	var series []stats.Series
	lacks := make(map[Unpaired]bool)
	for k, ours := range left {
		theirs, ok := right[k]
		if !ok {
			lacks[Unpaired{TestCase: k.testCase, B: true, Reason: "no result"}] = true
			continue
		}
		x, y, ok := shared(ours, theirs)
		if !ok {
			lacks[Unpaired{TestCase: k.testCase, B: true, Reason: "measured only in another surrounding (" + surroundings(theirs) + " instead of " + surroundings(ours) + "), which does not compare"}] = true
			continue
		}
		series = append(series, newSeries(facts, k, x, y))
	}
	for k := range right {
		if _, ok := left[k]; !ok {
			lacks[Unpaired{TestCase: k.testCase, Reason: "no result"}] = true
		}
	}
	paired := make(map[bench.TestCase]bool)
	for k := range left {
		if _, ok := right[k]; ok {
			paired[k.testCase] = true
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
	slices.SortFunc(series, func(x, y stats.Series) int { return strings.Compare(x.Key.String(), y.Key.String()) })
	return series, unpaired
}

func side(b bool) int {
	if b {
		return 1
	}
	return 0
}

func newSeries(facts Facts, k seriesKey, a, b bench.Samples) stats.Series {
	line, unit := k.metric.Split()
	s := stats.Series{
		Key: stats.Key{
			TestCase: statsTestCase(k.testCase),
			Line:     line,
			Metric:   string(unit),
		},
		Unit:     Unit(unit),
		Exact:    k.metric.Exact(),
		Precise:  k.metric == bench.Instructions,
		Category: stats.Category(facts.Category(k.testCase.Benchmark)),
		InTurns:  a.InTurns && b.InTurns,
		A:        a.Values,
		B:        b.Values,
	}
	if s.Unit == "sec" || s.Unit == "ns" {
		s.Threshold = timeThreshold
	}
	if k.metric.Direction() == bench.HigherIsBetter {
		s.Better = stats.HigherIsBetter
	}
	switch facts.Aggregation(k.metric) {
	case suite.AggregateMedian:
		s.Aggregation = stats.Median
	case suite.AggregateMean:
		s.Aggregation = stats.Mean
	case suite.AggregateMax:
		s.Aggregation = stats.Maximum
	}
	return s
}

// timeThreshold is the least relative change of a time that counts in the absence of a history. Two sessions on one machine
// differ by about a percent; Perfherder highlights changes from 2 %.
const timeThreshold = 0.02

func shared(a, b []bench.Samples) (x, y bench.Samples, ok bool) {
	for _, p := range a {
		for _, q := range b {
			if p.Surrounding == q.Surrounding && (!ok || before(p, x)) {
				x, y, ok = p, q, true
			}
		}
	}
	return x, y, ok
}

func before(a, b bench.Samples) bool {
	if a.InTurns != b.InTurns {
		return a.InTurns
	}
	if a.CoLocated != b.CoLocated {
		return b.CoLocated
	}
	return cmp.Or(-cmp.Compare(a.SizeClass, b.SizeClass), cmp.Compare(a.HardwareID, b.HardwareID)) < 0
}

func surroundings(samples []bench.Samples) string {
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

// Unit returns the unit of a metric's values, spelled as in
// golang.org/x/perf/benchunit.
func Unit(m bench.Metric) string {
	_, m = m.Split()
	switch m {
	case bench.WallTime, bench.CPUTime, bench.UserTime, bench.SystemTime:
		return "sec"
	case bench.MaxRSS:
		return "B"
	}
	if m.Exact() {
		return "B"
	}
	unit, _, isRate := strings.Cut(string(m), "/op")
	if isRate {
		return unit
	}
	return ""
}
