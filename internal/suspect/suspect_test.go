package suspect_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/suspect"
)

const plenty = 1000 // test cases, more than any test has

// series draws the history of a series with a coefficient of variation of 1 %, whose newest commits changed by the given
// multiple of it.
func series(random *rand.Rand, name string, sessions, newest int, step float64) suspect.Series {
	s := suspect.Series{Key: stats.Key{TestCase: stats.TestCase{Benchmark: name}, Metric: "wall-time"}, Delta: 0.01}
	for i := range sessions {
		offset := 0.0
		if i >= sessions-newest {
			offset = step
		}
		values := make([]float64, 5)
		for j := range values {
			values[j] = math.Exp(0.01 * (offset + random.NormFloat64()))
		}
		s.Sessions = append(s.Sessions, noise.Session{At: time.Unix(int64(i), 0), Values: values})
	}
	return s
}

func flat(values ...float64) []noise.Session {
	sessions := make([]noise.Session, len(values))
	for i, v := range values {
		sessions[i].Values = []float64{v, v, v}
	}
	return sessions
}

func find(t *testing.T, s suspect.Series) suspect.Suspicion {
	t.Helper()
	found := suspect.Find([]suspect.Series{s}, plenty)
	require.Len(t, found, 1)
	return found[0]
}

func requireNone(t *testing.T, s suspect.Series, why string) {
	t.Helper()
	require.Empty(t, suspect.Find([]suspect.Series{s}, plenty), why)
}

func TestASuspicionSaysHowLargeTheChangeIs(t *testing.T) {
	t.Parallel()
	for factor, want := range map[float64]string{2.5: `^\+1[45][0-9] % over `, 1.5: `^\+(4[5-9]|5[0-5]) % over `, 0.8: `^-(19|2[01]) % over `} {
		s := series(rand.New(rand.NewPCG(2, 1)), "gin", 60, 8, 0)
		for _, session := range s.Sessions[52:] {
			for i := range session.Values {
				session.Values[i] *= factor
			}
		}
		require.Regexp(t, want, find(t, s).Reason)
	}
}

func TestAStepIsSuspectedWithItsCommit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for newest := 1; newest <= 8; newest++ {
		for _, step := range []float64{15, -15} {
			s := series(random, "gin", 60, newest, step)
			found := find(t, s)
			require.Equal(t, s.Key, found.Key)
			require.Equal(t, newest, found.Commits)
			require.Equal(t, 59-newest, found.Against, "the last commit before the step")
			require.InDelta(t, 0.01*step, found.Change, 0.02)
			require.Greater(t, found.T, suspect.OtherThreshold)
			require.False(t, found.Postponed)
			require.Contains(t, found.Reason, fmt.Sprintf("T=%.1f", found.T))
		}
	}
}

func TestASmallStepIsSuspectedWithinThreeCommits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	const repetitions = 300
	suspected := 0
	for range repetitions {
		s := series(random, "gin", 63, 3, 2)
		for newest := range 3 {
			later := s
			later.Sessions = s.Sessions[:61+newest]
			if len(suspect.Find([]suspect.Series{later}, plenty)) > 0 {
				suspected++
				break
			}
		}
	}
	require.GreaterOrEqual(t, float64(suspected)/repetitions, 0.95)
}

func TestSuspicionsOfNoiseAreFew(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	var all []suspect.Series
	for i := range 1500 {
		all = append(all, series(random, fmt.Sprint(i), 40, 0, 0))
	}
	require.LessOrEqual(t, len(suspect.Find(all, plenty)), 60, "from the lower threshold, where there is room")
	require.LessOrEqual(t, len(suspect.Find(all, 0)), 20, "from the higher threshold")
	for i := range all {
		all[i].Primary = true
	}
	require.Len(t, suspect.Find(all, 0), len(suspect.Find(all, plenty)), "primary benchmarks are suspected from the lower one anyway")
}

func TestTheLargestAreForNow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	small, medium, large := series(random, "small", 40, 2, 4), series(random, "medium", 40, 2, 9), series(random, "large", 40, 2, 18)
	cpu := medium // another metric of the same runs
	cpu.Key.Metric = "cpu-time"
	names := func(testCases int) (names []string) {
		for _, s := range suspect.Find([]suspect.Series{small, large, cpu, medium}, testCases) {
			name := s.Key.Metric + " " + s.Key.Benchmark
			if s.Postponed {
				name += " later"
			}
			names = append(names, name)
		}
		return names
	}
	require.Equal(t, []string{"wall-time large", "cpu-time medium", "wall-time medium", "wall-time small later"}, names(2))
	require.Equal(t, []string{"wall-time large", "cpu-time medium later", "wall-time medium later", "wall-time small later"}, names(1))
}

// Noise makes the last two of three changed commits stand out more than all three. The first has the change, too.
func TestACommitThatMayHaveTheChangeIsNoBaseline(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(13, 13))
	held := 0
	const repetitions = 200
	for range repetitions {
		found := suspect.Find([]suspect.Series{series(random, "gin", 60, 3, 3)}, plenty)
		if len(found) == 1 && found[0].Against <= 56 {
			held++
		}
	}
	require.GreaterOrEqual(t, held, repetitions*97/100)
}

func TestChangesOfTheNewestCommitsAreFirst(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 14))
	for range 100 {
		found := suspect.Find([]suspect.Series{series(random, "new", 60, 2, 2.5), series(random, "old", 60, 6, 1.5)}, plenty)
		if len(found) != 2 || found[0].Commits > 3 == (found[1].Commits > 3) {
			continue
		}
		recent, older := found[0], found[1]
		if recent.Commits > 3 {
			recent, older = older, recent
		}
		if math.Abs(recent.T-older.T) < 0.5 {
			require.LessOrEqual(t, found[0].Commits, 3, "%v", found)
		}
	}
}

// A T of three commits is rarer than that of the newest alone: noise was looked at with each of them.
func TestUrgencyGrowsWithTheNewestCommits(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 3, suspect.Urgency(3, 1), 1e-12)
	require.Less(t, suspect.Urgency(3, 1), suspect.Urgency(3, 2))
	require.Less(t, suspect.Urgency(3, 2), suspect.Urgency(3, 3))
	require.Less(t, suspect.Urgency(3, 4), suspect.Urgency(3, 1))
	require.True(t, suspect.Suspected(2.7, 3, suspect.PrimaryThreshold))
	require.False(t, suspect.Suspected(2.7, 1, suspect.PrimaryThreshold))
	require.True(t, suspect.Suspected(3, 8, suspect.PrimaryThreshold), "old changes are suspected, only later")
}

func TestTheBudgetIsATenthOfTheRuns(t *testing.T) {
	t.Parallel()
	require.Equal(t, 13, suspect.TestCases(3425))
	require.Equal(t, 53, suspect.TestCases(14_000))
	require.Equal(t, 3, suspect.TestCases(50), "a small set can be decided as well")
}

func TestWhatWasNotReproducedIsQuiet(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	s := series(random, "gin", 40, 2, 5)
	grown := find(t, s).T
	for _, test := range []struct {
		name  string
		tried suspect.Tried
		quiet bool
	}{
		{"the same", suspect.Tried{T: grown, Up: true, Ago: 1}, true},
		{"after eight commits", suspect.Tried{T: grown, Up: true, Ago: 8}, true},
		{"after nine commits", suspect.Tried{T: grown, Up: true, Ago: 9}, false},
		{"hardly grown", suspect.Tried{T: grown - 0.6, Up: true, Ago: 1}, true},
		{"grown", suspect.Tried{T: grown - 0.8, Up: true, Ago: 1}, false},
		{"in the other direction", suspect.Tried{T: grown, Up: false, Ago: 1}, false},
		{"not decided", suspect.Tried{T: grown, Up: true, Ago: 1, Open: true}, true},
		{"not decided, and grown a little", suspect.Tried{T: grown - 0.2, Up: true, Ago: 1, Open: true}, false},
		{"almost reproduced", suspect.Tried{T: grown, Up: true, Ago: 1, Change: 0.01, P: 0.09}, false},
		{"hardly reproduced", suspect.Tried{T: grown, Up: true, Ago: 1, Change: 0.01, P: 0.11}, true},
		{"refuted", suspect.Tried{T: grown, Up: true, Ago: 1, Change: -0.01, P: 0.01}, true},
	} {
		if test.tried.P == 0 {
			test.tried.P = 1
		}
		s.Tried = []suspect.Tried{{T: 3, Up: false, Ago: 30}, test.tried}
		require.Equal(t, test.quiet, len(suspect.Find([]suspect.Series{s}, plenty)) == 0, test.name)
	}
}

// A hundredth of a percent with each commit: no eight differ from those before, but from those long ago.
func TestADriftIsSuspected(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 6))
	s := series(random, "gin", 120, 0, 0)
	for i := range s.Sessions {
		for j := range s.Sessions[i].Values {
			s.Sessions[i].Values[j] *= math.Exp(0.0001 * float64(i))
		}
	}
	found := find(t, s)
	require.Equal(t, 60, found.Commits)
	require.Equal(t, 59, found.Against)
	require.Contains(t, found.Reason, "drift of +")
	s.Sessions = s.Sessions[60:]
	requireNone(t, s, "60 commits are no longer than the reach")
}

func TestAnyChangeOfAnExactMetricIsSuspected(t *testing.T) {
	t.Parallel()
	declared := suspect.Series{Key: stats.Key{Metric: "size:binary"}, Exact: true, Sessions: flat(1000, 1200, 1200, 1201)}
	found := find(t, declared)
	require.True(t, found.Exact)
	require.Equal(t, 1, found.Commits)
	require.Equal(t, 2, found.Against)
	require.InDelta(t, 1.0/1200, found.Change, 1e-12)
	require.Equal(t, "exact metric, from 1200 to 1201", found.Reason)
	require.False(t, suspect.Find([]suspect.Series{declared}, 0)[0].Postponed, "it takes no runs")

	declared.Sessions = flat(1000, 1200, 1200)
	requireNone(t, declared, "equal to the commit before")
	declared.Sessions = flat(0, 5)
	require.Zero(t, find(t, declared).Change, "from nothing")

	learned := suspect.Series{Sessions: flat(slices.Concat(slices.Repeat([]float64{7}, 20), []float64{8})...)}
	require.True(t, find(t, learned).Exact)
	learned.Sessions = learned.Sessions[1:]
	require.False(t, find(t, learned).Exact, "19 sessions are not enough to be called exact")

	varying := suspect.Series{Exact: true, Sessions: []noise.Session{{Values: []float64{10, 10.1}}, {Values: []float64{10.1, 10}}}}
	requireNone(t, varying, "exact in name only")
}

func TestAFirstRequestIsComparedWithItsBaseline(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	requireNone(t, series(random, "gin", 1, 0, 0), "nothing to compare with")
	require.Equal(t, 0, find(t, series(random, "gin", 2, 1, 8)).Against)

	s := series(random, "gin", 2, 1, 8)
	for range 3 { // sessions of this benchmark differ a lot elsewhere
		s.Lent = append(s.Lent, noise.Model{Sessions: 60, Logarithms: true, SigmaSession: 0.05, SigmaWithin: 0.01})
	}
	requireNone(t, s, "by what it borrows, sessions differ as much")
	require.InDelta(t, math.Expm1(3.5*0.05*math.Sqrt2), s.Sees(), 1e-9)
}

func TestIrrelevantChangesAreNotSuspected(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(8, 8))
	s := series(random, "gin", 40, 2, 6)
	s.Delta = 0.2
	requireNone(t, s, "+6 % is less than 20 % beyond doubt")
	s.Delta = 0.05
	find(t, s)
}

func TestDisturbedSessionsDoNotCount(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 9))
	s := series(random, "gin", 40, 0, 0)
	for _, i := range []int{5, 20, 36, 38} {
		for j := range s.Sessions[i].Values {
			s.Sessions[i].Values[j] *= 1.5
		}
		s.Sessions[i].Disturbed = true
	}
	requireNone(t, s, "only disturbed sessions are off")

	for j := range s.Sessions[39].Values {
		s.Sessions[39].Values[j] *= 1.2
	}
	s.Sessions[39].Disturbed = true
	found := find(t, s)
	require.Contains(t, found.Reason, ", measured while disturbed", "the newest commit has no other session")

	for i := range s.Sessions {
		s.Sessions[i].Disturbed = true
	}
	require.Greater(t, s.Sees(), 0.01, "without other sessions, these say what would have been seen")
	s.Sessions[2].Disturbed = false
	require.Equal(t, 1, find(t, s).Commits, "one undisturbed session is enough to compare with")
}

func TestCollectorsAreLevelled(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(10, 10))
	s := series(random, "gin", 60, 0, 0)
	for i := range s.Sessions {
		s.Sessions[i].Collector = "fast"
		if i%7 == 0 || i >= 58 { // most of the newest are from the other machine
			s.Sessions[i].Collector = "slow"
			for j := range s.Sessions[i].Values {
				s.Sessions[i].Values[j] *= 1.1
			}
		}
	}
	requireNone(t, s, "the slow collector was slow before")
}

func TestOddValuesAreNoReasonToPanic(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 11))
	for _, odd := range [][]float64{nil, {math.NaN()}, {math.Inf(1)}, {0}, {-5}, {1e300}, {1e-300}} {
		s := series(random, "gin", 40, 0, 0)
		s.Sessions[10].Values = odd
		suspect.Find([]suspect.Series{s}, plenty)
		s.Sessions[39].Values = odd
		for _, found := range suspect.Find([]suspect.Series{s}, plenty) {
			require.False(t, math.IsNaN(found.T) || math.IsInf(found.T, 0))
			require.False(t, math.IsNaN(found.Change))
		}
	}
	dropped := series(random, "gin", 40, 1, 10)
	dropped.Sessions[38].Values = nil
	require.Equal(t, 37, find(t, dropped).Against, "a commit without values cannot be measured against")
	requireNone(t, suspect.Series{}, "no sessions")
	require.Zero(t, suspect.Series{}.Sees())
}

func TestUnitsAndOrderOfSeriesChangeNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(12, 12))
	var all, scaled []suspect.Series
	for i := range 100 {
		s := series(random, fmt.Sprint(i), 30, 2, 5*random.NormFloat64())
		all = append(all, s)
		s.Sessions = slices.Clone(s.Sessions)
		for j, session := range s.Sessions {
			s.Sessions[j].Values = slices.Clone(session.Values)
			for k := range session.Values {
				s.Sessions[j].Values[k] *= 1e9
			}
		}
		scaled = append(scaled, s)
	}
	random.Shuffle(len(scaled), func(i, j int) { scaled[i], scaled[j] = scaled[j], scaled[i] })
	want, got := suspect.Find(all, 20), suspect.Find(scaled, 20)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Key, got[i].Key)
		require.Equal(t, want[i].Commits, got[i].Commits)
		require.Equal(t, want[i].Postponed, got[i].Postponed)
		require.InDelta(t, want[i].T, got[i].T, 1e-6)
	}
}
