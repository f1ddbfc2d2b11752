package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// From the usual tables of Student's distribution.
func TestStudentQuantileAgreesWithTables(t *testing.T) {
	t.Parallel()
	f := func(tail float64, degrees int, want float64) {
		t.Helper()
		require.InDelta(t, want, studentQuantile(tail, degrees), 0.0006)
	}
	f(0.025, 1, 12.706)
	f(0.025, 2, 4.303)
	f(0.025, 8, 2.306)
	f(0.005, 8, 3.355)
	f(0.0005, 8, 5.041)
	f(0.0005, 18, 3.922)
	f(0.05, 30, 1.697)
	f(0.025, 1000, 1.962)
	f(0.0005, 60, 3.460)
	require.Greater(t, studentQuantile(1e-300, 1), 1e11, "must end, however small the tail")
}

// The values are those of an implementation of our own, by the continued fraction of Abramowitz and Stegun, 26.5.8.
func TestStudentQuantileIsPreciseInSmallTails(t *testing.T) {
	t.Parallel()
	tails := []float64{0.49, 0.25, 0.05, 0.025, 0.0005, 1e-6, 1e-9, 1e-15}
	for degrees, quantiles := range map[int][]float64{
		1:      {0.0314262660434, 1, 6.31375151468, 12.7062047362, 636.619248769, 318309.886183, 318309886.184, 1.09951162778e+12},
		2:      {0.0282899297993, 0.816496580928, 2.91998558035, 4.30265272975, 31.5990545764, 707.105720526, 22360.6797415, 22360679.775},
		3:      {0.0272114670491, 0.764892328404, 2.3533634348, 3.18244630528, 12.9239786367, 103.29946778, 1033.1096745, 103311.083593},
		5:      {0.0263467123423, 0.7266868438, 2.01504837333, 2.57058183564, 6.86882662588, 24.7710297205, 98.9372246484, 1568.39119282},
		8:      {0.0258631484287, 0.706386612645, 1.85954803753, 2.3060041352, 5.04130543337, 12.1098346656, 29.2893211182, 165.373662005},
		18:     {0.025419562778, 0.688363806466, 1.73406360662, 2.10092204024, 3.92164582509, 6.86863817393, 11.0072240775, 24.9879811075},
		60:     {0.0251736414801, 0.678600720648, 1.6706488649, 2.00029782201, 3.4602004692, 5.26355485465, 7.05697157667, 10.631395442},
		300:    {0.0250898208416, 0.675308416307, 1.64994867394, 1.96790301126, 3.32325151297, 4.84851430111, 6.18759806273, 8.38517254763},
		3000:   {0.0250709987389, 0.674571537337, 1.64536170784, 1.96075505532, 3.29377288069, 4.76278681618, 6.01633613237, 7.98393487853},
		100000: {0.0250689710261, 0.674492203619, 1.64486886514, 1.9599877075, 3.29062403139, 4.75370471638, 5.99836146167, 7.94261740409},
	} {
		for i, want := range quantiles {
			require.InEpsilon(t, want, studentQuantile(tails[i], degrees), 1e-9, "%d degrees, tail %g", degrees, tails[i])
		}
	}
}

// The approximation continues the exact distribution without a step.
func TestNormalApproximationMeetsTheExactDistribution(t *testing.T) {
	t.Parallel()
	var ranks rankTest
	exact := ranks.distribution(exactLimit, exactLimit)
	for u := range exactLimit*exactLimit/2 - 1 {
		require.InDelta(t, 2*exact[u], normalP(float64(u), exactLimit, exactLimit, nil), 2e-3, "u=%d", u)
	}
	for step := 1.0; step < 8; step++ { // ties of four values each
		var a, b []float64
		for i := range exactLimitTies {
			a, b = append(a, float64(i/4)), append(b, float64(i/4)+step)
		}
		u, ties := uStatistic(a, b)
		require.NotEmpty(t, ties)
		require.InDelta(t, exactWithTies(a, b), normalP(u, exactLimitTies, exactLimitTies, ties), 5e-3)
	}
}

// Searching finds the same ratio as listing, also among ties.
func TestSearchedRatiosAreThoseOfTheList(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	for _, grid := range []float64{0, 0.1, 0.5} {
		a, b := make([]float64, 23), make([]float64, 31)
		for _, side := range [][]float64{a, b} {
			for i := range side {
				side[i] = 1 + random.ExpFloat64()
				if grid > 0 {
					side[i] = grid * math.Ceil(side[i]/grid)
				}
			}
			slices.Sort(side)
		}
		listed := new(rankTest).orderedRatios(a, b)
		for k := range len(a) * len(b) {
			require.Equal(t, listed.at(k), searchRatio(a, b, k), "grid %v, k=%d", grid, k)
		}
	}
}

// A hundred thousand values a side have ten thousand million ratios, which no memory holds.
func TestVeryManyValuesAreCompared(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(8, 8))
	a, b := make([]float64, 100_000), make([]float64, 100_000)
	for i := range a {
		a[i], b[i] = math.Exp(0.01*random.NormFloat64()), 1.02*math.Exp(0.01*random.NormFloat64())
	}
	slices.Sort(a)
	slices.Sort(b)
	var ranks rankTest
	estimate, interval, ok := ranks.shiftInterval(a, b, 0.05)
	require.True(t, ok)
	require.InDelta(t, 0.02, estimate, 0.001)
	require.Less(t, interval.Low, estimate)
	require.Greater(t, interval.High, estimate)
	require.InDelta(t, 0.95, interval.Confidence, 1e-3)
}
