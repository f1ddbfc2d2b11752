package results_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

const (
	before = "1.26.0"
	after  = "1.26.1"
)

var pair = results.Pair{Project: "go", A: before, B: after}

// record is a record in memory; its errors are by method and tag.
type record struct {
	suiteHash string
	samples   map[string][]bench.Samples
	inTurns   map[string][]bench.Samples
	lacking   map[string][]bench.MissingResult
	fails     map[string]error
}

func (r record) Project(_ context.Context, name string) (store.Project, error) {
	return store.Project{Name: name, SuiteHash: r.suiteHash}, r.fails["project "+name]
}

func (r record) SamplesOf(_ context.Context, project, tag string) ([]bench.Samples, error) {
	return r.samples[tag], r.fails["samples "+project+" "+tag]
}

func (r record) SamplesInTurns(_ context.Context, _, a, b string) (ofA, ofB []bench.Samples, err error) {
	return r.inTurns[a], r.inTurns[b], r.fails["in turns"]
}

func (r record) MissingResults(_ context.Context, project, tag string) ([]bench.MissingResult, error) {
	return r.lacking[tag], r.fails["lacking "+project+" "+tag]
}

// suites holds suites by hash.
type suites map[string]*suite.Suite

var errNoSuite = errors.New("no such suite")

func (s suites) Suite(_ context.Context, hash string) (*suite.Suite, error) {
	if s[hash] == nil {
		return nil, errNoSuite
	}
	return s[hash], nil
}

func load(t *testing.T, text string) *suite.Suite {
	t.Helper()
	s, err := suite.Load(fstest.MapFS{"suite.yaml": {Data: []byte(text)}})
	require.NoError(t, err)
	return s
}

// times returns ten wall times around a middle, at most one percent apart.
func times(tc bench.TestCase, middle float64) bench.Samples {
	var values []float64
	for i := range 10 {
		values = append(values, middle*(1+0.001*float64(i-5)))
	}
	return samples(tc, bench.WallTime, alone(4, "x"), values...)
}

func compare(t *testing.T, r record, s results.Suites) results.Report {
	t.Helper()
	report, err := results.Compare(t.Context(), r, s, pair)
	require.NoError(t, err)
	return report
}

func TestASlowerArtifactIsARegression(t *testing.T) {
	t.Parallel()
	// A project without a suite, such as an ad-hoc one: no suite is loaded.
	report := compare(t, record{samples: map[string][]bench.Samples{
		before: {times(gin, 1), times(hugo, 2)},
		after:  {times(gin, 1.2), times(hugo, 2)},
	}}, nil)

	require.Len(t, report.Comparison.Results, 2)
	slower, same := report.Comparison.Results[0], report.Comparison.Results[1]
	require.Equal(t, "gin", slower.Benchmark)
	require.Equal(t, stats.Regression, slower.Verdict, slower.Why)
	require.InDelta(t, 0.2, slower.Change.Value, 1e-9)
	require.False(t, same.Significant, same.Why)
	require.Equal(t, stats.DefaultOptions(), report.Comparison.Options)

	require.Len(t, report.Summary.Metrics, 1)
	require.Equal(t, stats.Regressed, report.Summary.Metrics[0].Direction)
	require.Equal(t, 1, report.Summary.Metrics[0].Primary.Regressions.Count)
	require.Empty(t, report.Missing)

	// The other way round it is an improvement: A is the baseline.
	report = compare(t, record{samples: map[string][]bench.Samples{before: {times(gin, 1.2)}, after: {times(gin, 1)}}}, nil)
	require.Equal(t, stats.Improvement, report.Comparison.Results[0].Verdict)
}

func TestWhatTheProjectsSuiteSaysIsUsed(t *testing.T) {
	t.Parallel()
	said := load(t, `
name: compiler
artifact: {provider: directory}
metrics: {aggregate: {wall-time: median}}
benchmarks:
  - {name: gin, measure: {run: [x]}}
  - {name: hugo, category: secondary, measure: {run: [x]}}
`)
	measured := []bench.Samples{
		samples(gin, bench.WallTime, alone(4, "x"), 1, 2, 9),
		samples(hugo, bench.WallTime, alone(4, "x"), 1, 2, 9),
		samples(hugo, "MB/s", alone(4, "x"), 1, 2, 9),
	}
	report := compare(t, record{suiteHash: "5f2c", samples: map[string][]bench.Samples{before: measured, after: measured}},
		suites{"5f2c": said})

	require.Len(t, report.Comparison.Results, 3)
	for i, want := range []struct {
		benchmark, metric string
		category          stats.Category
		value             float64
	}{
		{"hugo", "MB/s", stats.Secondary, 9}, // the best value by default
		{"gin", "wall-time", stats.Primary, 2},
		{"hugo", "wall-time", stats.Secondary, 2},
	} {
		got := report.Comparison.Results[i]
		require.Equal(t, want.benchmark, got.Benchmark)
		require.Equal(t, want.metric, got.Metric)
		require.Equal(t, want.category, got.Category)
		require.Equal(t, want.value, got.A.Value)
	}
}

func TestWhatIsMissingHasTheBestKnownReason(t *testing.T) {
	t.Parallel()
	caddy := bench.TestCase{Benchmark: "caddy", Target: linux}
	elsewhere := samples(caddy, bench.WallTime, coLocated(4, "x"), 1)
	report := compare(t, record{
		samples: map[string][]bench.Samples{
			before: {times(gin, 1), times(hugo, 1), times(caddy, 1)},
			after:  {times(gin, 1), elsewhere},
		},
		lacking: map[string][]bench.MissingResult{
			// It failed: that replaces "no result".
			after: {{TestCase: hugo, Reason: "failed: exit status 2"}},
			// There are no results of it, and the record knows why.
			before: {{TestCase: bench.TestCase{Benchmark: "old", Target: linux}, Reason: "left out: needs 64 GB"}},
		},
	}, nil)

	require.Equal(t, []results.Missing{
		{Tag: before, TestCase: bench.TestCase{Benchmark: "old", Target: linux}, Reason: "left out: needs 64 GB"},
		{Tag: after, TestCase: hugo, Reason: "failed: exit status 2"},
		{Tag: after, TestCase: caddy, Reason: "measured only in another surrounding" +
			" (size class 4 on hardware x, co-located instead of size class 4 on hardware x), which does not compare"},
	}, report.Missing)

	// Incomparable results are not a series, but they were measured.
	require.Len(t, report.Comparison.Results, 1)
	require.Equal(t, []stats.TestCase{{Benchmark: "hugo", Profile: "build", Scenario: "full", Backend: "gc", Target: string(linux)}},
		report.Summary.Missing)
	require.Empty(t, report.Summary.Added)
}

func TestWhatTheBaselineLacksIsNamedWithTheBaselinesTag(t *testing.T) {
	t.Parallel()
	report := compare(t, record{
		samples: map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 1), times(hugo, 1)}},
		// The other side may lack it as well, for example in another metric.
		lacking: map[string][]bench.MissingResult{after: {{TestCase: hugo, Reason: "one of two jobs failed"}}},
	}, nil)
	require.Equal(t, []results.Missing{
		{Tag: after, TestCase: hugo, Reason: "one of two jobs failed"},
		{Tag: before, TestCase: hugo, Reason: "no result"},
	}, report.Missing)
	require.Empty(t, report.Summary.Missing)
	require.Len(t, report.Summary.Added, 1)
	require.Equal(t, "hugo", report.Summary.Added[0].Benchmark)
}

func TestArtifactsWithoutResultsHaveAnEmptyComparison(t *testing.T) {
	t.Parallel()
	report := compare(t, record{}, nil)
	require.Empty(t, report.Comparison.Results)
	require.Empty(t, report.Missing)
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection refused")
	for _, test := range []struct{ call, want string }{
		{"project go", "reading project go: connection refused"},
		{"samples go " + before, "reading the results of 1.26.0: connection refused"},
		{"samples go " + after, "reading the results of 1.26.1: connection refused"},
		{"lacking go " + before, "listing the missing results of 1.26.0: connection refused"},
		{"lacking go " + after, "listing the missing results of 1.26.1: connection refused"},
	} {
		t.Run(test.call, func(t *testing.T) {
			t.Parallel()
			report, err := results.Compare(t.Context(), record{fails: map[string]error{test.call: gone}}, nil, pair)
			require.ErrorIs(t, err, gone)
			require.EqualError(t, err, test.want)
			require.Zero(t, report)
		})
	}

	t.Run("suite", func(t *testing.T) {
		t.Parallel()
		_, err := results.Compare(t.Context(), record{suiteHash: "5f2c"}, suites{}, pair)
		require.ErrorIs(t, err, errNoSuite)
	})
}

// Results measured in turns are preferred to newer and other results of the
// same surrounding, and are judged without a variance of sessions.
func TestWhatWasMeasuredInTurnsGoesFirst(t *testing.T) {
	t.Parallel()
	gin, lo := bench.TestCase{Benchmark: "gin", Target: "x"}, bench.TestCase{Benchmark: "lo", Target: "x"}
	turns := func(s bench.Samples) []bench.Samples {
		s.InTurns = true
		return []bench.Samples{s}
	}
	r := record{
		samples: map[string][]bench.Samples{before: {times(gin, 1), times(lo, 1)}, after: {times(gin, 1.2), times(lo, 1)}},
		inTurns: map[string][]bench.Samples{before: turns(times(gin, 3)), after: turns(times(gin, 3))},
	}
	report := compare(t, r, suites{})
	require.Len(t, report.Comparison.Results, 2)
	paired, other := report.Comparison.Results[0], report.Comparison.Results[1]
	require.Equal(t, "gin", paired.Benchmark)
	require.True(t, paired.InTurns)
	require.False(t, paired.Significant, "the values of two sessions differ by 20 %%, those in turns by nothing")
	require.InDelta(t, 3, paired.A.Median, 0.1)
	require.False(t, other.InTurns)
	require.Less(t, paired.Margin/paired.A.Median, other.Margin/other.A.Median)

	only, err := results.Compare(t.Context(), r, suites{}, results.Pair{Project: "go", A: before, B: after, OnlyInTurns: true})
	require.NoError(t, err)
	require.Len(t, only.Comparison.Results, 1)
	require.Empty(t, only.Missing)
	require.Equal(t, 1, only.Comparison.Tests, "the family of tests is what is compared")

	r.fails = map[string]error{"in turns": errNoSuite}
	_, err = results.Compare(t.Context(), r, suites{}, pair)
	require.ErrorIs(t, err, errNoSuite)
}

// A surrounding in which both were measured in turns is preferred to a better
// one in which each was measured separately.
func TestASurroundingMeasuredInTurnsGoesFirst(t *testing.T) {
	t.Parallel()
	gin := bench.TestCase{Benchmark: "gin", Target: "x"}
	small := func(middle float64) bench.Samples {
		s := samples(gin, bench.WallTime, coLocated(2, "y"), middle, middle, middle)
		s.InTurns = true
		return s
	}
	report := compare(t, record{
		samples: map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 2)}},
		inTurns: map[string][]bench.Samples{before: {small(5)}, after: {small(5)}},
	}, suites{})
	require.Len(t, report.Comparison.Results, 1)
	require.True(t, report.Comparison.Results[0].InTurns)
	require.InDelta(t, 5, report.Comparison.Results[0].B.Value, 0)
}
