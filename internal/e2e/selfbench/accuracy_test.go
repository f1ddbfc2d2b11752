package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
)

func TestAccuracyFigure(t *testing.T) {
	t.Parallel()
	result := func(change float64, significant bool, verdict stats.Verdict) []stats.Result {
		cpu := stats.Result{Significant: significant, Verdict: verdict}
		cpu.Metric, cpu.Change.Value = string(bench.CPUTime), change
		wall := cpu
		wall.Metric = string(bench.WallTime)
		return []stats.Result{wall, cpu}
	}
	for _, c := range []struct {
		tag        string
		results    []stats.Result
		off, wrong float64
	}{
		{tagSame, result(0.01, false, stats.Undecided), 1, 0},
		{tagSame, result(-0.03, true, stats.Improvement), 3, 1},
		{tagSlow, result(0.25, true, stats.Regression), 5, 0},
		{tagSlow, result(0.18, false, stats.Undecided), 2, 1},
	} {
		f, err := accuracyFigure(byCommand, c.tag, c.results)
		require.NoError(t, err)
		require.Equal(t, accuracyName(byCommand, c.tag), f.name)
		require.InDelta(t, c.off, f.values[1].Value, 1e-9)
		require.Equal(t, c.wrong, f.values[2].Value)
	}
	_, err := accuracyFigure(byCommand, tagSame, nil)
	require.ErrorContains(t, err, "0 results for CPU time instead of one")
}
