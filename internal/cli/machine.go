package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// machine returns the properties that placement uses.
func machine(c apiclient.Collector) [][2]string {
	pairs := [][2]string{{"type", c.MachineType}, {"group", c.MachineGroup}, {"shared host", c.Host}, {"devices", strings.Join(c.Devices, ", ")}}
	if c.MemoryBytes > 0 {
		pairs = append(pairs, [2]string{"memory for a job", bench.MemoryWords(c.MemoryBytes)})
	}
	if c.CPUs > 0 {
		pairs = append(pairs, [2]string{"CPUs for a job", strconv.Itoa(c.CPUs)})
	}
	if len(c.CacheDirs) > 0 {
		const shown = 20
		text := strings.Join(c.CacheDirs[:min(len(c.CacheDirs), shown)], ", ")
		if more := len(c.CacheDirs) - shown; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		pairs = append(pairs, [2]string{"caches", text})
	}
	return pairs
}

// Constraints describes constraints on one line; empty for none.
func Constraints(c bench.ConstraintSpec) string {
	var parts []string
	add := func(what string, names ...string) {
		if len(names) > 0 && names[0] != "" {
			parts = append(parts, what+" "+strings.Join(names, " or "))
		}
	}
	add("machine", c.Machines...)
	add("group", c.Groups...)
	add("type", c.Type)
	for _, d := range c.Devices {
		add("device", d)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		add("label", key+"="+c.Labels[key])
	}
	add("memory", c.Memory)
	if c.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%d CPUs", c.CPUs))
	}
	if len(c.CacheDirs) > 0 {
		parts = append(parts, "caches "+strings.Join(c.CacheDirs, ", "))
	}
	return strings.Join(parts, ", ")
}
