package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/workers"
)

// sharedFlags make a collector a shared host.
type sharedFlags struct {
	classes     []int
	classMemory string

	// Set in the flags of a slot: its host, and the memory of all jobs of the host
	// and of the slot's own, in bytes.
	host               string
	budget, slotMemory int64
}

// maxSlots bounds the slots of a shared host: each keeps polls and connections
// open.
const maxSlots = 64

func (s *sharedFlags) add(flags *pflag.FlagSet) {
	flags.IntSliceVar(&s.classes, "classes", nil, "size classes of a shared host, such as 1,2,4, whose jobs run side by side within --memory")
	flags.StringVar(&s.classMemory, "class-memory", "", "memory of a job of size class 1 on a shared host; size class N gets N times as much (default: 4g)")
}

// on reports whether the collector is a shared host.
func (s *sharedFlags) on() bool { return len(s.classes) > 0 }

// slots returns the flags of a shared host's slots: as many of each class as fit.
func (s *sharedFlags) slots(f *collectorFlags) ([]*collectorFlags, error) {
	if f.class != 0 {
		return nil, errors.New("--size-class is one collector's, --classes are a shared host's: leave one of them out")
	}
	if f.bounds.memory == "" || f.bounds.memory == unbounded {
		return nil, errors.New("--classes: the memory of the shared host is missing; name it with --memory, such as --memory 20g")
	}
	if s.classMemory == "" {
		s.classMemory = "4g"
	}
	budget, err := memorySize("--memory", f.bounds.memory)
	if err != nil {
		return nil, err
	}
	unit, err := memorySize("--class-memory", s.classMemory)
	if err != nil {
		return nil, err
	}
	classes := slices.Compact(slices.Sorted(slices.Values(s.classes)))
	if len(classes) != len(s.classes) {
		return nil, fmt.Errorf("--classes %v: a size class is named twice", s.classes)
	}
	var slots []*collectorFlags
	for _, c := range classes {
		class, err := bench.NewSizeClass(c)
		if err != nil {
			return nil, fmt.Errorf("--classes: %w", err)
		}
		if unit > budget/int64(c) {
			return nil, fmt.Errorf("--classes: a job of size class %d gets %d times %s (--class-memory), which is more than the %s of --memory; leave the class out, or change one of these", c, c, bench.MemoryText(unit), bench.MemoryText(budget))
		}
		need := unit * int64(c)
		for n := range int(min(budget/need, maxSlots+1)) {
			slot := *f
			slot.name, slot.class, slot.coLocated = bench.SlotName(f.name, class, n+1), c, true
			if err := bench.CheckName("collector", slot.name); err != nil {
				return nil, fmt.Errorf("--name: a slot's name is made of it: %w", err)
			}
			slot.bounds.memory = bench.MemoryText(need)
			slot.stateDir = filepath.Join(f.stateDir, slotsDir, slot.name)
			if f.artifactDir == "" {
				slot.artifactDir = filepath.Join(f.stateDir, "artifacts")
			}
			slot.isolation.hide = append(slices.Clone(f.isolation.hide), f.stateDir)
			slot.shared = sharedFlags{host: f.name, budget: budget, slotMemory: need}
			slots = append(slots, &slot)
		}
	}
	if len(slots) > maxSlots {
		return nil, fmt.Errorf("--classes: that makes more than %d slots; leave out small classes, or raise --class-memory", maxSlots)
	}
	return slots, nil
}

// share gives the collectors of a host a common gate, which keeps their jobs within
// its memory.
func share(collectors []workers.Collector, slots []*collectorFlags) error {
	gate, err := workers.NewGate(slots[0].shared.budget)
	if err != nil {
		return err
	}
	for i, slot := range slots {
		collectors[i].Gate = gate
		if err := gate.Add(slot.name, slot.shared.slotMemory); err != nil {
			return err
		}
	}
	return nil
}
