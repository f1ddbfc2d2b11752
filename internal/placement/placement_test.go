package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

const (
	x86 = bench.Target("x86_64-unknown-linux-gnu")
	arm = bench.Target("aarch64-unknown-linux-gnu")
)

// pool is a pool of so many alike collectors, of which the first are live.
func pool(target bench.Target, class bench.SizeClass, name string, live, total int) []placement.Collector {
	var out []placement.Collector
	for i := range total {
		out = append(out, placement.Collector{
			Name: fmt.Sprintf("%s-%d", name, i), Pool: bench.Pool{Target: target, SizeClass: class, Name: name}, Live: i < live, Active: true,
		})
	}
	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()
	fleet := slices.Concat(pool(x86, 1, "small", 2, 2), pool(x86, 4, "asleep", 0, 3), pool(x86, 4, "awake", 1, 1), pool(arm, 2, "arm", 1, 1))
	for name, c := range map[string]struct {
		needs placement.Requirements
		want  string
	}{
		"the largest registered class, where somebody is awake": {placement.Requirements{Target: x86}, "awake"},
		"the pinned class":                {placement.Requirements{Target: x86, Class: 1}, "small"},
		"the only pool of another target": {placement.Requirements{Target: arm}, "arm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := placement.Choose(fleet, c.needs)
			require.NoError(t, err)
			require.Equal(t, c.want, got.Name)
		})
	}
}

// A job that no registered collector can ever run is refused with what was
// wanted and what there is.
func TestChooseUnplaceable(t *testing.T) {
	t.Parallel()
	_, err := placement.Choose(pool(x86, 2, "a", 1, 1), placement.Requirements{Target: x86, MinSize: 4})
	var unplaceable *placement.Unplaceable
	require.ErrorAs(t, err, &unplaceable)
	require.ErrorContains(t, err, "x86_64-unknown-linux-gnu of size class 4 or more")
	require.ErrorContains(t, err, "registered are x86_64-unknown-linux-gnu size 2 (pool a)")

	_, err = placement.Choose(nil, placement.Requirements{Target: arm})
	require.ErrorContains(t, err, "none is registered at all")
}
