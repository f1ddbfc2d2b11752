package noise_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats/noise"
)

// history draws sessions of five values around 1, on logarithms: level gives each session's offset, draw each value's, both in
// units of the coefficient of variation.
func history(sessions int, cv float64, level func(i int) float64, draw func() float64) []noise.Session {
	drawn := make([]noise.Session, sessions)
	for i := range drawn {
		values := make([]float64, 5)
		offset := level(i)
		for j := range values {
			values[j] = math.Exp(cv * (offset + draw()))
		}
		drawn[i] = noise.Session{At: time.Unix(int64(i), 0), Collector: "a", Values: values}
	}
	return drawn
}

func flat(int) float64 { return 0 }

func constant(value float64, sessions int) []noise.Session {
	return slices.Repeat([]noise.Session{{Values: []float64{value, value}}}, sessions)
}

func TestTheModelFindsTheNoiseThatWasPutIn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for _, kappa := range []float64{0, 0.6, 2} {
		var between, within, found, rho float64
		const repetitions = 50
		for range repetitions {
			m := noise.Fit(history(60, 0.01, func(int) float64 { return kappa * random.NormFloat64() }, random.NormFloat64))
			require.Equal(t, 60, m.Sessions)
			require.Equal(t, 300, m.Values)
			require.True(t, m.Logarithms)
			require.InDelta(t, 1, m.Level, 0.02)
			between, within = between+m.SigmaSession/repetitions, within+m.SigmaWithin/repetitions
			found, rho = found+m.Kappa/repetitions, rho+m.Rho/repetitions
		}
		want := 0.01 * math.Sqrt(kappa*kappa+math.Pi/3/5)
		require.InEpsilon(t, want, between, 0.15, "kappa %v", kappa)
		require.InEpsilon(t, 0.01, within, 0.1)
		require.InDelta(t, kappa, found, 0.35)
		require.InDelta(t, 0, rho, 0.05)
	}
}

func TestSuccessiveValuesThatResembleEachOtherAreCorrelated(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	x := 0.0
	m := noise.Fit(history(60, 0.01, flat, func() float64 {
		x = 0.5*x + math.Sqrt(0.75)*random.NormFloat64()
		return x
	}))
	require.InDelta(t, 0.5, m.Rho, 0.2)
}

// One commit in ten was measured on a machine that did something else: the spread hardly changes.
func TestFarSessionsHardlyMoveTheSpread(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	sessions := history(60, 0.01, flat, random.NormFloat64)
	clean := noise.Fit(sessions)
	for i := 3; i < 60; i += 10 {
		sessions[i].Values = []float64{1.5, 1.5, 1.5, 1.5, 1.5}
	}
	require.Less(t, noise.Fit(sessions).SigmaSession, 3*clean.SigmaSession)
	for i := 3; i < 60; i += 10 {
		sessions[i].Disturbed = true
	}
	m := noise.Fit(sessions)
	require.Equal(t, 54, m.Sessions, "disturbed sessions do not count")
	require.InEpsilon(t, clean.SigmaSession, m.SigmaSession, 0.2)
}

func TestOnlyTheNewestSessionsCount(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	old, recent := history(40, 0.2, flat, random.NormFloat64), history(60, 0.001, flat, random.NormFloat64)
	for i := range recent {
		recent[i].At = recent[i].At.Add(time.Hour)
	}
	m := noise.Fit(slices.Concat(recent, old)) // in no order
	require.Equal(t, 60, m.Sessions)
	require.Less(t, m.SigmaWithin, 0.002)
	require.Equal(t, noise.Fit(recent), m)
}

func TestUnitsChangeNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	seconds := history(30, 0.02, func(int) float64 { return random.NormFloat64() }, random.ExpFloat64)
	nanoseconds := history(30, 0, flat, func() float64 { return 0 })
	for i := range seconds {
		for j, v := range seconds[i].Values {
			nanoseconds[i].Values[j] = 1e9 * v
		}
	}
	a, b := noise.Fit(seconds), noise.Fit(nanoseconds)
	require.InEpsilon(t, a.SigmaSession, b.SigmaSession, 1e-9)
	require.InEpsilon(t, a.SigmaWithin, b.SigmaWithin, 1e-9)
	require.InEpsilon(t, 1e9*a.Level, b.Level, 1e-9)
	require.Equal(t, a.Labels, b.Labels)
}

func TestCollectorsAreLevelled(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 6))
	sessions := history(40, 0.001, flat, random.NormFloat64)
	alone := noise.Fit(sessions)
	for i := range sessions {
		if i%2 == 1 { // another machine, 5 % slower
			sessions[i].Collector = "b"
			for j := range sessions[i].Values {
				sessions[i].Values[j] *= 1.05
			}
		}
	}
	require.InEpsilon(t, alone.SigmaSession, noise.Fit(sessions).SigmaSession, 0.2)
}

func TestNewSeriesBorrow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	var lent []noise.Model
	for _, kappa := range []float64{1, 2, 3} {
		lent = append(lent, noise.Fit(history(30, 0.01, func(int) float64 { return kappa * random.NormFloat64() }, random.NormFloat64)))
	}
	fresh := history(9, 0.01, flat, random.NormFloat64)
	young := noise.Fit([]noise.Session{{Values: []float64{1, 1.01}}})
	borrowed := noise.Fit(fresh[:7], slices.Concat(lent, []noise.Model{young})...)
	require.Equal(t, 3, borrowed.Lenders, "young series have nothing to lend")
	require.Equal(t, lent[1].SigmaSession, borrowed.SigmaSession)
	require.False(t, borrowed.Assumed)

	own := noise.Fit(fresh[:8], lent...)
	require.Zero(t, own.Lenders)
	require.Less(t, own.SigmaSession, lent[0].SigmaSession)
}

func TestASeriesWithoutHistoryIsJudgedByItsValues(t *testing.T) {
	t.Parallel()
	m := noise.Fit([]noise.Session{{Values: []float64{1, 1.01, 0.99, 1.02, 0.98}}})
	require.True(t, m.Assumed)
	require.InEpsilon(t, m.SigmaWithin*math.Sqrt(0.36+math.Pi/15), m.SigmaSession, 1e-9)
	require.InDelta(t, 0.6, m.Kappa, 1e-9)
	require.Equal(t, noise.Model{Assumed: true, Logarithms: true}, noise.Fit(nil))
}

func TestSeesIsTheChangeAtTheThreshold(t *testing.T) {
	t.Parallel()
	m := noise.Model{Sessions: 60, Logarithms: true, SigmaSession: 0.01}
	require.InDelta(t, math.Expm1(0.035*math.Sqrt(1+1.0/60)), m.Sees(3.5), 1e-12)
	m.Sessions = 1
	require.InDelta(t, math.Expm1(0.035*math.Sqrt2), m.Sees(3.5), 1e-12)
	m = noise.Model{Sessions: 20, Level: -50, SigmaSession: 2}
	require.InDelta(t, 3*2*math.Sqrt(1.05)/50, m.Sees(3), 1e-12, "of values that are not positive")
	require.Zero(t, noise.Model{SigmaSession: 1}.Sees(3), "relative to nothing")
	require.Zero(t, noise.Fit(constant(5, 30)).Sees(3))
}

func TestSeriesGetLabels(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(8, 8))
	coin := func(distance float64) float64 { return distance * float64(random.IntN(2)) }
	walk := 0.0
	for _, test := range []struct {
		want     []noise.Label
		sessions []noise.Session
	}{
		{nil, history(60, 0.01, func(int) float64 { return 2 * random.NormFloat64() }, random.NormFloat64)},
		{[]noise.Label{noise.Exact}, constant(1000, 20)},
		{[]noise.Label{noise.Exact}, constant(0, 60)},
		{nil, constant(1000, 19)},
		{nil, slices.Concat(constant(1000, 19), constant(1001, 1))},
		{[]noise.Label{noise.Skewed}, history(60, 0.01, flat, random.ExpFloat64)},
		{[]noise.Label{noise.Outliers}, history(60, 0.01, flat, func() float64 {
			if random.IntN(20) == 0 {
				return 8 * (random.Float64() - 0.5) * 2
			}
			return random.NormFloat64()
		})},
		{[]noise.Label{noise.BimodalWithin}, history(60, 0.01, flat, func() float64 { return coin(8) + random.NormFloat64() })},
		{[]noise.Label{noise.BimodalBySession}, history(60, 0.01, func(int) float64 { return coin(4) }, random.NormFloat64)},
		{[]noise.Label{noise.Wandering}, history(60, 0.01, func(int) float64 {
			walk += random.NormFloat64()
			return walk
		}, random.NormFloat64)},
		{[]noise.Label{noise.Wandering}, history(60, 0.01, func(i int) float64 { return 10 * float64(i/30) }, random.NormFloat64)},
	} {
		require.Equal(t, test.want, noise.Fit(test.sessions).Labels)
	}
	require.True(t, noise.Fit(constant(7, 20)).Has(noise.Exact))
}

func TestNormalNoiseHardlyEverGetsALabel(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 9))
	const repetitions = 400
	for _, sessions := range []int{8, 16, 20, 60} {
		labelled := 0
		for range repetitions {
			if len(noise.Fit(history(sessions, 0.01, func(int) float64 { return random.NormFloat64() }, random.NormFloat64)).Labels) > 0 {
				labelled++
			}
		}
		require.LessOrEqual(t, float64(labelled)/repetitions, 0.02, "%d sessions", sessions)
	}
}

// canaries draws sessions in which one artifact was measured in turns with itself, each side off by tau.
func canaries(random *rand.Rand, n int, tau float64) []noise.Canary {
	drawn := make([]noise.Canary, n)
	for i := range drawn {
		a, b := tau*random.NormFloat64(), tau*random.NormFloat64()
		for range 12 {
			drawn[i].A = append(drawn[i].A, math.Exp(0.01*(a+random.NormFloat64())))
			drawn[i].B = append(drawn[i].B, math.Exp(0.01*(b+random.NormFloat64())))
		}
	}
	return drawn
}

func TestTauIsLearnedFromCanaries(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(10, 10))
	for _, tau := range []float64{0, 0.3, 1, 2} {
		sum := 0.0
		const repetitions = 50
		for range repetitions {
			learned, ok := noise.Tau(canaries(random, 30, tau))
			require.True(t, ok)
			sum += learned / repetitions
		}
		require.InDelta(t, tau, sum, 0.2+0.15*tau, "τ = %v", tau)
	}
	_, ok := noise.Tau(canaries(random, 4, 0))
	require.False(t, ok)
	_, ok = noise.Tau(make([]noise.Canary, 10))
	require.False(t, ok, "without pairs")
	quiet, ok := noise.Tau(slices.Repeat([]noise.Canary{{A: []float64{1, 1, 1, 1}, B: []float64{1, 1, 1, 1}}}, 10))
	require.True(t, ok)
	require.Less(t, quiet, 0.3)
}

func TestOneBadCanaryDoesNotDecide(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 11))
	all := canaries(random, 20, 0.1)
	for i := range all[3].B {
		all[3].B[i] *= 2
	}
	tau, ok := noise.Tau(all)
	require.True(t, ok)
	require.Less(t, tau, 0.5)
}

func FuzzFit(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1.0, uint8(3))
	f.Add([]byte{0, 0, 0, 128, 128, 255}, 1e300, uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, scale float64, size uint8) {
		if len(data) > 500 {
			t.Skip("more than a window")
		}
		var sessions []noise.Session
		for i, chunk := range slices.Collect(slices.Chunk(data, 1+int(size%16))) {
			s := noise.Session{At: time.Unix(int64(i), 0), Collector: fmt.Sprint(i % 3), Disturbed: chunk[0]%8 == 7}
			for _, b := range chunk {
				s.Values = append(s.Values, scale*(float64(b)-16))
			}
			sessions = append(sessions, s)
		}
		m := noise.Fit(sessions)
		_, err := json.Marshal(m) // all numbers are finite
		require.NoError(t, err)
		require.GreaterOrEqual(t, m.SigmaSession, 0.0)
		require.GreaterOrEqual(t, m.Sees(3.5), 0.0)
		require.LessOrEqual(t, math.Abs(m.Rho), 1.0)
	})
}

// A slow mode that few sessions are in is as misleading as a frequent one.
func TestRareModesOfSessionsAreBimodal(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(10, 3))
	sessions := make([]noise.Session, 60)
	for i := range sessions {
		level := 1.0
		if i%10 == 3 {
			level = 1.1
		}
		for range 5 {
			sessions[i].Values = append(sessions[i].Values, level*(1+0.01*random.NormFloat64()))
		}
	}
	require.True(t, noise.Fit(sessions).Has(noise.BimodalBySession))
}
