package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	compared "github.com/benchloom/benchloom/internal/report"
)

func TestAccuracyFigure(t *testing.T) {
	t.Parallel()
	result := func(change float64, significant bool, direction compared.Direction) []compared.Row {
		cpu := compared.Row{Significant: significant, Direction: direction}
		cpu.Metric, cpu.Change.Value = string(bench.CPUTime), change
		wall := cpu
		wall.Metric = string(bench.WallTime)
		return []compared.Row{wall, cpu}
	}
	for _, c := range []struct {
		tag        string
		results    []compared.Row
		off, wrong float64
	}{
		{tagSame, result(0.01, false, ""), 1, 0},
		{tagSame, result(-0.03, true, compared.Improvement), 3, 1},
		{tagSlow, result(0.25, true, compared.Regression), 5, 0},
		{tagSlow, result(0.18, false, ""), 2, 1},
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
