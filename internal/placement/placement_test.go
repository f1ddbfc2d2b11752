package placement_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

const (
	x86 = bench.Target("x86_64-unknown-linux-gnu")
	arm = bench.Target("aarch64-unknown-linux-gnu")
)

func pool(target bench.Target, class bench.SizeClass, name string, live, total int) placement.Pool {
	return placement.Pool{Pool: bench.Pool{Target: target, SizeClass: class, Name: name}, Live: live, Total: total}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	pools := []placement.Pool{
		pool(x86, 1, "small", 2, 2),
		pool(x86, 4, "asleep", 0, 3),
		pool(x86, 4, "awake", 1, 1),
		pool(x86, 8, "removed", 0, 0),
		pool(arm, 2, "arm", 1, 1),
	}
	for name, c := range map[string]struct {
		wish placement.Wish
		want string
	}{
		"the largest registered class, where somebody is awake": {placement.Wish{Target: x86}, "awake"},
		"the pinned class":                {placement.Wish{Target: x86, Class: 1}, "small"},
		"the only pool of another target": {placement.Wish{Target: arm}, "arm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := placement.Choose(pools, c.wish)
			require.NoError(t, err)
			require.Equal(t, c.want, got.Name)
		})
	}
}

// A job that no registered collector can ever run is refused with what was
// wanted and what there is.
func TestChooseUnplaceable(t *testing.T) {
	t.Parallel()
	_, err := placement.Choose([]placement.Pool{pool(x86, 2, "a", 1, 1)}, placement.Wish{Target: x86, MinSize: 4})
	var unplaceable *placement.Unplaceable
	require.ErrorAs(t, err, &unplaceable)
	require.ErrorContains(t, err, "x86_64-unknown-linux-gnu of size class 4 or more")
	require.ErrorContains(t, err, "registered are x86_64-unknown-linux-gnu size 2 (pool a)")

	_, err = placement.Choose(nil, placement.Wish{Target: arm})
	require.ErrorContains(t, err, "none is registered at all")
}

// The choice meets every hard constraint and does not depend on the order in
// which pools are listed.
func TestChooseProperties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var pools []placement.Pool
		for i := range random.IntN(6) {
			target := []bench.Target{x86, arm}[random.IntN(2)]
			total := random.IntN(3)
			pools = append(pools, pool(target, bench.SizeClass(1+random.IntN(4)), string(rune('a'+i)), random.IntN(total+1), total))
		}
		wish := placement.Wish{Target: x86, MinSize: bench.SizeClass(random.IntN(4)), Class: bench.SizeClass(random.IntN(4))}
		got, err := placement.Choose(pools, wish)
		random.Shuffle(len(pools), func(i, j int) { pools[i], pools[j] = pools[j], pools[i] })
		again, errAgain := placement.Choose(pools, wish)
		require.Equal(t, err == nil, errAgain == nil)
		require.Equal(t, got, again)
		if err != nil {
			continue
		}
		require.Equal(t, wish.Target, got.Target)
		require.GreaterOrEqual(t, got.SizeClass, wish.MinSize)
		require.True(t, wish.Class == 0 || got.SizeClass == wish.Class)
	}
}
