package results_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/verdict"
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
	sessions  []results.Session
	decided   []store.Comparison
	noise     []store.SeriesNoise
	lacking   map[string][]bench.MissingResult
	fails     map[string]error
}

func (r record) Project(_ context.Context, name string) (store.Project, error) {
	return store.Project{Name: name, SuiteHash: r.suiteHash}, r.fails["project "+name]
}

func (r record) SamplesOf(_ context.Context, project, tag string) ([]bench.Samples, error) {
	return r.samples[tag], r.fails["samples "+project+" "+tag]
}

func (r record) SessionsInTurns(context.Context, string, string, string) ([]results.Session, error) {
	return r.sessions, r.fails["in turns"]
}

func (r record) Comparisons(context.Context, string, string, string) ([]store.Comparison, error) {
	return slices.Clone(r.decided), r.fails["comparisons"]
}

func (r record) NotableNoise(_ context.Context, _ string, targets []bench.Target, _ []bench.TestCase) ([]store.SeriesNoise, error) {
	elsewhere := func(n store.SeriesNoise) bool { return !slices.Contains(targets, n.TestCase.Target) }
	return slices.DeleteFunc(slices.Clone(r.noise), elsewhere), r.fails["noise"]
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
	compared, err := results.Compare(t.Context(), r, s, pair)
	require.NoError(t, err)
	return compared
}

func TestStoredResultsAloneRaiseSuspicions(t *testing.T) {
	t.Parallel()
	// A project without a suite, such as an ad-hoc one: no suite is loaded.
	compared := compare(t, record{samples: map[string][]bench.Samples{
		before: {times(gin, 1), times(hugo, 2)},
		after:  {times(gin, 1.2), times(hugo, 2)},
	}}, nil)

	require.Len(t, compared.Rows, 2)
	slower, same := compared.Rows[0], compared.Rows[1]
	require.Equal(t, "gin", slower.Benchmark)
	require.True(t, slower.Is(verdict.Undecided), "a fifth slower, but in another session")
	require.NotEmpty(t, slower.Suspicion)
	require.InDelta(t, 0.2, slower.Change.Value, 1e-9)
	require.True(t, same.Is(verdict.NoSuspicion))
	require.GreaterOrEqual(t, same.Sees, 0.01)
	require.Contains(t, compared.Hint, "benchloom submit --adhoc go 1.26.1 --vs 1.26.0 --benchmark gin")

	summary := compared.Summary()
	require.Equal(t, "1 undecided; 1 without suspicion (would have seen ≥ 1.0 %, median)", summary.Line)
	require.Empty(t, compared.Missing)

	equal := compare(t, record{samples: map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 1)}}}, nil)
	require.Empty(t, equal.Hint, "there is nothing to decide")
}

// Exact values need no second look.
func TestASmallerBinaryIsAnImprovement(t *testing.T) {
	t.Parallel()
	binary := func(bytes float64) bench.Samples { return samples(gin, "size:binary", alone(4, "x"), bytes) }
	for name, c := range map[string]struct {
		a, b      float64
		kind      verdict.Kind
		direction report.Direction
	}{
		"one byte less": {1_000_001, 1_000_000, verdict.Changed, report.Improvement},
		"one byte more": {1_000_000, 1_000_001, verdict.Changed, report.Regression},
		"equal":         {1_000_000, 1_000_000, verdict.NoDifference, ""},
		"from nothing":  {0, 10, verdict.Changed, report.Regression},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := compare(t, record{samples: map[string][]bench.Samples{before: {binary(c.a)}, after: {binary(c.b)}}}, nil).Rows[0]
			require.True(t, row.Is(c.kind), row.Reason)
			require.Equal(t, c.direction, row.Direction)
		})
	}
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
	compared := compare(t, record{suiteHash: "5f2c", samples: map[string][]bench.Samples{before: measured, after: measured}},
		suites{"5f2c": said})

	require.Len(t, compared.Rows, 3)
	for i, want := range []struct {
		benchmark, metric string
		category          stats.Category
		value             float64
	}{
		{"hugo", "MB/s", stats.Secondary, 9}, // the best value by default
		{"gin", "wall-time", stats.Primary, 2},
		{"hugo", "wall-time", stats.Secondary, 2},
	} {
		got := compared.Rows[i]
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
	compared := compare(t, record{
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
	}, compared.Missing)

	// Incomparable results are not a series, but they were measured.
	require.Len(t, compared.Rows, 1)
	require.Equal(t, []stats.TestCase{{Benchmark: "hugo", Profile: "build", Scenario: "full", Backend: "gc", Target: string(linux)}},
		compared.Summary().Missing)
	require.Empty(t, compared.Summary().Added)
}

func TestWhatTheBaselineLacksIsNamedWithTheBaselinesTag(t *testing.T) {
	t.Parallel()
	compared := compare(t, record{
		samples: map[string][]bench.Samples{before: {times(gin, 1)}, after: {times(gin, 1), times(hugo, 1)}},
		// The other side may lack it as well, for example in another metric.
		lacking: map[string][]bench.MissingResult{after: {{TestCase: hugo, Reason: "one of two jobs failed"}}},
	}, nil)
	require.Equal(t, []results.Missing{
		{Tag: after, TestCase: hugo, Reason: "one of two jobs failed"},
		{Tag: before, TestCase: hugo, Reason: "no result"},
	}, compared.Missing)
	require.Empty(t, compared.Summary().Missing)
	require.Len(t, compared.Summary().Added, 1)
	require.Equal(t, "hugo", compared.Summary().Added[0].Benchmark)
}

func TestArtifactsWithoutResultsHaveAnEmptyComparison(t *testing.T) {
	t.Parallel()
	compared := compare(t, record{}, nil)
	require.Empty(t, compared.Rows)
	require.Empty(t, compared.Missing)
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
		{"in turns", "reading the results measured in turns: connection refused"},
		{"comparisons", "reading the stored comparisons: connection refused"},
	} {
		t.Run(test.call, func(t *testing.T) {
			t.Parallel()
			compared, err := results.Compare(t.Context(), record{fails: map[string]error{test.call: gone}}, nil, pair)
			require.ErrorIs(t, err, gone)
			require.EqualError(t, err, test.want)
			require.Zero(t, compared)
		})
	}

	t.Run("suite", func(t *testing.T) {
		t.Parallel()
		_, err := results.Compare(t.Context(), record{suiteHash: "5f2c"}, suites{}, pair)
		require.ErrorIs(t, err, errNoSuite)
	})
}

// session returns pairs of which B takes factor times as long as A.
func session(tc bench.TestCase, where bench.Surrounding, factor float64, pairs int) results.Session {
	s := results.Session{TestCase: tc, Metric: bench.WallTime, Surrounding: where}
	for i := range pairs {
		a := 3 * (1 + 0.001*float64(i%5-2))
		s.A, s.B, s.Disturbed = append(s.A, a), append(s.B, factor*a*(1+0.0005*float64(i%3-1))), append(s.Disturbed, false)
	}
	return s
}

// What was measured in turns stands beside the stored results, and the verdict rests on it.
func TestWhatWasMeasuredInTurnsDecides(t *testing.T) {
	t.Parallel()
	lo := bench.TestCase{Benchmark: "lo", Target: "x"}
	where := alone(4, "x")
	r := record{
		samples: map[string][]bench.Samples{before: {times(gin, 1), times(hugo, 1), times(lo, 1)}, after: {times(gin, 1.2), times(hugo, 1), times(lo, 1)}},
		sessions: []results.Session{
			session(gin, where, 1, 6), session(gin, where, 1, 8), session(gin, where, 1, 8),
			session(hugo, where, 1.05, 6), session(hugo, where, 1.05, 8), session(hugo, where, 1.05, 8),
		},
	}
	compared := compare(t, r, suites{})
	require.Len(t, compared.Rows, 3)
	require.Equal(t, 2, compared.Family)
	same, slower, other := compared.Rows[0], compared.Rows[1], compared.Rows[2]
	require.True(t, same.Is(verdict.NoDifference), "two sessions differ by 20 %%, pairs by nothing: %s", same.Reason)
	require.InDelta(t, 0.2, same.Change.Value, 1e-9, "history is described")
	require.InDelta(t, 0, same.Turns.Change, 1e-3, "beside the pairs")
	require.Equal(t, []int{22, 3, 10}, []int{same.Turns.Pairs, same.Turns.Sessions, same.A.N})
	require.True(t, slower.Is(verdict.Changed), slower.Reason)
	require.Equal(t, report.Regression, slower.Direction)
	require.True(t, other.Is(verdict.NoSuspicion))
	require.Nil(t, other.Turns)
}

func TestArtifactsMayHaveBeenMeasuredOnlyInTurns(t *testing.T) {
	t.Parallel()
	compared := compare(t, record{
		samples:  map[string][]bench.Samples{before: {times(gin, 1)}},
		sessions: []results.Session{session(gin, alone(4, "x"), 1.1, 22)},
	}, nil)
	require.Len(t, compared.Rows, 1)
	require.True(t, compared.Rows[0].OnlyInTurns)
	require.InDelta(t, 3, compared.Rows[0].A.Median, 0.01)
	require.Empty(t, compared.Missing, "the pairs are a result of both")
}

// Pairs of one series come from one place.
func TestPairsOfDifferentSurroundingsAreNotMixed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second results.Session
		want          float64
	}{
		"the one with more pairs":       {session(gin, alone(8, "x"), 1, 6), session(gin, coLocated(2, "y"), 1.1, 8), 0.1},
		"alone before co-located":       {session(gin, coLocated(8, "x"), 1, 8), session(gin, alone(2, "y"), 1.1, 8), 0.1},
		"the larger of the others":      {session(gin, alone(2, "x"), 1, 8), session(gin, alone(4, "x"), 1.1, 8), 0.1},
		"whichever of them comes first": {session(gin, alone(4, "x"), 1.1, 8), session(gin, alone(2, "x"), 1, 8), 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := compare(t, record{sessions: []results.Session{c.first, c.second}}, nil).Rows[0]
			require.Equal(t, []int{8, 1}, []int{row.Turns.Pairs, row.Turns.Sessions})
			require.InDelta(t, c.want, row.Turns.Change, 1e-3)
		})
	}
}

// Hiding rows hides what is missing of them, and changes nothing else.
func TestSelectHidesAndChangesNothing(t *testing.T) {
	t.Parallel()
	compared := compare(t, record{samples: map[string][]bench.Samples{
		before: {times(gin, 1), times(hugo, 1)}, after: {times(gin, 1.2)},
	}}, nil)
	require.Len(t, compared.Missing, 1)
	only := func(benchmark string) results.Report {
		return compared.Select(func(r report.Row) bool { return r.Benchmark == benchmark }, func(tc bench.TestCase) bool { return tc.Benchmark == benchmark })
	}
	ofGin, ofHugo := only("gin"), only("hugo")
	require.Equal(t, compared.Rows, ofGin.Rows)
	require.Empty(t, ofGin.Missing)
	require.Empty(t, ofGin.Summary().Missing)
	require.Empty(t, ofHugo.Rows)
	require.Equal(t, compared.Missing, ofHugo.Missing)
	require.Equal(t, 1, ofHugo.Summary().Hidden.Undecided)
	require.Equal(t, compared.Missing, compared.Select(nil, nil).Missing)
}
