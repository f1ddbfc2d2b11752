package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// anySeries returns a comparison of a few series: some stored, some measured in turns, some both, with noise and changes of
// any size, and exact and explaining ones among them.
func anySeries(random *rand.Rand) []report.Series {
	var list []report.Series
	for i := range 2 + random.IntN(8) {
		s := cpu(fmt.Sprintf("b%02d", i), nil, nil)
		factor, noise := 1.0, math.Pow(10, -4+3*random.Float64())
		if random.IntN(2) == 0 {
			factor = math.Exp(3 * noise * random.NormFloat64())
		}
		value := func(f float64) float64 { return f * math.Exp(noise*random.NormFloat64()) }
		switch random.IntN(5) {
		case 0: // an exact metric
			s.Metric, s.Exact, s.Evidence.Exact, s.Evidence.Delta = "size", true, true, 0
			s.A, s.B = []float64{1000}, []float64{1000 + float64(random.IntN(2))}
			list = append(list, s)
			continue
		case 1: // one that explains
			s.Metric, s.Deciding = "minor-faults", false
		}
		if random.IntN(3) > 0 {
			for range 1 + random.IntN(6) {
				s.A, s.B = append(s.A, value(1)), append(s.B, value(factor))
			}
		}
		if len(s.A) == 0 || random.IntN(2) == 0 {
			for _, pairs := range []int{6, 8, 8, 12, 12}[:1+random.IntN(5)] {
				var session []verdict.Pair
				for range pairs {
					session = append(session, verdict.Pair{A: value(1), B: value(factor), Disturbed: random.IntN(50) == 0})
				}
				s.Evidence.Sessions = append(s.Evidence.Sessions, session)
			}
		}
		list = append(list, s)
	}
	return list
}

// changed returns copies of series with functions applied to the values of both sides, which it may also swap.
func changed(list []report.Series, f func(metric string, v float64) float64, swap bool) []report.Series {
	all := func(metric string, values []float64) []float64 {
		out := slices.Clone(values)
		for i := range out {
			out[i] = f(metric, out[i])
		}
		return out
	}
	var out []report.Series
	for _, s := range list {
		s.A, s.B = all(s.Metric, s.A), all(s.Metric, s.B)
		if swap {
			s.A, s.B = s.B, s.A
		}
		var sessions [][]verdict.Pair
		for _, session := range s.Evidence.Sessions {
			pairs := slices.Clone(session)
			for i, p := range pairs {
				pairs[i].A, pairs[i].B = f(s.Metric, p.A), f(s.Metric, p.B)
				if swap {
					pairs[i].A, pairs[i].B = pairs[i].B, pairs[i].A
				}
			}
			sessions = append(sessions, pairs)
		}
		s.Evidence.Sessions = sessions
		out = append(out, s)
	}
	return out
}

func verdictsOf(r report.Report) map[stats.Key]string {
	out := make(map[stats.Key]string)
	for _, row := range r.Rows {
		out[row.Key] = "none"
		if row.Verdict != nil {
			out[row.Key] = row.Verdict.String() + " " + string(row.Direction)
		}
	}
	return out
}

func TestVerdictsDependOnWhatWasMeasuredAlone(t *testing.T) {
	t.Parallel()
	same := func(_ string, v float64) float64 { return v }
	opposite := map[report.Direction]report.Direction{report.Regression: report.Improvement, report.Improvement: report.Regression}
	seen := make(map[verdict.Kind]int)
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(10, seed))
		series := anySeries(random)
		r := compared(t, series, report.Standing{})
		want := verdictsOf(r)

		// Not on the order of rows.
		shuffled := slices.Clone(series)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, r, compared(t, shuffled, report.Standing{}))

		// Not on the unit of the values.
		units := map[string]float64{"cpu-time": math.Exp2(float64(random.IntN(60) - 30)), "size": 1024, "minor-faults": 3}
		scaled := changed(series, func(metric string, v float64) float64 { return units[metric] * v }, false)
		require.Equal(t, want, verdictsOf(compared(t, scaled, report.Standing{})))

		// Not on the side that is called first: only the direction turns round.
		mirrored := compared(t, changed(series, same, true), report.Standing{})
		for i, row := range mirrored.Rows {
			require.Equal(t, r.Rows[i].Verdict, row.Verdict, "%s: %s / %s", row.Key, r.Rows[i].Reason, row.Reason)
			require.Equal(t, opposite[r.Rows[i].Direction], row.Direction)
		}

		// Not on the filters: what they leave is what it was.
		some := r.Select(func(row report.Row) bool { return random.IntN(2) == 0 }).Select(func(report.Row) bool { return random.IntN(4) > 0 })
		for _, row := range some.Rows {
			require.Contains(t, r.Rows, row)
		}
		shown, all := report.Summarize(some, report.TestCases{}), report.Summarize(r, report.TestCases{})
		hidden := report.Tally{}
		if shown.Hidden != nil {
			hidden = *shown.Hidden
		}
		require.Equal(t, []int{all.Changed, all.NoDifference, all.Undecided, all.NoSuspicion},
			[]int{shown.Changed + hidden.Changed, shown.NoDifference + hidden.NoDifference, shown.Undecided + hidden.Undecided, shown.NoSuspicion + hidden.NoSuspicion})

		for _, row := range r.Rows {
			requireSound(t, row)
			if row.Verdict != nil {
				seen[*row.Verdict]++
			}
		}
	}
	for _, k := range []verdict.Kind{verdict.Changed, verdict.NoDifference, verdict.Undecided, verdict.NoSuspicion} {
		require.Greater(t, seen[k], 50, "%s: the test tests nothing", k)
	}
}

// requireSound checks what holds for every row.
func requireSound(t *testing.T, row report.Row) {
	t.Helper()
	require.NotEmpty(t, row.Reason, row.Key)
	require.Equal(t, row.Deciding, row.Verdict != nil, row.Key)
	require.Equal(t, row.Is(verdict.Changed), row.Significant)
	require.Equal(t, row.Significant, row.Direction != "")
	require.Equal(t, row.Is(verdict.Undecided), row.Needs != "", "%s: %s", row.Key, row.Reason)
	if row.Verdict == nil || row.Exact {
		return
	}
	if row.Turns == nil {
		require.False(t, row.Significant, "stored results decide nothing")
		require.False(t, row.Is(verdict.NoDifference), "stored results decide nothing")
		return
	}
	require.False(t, row.Is(verdict.NoSuspicion), "it was measured in turns")
	if row.Turns.Interval != nil {
		require.Equal(t, row.Is(verdict.NoDifference), verdict.Within(*row.Turns.Interval, row.Delta), row.Key)
	} else {
		require.False(t, row.Is(verdict.NoDifference))
	}
}

// Rows of explaining metrics are shown, and enter neither the family nor any count.
func TestExplainingMetricsAreNeverCounted(t *testing.T) {
	t.Parallel()
	explaining := inTurns(cpu("x", nil, nil), 2, 0.001, 6, 8, 8)
	explaining.Metric, explaining.Deciding = "cache-misses", false
	deciding := inTurns(cpu("x", nil, nil), 1, 0.001, 6, 8, 8)
	r := compared(t, []report.Series{explaining, deciding}, report.Standing{})
	require.Equal(t, 1, r.Family)
	require.Len(t, r.Rows, 2)
	row := r.Rows[0]
	require.Nil(t, row.Verdict)
	require.InDelta(t, 1, row.Turns.Change, 0.01, "it is described")
	require.Zero(t, r.Regressions())
	require.Equal(t, "1 no difference", report.Summarize(r, report.TestCases{}).Line)
}

// More series than can be judged together get no verdict, and the reason.
func TestAFamilyThatIsTooLargeIsUndecided(t *testing.T) {
	t.Parallel()
	var series []report.Series
	for i := range 4200 {
		s := cpu(fmt.Sprint(i), nil, nil)
		s.Evidence.Sessions = [][]verdict.Pair{{{A: 1, B: 2}}}
		series = append(series, s)
	}
	r := compared(t, append(series, size("x", 1, 2)), report.Standing{})
	require.True(t, r.Rows[0].Is(verdict.Changed), "exact values do not belong to the family")
	for _, row := range r.Rows[1:] {
		require.True(t, row.Is(verdict.Undecided))
		require.Contains(t, row.Needs, "at most 4194 can be")
	}
}
