package placement_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

func away(p placement.Pool, d time.Duration) placement.Pool {
	p.Away = d
	return p
}

func TestPlanFailover(t *testing.T) {
	t.Parallel()
	home := bench.Pool{Target: x86, SizeClass: 2, Name: "home"}
	dead := away(pool(x86, 2, "home", 0, 1), 3*time.Minute)
	waiting := placement.Waiting{Pool: home, After: 5 * time.Minute}
	pinned, patient := waiting, waiting
	pinned.Pinned, patient.After = true, 0
	for name, c := range map[string]struct {
		pools []placement.Pool
		job   placement.Waiting
		to    string // empty: nowhere
		in    time.Duration
		words string
	}{
		"a live pool":            {[]placement.Pool{pool(x86, 2, "home", 1, 2), pool(x86, 2, "b", 1, 1)}, waiting, "", 0, ""},
		"not yet":                {[]placement.Pool{dead, pool(x86, 2, "b", 1, 1)}, waiting, "b", 2 * time.Minute, "pool bench/x86_64-unknown-linux-gnu/2/home has had no live collector for 3m0s; the job moves to pool bench/x86_64-unknown-linux-gnu/2/b at 12:02:00 UTC"},
		"now":                    {[]placement.Pool{away(dead, 5*time.Minute), pool(x86, 2, "b", 1, 1)}, waiting, "b", 0, "/2/b with the next reconciliation"},
		"removed: at once":       {[]placement.Pool{pool(x86, 2, "b", 1, 1)}, waiting, "b", 0, "has no registered collector"},
		"the same class first":   {[]placement.Pool{dead, pool(x86, 4, "a", 9, 9), pool(x86, 2, "b", 1, 1), pool(x86, 2, "c", 2, 2)}, waiting, "c", 2 * time.Minute, ""},
		"the nearest above":      {[]placement.Pool{dead, pool(x86, 8, "a", 9, 9), pool(x86, 4, "b", 1, 1), pool(x86, 2, "c", 0, 2)}, waiting, "b", 2 * time.Minute, ""},
		"never smaller":          {[]placement.Pool{dead, pool(x86, 1, "a", 9, 9)}, waiting, "", 0, "no other pool that could take the job has one either"},
		"never another target":   {[]placement.Pool{dead, pool(arm, 2, "a", 9, 9)}, waiting, "", 0, "no other pool"},
		"a pinned class stays":   {[]placement.Pool{dead, pool(x86, 4, "a", 9, 9)}, pinned, "", 0, "no other pool"},
		"pinned, another pool":   {[]placement.Pool{dead, pool(x86, 2, "a", 1, 1)}, pinned, "a", 2 * time.Minute, ""},
		"the project says never": {[]placement.Pool{dead, pool(x86, 2, "b", 1, 1)}, patient, "", 0, "failover_after is never"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := placement.PlanFailover(c.pools, c.job)
			if c.to == "" {
				require.Nil(t, f.To)
				require.False(t, f.Due())
			} else {
				require.Equal(t, c.to, f.To.Name)
				require.Equal(t, c.in, f.In)
				require.Equal(t, c.in == 0, f.Due())
			}
			require.Contains(t, f.Words(home, time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)), c.words)
		})
	}
	require.Zero(t, placement.PlanFailover([]placement.Pool{pool(x86, 2, "home", 1, 2)}, waiting))
}

// Wherever a job goes somebody lives, and it never goes when somebody lives at
// home. The order of the pools does not matter.
func TestPlanFailoverProperties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	moved := 0
	for range 5000 {
		var pools []placement.Pool
		for i := range random.IntN(6) {
			total := random.IntN(3)
			p := pool([]bench.Target{x86, arm}[random.IntN(2)], bench.SizeClass(1+random.IntN(3)), string(rune('a'+i)), random.IntN(total+1), total)
			if p.Live == 0 {
				p.Away = time.Duration(random.IntN(600)) * time.Second
			}
			pools = append(pools, p)
		}
		job := placement.Waiting{
			Pool:   bench.Pool{Target: x86, SizeClass: bench.SizeClass(1 + random.IntN(3)), Name: string(rune('a' + random.IntN(7)))},
			Pinned: random.IntN(2) == 0, After: time.Duration(random.IntN(3)) * 100 * time.Second,
		}
		f := placement.PlanFailover(pools, job)
		random.Shuffle(len(pools), func(i, j int) { pools[i], pools[j] = pools[j], pools[i] })
		require.Equal(t, f, placement.PlanFailover(pools, job))
		live := make(map[bench.Pool]placement.Pool)
		for _, p := range pools {
			if p.Live > 0 {
				live[p.Pool] = p
			}
		}
		_, lives := live[job.Pool]
		require.Equal(t, !lives, f.Stranded)
		if f.To == nil {
			continue
		}
		moved++
		require.Contains(t, live, *f.To)
		require.NotEqual(t, job.Pool, *f.To)
		require.Equal(t, x86, f.To.Target)
		require.GreaterOrEqual(t, f.To.SizeClass, job.Pool.SizeClass)
		for p := range live {
			nearer := p.Target == x86 && p.SizeClass >= job.Pool.SizeClass && p.SizeClass < f.To.SizeClass
			require.False(t, nearer, "%v is nearer to %v than %v", p, job.Pool, *f.To)
		}
	}
	require.Greater(t, moved, 500)
}

func TestChooseABoundPool(t *testing.T) {
	t.Parallel()
	pools := []placement.Pool{pool(x86, 4, "a", 1, 1), pool(x86, 2, "b", 0, 1)}
	got, err := placement.Choose(pools, placement.Wish{Target: x86, Pool: "b"})
	require.NoError(t, err)
	require.Equal(t, "b", got.Name)
	_, err = placement.Choose(pools, placement.Wish{Target: x86, Pool: "c"})
	require.ErrorContains(t, err, "no collector is registered that can run x86_64-unknown-linux-gnu in pool c")
}
