package paired_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats/paired"
)

// draw returns n differences; the coarser the grid, the more ties and zeros.
func draw(random *rand.Rand, n int, grid float64) []float64 {
	d := make([]float64, n)
	for i := range d {
		d[i] = random.NormFloat64() + 0.3
		if grid > 0 {
			d[i] = grid * math.Round(d[i]/grid)
		}
	}
	return d
}

// bruteP computes the p value from all assignments of signs, with ranks counted one by one.
func bruteP(d []float64) float64 {
	rank := func(i int) float64 {
		below, tied := 0.0, 0.0
		for _, other := range d {
			switch difference := math.Abs(d[i]) - math.Abs(other); {
			case difference > 1e-12:
				below++
			case difference > -1e-12:
				tied++
			}
		}
		return below + (tied+1)/2
	}
	var ranks []float64
	observed := 0.0 // positive less negative ranks
	for i, v := range d {
		if math.Abs(v) <= 1e-12 {
			continue
		}
		ranks = append(ranks, rank(i))
		observed += math.Copysign(rank(i), v)
	}
	extreme := 0
	for signs := range 1 << len(ranks) {
		sum := 0.0
		for i, r := range ranks {
			sum += r * float64(2*(signs>>i&1)-1)
		}
		if math.Abs(sum) >= math.Abs(observed)-1e-9 {
			extreme++
		}
	}
	return float64(extreme) / float64(int(1)<<len(ranks))
}

func TestPAgreesWithAllAssignmentsOfSigns(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for n := range 13 {
		for _, grid := range []float64{0, 0.1, 0.5, 1, 3} {
			d := draw(random, n, grid)
			require.InDelta(t, bruteP(d), paired.P(d), 1e-12, "%v", d)
		}
	}
}

func TestPAgreesWithKnownValues(t *testing.T) {
	t.Parallel()
	// The depression scores of Hollander and Wolfe, Nonparametric statistical methods, table 3.1: T+ = 5 of 45.
	d := []float64{-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010}
	require.Equal(t, 20.0/512, paired.P(d))
	require.Equal(t, 1.0, paired.P(nil))
	require.Equal(t, 1.0, paired.P([]float64{0, 0, 0}))
	for _, n := range []int{1, 2, 6, 14, 22, 46, 300} {
		require.Equal(t, paired.Smallest(n), paired.P(slices.Repeat([]float64{0.01}, n)), "equal differences reach the least p")
	}
	require.Equal(t, 2.0/4, paired.P([]float64{0, 0, 1, 2, 0}), "zeros cannot make the others surer than they are")
}

// The level is kept for any magnitudes: under random signs, p values of at most x have a probability of at most x.
func TestPKeepsItsLevel(t *testing.T) {
	t.Parallel()
	for name, magnitudes := range map[string][]float64{
		"different": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"ties":      {1, 1, 1, 2, 2, 2, 2, 3, 3, 9},
		"zeros":     {0, 0, 0, 1, 1, 2, 2, 3, 3, 3},
	} {
		var ps []float64
		d := make([]float64, len(magnitudes))
		for signs := range 1 << len(d) {
			for i, m := range magnitudes {
				d[i] = m * float64(2*(signs>>i&1)-1)
			}
			ps = append(ps, paired.P(d))
		}
		slices.Sort(ps)
		for i, p := range ps {
			if i+1 < len(ps) && ps[i+1] == p {
				continue
			}
			require.LessOrEqual(t, float64(i+1)/float64(len(ps)), p+1e-12, name)
		}
	}
}

func bruteWalsh(d []float64) []float64 {
	var averages []float64
	for i := range d {
		for j := range i + 1 {
			averages = append(averages, d[i]/2+d[j]/2)
		}
	}
	slices.Sort(averages)
	return averages
}

func TestEstimateIsTheMedianOfWalshAverages(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	require.Zero(t, paired.Estimate(nil))
	for n := 1; n <= 70; n++ {
		for _, grid := range []float64{0, 0.5, 2} {
			d := draw(random, n, grid)
			wild := make([]float64, n)
			for i, v := range d {
				wild[i] = v * math.Exp(200*random.NormFloat64())
			}
			for _, d := range [][]float64{d, wild} {
				w := bruteWalsh(d)
				require.Equal(t, w[(len(w)-1)/2]/2+w[len(w)/2]/2, paired.Estimate(d))
			}
		}
	}
}

// The interval excludes 0 if and only if the test rejects at its level, where no ties blur the border.
func TestIntervalInvertsTheTest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	for n := 1; n <= 40; n++ {
		for _, confidence := range []float64{0.5, 0.9, 0.98, 0.9999} {
			d := draw(random, n, 0)
			r, ok := paired.Interval(d, confidence)
			require.Equal(t, paired.Smallest(n) <= 1-confidence, ok, "n=%d, %v", n, confidence)
			if !ok {
				continue
			}
			require.GreaterOrEqual(t, r.Confidence, confidence-1e-9)
			require.Contains(t, bruteWalsh(d), r.Low)
			require.Contains(t, bruteWalsh(d), r.High)
			excluded := r.Low > 0 || r.High < 0
			require.Equal(t, paired.P(d) <= 1-confidence, excluded, "n=%d, %v: %v", n, confidence, r)
		}
	}
}

// Ties and zeros make the interval cover more often, never less.
func TestIntervalCoversTheShiftOfTiedDifferences(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	for _, grid := range []float64{0, 0.5, 1, 2} {
		const repetitions = 2000
		covered := 0
		for range repetitions {
			d := draw(random, 14, 0)
			for i := range d {
				d[i] -= 0.3
				if grid > 0 {
					d[i] = grid * math.Round(d[i]/grid) // symmetric around 0
				}
			}
			r, ok := paired.Interval(d, 0.9)
			require.True(t, ok)
			if r.Low <= 0 && r.High >= 0 {
				covered++
			}
		}
		require.Greater(t, float64(covered)/repetitions, 0.88, "grid %v", grid)
	}
}

// Every use of the package: nothing depends on order, units or the sign of the differences.
func requireInvariance(tb testing.TB, random *rand.Rand, d []float64) {
	tb.Helper()
	negated, shuffled := make([]float64, len(d)), slices.Clone(d)
	for i, v := range d {
		negated[i] = -v
	}
	random.Shuffle(len(d), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	p := paired.P(d)
	require.GreaterOrEqual(tb, p, paired.Smallest(len(d)))
	require.LessOrEqual(tb, p, 1.0)
	require.Equal(tb, p, paired.P(negated))
	require.Equal(tb, p, paired.P(shuffled))
	estimate := paired.Estimate(d)
	require.Equal(tb, estimate, -paired.Estimate(negated)+0)
	require.Equal(tb, estimate, paired.Estimate(shuffled))
	r, ok := paired.Interval(d, 0.98)
	mirrored, _ := paired.Interval(negated, 0.98)
	if ok {
		require.LessOrEqual(tb, r.Low, estimate)
		require.GreaterOrEqual(tb, r.High, estimate)
		require.Equal(tb, r.Low, -mirrored.High+0)
		require.Equal(tb, r.High, -mirrored.Low+0)
	}
}

func TestOrderAndSignChangeNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	for n := range 60 {
		requireInvariance(t, random, draw(random, n, float64(n%4)/4))
	}
}

func TestManyDifferencesAreApproximated(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 6))
	for _, grid := range []float64{0, 0.25} {
		few, many := draw(random, 300, grid), draw(random, 301, grid)
		for i := range few {
			few[i] -= 0.2
			many[i] = few[i]
		}
		many[300] = 0.01
		require.InDelta(t, paired.P(few), paired.P(many), 0.02)
		exact, ok := paired.Interval(few, 0.98)
		require.True(t, ok)
		normal, ok := paired.Interval(many, 0.98)
		require.True(t, ok)
		require.InDelta(t, exact.Low, normal.Low, 0.02)
		require.InDelta(t, exact.High, normal.High, 0.02)
	}
	huge := draw(random, 20_000, 0)
	require.InDelta(t, 0.3, paired.Estimate(huge), 0.05)
	require.Less(t, paired.P(huge), 1e-9)
}

func FuzzPaired(f *testing.F) {
	f.Add([]byte{1, 2, 3}, 1.0)
	f.Add([]byte{128, 128, 0, 255}, 0.001)
	f.Fuzz(func(t *testing.T, data []byte, scale float64) {
		if len(data) > 100 || !(math.Abs(scale) <= 1e100) {
			t.Skip("more than any test case has")
		}
		d := make([]float64, len(data))
		for i, b := range data {
			d[i] = scale * (float64(b) - 128)
		}
		requireInvariance(t, rand.New(rand.NewPCG(1, uint64(len(data)))), d)
		if len(d) <= 10 {
			require.InDelta(t, bruteP(d), paired.P(d), 1e-9)
		}
	})
}

func ExampleP() {
	// Ten pairs, nine of them slower.
	d := []float64{0.01, 0.02, 0.015, 0.03, -0.005, 0.012, 0.022, 0.018, 0.009, 0.025}
	r, _ := paired.Interval(d, 0.95)
	fmt.Printf("p=%.3f, %+.4f, from %+.4f to %+.4f\n", paired.P(d), paired.Estimate(d), r.Low, r.High)
	// Output: p=0.004, +0.0160, from +0.0090 to +0.0225
}
