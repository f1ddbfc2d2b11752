package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/probe"
	"github.com/benchloom/benchloom/workers"
)

// machineFlags describe a collector's machine for placement.
type machineFlags struct {
	machineType, group string
	devices            []string
}

func (f *machineFlags) add(flags *pflag.FlagSet, where string) {
	flags.StringVar(&f.machineType, "type", "", "machine type: hw (bare), vm (virtual) or dc (container)"+where+" (default hw)")
	flags.StringVar(&f.group, "group", "", "machine group, such as machines of one make"+where)
	flags.StringSliceVar(&f.devices, "device", nil, "device that jobs can require"+where+" (repeatable)")
}

func (f *machineFlags) check() error {
	if f.machineType != "" {
		if err := bench.CheckMachineType(f.machineType); err != nil {
			return fmt.Errorf("--type: %w", err)
		}
	}
	if f.group != "" {
		if err := bench.CheckName("machine group", f.group); err != nil {
			return fmt.Errorf("--group: %w", err)
		}
	}
	for _, d := range f.devices {
		if err := bench.CheckParameter("device", d); err != nil {
			return fmt.Errorf("--device: %w", err)
		}
	}
	return nil
}

// describe adds the machine's properties to a registration, with the resources that
// a job may use: the slot's limits, else the whole machine. A slot of a shared host
// is a container by default. The programs of profilers that work here are devices, too.
func (f *machineFlags) describe(r *apiclient.Registration, machine *workers.Machine, programs []probe.Tried, limit int64, cacheRoot string) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	r.MachineType, r.MachineGroup, r.Devices = f.machineType, f.group, slices.Clone(f.devices)
	for _, p := range programs {
		if device := (bench.Program{Name: p.Name}).Device(); p.Works() && !slices.Contains(r.Devices, device) {
			r.Devices = append(r.Devices, device)
		}
	}
	r.CPUs, r.MemoryBytes = machine.Jobs.CPUs, machine.Facts.MemoryBytes
	if limit > 0 {
		r.MemoryBytes = limit
	}
	if r.SharedHost != "" { // its slots share the CPUs by their classes
		r.CPUs = int(r.SizeClass)
		r.MachineType = cmp.Or(r.MachineType, "dc")
	}
	var err error
	r.CacheDirs, err = workers.CacheDirs(cacheRoot)
	return err
}
