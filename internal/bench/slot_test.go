package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestSlotNamesContainTheirHost(t *testing.T) {
	t.Parallel()
	require.Equal(t, "big-1-c4-12", bench.SlotName("big-1", 4, 12))
	for name, host := range map[string]string{
		bench.SlotName("big-1", 4, 12): "big-1", bench.SlotName("a-c1-1", 2, 1): "a-c1-1",
		"big-1": "", "c1-1": "", "big-c0-1": "", "big-c1-0": "", "big-c1": "", "-c1-1x": "", "big-c1-1-": "",
	} {
		require.Equal(t, host, bench.HostOfSlot(name), name)
	}
}
