package placement_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

func away(p []placement.Collector, d time.Duration) []placement.Collector {
	p = slices.Clone(p)
	for i := range p {
		p[i].Away = d
	}
	return p
}

func TestPlanFailover(t *testing.T) {
	t.Parallel()
	home := bench.Pool{Target: x86, SizeClass: 2, Name: "home"}
	dead := away(pool(x86, 2, "home", 0, 1), 3*time.Minute)
	waiting := placement.Waiting{At: bench.Place{Pool: home}, After: 5 * time.Minute}
	pinned, patient := waiting, waiting
	pinned.Pinned, patient.After = true, 0
	for name, c := range map[string]struct {
		fleet [][]placement.Collector
		job   placement.Waiting
		to    string // empty: nowhere
		in    time.Duration
		words string
	}{
		"a live pool":            {[][]placement.Collector{pool(x86, 2, "home", 1, 2), pool(x86, 2, "b", 1, 1)}, waiting, "", 0, ""},
		"not yet":                {[][]placement.Collector{dead, pool(x86, 2, "b", 1, 1)}, waiting, "b", 2 * time.Minute, "pool bench/x86_64-unknown-linux-gnu/2/home has had no live collector for 3m0s; the job moves to pool bench/x86_64-unknown-linux-gnu/2/b at 12:02:00 UTC"},
		"now":                    {[][]placement.Collector{away(dead, 5*time.Minute), pool(x86, 2, "b", 1, 1)}, waiting, "b", 0, "/2/b with the next reconciliation"},
		"removed: at once":       {[][]placement.Collector{pool(x86, 2, "b", 1, 1)}, waiting, "b", 0, "has no registered collector"},
		"the same class first":   {[][]placement.Collector{dead, pool(x86, 4, "a", 9, 9), pool(x86, 2, "b", 1, 1), pool(x86, 2, "c", 2, 2)}, waiting, "c", 2 * time.Minute, ""},
		"the nearest above":      {[][]placement.Collector{dead, pool(x86, 8, "a", 9, 9), pool(x86, 4, "b", 1, 1), pool(x86, 2, "c", 0, 2)}, waiting, "b", 2 * time.Minute, ""},
		"never smaller":          {[][]placement.Collector{dead, pool(x86, 1, "a", 9, 9)}, waiting, "", 0, "no other pool that could take the job has one either"},
		"never another target":   {[][]placement.Collector{dead, pool(arm, 2, "a", 9, 9)}, waiting, "", 0, "no other pool"},
		"a pinned class stays":   {[][]placement.Collector{dead, pool(x86, 4, "a", 9, 9)}, pinned, "", 0, "no other pool"},
		"pinned, another pool":   {[][]placement.Collector{dead, pool(x86, 2, "a", 1, 1)}, pinned, "a", 2 * time.Minute, ""},
		"the project says never": {[][]placement.Collector{dead, pool(x86, 2, "b", 1, 1)}, patient, "", 0, "failover_after is never"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := placement.PlanFailover(slices.Concat(c.fleet...), c.job)
			if c.to == "" {
				require.Nil(t, f.To)
				require.False(t, f.Due())
			} else {
				require.Equal(t, c.to, f.To.Name)
				require.Equal(t, c.in, f.In)
				require.Equal(t, c.in == 0, f.Due())
			}
			require.Contains(t, f.Words(bench.Place{Pool: home}, time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)), c.words)
		})
	}
	require.Zero(t, placement.PlanFailover(pool(x86, 2, "home", 1, 2), waiting))
}

// Wherever a job goes somebody lives, and it never goes when somebody lives at
// home. The order of the pools does not matter.
func TestPlanFailoverProperties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	moved := 0
	for range 5000 {
		var fleet []placement.Collector
		for i := range random.IntN(6) {
			total := random.IntN(3)
			p := pool([]bench.Target{x86, arm}[random.IntN(2)], bench.SizeClass(1+random.IntN(3)), string(rune('a'+i)), random.IntN(total+1), total)
			fleet = append(fleet, away(p, time.Duration(random.IntN(600))*time.Second)...)
		}
		job := placement.Waiting{
			At:     bench.Place{Pool: bench.Pool{Target: x86, SizeClass: bench.SizeClass(1 + random.IntN(3)), Name: string(rune('a' + random.IntN(7)))}},
			Pinned: random.IntN(2) == 0, After: time.Duration(random.IntN(3)) * 100 * time.Second,
		}
		f := placement.PlanFailover(fleet, job)
		random.Shuffle(len(fleet), func(i, j int) { fleet[i], fleet[j] = fleet[j], fleet[i] })
		require.Equal(t, f, placement.PlanFailover(fleet, job))
		live := make(map[bench.Pool]bool)
		for _, c := range fleet {
			if c.Live {
				live[c.Pool] = true
			}
		}
		lives := live[job.At.Pool]
		require.Equal(t, !lives, f.Stranded)
		if f.To == nil {
			continue
		}
		moved++
		require.Empty(t, f.To.Set, "a whole pool will do")
		require.Contains(t, live, f.To.Pool)
		require.NotEqual(t, job.At.Pool, f.To.Pool)
		require.Equal(t, x86, f.To.Target)
		require.GreaterOrEqual(t, f.To.SizeClass, job.At.SizeClass)
		for p := range live {
			nearer := p.Target == x86 && p.SizeClass >= job.At.SizeClass && p.SizeClass < f.To.SizeClass
			require.False(t, nearer, "%v is nearer to %v than %v", p, job.At.Pool, *f.To)
		}
	}
	require.Greater(t, moved, 500)
}

func TestChooseABoundPool(t *testing.T) {
	t.Parallel()
	fleet := slices.Concat(pool(x86, 4, "a", 1, 1), pool(x86, 2, "b", 0, 1))
	got, err := placement.Choose(fleet, placement.Requirements{Target: x86, Pool: "b"})
	require.NoError(t, err)
	require.Equal(t, "b", got.Name)
	_, err = placement.Choose(fleet, placement.Requirements{Target: x86, Pool: "c"})
	require.ErrorContains(t, err, "no collector is registered that can run x86_64-unknown-linux-gnu in pool c")
}
