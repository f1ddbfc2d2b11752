package machine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machine"
)

func TestASlotsBoundsAreInProportionToItsShare(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	large := machine.Size{CPUs: 64, MemoryBytes: 250 * gib, DiskBytes: 1000 * gib, Files: 65_536_000, MaxProcesses: 4 << 20}
	for _, c := range []struct {
		of    machine.Size
		share float64
		want  machine.Bounds
	}{
		{large, 1, machine.Bounds{MemoryBytes: 225 * gib, DiskBytes: 500 * gib, Files: 1_000_000, Processes: 69_632, OpenFiles: 65_536}},
		{large, 0.25, machine.Bounds{MemoryBytes: 225 * gib / 4, DiskBytes: 125 * gib, Files: 1_000_000, Processes: 20_480, OpenFiles: 65_536}},
		{large, 1.0 / 64, machine.Bounds{MemoryBytes: 225 * gib / 64, DiskBytes: 10 * gib, Files: 1_000_000, Processes: 5_120, OpenFiles: 65_536}},
		{machine.Size{CPUs: 2, MemoryBytes: 10 * gib, DiskBytes: 4 * gib, Files: 262_144, MaxProcesses: 32_768}, 1,
			machine.Bounds{MemoryBytes: 9 * gib, DiskBytes: 4 * gib, Files: 131_072, Processes: 6_144, OpenFiles: 65_536}},
		{machine.Size{CPUs: 16, MaxProcesses: 32_768}, 1, machine.Bounds{Files: 1_000_000, Processes: 8_192, OpenFiles: 65_536}},
		{machine.Size{}, 1, machine.Bounds{Files: 1_000_000, Processes: 4_096, OpenFiles: 65_536}},
	} {
		require.Equal(t, c.want, machine.DefaultBounds(c.of, c.share), "%+v, a share of %g", c.of, c.share)
	}
}

func TestSlotsTogetherLeaveMemoryToTheService(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		m := machine.Size{CPUs: 1 + random.IntN(512), MemoryBytes: 1<<28 + random.Int64N(1<<42)}
		slots := 1 + random.IntN(m.CPUs)
		each := machine.DefaultBounds(m, 1/float64(slots))
		require.LessOrEqual(t, each.MemoryBytes*int64(slots), m.MemoryBytes/100*91)
		require.Positive(t, each.MemoryBytes)
		require.GreaterOrEqual(t, each.Processes, 4_096)
	}
}
