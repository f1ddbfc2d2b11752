package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Constraints limit where a job may run, beyond its target and size class. The zero
// value excludes nothing.
type Constraints struct {
	// Machines names collectors or shared hosts; the first idle one takes the job.
	Machines []string `json:"machines,omitempty"`
	// Groups names machine groups. Machines of a group perform alike; their devices
	// may differ.
	Groups []string `json:"groups,omitempty"`
	// Type is hw (bare machine), vm (virtual machine) or dc (container); empty: any.
	Type string `json:"type,omitempty"`
	// Devices must all be present.
	Devices []string `json:"devices,omitempty"`
	// Labels must all be present with these values.
	Labels map[string]string `json:"labels,omitempty"`
	// MemoryBytes and CPUs are minimums; 0: any.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	CPUs        int   `json:"cpus,omitempty"`
	// CacheDirs are a preference: for a while only collectors with most of them may
	// take the job.
	CacheDirs []string `json:"cache_dirs,omitempty"`
	// Canary marks the job of a canary, which names its one machine. The job waits in a
	// task queue of its own, from which that collector takes it even while set aside.
	// People cannot ask for it.
	Canary bool `json:"canary,omitempty"`
}

// IsZero reports whether there are neither constraints nor preferences.
func (c Constraints) IsZero() bool { return !c.Hard() && len(c.CacheDirs) == 0 }

// Hard reports whether the constraints exclude any machine.
func (c Constraints) Hard() bool {
	return c.Type != "" || c.MemoryBytes > 0 || c.CPUs > 0 || len(c.Machines)+len(c.Groups)+len(c.Devices)+len(c.Labels) > 0
}

// And returns the constraints that are met exactly where both are. The error names two
// that no machine can meet together.
func (c Constraints) And(other Constraints) (Constraints, error) {
	out := Constraints{
		Type: cmp.Or(c.Type, other.Type), MemoryBytes: max(c.MemoryBytes, other.MemoryBytes), CPUs: max(c.CPUs, other.CPUs),
		Devices: union(c.Devices, other.Devices), CacheDirs: union(c.CacheDirs, other.CacheDirs), Canary: c.Canary || other.Canary,
	}
	if other.Type != "" && other.Type != out.Type {
		return out, excluded("type", c.Type, other.Type)
	}
	var ok bool
	if out.Machines, ok = common(c.Machines, other.Machines); !ok {
		return out, excluded("machine", strings.Join(c.Machines, ", "), strings.Join(other.Machines, ", "))
	}
	if out.Groups, ok = common(c.Groups, other.Groups); !ok {
		return out, excluded("group", strings.Join(c.Groups, ", "), strings.Join(other.Groups, ", "))
	}
	for _, labels := range []map[string]string{c.Labels, other.Labels} {
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			if said, twice := out.Labels[key]; twice && said != labels[key] {
				return out, excluded("label "+key, said, labels[key])
			}
			if out.Labels == nil {
				out.Labels = make(map[string]string)
			}
			out.Labels[key] = labels[key]
		}
	}
	return out, nil
}

func excluded(what, one, other string) error {
	return fmt.Errorf("%w: constraints: %s %s and %s exclude each other: no machine meets both; leave one of them out", ErrInvalid, what, one, other)
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// common returns the names in both lists; an empty list stands for all names. ok is
// false if they have none in common.
func common(a, b []string) (names []string, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return union(a, b), true
	}
	both := slices.DeleteFunc(union(a, b), func(s string) bool { return !slices.Contains(a, s) || !slices.Contains(b, s) })
	return both, len(both) > 0
}

// ConstraintSpec holds [Constraints] as people write them.
type ConstraintSpec struct {
	Machines  []string          `json:"machines,omitempty" yaml:"machines" maxItems:"100" doc:"Collectors or shared hosts; whichever idles first takes the job."`
	Groups    []string          `json:"groups,omitempty" yaml:"groups" maxItems:"100" doc:"Machine groups, of which one will do."`
	Type      string            `json:"type,omitempty" yaml:"type" doc:"hw, vm or dc: a bare machine, a virtual one, a container; also with a size, such as vm-2p8g or dc-8g."`
	Devices   []string          `json:"devices,omitempty" yaml:"devices" maxItems:"100" doc:"Devices that must all be there."`
	Labels    map[string]string `json:"labels,omitempty" yaml:"labels" doc:"Labels that must be there with these values."`
	Memory    string            `json:"memory,omitempty" yaml:"memory" doc:"The least memory, such as 8g or 512m; a bare number means gigabytes." example:"8g"`
	CPUs      int               `json:"cpus,omitempty" yaml:"cpus" minimum:"0" maximum:"4096" doc:"The least number of CPUs."`
	CacheDirs []string          `json:"cache_dirs,omitempty" yaml:"cache_dirs" maxItems:"100" doc:"Cache directories that are wished for: collectors that have most of them go first, for a while."`
}

// IsZero reports whether the spec is empty.
func (s ConstraintSpec) IsZero() bool {
	return s.Type == "" && s.Memory == "" && s.CPUs == 0 && len(s.Machines)+len(s.Groups)+len(s.Devices)+len(s.Labels)+len(s.CacheDirs) == 0
}

// Read returns the constraints. If the type's name and other fields both give a size,
// the larger one counts.
func (s ConstraintSpec) Read() (Constraints, error) {
	c := Constraints{
		Machines: union(s.Machines, nil), Groups: union(s.Groups, nil), Devices: union(s.Devices, nil),
		Labels: maps.Clone(s.Labels), CPUs: s.CPUs, CacheDirs: union(s.CacheDirs, nil),
	}
	if len(c.Labels) == 0 {
		c.Labels = nil
	}
	if s.Memory != "" {
		var err error
		if c.MemoryBytes, err = ParseMemory(s.Memory); err != nil {
			return Constraints{}, err
		}
	}
	if s.CPUs < 0 || s.CPUs > MaxSizeClass {
		return Constraints{}, invalid("cpus", fmt.Sprint(s.CPUs), fmt.Sprintf("use 1 to %d, or leave it out", MaxSizeClass))
	}
	if s.Type != "" {
		sized, err := ParseSizedType(s.Type)
		if err != nil {
			return Constraints{}, err
		}
		c.Type, c.CPUs, c.MemoryBytes = sized.Type, max(c.CPUs, sized.CPUs), max(c.MemoryBytes, sized.MemoryBytes)
	}
	return c, c.check()
}

// Spec returns the constraints as a person would write them.
func (c Constraints) Spec() ConstraintSpec {
	s := ConstraintSpec{
		Machines: c.Machines, Groups: c.Groups, Type: c.Type, Devices: c.Devices, Labels: c.Labels, CPUs: c.CPUs, CacheDirs: c.CacheDirs,
	}
	if c.MemoryBytes > 0 {
		s.Memory = MemoryText(c.MemoryBytes)
	}
	return s
}

func (c Constraints) check() error {
	for kind, names := range map[string][]string{"machine": c.Machines, "group": c.Groups} {
		for _, name := range names {
			if err := CheckName(kind, name); err != nil {
				return err
			}
		}
	}
	for _, d := range c.Devices {
		if err := CheckParameter("device", d); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		if err := CheckLabel(key, c.Labels[key]); err != nil {
			return err
		}
	}
	for _, d := range c.CacheDirs {
		if err := CheckCacheDir(d); err != nil {
			return err
		}
	}
	return nil
}

// CheckLabel refuses an invalid label of a collector.
func CheckLabel(key, value string) error {
	if err := CheckName("label", key); err != nil {
		return err
	}
	if len(value) > 128 || strings.ContainsFunc(value, control) {
		return invalid("label", key, "its value is longer than 128 bytes, or holds control characters")
	}
	return nil
}

func control(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// CheckCacheDir refuses an invalid cache directory. Valid ones are one or two levels
// of directory names below a collector's cache root.
func CheckCacheDir(s string) error {
	parts := strings.Split(s, "/")
	bad := func(p string) bool { return p == "" || p == "." || p == ".." }
	if len(s) > 255 || len(parts) > 2 || slices.ContainsFunc(parts, bad) || strings.ContainsFunc(s, control) {
		return invalid("cache directory", s, "name one or two levels below the cache root, such as go or go/mod, in at most 255 bytes")
	}
	return nil
}
