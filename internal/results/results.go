// Package results compares stored or new results of two artifacts: it pairs comparable samples, adds what was measured in
// turns, and passes both to package report, which gives the verdicts.
//
// Two results are comparable only when measured on the same target, pool
// hardware and size class, both alone on their machine or both co-located, and
// unless in turns under the same settings of the machine ([bench.Segment]). The
// package must not know how samples were measured or how a comparison is shown.
package results

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Record reads stored samples; *store.Store implements it. It is called under no lock, and calls are independent: results
// stored between two calls may be seen only by the second. It must not be nil.
type Record interface {
	Project(ctx context.Context, name string) (store.Project, error)
	SamplesOf(ctx context.Context, project, tag string) ([]bench.Samples, error)
	// SessionsInTurns returns the sessions in which two artifacts were measured in turns with each other, by time.
	SessionsInTurns(ctx context.Context, project, a, b string) ([]Session, error)
	// Comparisons returns the valid comparisons of two artifacts, whichever of them is the baseline, the newest first.
	Comparisons(ctx context.Context, project, a, b string) ([]store.Comparison, error)
	// Noise returns the noise of a project's series on a target.
	Noise(ctx context.Context, project string, target bench.Target) ([]store.SeriesNoise, error)
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
}

// Missing is a test case of one artifact without a comparable result.
type Missing struct {
	Tag      string
	TestCase bench.TestCase
	Reason   string
	// Failed is set if it was measured and failed.
	Failed bool
}

// Report is the comparison of two artifacts.
type Report struct {
	report.Report
	// Measured lists the test cases with stored results.
	Measured report.TestCases
	Missing  []Missing
}

// Summary sums up the report.
func (r Report) Summary() report.Summary { return report.Summarize(r.Report, r.Measured) }

// Select hides rows, and what is missing of test cases; it changes no verdict. Nil functions hide nothing.
func (r Report) Select(row func(report.Row) bool, testCase func(bench.TestCase) bool) Report {
	out := r
	if row != nil {
		out.Report = r.Report.Select(row)
	}
	if testCase == nil {
		return out
	}
	hidden := func(tc stats.TestCase) bool { return !testCase(TestCase(tc)) }
	out.Measured = report.TestCases{
		A: slices.DeleteFunc(slices.Clone(r.Measured.A), hidden), B: slices.DeleteFunc(slices.Clone(r.Measured.B), hidden),
	}
	out.Missing = slices.DeleteFunc(slices.Clone(r.Missing), func(m Missing) bool { return !testCase(m.TestCase) })
	return out
}

// Compare compares two artifacts of a project: what is stored of each, what was measured in turns beside it, and one verdict
// for each row. It is the only place where verdicts on stored results come from.
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
		without, err := record.MissingResults(ctx, pair.Project, tag)
		if err != nil {
			return Report{}, fmt.Errorf("listing the missing results of %s: %w", tag, err)
		}
		for _, m := range without {
			missing = append(missing, Missing{Tag: tag, TestCase: m.TestCase, Reason: m.Reason, Failed: m.Failed})
		}
	}
	sessions, err := record.SessionsInTurns(ctx, pair.Project, pair.A, pair.B)
	if err != nil {
		return Report{}, fmt.Errorf("reading the results measured in turns: %w", err)
	}
	decided, err := storedComparisons(ctx, record, pair)
	if err != nil {
		return Report{}, fmt.Errorf("reading the stored comparisons: %w", err)
	}
	stored, unpaired := Pairs(facts, sides[0], sides[1])
	decisions := decisionsOf(decided)
	if decisions.noise, err = noisePerSeries(ctx, record, pair.Project, stored, sessions); err != nil {
		return Report{}, fmt.Errorf("reading the noise of the series: %w", err)
	}
	series := decisions.series(facts, stored, sessions)
	out := Report{Missing: missing, Measured: measured(sides[0], sides[1])}
	out.lack(pair, unpaired, series)
	standing := standing(decided)
	standing.Hint = fmt.Sprintf("To decide what is open, measure both in turns: benchloom submit --adhoc %s %s --vs %s", pair.Project, pair.B, pair.A)
	if out.Report, err = report.New(series, standing); err != nil {
		return Report{}, fmt.Errorf("comparing %s with %s: %w", pair.B, pair.A, err)
	}
	if out.Hint != "" {
		out.Hint += only(out.Rows)
	}
	return out, nil
}

// only is the option that selects the benchmarks of undecided rows, if those are few: the suite's default set may take hours.
func only(rows []report.Row) string {
	const few = 5
	var benchmarks []string
	for _, r := range rows {
		if r.Is(verdict.Undecided) && !r.Provisional && !slices.Contains(benchmarks, r.Benchmark) {
			benchmarks = append(benchmarks, r.Benchmark)
		}
	}
	if len(benchmarks) > few {
		return ""
	}
	slices.Sort(benchmarks)
	return " --benchmark " + strings.Join(benchmarks, ",")
}

// lack adds the test cases that only one side has, unless it is known why, or both were measured in turns.
func (r *Report) lack(pair Pair, unpaired []Unpaired, series []report.Series) {
	for _, u := range unpaired {
		tag := pair.A
		if u.B {
			tag = pair.B
		}
		known := slices.ContainsFunc(r.Missing, func(m Missing) bool { return m.Tag == tag && m.TestCase == u.TestCase })
		inTurns := slices.ContainsFunc(series, func(s report.Series) bool {
			return len(s.Evidence.Sessions) > 0 && s.TestCase == statsTestCase(u.TestCase)
		})
		if !known && !inTurns {
			r.Missing = append(r.Missing, Missing{Tag: tag, TestCase: u.TestCase, Reason: u.Reason})
		}
	}
}

// measured returns the test cases with results, by side.
func measured(a, b []bench.Samples) report.TestCases {
	list := func(samples []bench.Samples) []stats.TestCase {
		var out []stats.TestCase
		seen := make(map[stats.TestCase]bool)
		for _, s := range samples {
			if tc := statsTestCase(s.TestCase); !seen[tc] {
				seen[tc], out = true, append(out, tc)
			}
		}
		return out
	}
	return report.TestCases{A: list(a), B: list(b)}
}

func statsTestCase(tc bench.TestCase) stats.TestCase {
	return stats.TestCase{Benchmark: tc.Benchmark, Profile: tc.Profile, Scenario: tc.Scenario, Backend: tc.Backend, Target: string(tc.Target)}
}

// TestCase returns the test case that a row of a report names.
func TestCase(tc stats.TestCase) bench.TestCase {
	return bench.TestCase{Benchmark: tc.Benchmark, Profile: tc.Profile, Scenario: tc.Scenario, Backend: tc.Backend, Target: bench.Target(tc.Target)}
}

// Metric returns the metric of a row of a report, with its line if it belongs to one.
func Metric(k stats.Key) bench.Metric {
	if k.Line == "" {
		return bench.Metric(k.Metric)
	}
	return bench.Metric(k.Line + " " + k.Metric)
}

// Facts describes benchmarks and metrics; *suite.Suite implements it. It must not be nil: if the suite is unknown, [Compare]
// uses its own facts, by which every benchmark is primary.
type Facts interface {
	Category(benchmark string) bench.Category
	Aggregation(metric bench.Metric) suite.Aggregation
	// Exact reports whether a metric has no noise, by its kind or as declared.
	Exact(metric bench.Metric) bool
}

type noFacts struct{}

func (noFacts) Category(string) bench.Category { return bench.Primary }
func (noFacts) Exact(m bench.Metric) bool      { return m.Exact() }
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
// both sides share: alone before co-located, a larger size class before a smaller one.
func Pairs(facts Facts, a, b []bench.Samples) ([]stats.Series, []Unpaired) {
	unknown := func(s bench.Samples) bool { return s.Series == 0 }
	if slices.ContainsFunc(a, unknown) || slices.ContainsFunc(b, unknown) {
		return pairs(facts, a, b, func(s *bench.Samples) seriesKey { return seriesKey{s.TestCase, s.Metric} })
	}
	return pairs(facts, a, b, func(s *bench.Samples) int64 { return s.Series })
}

// pairs pairs samples by what their series have as keys.
func pairs[K comparable](facts Facts, a, b []bench.Samples, key func(s *bench.Samples) K) ([]stats.Series, []Unpaired) {
	bySeries := func(samples []bench.Samples) map[K][]*bench.Samples {
		out := make(map[K][]*bench.Samples, len(samples))
		for i := range samples {
			k := key(&samples[i])
			out[k] = append(out[k], &samples[i])
		}
		return out
	}
	left, right := bySeries(a), bySeries(b)
	series := make([]stats.Series, 0, len(left))
	lacks := make(map[Unpaired]bool)
	for k, ours := range left {
		testCase := ours[0].TestCase
		theirs, ok := right[k]
		if !ok {
			lacks[Unpaired{TestCase: testCase, B: true, Reason: "no result"}] = true
			continue
		}
		x, y, ok := shared(ours, theirs)
		if change := newSegment(ours, theirs); !ok && change != "" {
			lacks[Unpaired{TestCase: testCase, B: true, Reason: "measured under " + change + "; measure both in turns (submit --vs) to compare them"}] = true
			continue
		}
		if !ok {
			lacks[Unpaired{TestCase: testCase, B: true, Reason: "measured only in another surrounding (" + surroundings(theirs) + " instead of " + surroundings(ours) + "), which does not compare"}] = true
			continue
		}
		series = append(series, newSeries(facts, seriesKey{testCase, x.Metric}, x.Values, y.Values))
	}
	for k, theirs := range right {
		if _, ok := left[k]; !ok {
			lacks[Unpaired{TestCase: theirs[0].TestCase, Reason: "no result"}] = true
		}
	}
	paired := make(map[bench.TestCase]bool)
	if len(lacks) > 0 {
		for k, ours := range left {
			if _, ok := right[k]; ok {
				paired[ours[0].TestCase] = true
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
	slices.SortFunc(series, func(x, y stats.Series) int { return x.Key.Compare(y.Key) })
	return series, unpaired
}

func side(b bool) int {
	if b {
		return 1
	}
	return 0
}

func newSeries(facts Facts, k seriesKey, a, b []float64) stats.Series {
	line, unit := k.metric.Split()
	s := stats.Series{
		Key: stats.Key{
			TestCase: statsTestCase(k.testCase),
			Line:     line,
			Metric:   string(unit),
		},
		Unit:     Unit(unit),
		Exact:    facts.Exact(k.metric),
		Precise:  k.metric == bench.Instructions,
		Category: stats.Category(facts.Category(k.testCase.Benchmark)),
		A:        a,
		B:        b,
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
	x, _, ok := shared(pointers(a), pointers(b))
	if !ok {
		return bench.Surrounding{}, false
	}
	return x.Surrounding, true
}

func shared(a, b []*bench.Samples) (x, y *bench.Samples, ok bool) {
	for _, p := range a {
		for _, q := range b {
			if compare(p, q) && (!ok || before(p.Surrounding, x.Surrounding)) {
				x, y, ok = p, q, true
			}
		}
	}
	return x, y, ok
}

// compare reports whether stored samples of two artifacts compare.
func compare(a, b *bench.Samples) bool {
	return a.Surrounding == b.Surrounding && !a.Segment.Differs(b.Segment)
}

// newSegment names the settings of the machine that keep samples of the same surrounding from being compared; empty if none do.
func newSegment(a, b []*bench.Samples) string {
	for _, p := range a {
		for _, q := range b {
			if p.Surrounding == q.Surrounding && p.Segment.Differs(q.Segment) {
				return p.Segment.Change(q.Segment)
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
