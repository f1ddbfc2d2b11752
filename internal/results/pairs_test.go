package results_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/suite"
)

const linux = bench.Target("x86_64-unknown-linux-gnu")

var (
	gin  = bench.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}
	hugo = bench.TestCase{Benchmark: "hugo", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}
)

func alone(class bench.SizeClass, hardware string) bench.Surrounding {
	return bench.Surrounding{SizeClass: class, HardwareID: hardware}
}

func coLocated(class bench.SizeClass, hardware string) bench.Surrounding {
	return bench.Surrounding{SizeClass: class, HardwareID: hardware, CoLocated: true}
}

func samples(tc bench.TestCase, metric bench.Metric, where bench.Surrounding, values ...float64) bench.Samples {
	return bench.Samples{TestCase: tc, Metric: metric, Kind: bench.KindCompileTime, Surrounding: where, Values: values}
}

// measuredIn returns one wall-time result for each surrounding: the value in
// the nth is first + n.
func measuredIn(first float64, where ...bench.Surrounding) []bench.Samples {
	var out []bench.Samples
	for i, w := range where {
		out = append(out, samples(gin, bench.WallTime, w, first+float64(i)))
	}
	return out
}

// facts holds a suite's settings by metric and benchmark.
type facts struct {
	aggregation map[bench.Metric]suite.Aggregation
	category    map[string]bench.Category
	exact       []bench.Metric
}

func (f facts) Exact(metric bench.Metric) bool {
	return metric.Exact() || slices.Contains(f.exact, metric)
}

func (f facts) Category(benchmark string) bench.Category {
	return cmp.Or(f.category[benchmark], bench.Primary)
}

func (f facts) Aggregation(metric bench.Metric) suite.Aggregation {
	return cmp.Or(f.aggregation[metric], suite.AggregateMin)
}

func TestOnlyTheSameSurroundingCompares(t *testing.T) {
	t.Parallel()
	const noPair = 0
	tests := []struct {
		name string
		a, b []bench.Surrounding
		// The numbers, from 1, of the surroundings that are compared.
		wantA, wantB int
	}{
		{"the same", []bench.Surrounding{alone(4, "x")}, []bench.Surrounding{alone(4, "x")}, 1, 1},
		{"co-located both", []bench.Surrounding{coLocated(4, "x")}, []bench.Surrounding{coLocated(4, "x")}, 1, 1},
		{"co-located never with alone", []bench.Surrounding{alone(4, "x")}, []bench.Surrounding{coLocated(4, "x")}, noPair, noPair},
		{"alone never with co-located", []bench.Surrounding{coLocated(4, "x")}, []bench.Surrounding{alone(4, "x")}, noPair, noPair},
		{"another size class", []bench.Surrounding{alone(4, "x")}, []bench.Surrounding{alone(8, "x")}, noPair, noPair},
		{"other hardware", []bench.Surrounding{alone(4, "x")}, []bench.Surrounding{alone(4, "y")}, noPair, noPair},
		{"the shared one of several", []bench.Surrounding{alone(8, "x"), alone(4, "x")}, []bench.Surrounding{alone(4, "x"), alone(2, "x")}, 2, 1},
		{"alone before co-located",
			[]bench.Surrounding{coLocated(4, "x"), alone(4, "x")}, []bench.Surrounding{alone(4, "x"), coLocated(4, "x")}, 2, 1},
		{"alone on a small class before co-located on a large one",
			[]bench.Surrounding{coLocated(8, "x"), alone(2, "x")}, []bench.Surrounding{coLocated(8, "x"), alone(2, "x")}, 2, 2},
		{"the larger class", []bench.Surrounding{alone(4, "x"), alone(8, "x"), alone(2, "x")}, []bench.Surrounding{alone(2, "x"), alone(4, "x"), alone(8, "x")}, 2, 3},
		{"the larger class, both co-located",
			[]bench.Surrounding{coLocated(4, "x"), coLocated(8, "x")}, []bench.Surrounding{coLocated(8, "x"), coLocated(4, "x")}, 2, 1},
		{"the larger class before the first hardware", []bench.Surrounding{alone(4, "a"), alone(8, "z")}, []bench.Surrounding{alone(4, "a"), alone(8, "z")}, 2, 2},
		{"always the same hardware of two", []bench.Surrounding{alone(4, "y"), alone(4, "x")}, []bench.Surrounding{alone(4, "x"), alone(4, "y")}, 2, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			series, unpaired := results.Pairs(facts{}, measuredIn(101, test.a...), measuredIn(201, test.b...))
			if test.wantA == noPair {
				require.Empty(t, series)
				require.Len(t, unpaired, 1)
				require.Equal(t, gin, unpaired[0].TestCase)
				require.True(t, unpaired[0].B)
				return
			}
			require.Empty(t, unpaired)
			require.Len(t, series, 1)
			require.Equal(t, []float64{100 + float64(test.wantA)}, series[0].A)
			require.Equal(t, []float64{200 + float64(test.wantB)}, series[0].B)
		})
	}
}

// Random records against the rule: of the surroundings that both sides have,
// none ranks before the chosen one.
func TestPairingTakesTheBestSharedSurroundingWhicheverSideComesFirst(t *testing.T) {
	t.Parallel()
	var all []bench.Surrounding
	for _, class := range []bench.SizeClass{2, 4, 8} {
		for _, hardware := range []string{"x", "y"} {
			all = append(all, alone(class, hardware), coLocated(class, hardware))
		}
	}
	random := rand.New(rand.NewPCG(21, 22))
	some := func() []bench.Surrounding {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return slices.Clone(all[:1+random.IntN(5)])
	}
	pairs, none := 0, 0
	for range 2000 {
		a, b := some(), some()
		var best *bench.Surrounding
		for _, s := range a {
			if slices.Contains(b, s) && (best == nil || rank(s) < rank(*best)) {
				best = &s
			}
		}
		series, unpaired := results.Pairs(facts{}, measuredIn(0, a...), measuredIn(0, b...))
		mirrored, _ := results.Pairs(facts{}, measuredIn(0, b...), measuredIn(0, a...))
		if best == nil {
			none++
			require.Empty(t, series)
			require.Empty(t, mirrored)
			require.Len(t, unpaired, 1)
			continue
		}
		pairs++
		require.Empty(t, unpaired)
		require.Len(t, series, 1)
		require.Len(t, mirrored, 1)
		require.Equal(t, *best, a[int(series[0].A[0])])
		require.Equal(t, *best, b[int(series[0].B[0])])
		require.Equal(t, series[0].A, mirrored[0].B)
		require.Equal(t, series[0].B, mirrored[0].A)
	}
	// The test is only meaningful if both happen.
	require.Greater(t, pairs, 200)
	require.Greater(t, none, 200)
}

// rank returns a text by which surroundings sort, the best first.
func rank(s bench.Surrounding) string {
	return fmt.Sprintf("%t %04d %s", s.CoLocated, bench.MaxSizeClass-s.SizeClass, s.HardwareID)
}

func TestWhatHasNoCounterpartIsNamedWithItsReason(t *testing.T) {
	t.Parallel()
	const noResult = "no result"
	here := alone(4, "x")
	tests := []struct {
		name   string
		a, b   []bench.Samples
		series int
		want   []results.Unpaired
	}{
		{name: "nothing on either side"},
		{
			name: "B was not measured",
			a:    []bench.Samples{samples(gin, bench.WallTime, here, 1), samples(gin, bench.MaxRSS, here, 1)},
			want: []results.Unpaired{{TestCase: gin, B: true, Reason: noResult}},
		},
		{
			name: "A was not measured",
			b:    []bench.Samples{samples(gin, bench.WallTime, here, 1), samples(gin, bench.MaxRSS, here, 1)},
			want: []results.Unpaired{{TestCase: gin, Reason: noResult}},
		},
		{
			name:   "each side has a test case of its own, in the order of test cases",
			a:      []bench.Samples{samples(hugo, bench.WallTime, here, 1)},
			b:      []bench.Samples{samples(gin, bench.WallTime, here, 1)},
			want:   []results.Unpaired{{TestCase: gin, Reason: noResult}, {TestCase: hugo, B: true, Reason: noResult}},
			series: 0,
		},
		{
			name:   "a single metric more is no missing test case",
			a:      []bench.Samples{samples(gin, bench.WallTime, here, 1), samples(gin, bench.Instructions, here, 1)},
			b:      []bench.Samples{samples(gin, bench.WallTime, here, 1), samples(gin, bench.MaxRSS, here, 1)},
			series: 1,
		},
		{
			name: "only elsewhere",
			a:    []bench.Samples{samples(gin, bench.WallTime, alone(4, "x"), 1)},
			b:    []bench.Samples{samples(gin, bench.WallTime, coLocated(8, "y"), 1)},
			want: []results.Unpaired{{TestCase: gin, B: true, Reason: "measured only in another surrounding" +
				" (size class 8 on hardware y, co-located instead of size class 4 on hardware x), which does not compare"}},
		},
		{
			name: "elsewhere for every metric is said once",
			a:    []bench.Samples{samples(gin, bench.WallTime, here, 1), samples(gin, bench.MaxRSS, here, 1)},
			b:    []bench.Samples{samples(gin, bench.WallTime, alone(2, "x"), 1), samples(gin, bench.MaxRSS, alone(2, "x"), 1)},
			want: []results.Unpaired{{TestCase: gin, B: true, Reason: "measured only in another surrounding" +
				" (size class 2 on hardware x instead of size class 4 on hardware x), which does not compare"}},
		},
		{
			name: "several surroundings are listed in a fixed order",
			a:    measuredIn(1, alone(4, "y"), alone(4, "x")),
			b:    measuredIn(1, alone(2, "y"), alone(2, "x")),
			want: []results.Unpaired{{TestCase: gin, B: true, Reason: "measured only in another surrounding" +
				" (size class 2 on hardware x; size class 2 on hardware y instead of size class 4 on hardware x; size class 4 on hardware y)," +
				" which does not compare"}},
		},
		{
			name:   "one compares, the other does not",
			a:      []bench.Samples{samples(gin, bench.WallTime, here, 1), samples(hugo, bench.WallTime, here, 1)},
			b:      []bench.Samples{samples(gin, bench.WallTime, here, 2)},
			series: 1,
			want:   []results.Unpaired{{TestCase: hugo, B: true, Reason: noResult}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			series, unpaired := results.Pairs(facts{}, test.a, test.b)
			require.Len(t, series, test.series)
			require.Equal(t, test.want, unpaired)
		})
	}
}

// Another target, backend or scenario is another test case, even if the rest is
// equal.
func TestEveryPartOfATestCaseKeepsSeriesApart(t *testing.T) {
	t.Parallel()
	here := alone(4, "x")
	for part, change := range map[string]func(*bench.TestCase){
		"benchmark": func(tc *bench.TestCase) { tc.Benchmark = "hugo" },
		"profile":   func(tc *bench.TestCase) { tc.Profile = "check" },
		"scenario":  func(tc *bench.TestCase) { tc.Scenario = "incr-full" },
		"backend":   func(tc *bench.TestCase) { tc.Backend = "gccgo" },
		"target":    func(tc *bench.TestCase) { tc.Target = "aarch64-apple-darwin" },
	} {
		other := gin
		change(&other)
		series, unpaired := results.Pairs(facts{},
			[]bench.Samples{samples(gin, bench.WallTime, here, 1)}, []bench.Samples{samples(other, bench.WallTime, here, 1)})
		require.Empty(t, series, part)
		require.ElementsMatch(t, []results.Unpaired{
			{TestCase: gin, B: true, Reason: "no result"}, {TestCase: other, Reason: "no result"},
		}, unpaired, part)
	}
}

func TestUnitsAndDirectionsFollowFromTheMetric(t *testing.T) {
	t.Parallel()
	tests := []struct {
		metric         bench.Metric
		unit           string
		better         stats.Better
		exact, precise bool
	}{
		{metric: bench.WallTime, unit: "sec"},
		{metric: bench.CPUTime, unit: "sec"},
		{metric: bench.UserTime, unit: "sec"},
		{metric: bench.SystemTime, unit: "sec"},
		{metric: bench.MaxRSS, unit: "B"},
		{metric: bench.MinorFaults},
		{metric: bench.VoluntarySwitches},
		{metric: bench.Cycles},
		{metric: bench.Instructions, precise: true},
		{metric: "size:binary", unit: "B", exact: true},
		{metric: "ns/op", unit: "ns"},
		{metric: "B/op", unit: "B"},
		{metric: "allocs/op", unit: "allocs"},
		{metric: "MB/s", better: stats.HigherIsBetter},
		{metric: "requests/s", better: stats.HigherIsBetter},
		{metric: "p99"},
	}
	for _, test := range tests {
		t.Run(string(test.metric), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.unit, results.Unit(test.metric))

			here := alone(4, "x")
			series, _ := results.Pairs(facts{},
				[]bench.Samples{samples(gin, test.metric, here, 3, 1, 2)}, []bench.Samples{samples(gin, test.metric, here, 5, 4)})
			require.Equal(t, []stats.Series{{
				Key: stats.Key{
					TestCase: stats.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: string(linux)},
					Metric:   string(test.metric),
				},
				Unit: test.unit, Better: test.better, Exact: test.exact, Precise: test.precise,
				Category: stats.Primary, A: []float64{3, 1, 2}, B: []float64{5, 4},
			}}, series)
		})
	}
}

// A line is shown with its benchmark, and its metric with those of other benchmarks.
func TestEachLineOfABenchmarkIsASeries(t *testing.T) {
	t.Parallel()
	here := alone(4, "x")
	small, large := samples(gin, "Parse/small MB/s", here, 3), samples(gin, "Parse/large MB/s", here, 5)
	series, unpaired := results.Pairs(facts{}, []bench.Samples{small, large}, []bench.Samples{large, small})
	require.Empty(t, unpaired, "the test case is not missing")
	require.Len(t, series, 2)
	for i, line := range []string{"Parse/large", "Parse/small"} {
		require.Equal(t, stats.Key{
			TestCase: stats.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: string(linux)},
			Line:     line, Metric: "MB/s",
		}, series[i].Key)
		require.Equal(t, stats.HigherIsBetter, series[i].Better)
		require.Equal(t, series[i].A, series[i].B)
	}
}

func TestDeclaredMetricsAreExact(t *testing.T) {
	t.Parallel()
	measured := []bench.Samples{samples(gin, "allocs/op", alone(4, "x"), 1), samples(gin, "ns/op", alone(4, "x"), 1), samples(gin, "size:binary", alone(4, "x"), 1)}
	series, _ := results.Pairs(facts{exact: []bench.Metric{"allocs/op"}}, measured, measured)
	exact := map[string]bool{}
	for _, s := range series {
		exact[s.Metric] = s.Exact
	}
	require.Equal(t, map[string]bool{"allocs/op": true, "ns/op": false, "size:binary": true}, exact)
}

func TestAggregationAndCategoryAreTheSuites(t *testing.T) {
	t.Parallel()
	said := facts{
		aggregation: map[bench.Metric]suite.Aggregation{
			"least": suite.AggregateMin, "middle": suite.AggregateMedian, "mean": suite.AggregateMean, "most": suite.AggregateMax,
		},
		category: map[string]bench.Category{"gin": bench.Primary, "hugo": bench.Secondary},
	}
	var measured []bench.Samples
	for metric := range said.aggregation {
		measured = append(measured, samples(gin, metric, alone(4, "x"), 1), samples(hugo, metric, alone(4, "x"), 1))
	}
	series, unpaired := results.Pairs(said, measured, measured)
	require.Empty(t, unpaired)
	require.Len(t, series, 8)

	want := map[string]stats.Aggregation{"least": stats.Minimum, "middle": stats.Median, "mean": stats.Mean, "most": stats.Maximum}
	category := map[string]stats.Category{"gin": stats.Primary, "hugo": stats.Secondary}
	for _, s := range series {
		require.Equal(t, want[s.Metric], s.Aggregation, s.Metric)
		require.Equal(t, category[s.Benchmark], s.Category, s.Benchmark)
	}
}

func TestStoredResultsOfTwoSegmentsDoNotCompare(t *testing.T) {
	t.Parallel()
	in := func(segment bench.Segment, values ...float64) bench.Samples {
		s := samples(gin, bench.WallTime, alone(4, "x"), values...)
		s.Segment = segment
		return s
	}
	const former, present = "6.1|performance||none||", "6.8|performance||none||"
	series, unpaired := results.Pairs(facts{}, []bench.Samples{in(former, 1)}, []bench.Samples{in(present, 2)})
	require.Empty(t, series)
	require.Equal(t, []results.Unpaired{{
		TestCase: gin, B: true,
		Reason: "measured under another kernel: 6.1 and 6.8; measure both in turns (submit --vs) to compare them",
	}}, unpaired)

	for _, a := range []bench.Segment{present, ""} { // unknown settings differ from nothing
		series, unpaired := results.Pairs(facts{}, []bench.Samples{in(a, 1)}, []bench.Samples{in(present, 2)})
		require.Empty(t, unpaired)
		require.Len(t, series, 1)
	}
}

// Series pair alike by the IDs of the record and by their names, also if those of one side are not known.
func TestPairsByIDAreThoseByName(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 50))
	for range 200 {
		var sides [2][]bench.Samples
		for i := range sides {
			for series := range 12 {
				tc := bench.TestCase{Benchmark: fmt.Sprint("b", series/2), Target: linux}
				for _, where := range []bench.Surrounding{alone(4, "x"), alone(4, "y"), coLocated(4, "x")} {
					if random.IntN(3) > 0 {
						continue
					}
					s := samples(tc, []bench.Metric{bench.WallTime, bench.MaxRSS}[series%2], where, random.Float64())
					s.Series, s.Segment = int64(series+1), bench.Segment([]string{"6.1|", "6.8|"}[random.IntN(2)])
					sides[i] = append(sides[i], s)
				}
			}
		}
		series, unpaired := results.Pairs(facts{}, sides[0], sides[1])
		for _, side := range sides {
			for i := range side {
				side[i].Series = 0
			}
			named, lacking := results.Pairs(facts{}, sides[0], sides[1])
			require.Equal(t, series, named)
			require.Equal(t, unpaired, lacking)
		}
	}
}

// Samples come in the order of their series if all were measured in one surrounding: pairs are the same in any other.
func TestPairsDoNotDependOnTheOrderOfSamples(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(21, 23))
	where := alone(2, "x")
	some := func() (list []bench.Samples) {
		id := int64(0)
		for _, benchmark := range []string{"a", "b", "c"} {
			for _, scenario := range []string{"full", "incr"} {
				for _, metric := range []bench.Metric{"instructions:u", "max-rss", "wall-time"} {
					if id++; random.IntN(5) > 0 {
						one := samples(bench.TestCase{Benchmark: benchmark, Scenario: scenario, Target: "t"}, metric, where, random.Float64())
						if random.IntN(4) > 0 { // others are not packed
							one.Series = id
						}
						list = append(list, one)
					}
				}
			}
		}
		return list
	}
	shuffled := func(list []bench.Samples) []bench.Samples {
		list = slices.Clone(list)
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list
	}
	for range 300 {
		a, b := some(), some()
		series, unpaired := results.Pairs(facts{}, a, b)
		again, unpairedAgain := results.Pairs(facts{}, shuffled(a), shuffled(b))
		require.Equal(t, series, again)
		require.Equal(t, unpaired, unpairedAgain)
	}
}
