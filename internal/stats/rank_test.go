package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
)

// compareOne compares a single series with the default options.
func compareOne(t *testing.T, s stats.Series) stats.Result {
	t.Helper()
	if s.Metric == "" {
		s.Metric = "time"
	}
	c, err := stats.Compare([]stats.Series{s}, stats.DefaultOptions())
	require.NoError(t, err)
	return c.Results[0]
}

// Values of the exact distribution of U: 2 / C(n+m, n) for complete separation, and tables of Mann and Whitney.
func TestRankTestAgreesWithKnownValues(t *testing.T) {
	t.Parallel()
	f := func(name string, a, b []float64, want float64) {
		t.Helper()
		r := compareOne(t, stats.Series{A: a, B: b})
		require.InDelta(t, want, r.P, 1e-9, name)
		r = compareOne(t, stats.Series{A: b, B: a})
		require.InDelta(t, want, r.P, 1e-9, "%s, sides swapped", name)
	}
	f("5 against 5, separate", []float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0/252)
	f("4 against 4, separate", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.0/70)
	f("4 against 4, U = 1", []float64{1, 2, 3, 5}, []float64{4, 6, 7, 8}, 4.0/70)
	f("5 against 5, U = 2", []float64{1, 2, 3, 4, 7}, []float64{5, 6, 8, 9, 10}, 8.0/252)
	f("3 against 5, separate", []float64{1, 2, 3}, []float64{4, 5, 6, 7, 8}, 2.0/56)
	f("4 against 5, interleaved", []float64{2, 4, 6, 8}, []float64{1, 3, 5, 7, 9}, 1)
	f("all equal", []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1)
	f("ties inside the sides only", []float64{1, 1, 1, 1, 1}, []float64{2, 2, 2, 2, 2}, 2.0/252)
}

func TestRankTestWithTiesAgreesWithAllArrangements(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n, m := 4+random.IntN(3), 4+random.IntN(3)
		values := make([]float64, n+m)
		for i := range values {
			values[i] = float64(1 + random.IntN(5))
		}
		got := compareOne(t, stats.Series{A: values[:n], B: values[n:]}).P
		require.InDelta(t, allArrangements(values, n), got, 1e-9, "%v, first %d", values, n)
	}
}

// allArrangements counts, over every choice of n of the values, how often U is as extreme as for the first n.
func allArrangements(values []float64, n int) float64 {
	u := func(inA func(i int) bool) float64 {
		sum := 0.0
		for i, x := range values {
			for j, y := range values {
				if inA(i) && !inA(j) {
					switch {
					case y > x:
						sum++
					case y == x:
						sum += 0.5
					}
				}
			}
		}
		return sum
	}
	observed := u(func(i int) bool { return i < n })
	total, low, high := 0, 0, 0
	for set := range 1 << len(values) {
		size := 0
		for i := range values {
			size += set >> i & 1
		}
		if size != n {
			continue
		}
		total++
		other := u(func(i int) bool { return set>>i&1 == 1 })
		if other <= observed {
			low++
		}
		if other >= observed {
			high++
		}
	}
	return math.Min(1, 2*float64(min(low, high))/float64(total))
}

func TestRankTestOfManyValues(t *testing.T) {
	t.Parallel()
	var a, b []float64
	for i := range 60 {
		a, b = append(a, 100+float64(i)), append(b, 115.25+float64(i))
	}
	r := compareOne(t, stats.Series{A: a, B: b})
	require.Less(t, r.P, 0.001)
	require.NotNil(t, r.Interval)
	require.Positive(t, r.Interval.Low)
	require.Less(t, r.Interval.High, 0.25)
	same := slices.Repeat([]float64{1}, 60)
	require.Equal(t, 1.0, compareOne(t, stats.Series{A: same, B: same}).P)
}

// With two different values only, U is 30 times the number of larger ones in B, which is hypergeometric: its variance is
// 30/4 * 30/59 where half of 60 values are larger. Here it is 20, and 15 are expected.
func TestRankTestOfManyTiedValues(t *testing.T) {
	t.Parallel()
	a := slices.Concat(slices.Repeat([]float64{1}, 20), slices.Repeat([]float64{2}, 10))
	b := slices.Concat(slices.Repeat([]float64{1}, 10), slices.Repeat([]float64{2}, 20))
	deviation := 30 * math.Sqrt(30.0/4*30/59)
	want := math.Erfc((30*(20-15) - 0.5) / deviation / math.Sqrt2)
	require.InDelta(t, want, compareOne(t, stats.Series{A: a, B: b}).P, 1e-9)
	require.InDelta(t, want, compareOne(t, stats.Series{A: b, B: a}).P, 1e-9)
}

func TestMinSamples(t *testing.T) {
	t.Parallel()
	require.Equal(t, 4, stats.MinSamples(0.05))
	require.Equal(t, 5, stats.MinSamples(0.01))
	require.Equal(t, 9, stats.MinSamples(0.05/500))
	require.Equal(t, 3, stats.MinSamples(0.2))
	for _, alpha := range []float64{0, -1, 1, 2, math.NaN(), math.SmallestNonzeroFloat64} {
		require.Zero(t, stats.MinSamples(alpha))
	}
}

// The interval is the inverted test: it excludes 0 exactly if the test rejects.
func TestIntervalAgreesWithTheTest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	rejected := 0
	for range 500 {
		n, m := 4+random.IntN(8), 4+random.IntN(8)
		var a, b []float64
		for range n {
			a = append(a, 100+random.NormFloat64())
		}
		for range m {
			b = append(b, 101+random.NormFloat64())
		}
		r := compareOne(t, stats.Series{A: a, B: b})
		require.NotNil(t, r.Interval)
		require.GreaterOrEqual(t, r.Interval.Confidence, 0.95)
		require.LessOrEqual(t, r.Interval.Low, r.Shift.Value)
		require.GreaterOrEqual(t, r.Interval.High, r.Shift.Value)
		reject := r.P < 0.05
		require.Equal(t, reject, r.Interval.Low > 0 || r.Interval.High < 0, "p=%v %+v", r.P, r.Interval)
		rejected += map[bool]int{true: 1}[reject]
	}
	require.Greater(t, rejected, 50)
	require.Less(t, rejected, 450)
}

// A factor of 1.2 must lie in the 95 % interval at least 95 % of the time.
func TestIntervalCoversTheTruth(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	covered := 0
	const repetitions = 1000
	for range repetitions {
		var a, b []float64
		for range 6 {
			a = append(a, math.Exp(0.02*random.NormFloat64()))
			b = append(b, 1.2*math.Exp(0.02*random.NormFloat64()))
		}
		r := compareOne(t, stats.Series{A: a, B: b})
		if r.Interval.Low <= 0.2 && 0.2 <= r.Interval.High {
			covered++
		}
	}
	require.GreaterOrEqual(t, covered, 940*repetitions/1000)
}

func TestThereIsNoIntervalWhereNoneIsPossible(t *testing.T) {
	t.Parallel()
	r := compareOne(t, stats.Series{A: []float64{1, 2, 3}, B: []float64{4, 5, 6}})
	require.Nil(t, r.Interval)
	require.Equal(t, "n=3 per side cannot reach p<0.05; at least 4 per side are needed", r.NoInterval)
	require.True(t, r.Shift.Defined())
	r = compareOne(t, stats.Series{A: []float64{0, 1, 2, 3}, B: []float64{4, 5, 6, 7}})
	require.Nil(t, r.Interval)
	require.Equal(t, "not all values are positive", r.NoInterval)
	require.False(t, r.Shift.Defined())
}

func TestCliffsDelta(t *testing.T) {
	t.Parallel()
	delta := func(a, b []float64) float64 { return compareOne(t, stats.Series{A: a, B: b}).Delta }
	require.Equal(t, 1.0, delta([]float64{1, 2}, []float64{3, 4}))
	require.Equal(t, -1.0, delta([]float64{3, 4}, []float64{1, 2}))
	require.Equal(t, 0.0, delta([]float64{1, 2}, []float64{1, 2}))
	require.Equal(t, 0.5, delta([]float64{1, 3}, []float64{2, 4}))
}
