package simulate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats/simulate"
	"github.com/benchloom/benchloom/internal/verdict"
)

// small is a simulation for a test: few requests of few test cases, with a budget for some suspects of each request. The
// figures of docs/statistics.md are from the full one, 'scripts/bench --only verdicts'.
func small(noise simulate.Noise) simulate.Plan {
	return simulate.Plan{
		Noise: noise, Random: seed(2026), Projects: 1, Commits: 12, TestCases: 40, Budget: 2,
	}
}

func seed(seed uint64) func(uint64) simulate.Random {
	return func(project uint64) simulate.Random { return rand.New(rand.NewPCG(seed, project)) }
}

func simulated(tb testing.TB, plan simulate.Plan) simulate.Figures {
	tb.Helper()
	f, err := simulate.Simulate(tb.Context(), plan, 2)
	require.NoError(tb, err)
	return f
}

func noise(tb testing.TB, name string) simulate.Noise {
	tb.Helper()
	for _, n := range simulate.Noises() {
		if n.Name == name {
			return n
		}
	}
	require.Fail(tb, "there is no noise "+name)
	return simulate.Noise{}
}

// eager calls each difference changed that a single test at 5 % would.
func eager(family verdict.Family, e verdict.Evidence) verdict.Verdict {
	v := family.Judge(e)
	if v.P < 0.05 {
		v.Kind = verdict.Changed
	}
	return v
}

// Nothing differs, so nothing must be called changed, whatever the noise. What is suspected is measured again within the
// budget. The same simulation shows that a rule without its level tells falsehoods.
func TestNothingIsToldWhereNothingChanged(t *testing.T) {
	t.Parallel()
	var sum, loose simulate.Figures
	for _, n := range simulate.Noises() {
		if !n.Assured() || n.Everything() {
			continue
		}
		plan := small(n)
		f := simulated(t, plan)
		sum.Add(f)
		require.LessOrEqual(t, f.MostExtraRuns, plan.Budget, n.Name)
		require.LessOrEqual(t, f.Notified, 1, "%s", n.Name)
		plan.Judge = eager
		loose.Add(simulated(t, plan))
	}
	t.Logf("%+v", sum)
	require.Greater(t, sum.Remeasured, 200, "there are suspects to be wrong about")
	require.LessOrEqual(t, sum.Notified, 2)
	require.Greater(t, loose.Notified, 8, "a rule without its level does not pass")
}

func TestRealChangesAreFound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"normal", "AR(1) 0.5"} {
		plan := small(noise(t, name))
		plan.Planted, plan.Commits = true, 60
		f := simulated(t, plan)
		for i, c := range simulate.Changes() {
			got := f.Planted[i]
			require.GreaterOrEqual(t, got.Planted, 18)
			require.GreaterOrEqual(t, float64(got.Found), 0.7*float64(got.Planted), "%s, %s: %+v", name, c.Name, got)
			require.LessOrEqual(t, got.NoDifference, 1, "%s, %s: %+v", name, c.Name, got)
		}
	}
}

// Without a budget for pairs nothing is decided, and nothing told.
func TestTheBudgetIsKept(t *testing.T) {
	t.Parallel()
	plan := small(noise(t, "normal"))
	plan.Budget = 0.15 // 30 runs: 14 pairs
	f := simulated(t, plan)
	require.LessOrEqual(t, f.MostExtraRuns, 0.15)
	require.Positive(t, f.ExtraRuns)
	require.Positive(t, f.Stopped)
	plan.Budget = 0.1
	f = simulated(t, plan)
	require.Zero(t, f.ExtraRuns)
	require.Zero(t, f.Remeasured)
	require.Positive(t, f.Suspicions)
}

func TestTheFormerRuleIsMisledBySessions(t *testing.T) {
	t.Parallel()
	for name, misled := range map[string]bool{"normal": false, "κ = 2, τ = 0.3": true, "bimodal by session": true} {
		plan := small(noise(t, name))
		plan.Former = 1
		f := simulated(t, plan)
		require.Equal(t, f.Requests, f.FormerRequests)
		if misled {
			require.Equal(t, f.Requests, f.FormerNotified, name)
			require.Greater(t, f.FormerRows, f.Requests, name)
		} else {
			require.LessOrEqual(t, f.FormerNotified, 1, name)
		}
	}
}

// All series in turns: no suspicion, no budget, and each is decided in a family of all.
func TestEverythingInTurns(t *testing.T) {
	t.Parallel()
	plan := small(noise(t, "normal, all in turns"))
	plan.Commits, plan.TestCases = 1, 10
	f := simulated(t, plan)
	require.Equal(t, 50, f.Remeasured)
	require.Zero(t, f.FalseRows)
	require.Zero(t, f.Suspicions)
	require.Positive(t, f.NoDifference)
}

// A young project has no history: its commits are compared with the few before.
func TestYoungProjects(t *testing.T) {
	t.Parallel()
	plan := small(noise(t, "normal"))
	plan.Young = true
	f := simulated(t, plan)
	require.Equal(t, 12, f.Requests)
	require.LessOrEqual(t, f.Notified, 1)
}

func TestFiguresDependOnTheSeedOnly(t *testing.T) {
	t.Parallel()
	plan := small(noise(t, "heavy tail (t, 2 df)"))
	plan.Projects, plan.Commits, plan.TestCases, plan.Planted, plan.Former = 3, 2, 10, true, 1
	alone, err := simulate.Simulate(t.Context(), plan, 1)
	require.NoError(t, err)
	require.Equal(t, alone, simulated(t, plan))
	plan.Random = seed(2027)
	require.NotEqual(t, alone, simulated(t, plan))
}

func TestImpossiblePlansAreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*simulate.Plan){
		"no project":   func(p *simulate.Plan) { p.Projects = 0 },
		"no commit":    func(p *simulate.Plan) { p.Commits = 0 },
		"no test case": func(p *simulate.Plan) { p.TestCases = 0 },
	} {
		plan := small(noise(t, "normal"))
		spoil(&plan)
		_, err := simulate.Simulate(t.Context(), plan, 1)
		require.Error(t, err, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := simulate.Simulate(ctx, small(noise(t, "normal")), 2)
	require.ErrorIs(t, err, context.Canceled)
}

func TestNoisesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, n := range simulate.Noises() {
		require.NotEmpty(t, strings.TrimSpace(n.Name))
		require.False(t, seen[n.Name], n.Name)
		seen[n.Name] = true
	}
	require.Len(t, seen, len(simulate.Noises()), fmt.Sprint(seen))
}
