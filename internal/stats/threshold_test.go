package stats_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
)

// historyOf returns values, newest first, with the given relative changes to the next older value.
func historyOf(changes ...float64) []float64 {
	values := []float64{100}
	for _, change := range slices.Backward(changes) {
		values = append(values, values[len(values)-1]*(1-change))
	}
	return values
}

func TestHistoryThreshold(t *testing.T) {
	t.Parallel()
	// 29 changes of 0.001, 0.002, ... 0.029: Q1 = 0.0075, Q3 = 0.0225, so T = 0.0225 + 3 x 0.015.
	var changes []float64
	for i := range 29 {
		changes = append(changes, float64(i+1)/1000)
	}
	got := stats.HistoryThreshold(historyOf(changes...), stats.DefaultThreshold)
	require.InDelta(t, 0.0675, got.Value, 1e-9)
	require.True(t, got.FromHistory)

	older := append(historyOf(changes...), 1, 1e9, 1)
	require.Equal(t, got, stats.HistoryThreshold(older, stats.DefaultThreshold), "only the newest 30 count")

	level := stats.HistoryThreshold(slices.Repeat([]float64{7}, 30), stats.DefaultThreshold)
	require.True(t, level.FromHistory)
	require.Zero(t, level.Value)

	for name, history := range map[string][]float64{
		"none":     nil,
		"29":       slices.Repeat([]float64{7}, 29),
		"zero":     append(slices.Repeat([]float64{7}, 29), 0),
		"negative": append([]float64{-1}, slices.Repeat([]float64{7}, 29)...),
		"NaN":      append([]float64{math.NaN()}, slices.Repeat([]float64{7}, 29)...),
		"infinite": append([]float64{math.Inf(1)}, slices.Repeat([]float64{7}, 29)...),
	} {
		got := stats.HistoryThreshold(history, 0.01)
		require.Equal(t, 0.01, got.Value, name)
		require.False(t, got.FromHistory, name)
		require.Contains(t, got.Source, "default", name)
	}
}

func TestMagnitudeOf(t *testing.T) {
	t.Parallel()
	f := func(change, threshold float64, precise bool, want stats.Magnitude) {
		t.Helper()
		require.Equal(t, want, stats.MagnitudeOf(change, threshold, precise))
		require.Equal(t, want, stats.MagnitudeOf(-change, threshold, precise))
	}
	f(0.00009, 0.000001, true, stats.VerySmall) // below 0.01 % whatever the factor
	f(0.0002, 0.002, true, stats.VerySmall)     // factor 0.1 (1), 0.02 % (1)
	f(0.004, 0.002, true, stats.Small)          // factor 2 (2), 0.4 % (2)
	f(0.008, 0.002, true, stats.Small)          // factor 4 (3), 0.8 % (2): 2.5 rounds down
	f(0.012, 0.002, true, stats.Medium)         // factor 6 (4), 1.2 % (3): 3.5 rounds down
	f(0.03, 0.002, true, stats.Large)           // factor 15 (5), 3 % (4): 4.5 rounds down
	f(0.2, 0.002, true, stats.VeryLarge)        // factor 100 (5), 20 % (5)
	f(0.06, 0.002, true, stats.VeryLarge)       // factor 30 (5), 6 % (5)
	f(0.06, 0.002, false, stats.Large)          // the same at half the percentage: 3 % (4)
	f(0.06, 0, true, stats.Medium)              // no finite factor counts as 0 (1), 6 % (5)
}

func TestNamesOfMagnitudes(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal([]stats.Magnitude{stats.MagnitudeUndefined, stats.VerySmall, stats.Small, stats.Medium, stats.Large, stats.VeryLarge})
	require.NoError(t, err)
	require.JSONEq(t, `["undefined","very small","small","medium","large","very large"]`, string(text))
	require.Equal(t, "Magnitude(9)", stats.Magnitude(9).String())
}
