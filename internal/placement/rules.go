package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// rule is one requirement for a collector.
type rule struct {
	// name is short, such as "device gpu".
	name string
	met  func(Collector) bool
	// lack says how a collector fails the rule; it is called only for one that does.
	lack func(Collector) string
}

// rulesOf lists all rules, the target first.
func rulesOf(w Requirements) []rule {
	rules := []rule{{
		name: string(w.Target),
		met:  func(c Collector) bool { return c.Pool.Target == w.Target },
		lack: func(c Collector) string { return fmt.Sprintf("its target is %s, not %s", c.Pool.Target, w.Target) },
	}}
	if w.Class > 0 {
		rules = append(rules, rule{
			name: fmt.Sprintf("size class %d", w.Class),
			met:  func(c Collector) bool { return c.Pool.SizeClass == w.Class },
			lack: func(c Collector) string {
				return fmt.Sprintf("its size class is %d, not %d", c.Pool.SizeClass, w.Class)
			},
		})
	}
	if w.MinSize > 1 {
		rules = append(rules, rule{
			name: fmt.Sprintf("size class %d or more", w.MinSize),
			met:  func(c Collector) bool { return c.Pool.SizeClass >= w.MinSize },
			lack: func(c Collector) string {
				return fmt.Sprintf("its size class is %d, below %d", c.Pool.SizeClass, w.MinSize)
			},
		})
	}
	if w.Pool != "" {
		rules = append(rules, rule{
			name: "pool " + w.Pool,
			met:  func(c Collector) bool { return c.Pool.Name == w.Pool },
			lack: func(c Collector) string { return fmt.Sprintf("its pool is %s, not %s", c.Pool.Name, w.Pool) },
		})
	}
	return append(rules, constraintRules(w.Constraints)...)
}

func constraintRules(w bench.Constraints) []rule {
	var rules []rule
	if len(w.Machines) > 0 {
		rules = append(rules, rule{
			name: "machine " + either(w.Machines),
			met:  func(c Collector) bool { return named(c, w.Machines) },
			lack: func(c Collector) string { return fmt.Sprintf("it is %s, not %s", c.Name, either(w.Machines)) },
		})
	}
	if len(w.Groups) > 0 {
		rules = append(rules, rule{
			name: "group " + either(w.Groups),
			met:  func(c Collector) bool { return slices.Contains(w.Groups, c.Group) },
			lack: func(c Collector) string {
				if c.Group == "" {
					return "it is of no group"
				}
				return fmt.Sprintf("its group is %s, not %s", c.Group, either(w.Groups))
			},
		})
	}
	if w.Type != "" {
		rules = append(rules, rule{
			name: "type " + w.Type,
			met:  func(c Collector) bool { return c.Type == w.Type },
			lack: func(c Collector) string { return fmt.Sprintf("its type is %s, not %s", c.Type, w.Type) },
		})
	}
	for _, d := range w.Devices {
		if program, ok := bench.DeviceProgram(d); ok {
			rules = append(rules, rule{
				name: "program " + program,
				met:  func(c Collector) bool { return slices.Contains(c.Devices, d) },
				lack: func(Collector) string { return "it does not have the program " + program },
			})
			continue
		}
		rules = append(rules, rule{
			name: "device " + d,
			met:  func(c Collector) bool { return slices.Contains(c.Devices, d) },
			lack: func(Collector) string { return "it has no device " + d },
		})
	}
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		rules = append(rules, labelRule(key, w.Labels[key]))
	}
	if w.MemoryBytes > 0 {
		rules = append(rules, rule{
			name: "memory of " + bench.MemoryWords(w.MemoryBytes),
			met:  func(c Collector) bool { return c.Memory() >= w.MemoryBytes },
			lack: func(c Collector) string {
				return fmt.Sprintf("a job may use %s of memory there, not %s", bench.MemoryWords(c.Memory()), bench.MemoryWords(w.MemoryBytes))
			},
		})
	}
	if w.CPUs > 0 {
		rules = append(rules, rule{
			name: fmt.Sprintf("%d CPUs", w.CPUs),
			met:  func(c Collector) bool { return c.Cores() >= w.CPUs },
			lack: func(c Collector) string { return fmt.Sprintf("a job may use %d CPUs there, not %d", c.Cores(), w.CPUs) },
		})
	}
	return rules
}

func labelRule(key, value string) rule {
	return rule{
		name: "label " + key + "=" + value,
		met:  func(c Collector) bool { has, ok := c.Labels[key]; return ok && has == value },
		lack: func(c Collector) string {
			if has, ok := c.Labels[key]; ok {
				return fmt.Sprintf("its label %s is %s, not %s", key, has, value)
			}
			return "it has no label " + key
		},
	}
}

func either(names []string) string { return strings.Join(names, " or ") }

// WhyNot lists the reasons why a collector cannot run a job with these requirements, one
// for each thing it lacks; none when it can. Whether the collector is live does not
// matter.
func WhyNot(c Collector, needs Requirements) []string {
	var reasons []string
	for _, r := range rulesOf(needs) {
		if !r.met(c) {
			reasons = append(reasons, r.lack(c))
		}
	}
	return reasons
}
