package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// constraintFlags restrict where ad-hoc work may run.
type constraintFlags struct {
	spec bench.ConstraintSpec
}

func (f *constraintFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.spec.Machines, "machine", nil, "only this collector or shared host; of several, the first to be idle (repeatable)")
	flags.StringSliceVar(&f.spec.Groups, "group", nil, "only machines of this group; of several, any of them (repeatable)")
	flags.StringVar(&f.spec.Type, "machine-type", "", "only machines of this type: hw (bare), vm (virtual) or dc (container); also with a size, such as vm-2p8g or dc-8g")
	flags.StringSliceVar(&f.spec.Devices, "device", nil, "only machines with this device (repeatable)")
	labelFlag(flags, &f.spec.Labels, "require-label", "only machines with this label, such as rack=2 (repeatable)")
	flags.StringVar(&f.spec.Memory, "memory", "", "minimum memory, such as 8g or 512m; a bare number means gigabytes")
	flags.IntVar(&f.spec.CPUs, "cpus", 0, "minimum number of CPUs")
	flags.StringSliceVar(&f.spec.CacheDirs, "cache-dir", nil, "preferred cache directory, such as go/mod: machines with most of them go first for a while (repeatable)")
}

// given reports whether any of the flags is given.
func (f *constraintFlags) given(changed func(flag string) bool) bool {
	return changed("memory") || changed("cpus") || changed("machine-type") || !f.spec.IsZero()
}

// complete adds the constraints to a request.
func (f *constraintFlags) complete(wanted *apiclient.NewRequest, changed func(flag string) bool) error {
	if changed("memory") && f.spec.Memory == "" {
		_, err := bench.ParseMemory("")
		return usage(fmt.Errorf("--memory: %w", err))
	}
	if changed("cpus") && f.spec.CPUs < 1 {
		return usage(fmt.Errorf("--cpus %d: use a number above 0", f.spec.CPUs))
	}
	if _, err := f.spec.Read(); err != nil {
		return usage(err)
	}
	wanted.Constraints = f.spec
	return nil
}
