package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheCostOfAnAgentIsMeasured(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	report := newReport(&stdout, nil)
	require.NoError(t, measureProfile(t.Context(), profilePlan{pairs: 2, loops: 100_000_000, alone: time.Second}, report))
	require.Len(t, report.figures, 2)
	cost := valuesOf(report.figures, profileCostName, unitCPU)
	require.Len(t, cost, 1)
	require.GreaterOrEqual(t, cost[0], 0.0, "a second may take less than a tick of 10 ms")
	require.Len(t, valuesOf(report.figures, profileName(loopProgram), unitHigh), 1)
}

func TestAnAgentsEffectIsJudgedByPairs(t *testing.T) {
	t.Parallel()
	var without, with []time.Duration
	for i := range mostProfilePairs {
		drift := time.Duration(i) * time.Millisecond
		without, with = append(without, time.Second+drift), append(with, time.Second+drift+time.Duration(i%5)*time.Millisecond)
	}
	f := profileFigure("x", without, with)
	values := map[string]float64{}
	for _, v := range f.values {
		values[v.Unit] = v.Value
	}
	require.InDelta(t, 0.18, values[unitPercent], 0.01, "2 ms of 1.1 s")
	require.GreaterOrEqual(t, values[unitHigh], values[unitPercent])
}
