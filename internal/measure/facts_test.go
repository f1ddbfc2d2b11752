package measure_test

import (
	"encoding/json"
	"io/fs"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestTheFactsOfAMachineAreRead(t *testing.T) {
	t.Parallel()
	facts, err := measure.ReadFacts("testdata/intel")
	require.NoError(t, err)
	require.Equal(t, measure.Facts{
		Architecture: runtime.GOARCH,
		CPUVendor:    "GenuineIntel",
		CPUModel:     "Intel(R) Xeon(R) Gold 6152 CPU @ 2.10GHz",
		CPUSignature: "6/85/4",
		LogicalCPUs:  4,
		PresentCPUs:  8,
		Microcode:    "0x2007006",
		Kernel:       "6.12.5-amd64",
		Governor:     "performance,powersave",
		SMT:          "off",
		Turbo:        new(bool),
		BootOptions:  "isolcpus=managed_irq,2-3 mitigations=auto nosmt",
		ASLR:         pointer(2),
		MemoryBytes:  65779900 * 1024,
		Virtualised:  false,
	}, facts)

	facts, err = measure.ReadFacts("testdata/arm-vm")
	require.NoError(t, err)
	require.Equal(t, measure.Facts{
		Architecture: runtime.GOARCH,
		CPUVendor:    "0x41",
		CPUSignature: "0xd0c/0x3/1",
		LogicalCPUs:  1,
		PresentCPUs:  1,
		Kernel:       "6.1.0-arm64",
		Turbo:        pointer(true),
		BootOptions:  "none",
		MemoryBytes:  4012345 * 1024,
		Virtualised:  true,
	}, facts)
	text, err := json.Marshal(facts)
	require.NoError(t, err)
	require.NotContains(t, string(text), "governor", "what is unknown is absent")
	require.Contains(t, string(text), `"memory_bytes":`)
}

func pointer[T any](v T) *T { return &v }

func TestFactsThatAreMissingAreErrors(t *testing.T) {
	t.Parallel()
	_, err := measure.ReadFacts("testdata/nowhere")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = measure.ReadFacts("testdata/broken")
	require.ErrorContains(t, err, "MemTotal")
}

func TestTheHardwareIDTellsHardwareApartAndNothingElse(t *testing.T) {
	t.Parallel()
	facts, err := measure.ReadFacts("testdata/intel")
	require.NoError(t, err)
	// Stored results contain it: it must not change from version to version.
	facts.Architecture = "amd64"
	require.Equal(t, "7f6d9dda4784", facts.HardwareID())

	same := facts
	same.Kernel, same.Governor, same.SMT, same.Microcode, same.LogicalCPUs = "7.0", "powersave", "on", "2", 8
	same.Turbo, same.ASLR, same.BootOptions = nil, nil, "none"
	same.MemoryBytes -= 20 << 20
	require.Equal(t, facts.HardwareID(), same.HardwareID())

	for name, change := range map[string]func(*measure.Facts){
		"architecture": func(f *measure.Facts) { f.Architecture = "arm64" },
		"vendor":       func(f *measure.Facts) { f.CPUVendor = "AuthenticAMD" },
		"model":        func(f *measure.Facts) { f.CPUModel = "" },
		"signature":    func(f *measure.Facts) { f.CPUSignature = "6/85/5" },
		"CPUs":         func(f *measure.Facts) { f.PresentCPUs = 4 },
		"memory":       func(f *measure.Facts) { f.MemoryBytes *= 2 },
		"virtualised":  func(f *measure.Facts) { f.Virtualised = true },
	} {
		other := facts
		change(&other)
		require.NotEqual(t, facts.HardwareID(), other.HardwareID(), name)
	}
}
