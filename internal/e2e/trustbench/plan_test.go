package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var whole = plan{Seed: 2026, Requests: 40, Slowdowns: 10}

func TestThePlanHasEachTrialOnce(t *testing.T) {
	t.Parallel()
	counts, ids := make(map[kind]int), make(map[string]bool)
	for _, one := range whole.trials() {
		counts[one.kind()]++
		ids[one.ID] = true
	}
	require.Equal(t, map[kind]int{{0, false}: 20, {0, true}: 20, {10, false}: 10, {10, true}: 10, {2, false}: 10, {2, true}: 10}, counts)
	require.Len(t, ids, 80)
	next := plan{Seed: whole.Seed, Requests: whole.Requests, Slowdowns: whole.Slowdowns}
	require.Equal(t, whole.trials(), next.trials(), "the next start must find the same trials")
	other := whole
	other.Seed++
	require.NotEqual(t, whole.trials(), other.trials())
}

// Whenever the trials are interrupted, each kind has had nearly its share of them.
func TestEachKindIsSpreadOverTheWhole(t *testing.T) {
	t.Parallel()
	trials := whole.trials()
	counts := make(map[kind]int)
	for i, one := range trials {
		counts[one.kind()]++
		for k, total := range map[kind]float64{{0, false}: 20, {0, true}: 20, {10, false}: 10, {10, true}: 10, {2, false}: 10, {2, true}: 10} {
			share := total * float64(i+1) / float64(len(trials))
			require.InDelta(t, share, counts[k], 2.5, "%+v after %d trials", k, i+1)
		}
	}
}
