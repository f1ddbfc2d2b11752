// Package results compares stored or new results of two artifacts: it pairs comparable samples, adds what was measured in
// turns, and passes both to package report, which gives the verdicts.
//
// Two results are comparable only when measured on the same target, pool
// hardware and size class, both alone on their machine or both co-located, and
// unless in turns under the same settings of the machine ([bench.Segment]). The
// package must not know how samples were measured or how a comparison is shown.
package results

import (
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
	// NotableNoise returns the noise of a project's series on targets, in all surroundings: of those with something notable
	// in any of them, and of all series of some test cases.
	NotableNoise(ctx context.Context, project string, targets []bench.Target, of []bench.TestCase) ([]store.SeriesNoise, error)
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

// Select hides rows and missing test cases; it changes no verdict. Nil functions hide nothing.
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
	in := memories.Get()
	defer in.free()
	stored, unpaired := paired(in, facts, sides[0], sides[1])
	decisions := decisionsOf(decided)
	if decisions.noise, err = noisePerSeries(ctx, record, pair.Project, stored, sessions); err != nil {
		return Report{}, fmt.Errorf("reading the noise of the series: %w", err)
	}
	series := decisions.series(facts, stored, sessions, in)
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
	if len(unpaired) == 0 {
		return
	}
	inTurns := make(map[stats.TestCase]bool)
	for i := range series {
		if s := &series[i]; len(s.Evidence.Sessions) > 0 {
			inTurns[s.TestCase] = true
		}
	}
	type lacking struct {
		tag      string
		testCase bench.TestCase
	}
	known := make(map[lacking]bool, len(r.Missing))
	for i := range r.Missing {
		known[lacking{r.Missing[i].Tag, r.Missing[i].TestCase}] = true
	}
	for _, u := range unpaired {
		tag := pair.A
		if u.B {
			tag = pair.B
		}
		one := lacking{tag, u.TestCase}
		if !known[one] && !inTurns[statsTestCase(u.TestCase)] {
			known[one] = true
			r.Missing = append(r.Missing, Missing{Tag: tag, TestCase: u.TestCase, Reason: u.Reason})
		}
	}
}

// measured returns the test cases with results, by side.
func measured(a, b []bench.Samples) report.TestCases {
	list := func(samples []bench.Samples) []stats.TestCase {
		differs := func(i int) bool { return i == 0 || samples[i].TestCase != samples[i-1].TestCase }
		n := 0
		for i := range samples {
			if differs(i) {
				n++
			}
		}
		out := make([]stats.TestCase, 0, n)
		for i := range samples {
			if differs(i) {
				out = append(out, statsTestCase(samples[i].TestCase))
			}
		}
		compare := func(x, y stats.TestCase) int { return bench.CompareTestCases(TestCase(x), TestCase(y)) }
		if !slices.IsSortedFunc(out, compare) { // mostly they are
			slices.SortFunc(out, compare)
		}
		return slices.Compact(out)
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
