package measure_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestRequiredCountersThatAreMissingAreNamedWithTheReason(t *testing.T) {
	t.Parallel()
	noHardware := errors.New("no hardware")
	support := measure.CounterSupport{
		measure.CounterInstructions: noHardware,
		measure.CounterCycles:       noHardware,
		measure.CounterTaskClock:    nil,
	}
	require.Equal(t, []measure.Counter{measure.CounterTaskClock}, support.Available())
	require.NoError(t, support.Require())
	require.NoError(t, support.Require(measure.CounterTaskClock))

	err := support.Require(measure.CounterCycles, measure.CounterTaskClock, measure.CounterInstructions)
	missing, ok := errors.AsType[*measure.MissingCountersError](err)
	require.True(t, ok)
	require.Len(t, missing.Missing, 2)
	require.ErrorIs(t, err, noHardware)
	require.EqualError(t, err, "performance counters are missing: cycles:u, instructions:u: no hardware")

	require.ErrorContains(t, support.Require("instrutions"), "unknown counter")
}

func TestEveryKnownCounterIsProbed(t *testing.T) {
	t.Parallel()
	support := measure.ProbeCounters()
	require.Len(t, support, len(measure.AllCounters()))
	for _, counter := range measure.AllCounters() {
		require.Contains(t, support, counter)
	}
	require.LessOrEqual(t, len(measure.HardwareCounters()), 4, "more do not count at once")
}
