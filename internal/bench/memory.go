package bench

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var memoryPattern = regexp.MustCompile(`^([0-9]{1,19})[ \t]*(?:([kmgt])(?:i?b)?|gigabytes?)?$`)

const memoryRule = "write a whole number of gigabytes such as 8, or one with a unit such as 512m, 8g, 8 GB or 1TiB; units are binary, 1g is 1024m"

var memoryShift = map[string]int{"k": 10, "m": 20, "": 30, "g": 30, "t": 40}

// MaxMemory bounds amounts of memory, in bytes: 1 EiB.
const MaxMemory = int64(1) << 60

// ParseMemory reads an amount of memory as people write it and returns bytes. A bare
// number means gigabytes. The units k, m, g and t may be upper or lower case and may
// be followed by b or ib; they are binary.
func ParseMemory(s string) (int64, error) {
	parts := memoryPattern.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if parts == nil {
		return 0, invalid("memory", s, memoryRule)
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	shift := memoryShift[parts[2]]
	switch {
	case err != nil || n > math.MaxInt64>>shift || n<<shift > MaxMemory:
		return 0, invalid("memory", s, "no machine has that much; "+memoryRule)
	case n == 0:
		return 0, invalid("memory", s, "leave it out where it does not matter; "+memoryRule)
	}
	return n << shift, nil
}

// MemoryText returns an amount of memory as [ParseMemory] reads it, in the largest
// unit that gives a whole number. Fractions of a kibibyte are cut off.
func MemoryText(bytes int64) string {
	for _, unit := range []string{"t", "g", "m"} {
		if shift := memoryShift[unit]; bytes>>shift > 0 && bytes%(1<<shift) == 0 {
			return strconv.FormatInt(bytes>>shift, 10) + unit
		}
	}
	return strconv.FormatInt(bytes>>10, 10) + "k"
}

// MemoryWords returns an amount of memory for people: exact if that is short, else
// rounded down to a tenth of a gigabyte.
func MemoryWords(bytes int64) string {
	if text := MemoryText(bytes); len(text) <= len("1024m") {
		return text
	}
	return fmt.Sprintf("%.1fg", math.Floor(float64(bytes)/(1<<30)*10)/10)
}

// MachineTypes returns the types of machines: bare hardware, virtual machine,
// container.
func MachineTypes() []string { return []string{"hw", "vm", "dc"} }

// SizedType is a type of machine, with the size if its name has one.
type SizedType struct {
	Type        string // hw, vm or dc
	CPUs        int    // 0: not given
	MemoryBytes int64  // 0: not given
}

var sizedPattern = regexp.MustCompile(`^(hw|vm|dc)(?:-(?:([0-9]{1,4})p)?(?:([0-9]{1,7})g)?)?$`)

// ParseSizedType reads hw, vm or dc, alone or as a sized class such as vm-2p8g
// (2 CPUs, 8 gigabytes) or dc-8g.
func ParseSizedType(s string) (SizedType, error) {
	parts := sizedPattern.FindStringSubmatch(strings.ToLower(s))
	if parts == nil || strings.HasSuffix(s, "-") {
		return SizedType{}, invalid("type of machine", s, "use "+strings.Join(MachineTypes(), ", ")+", or one with a size, such as vm-2p8g or dc-8g")
	}
	out := SizedType{Type: parts[1]}
	if parts[2] != "" {
		cpus, err := strconv.Atoi(parts[2])
		if err != nil || cpus < 1 {
			return SizedType{}, invalid("type of machine", s, "it has no CPU; write at least 1p")
		}
		out.CPUs = cpus
	}
	if parts[3] != "" {
		memory, err := ParseMemory(parts[3] + "g")
		if err != nil {
			return SizedType{}, fmt.Errorf("type of machine %s: %w", s, err)
		}
		out.MemoryBytes = memory
	}
	return out, nil
}

// CheckMachineType refuses anything but hw, vm and dc.
func CheckMachineType(s string) error {
	if t, err := ParseSizedType(s); err != nil || t.Type != s {
		return invalid("type of machine", s, "use "+strings.Join(MachineTypes(), ", "))
	}
	return nil
}
