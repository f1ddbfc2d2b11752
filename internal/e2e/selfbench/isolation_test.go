package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheIntervalOfAMedianCoversIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	covered := 0
	const trials = 1000
	for range trials {
		values := make([]float64, 400)
		for i := range values {
			values[i] = random.ExpFloat64() - 0.6931471805599453 // its median is 0
		}
		low, high := medianInterval(values)
		if low <= 0 && 0 <= high {
			covered++
		}
	}
	require.InDelta(t, 0.95, float64(covered)/trials, 0.025)
	low, high := medianInterval([]float64{3})
	require.Equal(t, []float64{3, 3}, []float64{low, high})
}

func TestIsolationIsJudgedByPairs(t *testing.T) {
	t.Parallel()
	wall := func(c cost) time.Duration { return c.wall }
	var open, isolated, wide []cost
	for i := range 400 {
		drift := time.Duration(i) * time.Millisecond
		jitter := time.Duration(i*7919%101) * 10 * time.Microsecond
		open = append(open, cost{wall: time.Second + drift})
		isolated = append(isolated, cost{wall: time.Second + drift + 12*time.Millisecond + jitter})
		wide = append(wide, cost{wall: time.Second + 2*drift})
	}
	f := isolationFigure("x", open, isolated, wall)
	values := map[string]float64{}
	for _, v := range f.values {
		values[v.Unit] = v.Value
	}
	require.InDelta(t, 1.04, values[unitPercent], 0.02, "12.5 ms of a median of 1.2 s")
	require.Greater(t, values[unitBeyond], values[unitPercent])
	require.InDelta(t, 0, values[unitSpread], 0.01)
	f = isolationFigure("x", open, wide, wall)
	require.InDelta(t, 1, f.values[len(f.values)-1].Value, 0.01)
}

func TestIsolationIsMeasured(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	report := newReport(&stdout, nil)
	err := measureIsolation(t.Context(), isolationPlan{pairs: 2, loops: 1000, forks: 2}, report)
	if os.Geteuid() != 0 {
		require.ErrorContains(t, err, "cannot be measured")
		return
	}
	require.NoError(t, err)
	require.Len(t, report.figures, 4)
	for _, program := range []string{loopProgram, forksProgram} {
		require.Len(t, valuesOf(report.figures, isolationName(program), unitBeyond), 1)
	}
}
