package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
)

var (
	base = []float64{100, 101, 102, 101.5, 100.5}
	same = []float64{100.2, 100.8, 101.9, 101.4, 100.6}
)

func times(factor float64, values []float64) []float64 {
	scaled := slices.Clone(values)
	for i := range scaled {
		scaled[i] *= factor
	}
	return scaled
}

// steadyHistory returns 30 values that alternate by the relative change, so that the threshold is that change.
func steadyHistory(change float64) []float64 {
	var values []float64
	for i := range 30 {
		values = append(values, 100*(1+change*float64(i%2)))
	}
	return values
}

func TestDecisionsAndTheirReasons(t *testing.T) {
	t.Parallel()
	f := func(name string, s stats.Series, want stats.Verdict, basis stats.Basis, why string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := compareOne(t, s)
			require.Equal(t, want, r.Verdict, r.Why)
			require.Equal(t, want == stats.Regression || want == stats.Improvement, r.Significant)
			require.Equal(t, basis, r.Basis)
			require.Contains(t, r.Why, why)
		})
	}
	regression, improvement, none, undecided := stats.Regression, stats.Improvement, stats.NoDifference, stats.Undecided
	f("20 % more time", stats.Series{A: base, B: times(1.2, base)}, regression, stats.ByTest, "p=0.0079, change +20.00 %")
	f("20 % less time", stats.Series{A: base, B: times(0.8, base)}, improvement, stats.ByTest, "change -20.00 %")
	f("20 % more throughput", stats.Series{A: base, B: times(1.2, base), Better: stats.HigherIsBetter}, improvement, stats.ByTest, "+20.00 %")
	f("20 % less throughput", stats.Series{A: base, B: times(0.8, base), Better: stats.HigherIsBetter}, regression, stats.ByTest, "-20.00 %")
	f("the same", stats.Series{A: base, B: same}, none, stats.ByTest, "p=")
	f("identical values", stats.Series{A: base, B: base}, none, stats.ByTest, "p=1.00")
	f("shown by ranks but small against the spread", stats.Series{
		A: []float64{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}, B: []float64{105, 106, 107, 108, 109, 110, 111, 112, 113, 114}},
		none, stats.ByTest, "p=0.0031, but change +5.00 % (of medians +4.78 %) is within the noise of")
	f("separate but below the default threshold",
		stats.Series{A: []float64{1000, 1000.1, 1000.2, 1000.3}, B: []float64{1001, 1001.1, 1001.2, 1001.3}},
		none, stats.ByTest, "change +0.10 % is below the threshold 0.20 % (default: 0 earlier values, 30 are needed)")
	f("below the threshold of its history", stats.Series{A: base, B: times(1.2, base), History: steadyHistory(0.25)},
		none, stats.ByTest, "is below the threshold")
	f("below the threshold of the series", stats.Series{A: base, B: times(1.2, base), Threshold: 0.3},
		none, stats.ByTest, "change +20.00 % is below the threshold 30.00 %")
	f("three values each", stats.Series{A: base[:3], B: times(2, base[:3])}, undecided, stats.ByNothing,
		"n=3 per side cannot reach p<0.05; at least 4 per side are needed")
	f("one value each", stats.Series{A: base[:1], B: times(2, base[:1])}, undecided, stats.ByNothing, "n=1 per side cannot reach")
	f("two values against many", stats.Series{A: base[:2], B: times(2, base)}, undecided, stats.ByNothing, "n=2+5 cannot reach")
	f("three values against five are enough", stats.Series{A: base[:3], B: times(2, base)}, regression, stats.ByTest, "p=0.04")
	f("two values each and a history", stats.Series{A: base[:2], B: times(1.2, base[:2]), History: steadyHistory(0.01)},
		regression, stats.ByHistory, "n=2 per side is too few for a test, but change +20.00 % exceeds the threshold")
	f("two values each, less time, and a history", stats.Series{A: base[:2], B: times(0.8, base[:2]), History: steadyHistory(0.01)},
		improvement, stats.ByHistory, "change -20.00 % exceeds the threshold")
	f("two values each within the history", stats.Series{A: base[:2], B: times(1.005, base[:2]), History: steadyHistory(0.01)},
		none, stats.ByHistory, "below the threshold")
	f("no change against a history without changes", stats.Series{A: base[:1], B: base[:1], History: steadyHistory(0)},
		none, stats.ByHistory, "no change")
	f("a size that grew by a byte", stats.Series{A: []float64{1e6}, B: []float64{1e6 + 1}, Exact: true},
		regression, stats.ByEquality, "any change counts")
	f("a size that shrank by a byte", stats.Series{A: []float64{1e6, 1e6}, B: []float64{1e6 - 1}, Exact: true},
		improvement, stats.ByEquality, "any change counts")
	f("the same size", stats.Series{A: []float64{1e6}, B: []float64{1e6}, Exact: true}, none, stats.ByEquality, "no change")
	f("a size from nothing", stats.Series{A: []float64{0}, B: []float64{5}, Exact: true}, regression, stats.ByEquality, "any change counts")
	f("an exact metric that varies", stats.Series{A: []float64{10, 11}, B: []float64{10}, Exact: true}, undecided, stats.ByNothing, "cannot reach")
	f("no values in A", stats.Series{B: base}, undecided, stats.ByNothing, "A has no values")
	f("no values in B", stats.Series{A: base}, undecided, stats.ByNothing, "B has no values")
	f("no values", stats.Series{}, undecided, stats.ByNothing, "neither side has values")
	f("not a number", stats.Series{A: base, B: []float64{1, math.NaN()}}, undecided, stats.ByNothing, "B has a value that is not a finite number")
	f("infinite", stats.Series{A: []float64{math.Inf(1)}, B: base}, undecided, stats.ByNothing, "A has a value that is not a finite number")
	f("from zero", stats.Series{A: []float64{0, 0, 0, 0, 0}, B: base}, regression, stats.ByTest, "the baseline is zero")
	f("from a negative value", stats.Series{A: times(-1, base), B: base}, regression, stats.ByTest, "the baseline is negative")
	f("further below zero", stats.Series{A: times(-1, base), B: times(-2, base)}, improvement, stats.ByTest, "the baseline is negative")
	f("zero on both sides", stats.Series{A: []float64{0, 0, 0, 0}, B: []float64{0, 0, 0, 0}}, none, stats.ByTest, "p=1.00")
	f("minima and medians disagree",
		stats.Series{A: []float64{10, 100, 101, 102, 103, 104, 105, 106}, B: []float64{9, 120, 121, 122, 123, 124, 125, 126}},
		none, stats.ByTest, "do not change in the same direction")
	f("equal minima", stats.Series{A: []float64{10, 11, 12, 13, 14, 15}, B: []float64{10, 20, 21, 22, 23, 24}},
		none, stats.ByTest, "the compared values are equal")
	f("a wild minimum does not help", stats.Series{
		A: []float64{100, 101, 100.5, 101.5, 102, 100.2}, B: []float64{120, 121, 120.5, 121.5, 100.9, 120.2}},
		none, stats.ByTest, "within the noise")
	f("medians that hardly differ", stats.Series{
		A: []float64{80, 100, 100.1, 100.2, 100.3, 100.4, 100.5, 100.6, 100.7, 100.8},
		B: []float64{100.45, 100.55, 100.65, 100.75, 100.85, 100.95, 101.05, 101.15, 101.25, 101.35}},
		none, stats.ByTest, "(of medians +0.55 %) is within the noise")
	f("the median forgives a wild minimum", stats.Series{Aggregation: stats.Median,
		A: []float64{100, 101, 100.5, 101.5, 102, 100.2, 100.1}, B: []float64{120, 121, 120.5, 121.5, 101.9, 120.2, 120.3}},
		regression, stats.ByTest, "beyond the threshold")
}

func TestAggregation(t *testing.T) {
	t.Parallel()
	a, b := []float64{10, 14, 12, 20}, []float64{15, 30, 17, 19}
	minimum := compareOne(t, stats.Series{A: a, B: b})
	require.Equal(t, 10.0, minimum.A.Value)
	require.Equal(t, 0.5, minimum.Change.Value)
	require.Equal(t, 13.0, minimum.A.Median)
	require.InDelta(t, 18.0/13-1, minimum.MedianChange.Value, 1e-12)
	middle := compareOne(t, stats.Series{A: a, B: b, Aggregation: stats.Median})
	require.Equal(t, 13.0, middle.A.Value)
	require.Equal(t, middle.MedianChange, middle.Change)
	require.Equal(t, []float64{10, 14, 12, 20}, a, "the input is left alone")
}

func TestRelativeChangeIsUndefinedWithAReason(t *testing.T) {
	t.Parallel()
	f := func(a, b float64, want stats.Change) {
		t.Helper()
		require.Equal(t, want, compareOne(t, stats.Series{A: []float64{a}, B: []float64{b}}).Change)
	}
	f(2, 3, stats.Change{Value: 0.5})
	f(2, -2, stats.Change{Value: -2})
	f(0, 0, stats.Change{})
	f(-1, -1, stats.Change{})
	f(0, 1, stats.Change{Undefined: "the baseline is zero"})
	f(-1, 1, stats.Change{Undefined: "the baseline is negative"})
	f(1e-300, 1e100, stats.Change{Undefined: "the baseline is too close to zero"})
	f(1, 1e200, stats.Change{Undefined: "B has a value that is not a finite number"})
	f(1, math.NaN(), stats.Change{Undefined: "B has a value that is not a finite number"})
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	f := func(s stats.Series, want ...string) {
		t.Helper()
		require.Equal(t, want, compareOne(t, s).Warnings)
	}
	f(stats.Series{A: base, B: same})
	f(stats.Series{A: base, B: same, EnvironmentsDiffer: true}, "the sides were measured in different environments")
	f(stats.Series{A: base[:1], B: same}, "A: n=1, nothing is known of its noise")
	f(stats.Series{Unit: "sec", A: base, B: []float64{3, 3, 3}}, "B: all 3 values are equal; a coarse clock or copied values?")
	f(stats.Series{Unit: "allocs", A: base, B: []float64{3, 3, 3}})
	f(stats.Series{A: append(slices.Clone(base), 300), B: same}, "A: 1 value of 6 beyond 10 robust standard deviations")
	f(stats.Series{A: []float64{5}, B: []float64{5}, Exact: true})
	f(stats.Series{A: []float64{5, 6}, B: []float64{5}, Exact: true}, "A: an exact metric varies, so it is treated as a noisy one")
}

// One disturbed value on each side must not hide a difference of 20 %.
func TestAnOutlierDoesNotHideADifference(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var a, b []float64
	for range 10 {
		a, b = append(a, 100+random.NormFloat64()), append(b, 120+random.NormFloat64())
	}
	a[3], b[4] = 180, 300
	r := compareOne(t, stats.Series{A: a, B: b})
	require.Equal(t, stats.Regression, r.Verdict, r.Why)
}

// many returns n series with the same values.
func many(n int, s stats.Series) []stats.Series {
	all := make([]stats.Series, n)
	for i := range all {
		all[i] = s
		all[i].Key = stats.Key{TestCase: stats.TestCase{Benchmark: fmt.Sprintf("b%03d", i)}, Metric: "time"}
	}
	return all
}

func TestConfirmationNeedsMoreValuesTheMoreIsTested(t *testing.T) {
	t.Parallel()
	compare := func(n, values int) stats.Result {
		t.Helper()
		a := make([]float64, values)
		for i := range a {
			a[i] = 100 + float64(i)/10
		}
		c, err := stats.Compare(many(n, stats.Series{A: a, B: times(1.5, a)}), stats.DefaultOptions())
		require.NoError(t, err)
		require.Equal(t, n, c.Tests)
		for _, r := range c.Results {
			require.Equal(t, c.Results[0].AdjustedP, r.AdjustedP, "equal p values stay equal")
		}
		return c.Results[0]
	}
	alone := compare(1, 5)
	require.True(t, alone.Significant)
	require.True(t, alone.Confirmed)
	require.Equal(t, alone.P, alone.AdjustedP)
	require.Empty(t, alone.WhyNotConfirmed)

	oneOfTen := compare(10, 5)
	require.True(t, oneOfTen.Significant)
	require.False(t, oneOfTen.Confirmed)
	require.InDelta(t, 10*2.0/252, oneOfTen.AdjustedP, 1e-12)
	require.Equal(t, "corrected for 10 tests, p=0.08; 6 values per side are enough to confirm", oneOfTen.WhyNotConfirmed)

	require.True(t, compare(10, 6).Confirmed)
	require.False(t, compare(500, 8).Confirmed)
	require.True(t, compare(500, 9).Confirmed)
}

func TestHolmsCorrection(t *testing.T) {
	t.Parallel()
	// Four series with raw p values 2/252, 4/252, 8/252 and 1.
	first := []float64{10, 11, 12, 13, 14}
	series := many(4, stats.Series{A: first})
	series[0].B = []float64{20, 21, 22, 23, 24}         // U = 0
	series[1].B = []float64{13.5, 21, 22, 23, 24}       // U = 1
	series[2].B = []float64{12.5, 21, 22, 23, 24}       // U = 2
	series[3].B = []float64{10.5, 11.5, 9, 12.5, 13.51} // U near the middle
	c, err := stats.Compare(series, stats.DefaultOptions())
	require.NoError(t, err)
	p := []float64{2.0 / 252, 4.0 / 252, 8.0 / 252}
	for i, want := range []float64{4 * p[0], 3 * p[1], 2 * p[2]} {
		require.InDelta(t, p[i], c.Results[i].P, 1e-12)
		require.InDelta(t, want, c.Results[i].AdjustedP, 1e-12)
	}
	require.Greater(t, c.Results[3].AdjustedP, 0.5)
}

func TestWhatIsNotTestedIsNotCorrectedFor(t *testing.T) {
	t.Parallel()
	series := many(30, stats.Series{A: []float64{1}, B: []float64{2}, Exact: true})
	series = append(series, stats.Series{Key: stats.Key{Metric: "wall"}, A: base, B: times(1.2, base)})
	c, err := stats.Compare(series, stats.DefaultOptions())
	require.NoError(t, err)
	require.Equal(t, 1, c.Tests)
	for _, r := range c.Results {
		require.True(t, r.Confirmed, r.Key)
	}
}

func TestHistoryDecidesButDoesNotConfirm(t *testing.T) {
	t.Parallel()
	r := compareOne(t, stats.Series{A: base[:1], B: times(1.1, base[:1]), History: steadyHistory(0.01)})
	require.True(t, r.Significant)
	require.False(t, r.Confirmed)
	require.Equal(t, "decided by history, not by a test", r.WhyNotConfirmed)
}

func TestRelevanceFollowsMagnitude(t *testing.T) {
	t.Parallel()
	tiny := compareOne(t, stats.Series{A: []float64{1e6}, B: []float64{1e6 + 1}, Exact: true})
	require.True(t, tiny.Significant)
	require.Equal(t, stats.VerySmall, tiny.Magnitude)
	require.False(t, tiny.Relevant)
	large := compareOne(t, stats.Series{A: base, B: times(1.2, base)})
	require.Equal(t, stats.VeryLarge, large.Magnitude)
	require.True(t, large.Relevant)
	require.InDelta(t, 100, large.Factor, 1e-6)
	fromZero := compareOne(t, stats.Series{A: []float64{0}, B: []float64{1}, Exact: true})
	require.Equal(t, stats.MagnitudeUndefined, fromZero.Magnitude)
	require.True(t, fromZero.Relevant)
}

func TestCompareRefusesWhatContradictsItself(t *testing.T) {
	t.Parallel()
	a := stats.Series{Key: stats.Key{TestCase: stats.TestCase{Benchmark: "json", Profile: "opt"}, Metric: "time"}, Unit: "ns"}
	b := a
	b.Benchmark = "go"
	_, err := stats.Compare([]stats.Series{a, a}, stats.DefaultOptions())
	require.ErrorIs(t, err, stats.ErrInconsistent)
	require.ErrorContains(t, err, "time of json/opt is given twice")
	for _, change := range []func(*stats.Series){
		func(s *stats.Series) { s.Unit = "sec" },
		func(s *stats.Series) { s.Better = stats.HigherIsBetter },
		func(s *stats.Series) { s.Exact = true },
		func(s *stats.Series) { s.Precise = true },
		func(s *stats.Series) { s.Aggregation = stats.Median },
		func(s *stats.Series) { s.Threshold = -0.1 },
		func(s *stats.Series) { s.Threshold = math.NaN() },
	} {
		other := b
		change(&other)
		_, err = stats.Compare([]stats.Series{a, other}, stats.DefaultOptions())
		require.ErrorIs(t, err, stats.ErrInconsistent)
	}
	for _, change := range []func(*stats.Options){
		func(o *stats.Options) { o.Alpha = 0 },
		func(o *stats.Options) { o.Alpha = 1 },
		func(o *stats.Options) { o.Alpha = math.NaN() },
		func(o *stats.Options) { o.Threshold = -1 },
		func(o *stats.Options) { o.Threshold = math.Inf(1) },
		func(o *stats.Options) { o.SessionVariance = math.NaN() },
		func(o *stats.Options) { o.SessionVariance = math.Inf(1) },
	} {
		options := stats.DefaultOptions()
		change(&options)
		_, err = stats.Compare([]stats.Series{a, b}, options)
		require.Error(t, err)
	}
}

// For any values a comparison ends, every number in it is finite, and swapping the sides reverses the verdict.
func FuzzCompare(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5, 1.0)
	f.Add([]byte{0, 0, 0, 0, 1, 1, 1, 1}, 4, -1.0)
	f.Add([]byte{200, 0}, 1, 1e-308)
	f.Add([]byte{1, 2, 3, 4, 250, 251, 252, 253}, 4, 1e147)
	f.Fuzz(func(t *testing.T, data []byte, split int, scale float64) {
		if len(data) > 40 || split < 0 || split > len(data) || math.IsNaN(scale) {
			t.Skip()
		}
		values := make([]float64, len(data))
		for i, b := range data {
			values[i] = float64(b) * scale
		}
		forward := compareOne(t, stats.Series{A: values[:split], B: values[split:]})
		backward := compareOne(t, stats.Series{A: values[split:], B: values[:split]})
		require.InDelta(t, forward.P, backward.P, 1e-9)
		require.NotEmpty(t, forward.Why)
		for _, v := range []float64{forward.P, forward.AdjustedP, forward.Change.Value, forward.Shift.Value,
			forward.Delta, forward.Factor, forward.Margin, forward.A.Spread, forward.A.Median} {
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%+v", forward)
		}
		if forward.Change.Defined() && backward.Change.Defined() && forward.Significant && backward.Significant {
			require.NotEqual(t, forward.Verdict, backward.Verdict)
		}
		there, back := signFrom(forward, 0.01), signFrom(backward, 0.01)
		require.Equal(t, there.Blind == "", back.Blind == "")
		require.InDelta(t, there.Sees, back.Sees, 1e-9*there.Sees, "seen from either side")
		require.False(t, math.IsNaN(there.Sees), "%+v", forward)
	})
}

func TestALineIsShownWithItsBenchmark(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]stats.Key{
		"parser":             {TestCase: stats.TestCase{Benchmark: "parser"}},
		"parser Parse/small": {TestCase: stats.TestCase{Benchmark: "parser"}, Line: "Parse/small"},
		"Parse/small":        {TestCase: stats.TestCase{Benchmark: "Parse"}, Line: "Parse/small"},
		"lexer.Parse/a.b/c":  {TestCase: stats.TestCase{Benchmark: "lexer.Parse"}, Line: "Parse/a.b/c"},
		"lexer.Parse":        {TestCase: stats.TestCase{Benchmark: "lexer.Parse"}, Line: "Parse"},
		"Parse Parser/small": {TestCase: stats.TestCase{Benchmark: "Parse"}, Line: "Parser/small"},
		"Parse Parse-2":      {TestCase: stats.TestCase{Benchmark: "Parse"}, Line: "Parse-2"},
	} {
		require.Equal(t, want, k.Name())
	}
}
