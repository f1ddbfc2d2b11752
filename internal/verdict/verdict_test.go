package verdict_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/verdict"
)

// world draws pairs of a series: values around 1 with a coefficient of variation, the second side changed by a factor.
type world struct {
	random *rand.Rand
	cv     float64
	factor float64
	offset float64 // standard deviation of each side's offset in a session, in units of cv
}

func newWorld(seed uint64, cv, change float64) world {
	return world{random: rand.New(rand.NewPCG(seed, 10)), cv: cv, factor: 1 + change}
}

func (w world) session(pairs int) []verdict.Pair {
	session := make([]verdict.Pair, pairs)
	a, b := w.offset*w.random.NormFloat64(), w.offset*w.random.NormFloat64()
	for i := range session {
		session[i] = verdict.Pair{
			A: math.Exp(w.cv * (a + w.random.NormFloat64())), B: w.factor * math.Exp(w.cv*(b+w.random.NormFloat64())),
		}
	}
	return session
}

// sessions draws the pairs of a number of looks.
func (w world) sessions(looks int) [][]verdict.Pair {
	var sessions [][]verdict.Pair
	for _, pairs := range []int{6, 8, 8, 12, 12}[:looks] {
		sessions = append(sessions, w.session(pairs))
	}
	return sessions
}

func familyOf(tb testing.TB, size int) verdict.Family {
	tb.Helper()
	family, err := verdict.NewFamily(size)
	require.NoError(tb, err)
	return family
}

// decide takes looks until the series is settled.
func decide(family verdict.Family, w world, evidence verdict.Evidence) (v verdict.Verdict, pairs int) {
	for {
		more, ok := family.NextLook(pairs)
		if !ok {
			return family.Judge(evidence), pairs
		}
		evidence.Sessions = append(evidence.Sessions, w.session(more))
		pairs += more
		if family.Settled(evidence) {
			return family.Judge(evidence), pairs
		}
	}
}

func each(sessions [][]verdict.Pair, change func(*verdict.Pair)) [][]verdict.Pair {
	changed := make([][]verdict.Pair, len(sessions))
	for i, session := range sessions {
		changed[i] = slices.Clone(session)
		for j := range changed[i] {
			change(&changed[i][j])
		}
	}
	return changed
}

func repeat(a, b float64, pairs ...int) [][]verdict.Pair {
	var sessions [][]verdict.Pair
	for _, n := range pairs {
		sessions = append(sessions, slices.Repeat([]verdict.Pair{{A: a, B: b}}, n))
	}
	return sessions
}

func TestLooksFollowEachOther(t *testing.T) {
	t.Parallel()
	family := familyOf(t, 1)
	require.Equal(t, []int{6, 14, 22, 34, 46}, family.Looks)
	pairs := 0
	for _, want := range []int{6, 8, 8, 12, 12} {
		more, ok := family.NextLook(pairs)
		require.True(t, ok)
		require.Equal(t, want, more)
		pairs += more
	}
	_, ok := family.NextLook(pairs)
	require.False(t, ok)
}

func TestLostPairsAreNotMadeUpForByATinyLook(t *testing.T) {
	t.Parallel()
	family := familyOf(t, 1)
	for pairs, want := range map[int]int{5: 9, 12: 10, 21: 13, 33: 13, 42: 4} {
		more, ok := family.NextLook(pairs)
		require.True(t, ok)
		require.Equal(t, want, more, "after %d pairs", pairs)
	}
	_, ok := family.NextLook(44)
	require.False(t, ok)
}

func TestLargerFamiliesNeedMorePairs(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{1: 14, 2: 14, 16: 14, 17: 22, 685: 22, 4194: 22} {
		family := familyOf(t, size)
		require.Equal(t, want, family.Confirms(), "%d series", size)
		require.Greater(t, family.Level(), math.Ldexp(2, -want), "the look must be able to reach its level")
		require.LessOrEqual(t, family.Level()*float64(size), 0.01)
	}
}

func TestFamiliesOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	_, err := verdict.NewFamily(4195)
	var tooLarge *verdict.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.Equal(t, verdict.TooLargeError{Size: 4195, Limit: 4194}, *tooLarge)
	require.ErrorContains(t, err, "4195 series are too many to be decided together: at most 4194 can be")
	_, err = verdict.NewFamily(0)
	require.Error(t, err)
	_, err = verdict.NewFixedFamily(1, 0)
	require.Error(t, err)
}

// No size of a family and no order of looks calls a change at a level that its pairs cannot reach: not even the largest
// change in data without noise is one before.
func TestNothingIsConfirmedAtALevelThatCannotBeReached(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		size := 1 + random.IntN(4194)
		family := familyOf(t, size)
		pairs := 1 + random.IntN(50)
		sessions := [][]verdict.Pair{}
		for left := pairs; left > 0; {
			n := 1 + random.IntN(left)
			session := make([]verdict.Pair, n)
			for i := range session {
				session[i] = verdict.Pair{A: 1 + 0.001*random.Float64(), B: 2 + 0.001*random.Float64()}
			}
			sessions, left = append(sessions, session), left-n
		}
		v := family.Judge(verdict.Evidence{Delta: 0.01, Sessions: sessions})
		if pairs < family.Confirms() || math.Ldexp(2, -pairs) >= v.Level {
			require.NotEqual(t, verdict.Changed, v.Kind, "%d series, %d pairs", size, pairs)
		}
		if v.Kind == verdict.Changed {
			require.Less(t, v.P, 0.01/float64(size))
		}
		require.GreaterOrEqual(t, v.P, math.Ldexp(2, -pairs))
	}
}

func TestAFixedNumberOfPairsIsOneLook(t *testing.T) {
	t.Parallel()
	family, err := verdict.NewFixedFamily(1, 30)
	require.NoError(t, err)
	more, ok := family.NextLook(0)
	require.True(t, ok)
	require.Equal(t, 30, more)
	w := newWorld(1, 0.01, 0.05)
	require.Equal(t, verdict.Changed, family.Judge(verdict.Evidence{Delta: 0.01, Sessions: [][]verdict.Pair{w.session(30)}}).Kind)

	few, err := verdict.NewFixedFamily(1, 5)
	require.NoError(t, err)
	v := few.Judge(verdict.Evidence{Delta: 0.01, Sessions: repeat(1, 2, 5)})
	require.Equal(t, verdict.Undecided, v.Kind, "5 pairs cannot confirm anything")
}

func TestAChangeIsToldAndEstimated(t *testing.T) {
	t.Parallel()
	for _, change := range []float64{0.05, -0.05} {
		v, pairs := decide(familyOf(t, 3), newWorld(2, 0.01, change), verdict.Evidence{Delta: 0.01})
		require.Equal(t, verdict.Changed, v.Kind, v.Reason)
		require.Equal(t, 14, pairs)
		require.InDelta(t, change, v.Change, 0.012)
		require.Less(t, v.Interval.Low, v.Change)
		require.Greater(t, v.Interval.High, v.Change)
		require.Equal(t, 2, v.Sessions)
		require.Less(t, v.P, v.Level)
		require.Empty(t, v.Needs)
		require.Contains(t, v.Reason, "all 2 sessions agree")
	}
}

func TestAbsenceOfAChangeIsToldOnlyByTheInterval(t *testing.T) {
	t.Parallel()
	v, pairs := decide(familyOf(t, 3), newWorld(3, 0.003, 0), verdict.Evidence{Delta: 0.01})
	require.Equal(t, verdict.NoDifference, v.Kind, v.Reason)
	require.Equal(t, 14, pairs, "there is no interval after 6 pairs")
	require.True(t, verdict.Within(*v.Interval, 0.01))
	require.Equal(t, "the whole interval lies within ±1 %", v.Reason)

	v, pairs = decide(familyOf(t, 3), newWorld(3, 0.05, 0), verdict.Evidence{Delta: 0.01})
	require.Equal(t, verdict.Undecided, v.Kind)
	require.Equal(t, 46, pairs)
	require.True(t, strings.HasPrefix(v.Reason, verdict.Noise+": the interval from "), v.Reason)
	require.NotEmpty(t, v.Needs)
}

func TestNeedsNameThePairsThatWouldDecide(t *testing.T) {
	t.Parallel()
	v, _ := decide(familyOf(t, 3), newWorld(5, 0.018, 0), verdict.Evidence{Delta: 0.01})
	require.Equal(t, verdict.Undecided, v.Kind)
	require.Regexp(t, `^about \d+0 more pairs$`, v.Needs)
	v, _ = decide(familyOf(t, 3), newWorld(5, 0.5, 0), verdict.Evidence{Delta: 0.01})
	require.Equal(t, "a quieter machine or a larger relevant change", v.Needs)
}

func TestSmallShiftsOfSessionsAreNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(6, 0.001, 0.005)
	e := verdict.Evidence{Delta: 0.002, Sessions: w.sessions(2), SigmaWithin: 0.01, Tau: 0.3}
	v := familyOf(t, 1).Judge(e)
	require.Equal(t, verdict.Undecided, v.Kind, "0.5 %% is within what sessions shift the sides by")
	require.Less(t, v.P, v.Level)
	require.Contains(t, v.Reason, "noise: sessions shift the sides by so much that a change is only told from 0.9")

	e.SigmaWithin = 0.001
	require.Equal(t, verdict.Changed, familyOf(t, 1).Judge(e).Kind)
}

func TestSessionsThatDisagreeAreNoChange(t *testing.T) {
	t.Parallel()
	up, down := newWorld(7, 0.001, 0.05), newWorld(7, 0.001, -0.01)
	e := verdict.Evidence{Delta: 0.001, Sessions: [][]verdict.Pair{up.session(20), down.session(6), up.session(20)}}
	v := familyOf(t, 1).Judge(e)
	require.Equal(t, verdict.Undecided, v.Kind)
	require.Contains(t, v.Reason, "noise: the sessions differ in direction")
}

func TestASessionThatIsOnTheOtherSideByChanceHidesNoChange(t *testing.T) {
	t.Parallel()
	up, none := newWorld(7, 0.001, 0.05), newWorld(8, 0.001, 0)
	near := none.session(6)
	for i := range near {
		near[i].A, near[i].B = 1, 1+0.0001*float64(i)-0.0003
	}
	e := verdict.Evidence{Delta: 0.001, Sessions: [][]verdict.Pair{up.session(20), near, up.session(20)}}
	v := familyOf(t, 1).Judge(e)
	require.Equal(t, verdict.Changed, v.Kind, v.Reason)
	require.Contains(t, v.Reason, "none of 3 sessions is clearly opposed")
}

// Where sessions shift the sides by more than the pairs show, five sessions prove nothing, and no look is wasted.
func TestSessionsThatShiftASideCountAsOnePairEach(t *testing.T) {
	t.Parallel()
	for _, e := range []verdict.Evidence{{BimodalBySession: true}, {Tau: 0.8}} {
		e.Delta, e.Sessions = 0.01, newWorld(8, 0.001, 0.1).sessions(5)
		v := familyOf(t, 1).Judge(e)
		require.Equal(t, verdict.Undecided, v.Kind)
		require.Equal(t, 2.0/32, v.P)
		require.Contains(t, v.Reason, "noise: sessions differ more than the pairs of one")
		e.Sessions = e.Sessions[:1]
		require.True(t, familyOf(t, 1).Settled(e))
	}
}

// Known beforehand, such a series takes no machine time, and says what would decide it.
func TestWhatNoLookCanDecideIsNotMeasured(t *testing.T) {
	t.Parallel()
	f := familyOf(t, 1)
	for name, c := range map[string]struct {
		e         verdict.Evidence
		decidable bool
	}{
		"nothing is known":              {verdict.Evidence{}, true},
		"usual":                         {verdict.Evidence{SigmaWithin: 0.01, Tau: 0.3}, true},
		"modes of sessions":             {verdict.Evidence{SigmaWithin: 0.01, BimodalBySession: true}, false},
		"sides shift":                   {verdict.Evidence{SigmaWithin: 0.01, Tau: 0.8}, false},
		"modes without spread":          {verdict.Evidence{BimodalBySession: true}, true},
		"exact, whatever else is known": {verdict.Evidence{Exact: true, SigmaWithin: 0.01, BimodalBySession: true}, true},
	} {
		require.Equal(t, c.decidable, f.Decidable(c.e), name)
		require.Equal(t, !c.decidable, f.Settled(c.e), name)
		if c.decidable {
			continue
		}
		v := f.Undecidable()
		require.Equal(t, verdict.Undecided, v.Kind)
		require.Equal(t, "noise: sessions differ more than the pairs of one, so that each counts as one pair; the 5 of a comparison are too few, so none is measured", v.Reason)
		require.Contains(t, v.Needs, "7 sessions for no difference and 11 for a change, more than the 5 looks of a comparison")
		c.e.Delta, c.e.Sessions = 0.01, newWorld(8, 0.001, 0.1).sessions(5)
		require.Equal(t, verdict.Undecided, f.Judge(c.e).Kind, "five looks would not have decided it")
	}
}

// A series without history may have modes that nobody has seen: two looks that agree show no change, four do.
func TestAYoungSeriesChangesInFourSessions(t *testing.T) {
	t.Parallel()
	require.True(t, verdict.Young(19))
	require.False(t, verdict.Young(20))
	f := familyOf(t, 1)
	e := verdict.Evidence{Delta: 0.01, SigmaWithin: 0.001, Young: true}
	all := newWorld(8, 0.001, 0.1).sessions(5)
	for n := range all {
		e.Sessions = all[:n+1]
		v := f.Judge(e)
		if n+1 >= 4 {
			require.Equal(t, verdict.Changed, v.Kind)
			continue
		}
		require.Equal(t, verdict.Undecided, v.Kind)
		require.False(t, f.Settled(e), "looks go on")
		require.Zero(t, v.Sees)
		if n == 2 {
			require.Equal(t, "noise: 3 sessions show it, but its history is too short to show how sessions differ", v.Reason)
			require.Equal(t, "1 more session", v.Needs)
		}
	}
	e.Sessions = slices.Concat(newWorld(8, 0.001, 0.1).sessions(3), newWorld(8, 0.001, 0.05).sessions(4)[3:])
	v := f.Judge(e)
	require.Equal(t, verdict.Undecided, v.Kind)
	require.Equal(t, "noise: sessions differ more than their pairs explain, and its history is too short to show how sessions differ", v.Reason)
	e.Young = false
	require.Equal(t, verdict.Changed, f.Judge(e).Kind, "a history that knows no such noise suffices")
	e.Young = true
	e.Sessions = newWorld(8, 0.001, 0).sessions(2)
	require.Equal(t, verdict.NoDifference, f.Judge(e).Kind, "no difference needs no more than usual")
}

func TestDisturbedPairsSupportOnlyAChange(t *testing.T) {
	t.Parallel()
	disturb := func(p *verdict.Pair) { p.Disturbed = true }
	equal := verdict.Evidence{Delta: 0.01, Sessions: newWorld(9, 0.002, 0).sessions(5)}
	require.Equal(t, verdict.NoDifference, familyOf(t, 1).Judge(equal).Kind)
	equal.Sessions = each(equal.Sessions, disturb)
	v := familyOf(t, 1).Judge(equal)
	require.Equal(t, verdict.Undecided, v.Kind)
	require.Nil(t, v.Interval, "it would lie within ±1 %%")
	require.Equal(t, "disturbance: 46 of 46 pairs were disturbed, which cannot show that there is no difference", v.Reason)
	require.Equal(t, "a quieter machine", v.Needs)

	slower := verdict.Evidence{Delta: 0.01, Sessions: each(newWorld(9, 0.02, 0.1).sessions(3), disturb)}
	v = familyOf(t, 1).Judge(slower)
	require.Equal(t, verdict.Changed, v.Kind, "load meets both sides")
	require.Equal(t, 22, v.Disturbed)
	require.NotNil(t, v.Interval)
}

func TestFewDisturbedPairsAreLeftOutOfTheInterval(t *testing.T) {
	t.Parallel()
	sessions := newWorld(10, 0.002, 0).sessions(3)
	for i := range sessions { // one of each, at most a sixth
		sessions[i][0] = verdict.Pair{A: 1, B: 1.5, Disturbed: true}
	}
	v := familyOf(t, 1).Judge(verdict.Evidence{Delta: 0.01, Sessions: sessions})
	require.Equal(t, verdict.NoDifference, v.Kind, v.Reason)
	require.Equal(t, 3, v.Disturbed)
	require.Equal(t, 22, v.Pairs)

	for i := range 2 { // more than a fifth of the first session: none of its pairs counts
		sessions[0][i+1].Disturbed = true
		sessions[0][i+3] = verdict.Pair{A: 1, B: 1.2}
	}
	require.Equal(t, verdict.NoDifference, familyOf(t, 1).Judge(verdict.Evidence{Delta: 0.01, Sessions: sessions}).Kind)
}

func TestExactMetricsAreDecidedByOnePair(t *testing.T) {
	t.Parallel()
	family := familyOf(t, 4000)
	for _, test := range []struct {
		a, b float64
		want verdict.Kind
	}{
		{1000, 1001, verdict.Changed},
		{1001, 1000, verdict.Changed},
		{1000, 1000, verdict.NoDifference},
		{0, 0, verdict.NoDifference},
		{0, 5, verdict.Changed},
		{5, 0, verdict.Changed},
		{-3, -2, verdict.Changed},
		{1, math.NaN(), verdict.Undecided},
		{math.NaN(), math.NaN(), verdict.Undecided},
		{1, math.Inf(1), verdict.Undecided},
	} {
		e := verdict.Evidence{Exact: true, Sessions: repeat(test.a, test.b, 1)}
		v := family.Judge(e)
		require.Equal(t, test.want, v.Kind, "from %v to %v", test.a, test.b)
		_, err := json.Marshal(v)
		require.NoError(t, err)
		require.True(t, family.Settled(e))
	}
}

func TestExactMetricsThatVaryAreJudgedLikeOthers(t *testing.T) {
	t.Parallel()
	e := verdict.Evidence{Exact: true, Sessions: [][]verdict.Pair{{{A: 1000, B: 1001}, {A: 1000, B: 1000}}}}
	v := familyOf(t, 1).Judge(e)
	require.Equal(t, verdict.Undecided, v.Kind)
	require.True(t, strings.HasPrefix(v.Reason, verdict.TooFewValues), v.Reason)
}

func TestEqualValuesAreNoDifferenceAfterTheFirstLook(t *testing.T) {
	t.Parallel()
	family := familyOf(t, 5)
	for _, value := range []float64{7, 0, -7} {
		v := family.Judge(verdict.Evidence{Delta: 0.01, Sessions: repeat(value, value, 6)})
		require.Equal(t, verdict.NoDifference, v.Kind)
		require.Zero(t, v.Interval.High-v.Interval.Low)
		require.Equal(t, 1-2.0/64, v.Interval.Confidence)
		v = family.Judge(verdict.Evidence{Delta: 0.01, Sessions: repeat(value, value, 3)})
		require.Equal(t, verdict.Undecided, v.Kind, "3 pairs could be equal by chance")
	}
}

func TestThreePairsDecideNothing(t *testing.T) {
	t.Parallel()
	e := verdict.Evidence{Delta: 0.01, Sessions: repeat(1, 2, 3)}
	v := familyOf(t, 1).Judge(e)
	require.Equal(t, verdict.Undecided, v.Kind)
	require.Equal(t, "too few values: 3 pairs cannot decide, at least 7 are needed", v.Reason)
	require.Equal(t, "4 more pairs", v.Needs)
	require.False(t, familyOf(t, 1).Settled(e))
	v = familyOf(t, 1).Judge(verdict.Evidence{})
	require.Equal(t, verdict.Undecided, v.Kind)
	require.False(t, familyOf(t, 1).Settled(verdict.Evidence{}))
}

// A clock that is set during a pair gives a negative or an absurd duration on one side.
func TestAClockThatJumpsConfirmsNothing(t *testing.T) {
	t.Parallel()
	for _, absurd := range []float64{-3600, 0, math.NaN(), math.Inf(1), 3600, 1e12} {
		w := newWorld(11, 0.003, 0)
		sessions := w.sessions(5)
		for i := range sessions {
			sessions[i][0].B = absurd
		}
		v := familyOf(t, 1).Judge(verdict.Evidence{Delta: 0.01, Sessions: sessions})
		require.Equal(t, verdict.NoDifference, v.Kind, "%v: %s", absurd, v.Reason)

		all := each(w.sessions(5), func(p *verdict.Pair) { p.B = -p.B })
		e := verdict.Evidence{Delta: 0.01, Sessions: all}
		v = familyOf(t, 1).Judge(e)
		require.Equal(t, verdict.Undecided, v.Kind)
		require.Equal(t, "too few values: 46 of 46 pairs have a value that is not a positive number", v.Reason)
		require.True(t, familyOf(t, 1).Settled(e), "more pairs would not help")
	}
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	for kind, name := range map[verdict.Kind]string{
		verdict.Undecided: "undecided", verdict.Changed: "changed",
		verdict.NoDifference: "no difference", verdict.NoSuspicion: "no suspicion",
	} {
		text, err := kind.MarshalText()
		require.NoError(t, err)
		require.Equal(t, name, string(text))
		var read verdict.Kind
		require.NoError(t, read.UnmarshalText(text))
		require.Equal(t, kind, read)
	}
	require.Error(t, new(verdict.Kind).UnmarshalText([]byte("maybe")))
	require.Equal(t, "Kind(9)", verdict.Kind(9).String())
}

func TestMetricsHaveDefaults(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0.002, verdict.Delta("instructions:u", false))
	require.Equal(t, 0.01, verdict.Delta("wall-time", false))
	require.Equal(t, 0.01, verdict.Delta("ns/op", false))
	require.Zero(t, verdict.Delta("allocs/op", true))
	require.Zero(t, verdict.Delta("size:binary", false))
	for _, metric := range []string{"instructions:u", "wall-time", "cpu-time", "max-rss", "size:binary", "ns/op"} {
		require.True(t, verdict.Deciding(metric), metric)
	}
	for _, metric := range []string{"cycles:u", "branch-misses", "user-time", "minor-faults"} {
		require.False(t, verdict.Deciding(metric), metric)
	}
}

func ExampleFamily_Judge() {
	family, err := verdict.NewFamily(2)
	if err != nil {
		panic(err)
	}
	// Wall time in seconds, about 3 % more in each pair.
	var sessions [][]verdict.Pair
	for look := range 2 {
		var session []verdict.Pair
		for i := range 7 {
			noise := 0.001 * float64((3*i+look)%5)
			session = append(session, verdict.Pair{A: 2 + noise, B: 2.06 - noise})
		}
		sessions = append(sessions, session)
	}
	v := family.Judge(verdict.Evidence{Delta: 0.01, Sessions: sessions})
	fmt.Printf("%s: %+.1f %% (%s)\n", v.Kind, 100*v.Change, v.Reason)
	// Output: changed: +2.8 % (p=0.0001 is below 0.001, all 2 sessions agree)
}
