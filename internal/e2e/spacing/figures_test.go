package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// series has a value at each of some milliseconds.
func series(scope profiler.Scope, name string, value float64, at ...int) profiler.Batch {
	b := profiler.Batch{Series: profiler.Series{Scope: scope, Name: name}}
	for _, ms := range at {
		b.Times, b.Values = append(b.Times, began.Add(time.Duration(ms)*time.Millisecond)), append(b.Values, value)
	}
	return b
}

func TestIntervalsAreCounted(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		at       []int
		pressure float64
		figures  figures
	}{
		"even":        {[]int{100, 200, 300}, 0, figures{intervals: 2, longest: 100 * time.Millisecond}},
		"late":        {[]int{100, 200, 351}, 0, figures{intervals: 2, late: 1, longest: 151 * time.Millisecond}},
		"explained":   {[]int{100, 200, 451}, .1, figures{intervals: 2, late: 1, veryLate: 1, longest: 251 * time.Millisecond}},
		"unexplained": {[]int{100, 200, 451}, 0, figures{intervals: 2, late: 1, veryLate: 1, unexplained: 1, longest: 251 * time.Millisecond}},
		"a burst":     {[]int{100, 149, 300}, 0, figures{intervals: 2, late: 1, bursts: 1, longest: 151 * time.Millisecond}},
	} {
		got := measureSpacing([]profiler.Batch{series(profiler.ScopeJob, "cpu_used", 1, c.at...), series(profiler.ScopeMachine, "cpu_pressure", c.pressure, c.at...)})
		require.Equal(t, c.figures, got, want)
	}
	require.InDelta(t, .5, figures{intervals: 4, late: 2}.kept(), 1e-9)
}

func TestSamplesAddUp(t *testing.T) {
	t.Parallel()
	used := series(profiler.ScopeJob, "cpu_used", 2, 200, 300, 450)
	require.InDelta(t, .7, sampledCPU([]profiler.Batch{used, series(profiler.ScopeJob, "memory_used", 1e9, 100, 200, 300, 450)}), 1e-9, "a rate begins with the second reading")
	require.Zero(t, sampledCPU([]profiler.Batch{series(profiler.ScopeMachine, "cpu_util", 1, 100)}))
}

func TestBrokenLimitsAreTold(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	good := report{figures: figures{intervals: 1000, late: 5}, runs: 1, compared: 1, most: .04}
	require.NoError(t, good.judge(&out))
	require.Contains(t, out.String(), "99.500 % of at most 150 ms")
	require.ErrorContains(t, (&report{}).judge(&out), "no run was sampled")
	bad := report{figures: figures{intervals: 1000, late: 6, unexplained: 1, bursts: 1}, off: 1}
	for _, text := range []string{"99.5 %", "250 ms", "50 ms", "by more than 5 %"} {
		require.ErrorContains(t, bad.judge(&out), text)
	}
}
