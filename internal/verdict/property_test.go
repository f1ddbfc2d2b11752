package verdict_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/verdict"
)

// anyEvidence draws evidence of any kind: with and without noise, ties, load, absent values and a known model of the noise.
func anyEvidence(random *rand.Rand) verdict.Evidence {
	pick := func(values ...float64) float64 { return values[random.IntN(len(values))] }
	w := world{
		random: random, cv: pick(0, 0.0003, 0.001, 0.01, 0.1), offset: pick(0, 0, 0.3, 2),
		factor: 1 + pick(0, 0, 0.002, -0.005, 0.01, 0.02, 0.5),
	}
	sessions := w.sessions(random.IntN(6))
	if random.IntN(4) == 0 {
		sessions = append(sessions, w.session(1+random.IntN(12)))
	}
	grid, load, lost := pick(0, 0, 0.0005, 0.01, 0.02), pick(0, 0, 0.05, 0.5, 1), pick(0, 0, 0, 0.05, 0.5)
	sessions = each(sessions, func(p *verdict.Pair) {
		if grid > 0 {
			p.A, p.B = math.Round(p.A/grid), math.Round(p.B/grid)
		}
		p.Disturbed = random.Float64() < load
		if random.Float64() < lost {
			p.B = pick(0, -1, math.NaN(), math.Inf(1))
		}
	})
	return verdict.Evidence{
		Exact: random.IntN(5) == 0, Delta: pick(0, 0.002, 0.01, 0.03), Sessions: sessions,
		SigmaWithin: pick(0, w.cv), Tau: pick(0, 0.1, 0.3, 0.8), BimodalBySession: random.IntN(10) == 0, Young: random.IntN(4) == 0,
	}
}

// requireSame compares two verdicts but for rounding errors, and for which side was called first.
func requireSame(tb testing.TB, want, got verdict.Verdict, mirrored bool, e verdict.Evidence) {
	tb.Helper()
	require.Equal(tb, want.Kind, got.Kind, "%+v\n%+v\n%+v", want, got, e)
	require.Equal(tb, want.P, got.P)
	require.Equal(tb, want.Level, got.Level)
	require.Equal(tb, [...]int{want.Pairs, want.Sessions, want.Disturbed}, [...]int{got.Pairs, got.Sessions, got.Disturbed})
	require.InDelta(tb, math.Log1p(want.Sees), math.Log1p(got.Sees), 1e-9)
	require.Equal(tb, want.Interval == nil, got.Interval == nil)
	sign := 1.0
	if mirrored {
		sign = -1
	}
	require.InDelta(tb, math.Log1p(want.Change), sign*math.Log1p(got.Change), 1e-9)
	if want.Interval != nil {
		low, high := got.Interval.Low, got.Interval.High
		if mirrored {
			low, high = high, low
		}
		require.InDelta(tb, math.Log1p(want.Interval.Low), sign*math.Log1p(low), 1e-9)
		require.InDelta(tb, math.Log1p(want.Interval.High), sign*math.Log1p(high), 1e-9)
	}
}

// requireSound checks all that holds for any evidence.
func requireSound(tb testing.TB, family verdict.Family, e verdict.Evidence) {
	tb.Helper()
	v := family.Judge(e)
	require.NotEqual(tb, verdict.NoSuspicion, v.Kind)
	require.NotEmpty(tb, v.Reason)
	require.Equal(tb, v.Kind == verdict.Undecided, v.Needs != "", "%+v", v)
	require.GreaterOrEqual(tb, v.Sees, 0.0)
	_, err := json.Marshal(v)
	require.NoError(tb, err)
	within := v.Interval != nil && verdict.Within(*v.Interval, e.Delta)
	require.Equal(tb, within, v.Kind == verdict.NoDifference, "%+v", v)
	if v.Interval != nil {
		require.LessOrEqual(tb, v.Interval.Low, v.Interval.High)
		require.LessOrEqual(tb, v.Interval.Low, v.Change+1e-9)
		require.GreaterOrEqual(tb, v.Interval.High, v.Change-1e-9)
	}
	if v.Kind != verdict.Undecided {
		require.True(tb, family.Settled(e))
	}
	if v.Kind == verdict.Changed && v.P < 1 {
		require.Less(tb, v.P, v.Level)
		require.GreaterOrEqual(tb, v.Pairs, family.Confirms())
	}
}

func TestVerdictsAreSound(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(20, 20))
	kinds := map[verdict.Kind]int{}
	for range 3000 {
		family, e := familyOf(t, 1+random.IntN(100)), anyEvidence(random)
		requireSound(t, family, e)
		kinds[family.Judge(e).Kind]++
	}
	for _, kind := range []verdict.Kind{verdict.Changed, verdict.NoDifference, verdict.Undecided} {
		require.Greater(t, kinds[kind], 200, "the evidence must be varied enough to meet %q", kind)
	}
}

func TestVerdictsDoNotDependOnWhichSideIsCalledFirst(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(21, 21))
	for range 1500 {
		family, e := familyOf(t, 1+random.IntN(100)), anyEvidence(random)
		swapped := e
		swapped.Sessions = each(e.Sessions, func(p *verdict.Pair) { p.A, p.B = p.B, p.A })
		requireSame(t, family.Judge(e), family.Judge(swapped), true, e)
		require.Equal(t, family.Settled(e), family.Settled(swapped))
	}
}

func TestVerdictsDoNotDependOnUnits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(22, 22))
	for range 1500 {
		family, e := familyOf(t, 1+random.IntN(100)), anyEvidence(random)
		unit := []float64{1e-9, 1000, 1.0 / 3, 1024, 7e11}[random.IntN(5)]
		scaled := e
		scaled.Sessions = each(e.Sessions, func(p *verdict.Pair) { p.A, p.B = p.A*unit, p.B*unit })
		requireSame(t, family.Judge(e), family.Judge(scaled), false, e)
	}
}

func TestVerdictsDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(23, 23))
	for range 1500 {
		family, e := familyOf(t, 1+random.IntN(100)), anyEvidence(random)
		shuffled := e
		shuffled.Sessions = each(e.Sessions, func(*verdict.Pair) {})
		for _, s := range shuffled.Sessions {
			random.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		}
		random.Shuffle(len(shuffled.Sessions), func(i, j int) {
			shuffled.Sessions[i], shuffled.Sessions[j] = shuffled.Sessions[j], shuffled.Sessions[i]
		})
		requireSame(t, family.Judge(e), family.Judge(shuffled), false, e)
	}
}

func TestEveryChangeOfAnExactMetricIsFound(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(24, 24))
	for range 1500 {
		a := float64(random.IntN(1 << 40))
		b := a + float64(1+random.IntN(3))
		if random.IntN(2) == 0 {
			a, b = b, a
		}
		pairs := make([]int, 1+random.IntN(5))
		for i := range pairs {
			pairs[i] = 1 + random.IntN(12)
		}
		e := verdict.Evidence{Exact: true, Sessions: each(repeat(a, b, pairs...), func(p *verdict.Pair) {
			p.Disturbed = random.IntN(2) == 0
		})}
		v := familyOf(t, 1+random.IntN(4194)).Judge(e)
		require.Equal(t, verdict.Changed, v.Kind, "from %v to %v: %s", a, b, v.Reason)
	}
}

// Empty sessions and any constants of the model change nothing in what holds.
func FuzzJudge(f *testing.F) {
	f.Add(uint64(1), 1, 0.01, 0.0, 0.0)
	f.Add(uint64(2), 4194, 1e300, 1e-300, 2.0)
	f.Add(uint64(3), 17, -1.0, math.Inf(1), math.NaN())
	f.Fuzz(func(t *testing.T, seed uint64, size int, delta, sigma, tau float64) {
		family, err := verdict.NewFamily(size)
		if err != nil {
			t.Skip("no family")
		}
		random := rand.New(rand.NewPCG(seed, 1))
		e := anyEvidence(random)
		e.Delta, e.SigmaWithin, e.Tau = delta, sigma, tau
		if random.IntN(2) == 0 && len(e.Sessions) > 0 && len(e.Sessions[0]) > 0 {
			e.Sessions[0][0] = verdict.Pair{A: delta, B: sigma}
		}
		requireSound(t, family, e)
		e.Sessions = append(slices.Clone(e.Sessions), nil)
		requireSound(t, family, e)
	})
}
