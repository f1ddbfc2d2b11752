package results

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// What several learn at once is added, and what is kept is bounded.
func TestShiftsAreKept(t *testing.T) {
	t.Parallel()
	shifts := NewShifts()
	require.Empty(t, shifts.of("part"))
	shifts.keep(learnedShifts{"part", map[shiftOf]float64{{series: 1}: 0.5}})
	shifts.keep(learnedShifts{"part", map[shiftOf]float64{{series: 2}: 1.5}})
	shifts.keep(learnedShifts{"other", nil})
	require.Equal(t, map[shiftOf]float64{{series: 1}: 0.5, {series: 2}: 1.5}, shifts.of("part"))
	require.Empty(t, shifts.of("other"))

	var none *Shifts
	none.keep(learnedShifts{"part", map[shiftOf]float64{{series: 1}: 0.5}})
	require.Empty(t, none.of("part"))

	const bytes = 10_000
	few := newShifts(bytes)
	var learning sync.WaitGroup
	for worker := range 4 {
		learning.Go(func() {
			for n := range 100 {
				few.keep(learnedShifts{fmt.Sprint("part ", n), map[shiftOf]float64{{series: int64(worker)}: 1, {series: int64(n)}: 2}})
			}
		})
	}
	learning.Wait()
	total := 0
	for _, item := range few.kept.Items() {
		total += bytesPerShift * len(item.Value())
	}
	require.Positive(t, total)
	require.LessOrEqual(t, total, bytes)
	require.Contains(t, few.of("part 99"), shiftOf{series: 99}, "the newest")
}
