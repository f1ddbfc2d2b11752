package verdict_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/verdict"
)

// candidates returns n candidates whose pairs cost one each, the last one with the best prospect.
func candidates(n int) []verdict.Candidate {
	c := make([]verdict.Candidate, n)
	for i := range c {
		c[i] = verdict.Candidate{Prospect: float64(3 + i), Cost: 1}
	}
	return c
}

func chosen(c []verdict.Candidate, pairs int, budget float64) (indices []int) {
	for i, yes := range verdict.Choose(c, pairs, budget) {
		if yes {
			indices = append(indices, i)
		}
	}
	return indices
}

func TestTheBudgetGoesToThoseThatLookMostLikeChanges(t *testing.T) {
	t.Parallel()
	five := candidates(5)
	require.Equal(t, []int{0, 1, 2, 3, 4}, chosen(five, 0, math.Inf(1)))
	require.Equal(t, []int{0, 1, 2, 3, 4}, chosen(five, 0, 5*34), "all can be measured up to the last look but one")
	require.Equal(t, []int{4}, chosen(five, 0, 40), "there is room for four first looks, but then none could go on")
	require.Equal(t, []int{2, 3, 4}, chosen(five, 6, 3*28))
	require.Equal(t, []int{4}, chosen(five, 6, 28))
	require.Equal(t, []int{4}, chosen(five, 6, 8), "the best goes on, even if not to the end")
	require.Empty(t, chosen(five, 6, 7))
	require.Equal(t, []int{3, 4}, chosen(five, 34, 24), "after 34 pairs, there is one more look")
	require.Equal(t, []int{4}, chosen(five, 0, 14), "one change could be confirmed")
	require.Empty(t, chosen(five, 0, 13), "no change could be confirmed")
	require.Empty(t, chosen(nil, 0, 100))
}

func TestFirstLooksScreenMoreThanCanBeDecided(t *testing.T) {
	t.Parallel()
	many := candidates(100)
	first := chosen(many, 0, 342)
	require.Len(t, first, 28, "half of the budget")
	require.Equal(t, 99, first[len(first)-1])
	require.True(t, slices.Contains(first, 75))
	require.Len(t, chosen(many, 6, 342-6*28), 6)
}

func TestACandidateThatIsTooDearDoesNotStopTheNext(t *testing.T) {
	t.Parallel()
	c := candidates(3)
	c[2].Cost = 100
	require.Equal(t, []int{0, 1}, chosen(c, 6, 60))
}

func TestChangesHaveTheBestProspects(t *testing.T) {
	t.Parallel()
	require.Zero(t, verdict.Evidence{}.Prospect(3))
	require.Zero(t, verdict.Evidence{Sessions: repeat(5, 5, 6)}.Prospect(0))
	require.Equal(t, 900.0, verdict.Evidence{Sessions: repeat(5, 6, 6)}.Prospect(0), "without noise")
	better := 0
	const repetitions = 200
	for i := range uint64(repetitions) {
		same, slower := newWorld(i, 0.01, 0), newWorld(1000+i, 0.01, 0.02)
		a, b := verdict.Evidence{Sessions: same.sessions(1)}, verdict.Evidence{Sessions: slower.sessions(1)}
		if b.Prospect(0) > a.Prospect(0) {
			better++
		}
	}
	require.GreaterOrEqual(t, better, repetitions*9/10, "+2 %% stands out after six pairs")
	slower := verdict.Evidence{Sessions: newWorld(1, 0.01, 0.02).sessions(1)}
	require.Greater(t, slower.Prospect(4), slower.Prospect(3), "the larger suspicion")
	require.Greater(t, slower.Prospect(3), 0.0)
	require.Less(t, slower.Prospect(-3), 1.5, "in the other direction than suspected")
}

func TestProspectsDoNotDependOnWhichSideIsCalledFirst(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(30, 30))
	for range 300 {
		e := anyEvidence(random)
		swapped := e
		swapped.Sessions = each(e.Sessions, func(p *verdict.Pair) { p.A, p.B = p.B, p.A })
		for _, suspected := range []float64{-4, 0, 4} {
			require.InDelta(t, e.Prospect(suspected), swapped.Prospect(-suspected), 1e-6)
			require.False(t, math.IsNaN(e.Prospect(suspected)))
		}
	}
}
