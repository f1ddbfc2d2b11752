package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
)

const relevant = 0.01

func signOf(t *testing.T, a, b []float64) stats.Sign {
	t.Helper()
	return signFrom(compareOne(t, stats.Series{A: a, B: b}), relevant)
}

func signFrom(r stats.Result, delta float64) stats.Sign {
	return stats.SignOf(r.A, r.B, stats.DefaultOptions(), delta)
}

func TestStoredValuesRaiseASuspicion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b    []float64
		suspect bool
		blind   string
	}{
		"a fifth slower":                  {a: base, b: times(1.2, base), suspect: true},
		"a fifth faster":                  {a: times(1.2, base), b: base, suspect: true},
		"the same again":                  {a: base, b: same},
		"less than matters":               {a: []float64{100, 100, 100}, b: []float64{100.5, 100.5, 100.5}},
		"three equal values, then others": {a: []float64{100, 100, 100}, b: []float64{103, 103, 103}, suspect: true},
		"three values in wild noise":      {a: []float64{100, 140, 90}, b: []float64{120, 150, 80}},
		"one value against many":          {a: []float64{150}, b: base, suspect: true},
		"one value of each":               {a: []float64{100}, b: []float64{150}, blind: "n=1 per side shows no noise"},
		"nothing on one side":             {a: base, blind: "B has no values"},
		"zeros that stay":                 {a: []float64{0, 0, 0}, b: []float64{0, 0, 0}},
		"zeros that go":                   {a: []float64{0, 0, 0}, b: []float64{4, 4, 4}, suspect: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sign := signOf(t, c.a, c.b)
			require.Equal(t, c.suspect, sign.Suspect)
			require.Equal(t, c.blind, sign.Blind)
			if c.blind == "" {
				require.GreaterOrEqual(t, sign.Sees, relevant-1e-12)
			}
		})
	}
}

// Whatever the values are, the sign does not depend on their unit or on the side that is called A, and what is seen is
// what raises a suspicion.
func TestASignDependsOnNothingElse(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(10, 7))
	suspects := 0
	for range 500 {
		n, m := 2+random.IntN(10), 2+random.IntN(10)
		a, b := make([]float64, n), make([]float64, m)
		factor, noise := math.Exp(0.05*random.NormFloat64()), 0.02*random.Float64()
		for i := range a {
			a[i] = math.Exp(noise * random.NormFloat64())
		}
		for i := range b {
			b[i] = factor * math.Exp(noise*random.NormFloat64())
		}
		sign := signOf(t, a, b)
		mirrored, scaled := signOf(t, b, a), signOf(t, times(1e-9, a), times(1e-9, b))
		require.Equal(t, sign.Suspect, mirrored.Suspect)
		require.Equal(t, sign.Suspect, scaled.Suspect)
		require.InEpsilon(t, sign.Sees, mirrored.Sees, 1e-9)
		require.InEpsilon(t, sign.Sees, scaled.Sees, 1e-6)
		require.False(t, signOf(t, a, a).Suspect)
		require.True(t, signOf(t, a, times(1.0001*(1+signOf(t, a, a).Sees), a)).Suspect)
		if sign.Suspect {
			suspects++
		}
	}
	require.Greater(t, suspects, 100)
	require.Less(t, suspects, 450)
}
