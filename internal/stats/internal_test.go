package stats

import (
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

// Where the exact distribution ends the approximation goes on without a step.
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
