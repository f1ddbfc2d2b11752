package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/measure"
)

// Grade rates a setting of the machine.
type Grade string

const (
	// Good: it does not disturb measurements.
	Good Grade = "good"
	// Improvable: it disturbs measurements, or may.
	Improvable Grade = "could be better"
	// Unavailable: the machine does not have it or does not show it.
	Unavailable Grade = "not available here"
)

// Finding describes one setting of the machine.
type Finding struct {
	Name  string `json:"name"`
	Grade Grade  `json:"grade"`
	// Value is the present value in words; empty if there is none.
	Value string `json:"value,omitempty"`
	// Reason explains a grade other than good, Remedy names a remedy.
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Tunable: [Tuner.Tune] would change it.
	Tunable bool `json:"tunable"`

	changes []change
}

// change is a value that a setting should get.
type change struct{ path, value string }

// Report describes a machine's settings.
type Report struct {
	// MeasuringCPUs are kept quiet, OtherCPUs do everything else.
	MeasuringCPUs measure.CPUList `json:"measuring_cpus"`
	OtherCPUs     measure.CPUList `json:"other_cpus"`
	Findings      []Finding       `json:"settings"`
}

// Count returns the number of findings with a grade.
func (r Report) Count(g Grade) int {
	n := 0
	for _, f := range r.Findings {
		if f.Grade == g {
			n++
		}
	}
	return n
}

// Machine is a machine whose files are below Root.
type Machine struct {
	// Root is "/" outside tests. A container may see its host's /proc and /sys below another directory.
	Root string
	// CPUs are the CPUs that benchmarks run on; empty means all that this process may use, one for each core.
	CPUs measure.CPUList
}

// Inspect grades the machine's settings. It fails if the machine does not show its
// CPUs below the root, as on systems other than Linux, or if one of the CPUs is not
// online.
func (m Machine) Inspect() (Report, error) {
	i := inspector{root: m.Root}
	online, err := os.ReadFile(i.file("sys/devices/system/cpu/online"))
	if err != nil {
		return Report{}, fmt.Errorf("reading the machine's CPUs: %w; settings can be read on Linux only", err)
	}
	if i.online, err = measure.ParseCPUList(string(online)); err != nil {
		return Report{}, fmt.Errorf("reading the machine's CPUs: %w", err)
	}
	i.measuring = m.CPUs
	if len(i.measuring) == 0 {
		i.measuring, i.all = i.allowed(), true
	}
	for _, cpu := range i.measuring {
		if !slices.Contains(i.online, cpu) {
			return Report{}, &NoCPUError{CPU: cpu, Online: i.online}
		}
	}
	i.findSiblings()
	for _, cpu := range i.online {
		if !slices.Contains(i.measuring, cpu) && !slices.Contains(i.siblings, cpu) {
			i.others = append(i.others, cpu)
		}
	}
	return Report{MeasuringCPUs: i.measuring, OtherCPUs: i.others, Findings: i.findings()}, nil
}

// NoCPUError reports a measuring CPU that is not online.
type NoCPUError struct {
	CPU    int
	Online measure.CPUList
}

// Error names the CPUs that are online.
func (e *NoCPUError) Error() string {
	return fmt.Sprintf("CPU %d is not online: this machine has CPUs %s", e.CPU, e.Online)
}

// allowed returns the CPUs that this process may use. A container may have only some.
func (i *inspector) allowed() measure.CPUList {
	status, _ := i.text("proc/self/status")
	for line := range strings.Lines(status) {
		text, ok := strings.CutPrefix(line, "Cpus_allowed_list:")
		list, err := measure.ParseCPUList(text)
		if ok && err == nil && len(list) > 0 && !slices.ContainsFunc(list, func(cpu int) bool { return !slices.Contains(i.online, cpu) }) {
			return list
		}
	}
	return i.online
}

// inspector reads the files of one machine.
type inspector struct {
	root string
	// all is set if no measuring CPUs were named.
	all                       bool
	online, measuring, others measure.CPUList
	// siblings share a core with a measuring CPU and should be offline; crowded are measuring CPUs that share a core with
	// another one by request.
	siblings, crowded measure.CPUList
}

// findings lists all settings.
func (i *inspector) findings() []Finding {
	all := slices.Concat(
		[]Finding{i.governor(), i.turbo(), i.smt(), i.idleStates(), i.otherCPUs(), i.interrupts(), i.workqueues(), i.swap()},
		i.switches(),
		[]Finding{i.hugePages(), i.counters(), i.aslr(), i.hypervisor(), i.container(), i.pressure()},
	)
	for n := range all {
		all[n].Tunable = len(all[n].changes) > 0
	}
	return all
}

// changes returns what tuning would change, in order. CPUs go offline last: an
// offline CPU has no frequency settings and takes no interrupts.
func (r Report) changes() []record {
	var all []record
	for _, f := range r.Findings {
		for _, c := range f.changes {
			all = append(all, record{Name: f.Name, Path: c.path, Tuned: c.value + "\n"})
		}
	}
	slices.SortStableFunc(all, func(a, b record) int {
		switch offlineA, offlineB := isCPU(a.Path), isCPU(b.Path); {
		case offlineA == offlineB:
			return 0
		case offlineB:
			return -1
		}
		return 1
	})
	return all
}

func isCPU(name string) bool { return path.Base(name) == "online" }

// tunable are the patterns of all paths that tuning changes. Restoring writes to no
// other path, whatever the file with the originals says.
func tunable() []string {
	patterns := []string{
		cpuDir + "cpufreq/policy[0-9]*/scaling_governor", cpuDir + "cpufreq/policy[0-9]*/boost", cpuDir + "cpufreq/boost",
		cpuDir + "intel_pstate/no_turbo", cpuDir + "cpu[0-9]*/online", "proc/irq/[0-9]*/smp_affinity_list", defaultAffinity, workqueueMask, swappiness,
	}
	for _, t := range toggles() {
		patterns = append(patterns, t.path)
	}
	return patterns
}

func mayTune(name string) bool {
	return slices.ContainsFunc(tunable(), func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}) && filepath.IsLocal(name) && path.Clean(name) == name
}

func (i *inspector) file(name string) string { return filepath.Join(i.root, name) }

// text returns a file's trimmed content, and false if it cannot be read.
func (i *inspector) text(name string) (string, bool) {
	content, err := os.ReadFile(i.file(name))
	return strings.TrimSpace(string(content)), err == nil
}

func (i *inspector) exists(name string) bool {
	_, err := os.Stat(i.file(name))
	return !errors.Is(err, fs.ErrNotExist)
}

// glob returns the names of matching files, with numbers in numeric order.
func (i *inspector) glob(pattern string) []string {
	files, _ := filepath.Glob(i.file(pattern))
	names := make([]string, 0, len(files))
	for _, f := range files {
		if name, err := filepath.Rel(i.root, f); err == nil {
			names = append(names, filepath.ToSlash(name))
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names
}

func cpuFile(cpu int, name string) string {
	return path.Join("sys/devices/system/cpu", "cpu"+strconv.Itoa(cpu), name)
}

// findSiblings looks for hardware threads that share a core with a measuring CPU.
// If no CPUs were named, the first thread of each core measures.
func (i *inspector) findSiblings() {
	keep := map[int]bool{}
	for _, cpu := range i.measuring {
		text, _ := i.text(cpuFile(cpu, "topology/thread_siblings_list"))
		threads, err := measure.ParseCPUList(text)
		if err != nil {
			continue
		}
		shared := false
		for _, t := range threads {
			if t == cpu || !slices.Contains(i.online, t) {
				continue
			}
			if slices.Contains(i.measuring, t) {
				shared = shared || !i.all
				if i.all && keep[t] && !slices.Contains(i.siblings, cpu) {
					i.siblings = append(i.siblings, cpu)
				}
				continue
			}
			if !slices.Contains(i.siblings, t) {
				i.siblings = append(i.siblings, t)
			}
		}
		if shared {
			i.crowded = append(i.crowded, cpu)
		}
		keep[cpu] = !slices.Contains(i.siblings, cpu)
	}
	slices.Sort(i.siblings)
	if i.all {
		i.measuring = slices.DeleteFunc(slices.Clone(i.measuring), func(cpu int) bool { return slices.Contains(i.siblings, cpu) })
	}
}
