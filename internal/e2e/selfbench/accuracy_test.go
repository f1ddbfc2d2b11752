package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	compared "github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/verdict"
)

func TestAccuracyFigure(t *testing.T) {
	t.Parallel()
	result := func(change float64, kind verdict.Kind) []compared.Row {
		cpu := compared.Row{Verdict: &kind, Significant: kind == verdict.Changed}
		if cpu.Significant {
			cpu.Direction = compared.Regression
			if change < 0 {
				cpu.Direction = compared.Improvement
			}
		}
		cpu.Metric, cpu.Change.Value = string(bench.CPUTime), change
		wall := cpu
		wall.Metric = string(bench.WallTime)
		return []compared.Row{wall, cpu}
	}
	for name, c := range map[string]struct {
		tag                   string
		results               []compared.Row
		off, wrong, undecided float64
	}{
		"the same, found":                     {tagSame, result(0.01, verdict.NoDifference), 1, 0, 0},
		"the same, undecided":                 {tagSame, result(0.02, verdict.Undecided), 2, 0, 1},
		"the same, called changed":            {tagSame, result(-0.03, verdict.Changed), 3, 1, 0},
		"slower, found":                       {tagSlow, result(0.25, verdict.Changed), 5, 0, 0},
		"slower, called faster":               {tagSlow, result(-0.1, verdict.Changed), 30, 1, 0},
		"slower, undecided":                   {tagSlow, result(0.18, verdict.Undecided), 2, 0, 1},
		"slower, said not to be a difference": {tagSlow, result(0.005, verdict.NoDifference), 19.5, 1, 0},
	} {
		f, err := accuracyFigure(byCommand, c.tag, c.results)
		require.NoError(t, err, name)
		require.Equal(t, accuracyName(byCommand, c.tag), f.name, name)
		values := map[string]float64{}
		for _, v := range f.values {
			values[v.Unit] = v.Value
		}
		require.InDelta(t, c.off, values[unitOff], 1e-9, name)
		require.Equal(t, c.wrong, values[unitWrong], name)
		require.Equal(t, c.undecided, values[unitUndecidedVerdicts], name)
	}
	_, err := accuracyFigure(byCommand, tagSame, nil)
	require.ErrorContains(t, err, "0 results for CPU time instead of one")
}
