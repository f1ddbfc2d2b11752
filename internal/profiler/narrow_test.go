package profiler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

// A job measured two artifacts in turns: each side has its own commands, and warm-ups are of neither.
func TestASummaryIsNarrowedToOneSide(t *testing.T) {
	t.Parallel()
	used := profiler.Series{Scope: profiler.ScopeJob, Name: string(profiler.CPUUsed)}
	faults := profiler.Series{Scope: profiler.ScopeJob, Name: string(profiler.PageFaults)}
	s := profiler.Summary{
		Commands: []profiler.Command{
			{Batch: 1, Artifact: "a", Case: "gin", Iteration: 1, WarmUp: true}, {Batch: 2, Artifact: "a", Case: "gin", Iteration: 1}, {Batch: 3, Artifact: "b", Case: "gin", Iteration: 1},
			{Batch: 4, Artifact: "b", Case: "echo", Iteration: 1}, {Batch: 5, Artifact: "b", Case: "gin", Iteration: 2},
		},
		Series: []profiler.SeriesSummary{
			{Series: used, Unit: profiler.CPUs, Batches: []int{1, 2, 3, 4, 5}, Mean: []float64{9, 1, 2, 9, 4}, Max: []float64{9, 3, 5, 9, 4}},
			{Series: faults, Unit: profiler.FaultsPerSecond, Batches: []int{4, 5}, Mean: []float64{7, 8}, Max: []float64{7, 9}},
		},
		Phases: []profiler.PhaseSummary{{Name: "measuring", Count: 5}},
	}
	a, b := s.Of("a", "gin"), s.Of("b", "gin")
	require.Equal(t, profiler.Summary{
		Commands: []profiler.Command{{Batch: 2, Artifact: "a", Case: "gin", Iteration: 1}},
		Series:   []profiler.SeriesSummary{{Series: used, Unit: profiler.CPUs, Batches: []int{2}, Mean: []float64{1}, Max: []float64{3}}},
	}, a)
	require.Len(t, b.Commands, 2)
	require.Equal(t, []profiler.SeriesTotal{
		{Series: used, Unit: profiler.CPUs, Commands: 2, Mean: 3, Max: 5},
		{Series: faults, Unit: profiler.FaultsPerSecond, Commands: 1, Mean: 8, Max: 9},
	}, profiler.SumUp([]profiler.Summary{b}))
	require.Equal(t, []profiler.SeriesTotal{
		{Series: used, Unit: profiler.CPUs, Commands: 3, Mean: 7.0 / 3, Max: 5},
		{Series: faults, Unit: profiler.FaultsPerSecond, Commands: 1, Mean: 8, Max: 9},
	}, profiler.SumUp([]profiler.Summary{a, b}), "of several runs")
	require.Empty(t, s.Of("c", "gin"))
	require.Empty(t, profiler.SumUp([]profiler.Summary{s.Of("c", "gin")}))
}
