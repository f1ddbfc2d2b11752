package up

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// Slot is one collector on this machine.
type Slot struct {
	Name  string
	Class bench.SizeClass
	CPUs  measure.CPUList
	// Shared is set for a slot that shares its cores.
	Shared bool
	// CoLocated is set for a slot that runs beside another one or shares its cores.
	CoLocated bool
}

// Layout assigns the cores of a machine to the services and the slots.
type Layout struct {
	Services measure.CPUList
	Slots    []Slot
}

// Plan divides this machine's cores: one for the services, the rest for
// collectors. Spec lists collectors by size class ("2x1,1x4": two of class 1, one of
// class 4); empty means one collector with all remaining cores.
//
// Cores are shared only if share is set: collectors share the cores that the services leave, and
// only a collector whose class exceeds their number also gets the services' core. A collector
// that shares cores, or the machine with another collector, is marked co-located.
func Plan(cores measure.CPUList, spec string, share bool) (Layout, error) {
	if len(cores) == 0 {
		return Layout{}, fmt.Errorf("planning collectors: this machine shows no cores")
	}
	classes, err := parseSpec(spec)
	if err != nil {
		return Layout{}, err
	}
	free := cores[1:]
	if len(classes) == 0 {
		classes = []bench.SizeClass{bench.SizeClass(max(1, len(free)))}
	}
	wanted := 0
	for _, c := range classes {
		wanted += int(c)
	}
	shared := wanted > len(free)
	if shared && !share {
		return Layout{}, fmt.Errorf("planning collectors: %d cores are wanted, this machine has %d and the services keep one: ask for less with --collectors, or allow sharing with --share-cores (results are then marked co-located)", wanted, len(cores))
	}
	layout := Layout{Services: measure.CPUList{cores[0]}}
	next := 0
	for i, class := range classes {
		if int(class) > len(cores) && !share {
			return Layout{}, fmt.Errorf("planning collectors: a collector of size class %d is wanted, this machine has %d cores: ask for a smaller one, or allow sharing with --share-cores (it gets all cores then)", class, len(cores))
		}
		cpus := cores
		if int(class) <= len(free) {
			cpus = nil
			for range class {
				cpus = append(cpus, free[next%len(free)])
				next++
			}
			slices.Sort(cpus)
		}
		layout.Slots = append(layout.Slots, Slot{
			Name: fmt.Sprintf("local-%d", i+1), Class: class, CPUs: slices.Clone(cpus),
			Shared: shared, CoLocated: shared || len(classes) > 1,
		})
	}
	return layout, nil
}

// MemoryShare returns a collector's share of total bytes of memory: its class relative
// to the number of cores or, if a class exceeds that, to the largest class.
func (l Layout) MemoryShare(slot Slot, total int64, cores int) int64 {
	whole := cores
	for _, s := range l.Slots {
		whole = max(whole, int(s.Class))
	}
	return total * int64(slot.Class) / int64(whole)
}

func parseSpec(spec string) ([]bench.SizeClass, error) {
	if spec == "" {
		return nil, nil
	}
	var classes []bench.SizeClass
	for part := range strings.SplitSeq(spec, ",") {
		count, class, ok := strings.Cut(part, "x")
		n, errN := strconv.Atoi(count)
		c, errC := strconv.Atoi(class)
		if !ok || errN != nil || errC != nil || n < 1 || n > 64 {
			return nil, fmt.Errorf("--collectors %q: %q is not <number>x<size class>, as in 2x1,1x4", spec, part)
		}
		size, err := bench.NewSizeClass(c)
		if err != nil {
			return nil, fmt.Errorf("--collectors %q: %w", spec, err)
		}
		for range n {
			classes = append(classes, size)
		}
	}
	return classes, nil
}

// AvailableCores returns the cores that this process may use, according to the kernel or
// else the Go runtime.
func AvailableCores() (measure.CPUList, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for line := range strings.Lines(string(status)) {
			if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				return measure.ParseCPUList(strings.TrimSpace(list))
			}
		}
	}
	all := make([]int, runtime.NumCPU())
	for i := range all {
		all[i] = i
	}
	return measure.NewCPUList(all...)
}
