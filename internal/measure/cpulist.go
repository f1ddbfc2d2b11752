package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU is the highest logical CPU number that a list may name; Linux is built for at most 8192 CPUs.
const maxCPU = 8191

// CPUList is a set of logical CPU numbers, ascending and without repetition. Its text form is the kernel's list format,
// "0-3,8" (cpuset(7), "List format").
type CPUList []int

// NewCPUList returns the set of the given CPU numbers. It refuses numbers outside 0-8191.
func NewCPUList(cpus ...int) (CPUList, error) {
	list := slices.Clone(cpus)
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) > 0 && (list[0] < 0 || list[len(list)-1] > maxCPU) {
		return nil, fmt.Errorf("CPU numbers must be within 0-%d, have %v", maxCPU, cpus)
	}
	return list, nil
}

// ParseCPUList reads the kernel's list format: numbers and ascending ranges, separated by commas. White space around the
// list is ignored, because kernel files end with a newline; empty text is the empty set.
func ParseCPUList(text string) (CPUList, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, nil
	}
	var cpus []int
	for part := range strings.SplitSeq(trimmed, ",") {
		first, last, isRange := strings.Cut(part, "-")
		low, err := parseCPU(first)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", text, err)
		}
		high := low
		if isRange {
			if high, err = parseCPU(last); err != nil {
				return nil, fmt.Errorf("CPU list %q: %w", text, err)
			}
		}
		if high < low {
			return nil, fmt.Errorf("CPU list %q: range %q descends", text, part)
		}
		for cpu := low; cpu <= high; cpu++ {
			cpus = append(cpus, cpu)
		}
		if len(cpus) > 2*maxCPU {
			// Only overlapping ranges get here; drop repetitions before they cost memory.
			slices.Sort(cpus)
			cpus = slices.Compact(cpus)
		}
	}
	return NewCPUList(cpus...)
}

func parseCPU(text string) (int, error) {
	// ParseUint alone, as Atoi would take a sign.
	cpu, err := strconv.ParseUint(text, 10, 16)
	if err != nil || cpu > maxCPU {
		return 0, fmt.Errorf("%q is not a CPU number within 0-%d", text, maxCPU)
	}
	return int(cpu), nil
}

// String returns the shortest text in the kernel's list format; ParseCPUList reads it back.
func (l CPUList) String() string {
	var text strings.Builder
	for i := 0; i < len(l); {
		last := i
		for last+1 < len(l) && l[last+1] == l[last]+1 {
			last++
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(l[i]))
		if last > i {
			text.WriteByte('-')
			text.WriteString(strconv.Itoa(l[last]))
		}
		i = last + 1
	}
	return text.String()
}

// MarshalText returns the list format, so that a CPU list is a string in JSON and configuration files.
func (l CPUList) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the list format.
func (l *CPUList) UnmarshalText(text []byte) error {
	list, err := ParseCPUList(string(text))
	if err != nil {
		return err
	}
	*l = list
	return nil
}
