package simulate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/suspect"
)

// A coefficient of variation of 1 % is what the noise model shows as such, whatever the shape.
func TestSpreadsAreWhatTheNoiseModelShows(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 1))
	for _, draw := range []func(Random) float64{normal, heavyTail} {
		groups := make([][]float64, 4000)
		for i := range groups {
			for range sessionSize {
				groups[i] = append(groups[i], draw(random))
			}
		}
		require.InDelta(t, 1, noise.Within(groups), 0.03)
	}
}

// The screen saves time. It must not hide what detection finds in the whole history.
func TestTheScreenLeavesNothingOut(t *testing.T) {
	t.Parallel()
	found := 0
	for _, n := range Noises() {
		p := newProject(n, 8, rand.New(rand.NewPCG(5, 1)))
		for range window {
			p.advance()
		}
		for range 5 {
			p.advance()
			p.screen()
		}
		p.advance()
		seen := map[stats.Key]bool{}
		for _, s := range p.screen() {
			seen[s.series.key] = true
		}
		var all []suspect.Series
		for i := range p.series {
			if p.series[i].metric.deciding {
				all = append(all, p.historyOf(&p.series[i]))
			}
		}
		for _, s := range suspect.Find(all, len(all)) {
			found++
			require.True(t, seen[s.Key], "%s: %s, %s", n.Name, s.Key, s.Reason)
		}
	}
	require.Greater(t, found, 10)
}
