package tune

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/measure"
)

const (
	cpuDir          = "sys/devices/system/cpu/"
	defaultAffinity = "proc/irq/default_smp_affinity"
	workqueueMask   = "sys/devices/virtual/workqueue/cpumask"
)

func (i *inspector) governor() Finding {
	f := Finding{Name: "frequency governor"}
	var values []string
	for _, name := range i.glob(cpuDir + "cpufreq/policy*/scaling_governor") {
		value, ok := i.text(name)
		if !ok {
			continue
		}
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
		if value == "performance" {
			continue
		}
		available, ok := i.text(path.Join(path.Dir(name), "scaling_available_governors"))
		if !ok || slices.Contains(strings.Fields(available), "performance") {
			f.changes = append(f.changes, change{name, "performance"})
		}
	}
	f.Value = strings.Join(values, ", ")
	switch {
	case len(values) == 0:
		f.Grade, f.Reason = Unavailable, "the kernel does not control the frequency (no cpufreq); firmware or hypervisor does"
	case f.Value == "performance":
		f.Grade = Good
	case len(f.changes) == 0:
		f.Grade, f.Reason, f.Remedy = Improvable, "the clock follows the load; the driver has no governor 'performance'", "look for a firmware setting of fixed frequency"
	default:
		f.Grade, f.Reason, f.Remedy = Improvable, "the clock follows the load, so short benchmarks run at varying speed", "set the governor 'performance'"
	}
	return f
}

// turbo reads either Intel's driver, which says when turbo is off, or another driver,
// which says when boost is on, for all CPUs and for each frequency policy. The policies
// come first: switching all of them off would hide their own values.
func (i *inspector) turbo() Finding {
	f := Finding{Name: "turbo", Grade: Good, Value: "off"}
	const noTurbo, boost = cpuDir + "intel_pstate/no_turbo", cpuDir + "cpufreq/boost"
	if value, ok := i.text(noTurbo); ok {
		if value == "0" {
			f.changes = []change{{noTurbo, "1"}}
		}
	} else if value, ok := i.text(boost); ok {
		if value == "1" {
			for _, name := range i.glob(cpuDir + "cpufreq/policy*/boost") {
				f.changes = append(f.changes, change{name, "0"}) // even if off already: restoring the common one switches all on
			}
			f.changes = append(f.changes, change{boost, "0"})
		}
	} else {
		f.Grade, f.Value, f.Reason = Unavailable, "", "no frequency driver shows it; firmware or hypervisor decides"
		return f
	}
	if len(f.changes) > 0 {
		f.Grade, f.Value = Improvable, "on"
		f.Reason, f.Remedy = "the clock depends on temperature and on what the other cores do", "switch turbo off"
	}
	return f
}

func (i *inspector) otherCPUs() Finding {
	f := Finding{Name: "CPUs for other work", Grade: Good, Value: i.others.String()}
	if len(i.others) == 0 {
		f.Grade, f.Value = Improvable, "none"
		f.Reason = "benchmarks share their CPUs with interrupts and everything else"
		f.Remedy = "leave a CPU out of --cpus, here and at the collector"
		if len(i.online) == 1 {
			f.Remedy = "use a machine with more CPUs"
		}
		return f
	}
	isolated, _ := i.text(cpuDir + "isolated")
	if list, err := measure.ParseCPUList(isolated); err == nil && !slices.ContainsFunc(i.measuring, func(cpu int) bool { return !slices.Contains(list, cpu) }) {
		f.Value += " (the measuring CPUs are isolated)"
	}
	return f
}

// interrupts looks for interrupts that measuring cores may have to serve. Some, such as
// those of storage queues, are placed by their driver: the kernel shows their
// affinity read-only, and they matter if they are served on a measuring core now.
func (i *inspector) interrupts() Finding {
	f := Finding{Name: "interrupts", Grade: Good}
	total, fixed := 0, 0
	for _, name := range i.glob("proc/irq/[0-9]*/smp_affinity_list") {
		text, _ := i.text(name)
		cpus, err := measure.ParseCPUList(text)
		if err != nil {
			continue
		}
		total++
		rest, on := i.without(cpus)
		switch {
		case on && !i.readOnly(name):
			f.changes = append(f.changes, change{name, rest.String()})
		case on && i.servedOnMeasuring(name):
			fixed++
		}
	}
	if total == 0 {
		f.Grade, f.Reason = Unavailable, "the machine does not show where its interrupts are served"
		return f
	}
	f.Value = fmt.Sprintf("%d of %d may be served on measuring cores", len(f.changes)+fixed, total)
	text, _ := i.text(defaultAffinity)
	if cpus, err := parseMask(text); err == nil {
		if rest, on := i.without(cpus); on {
			f.changes = append(f.changes, change{defaultAffinity, formatMask(rest)})
		}
	}
	var remedies []string
	if i.running("irqbalance") {
		remedies = append(remedies, "stop irqbalance, which moves them around")
	}
	if len(i.others) == 0 {
		f.changes = nil
		remedies = []string{"leave a CPU out of --cpus: interrupts need one"}
	}
	if len(f.changes) > 0 {
		remedies = append(remedies, "serve them on "+words(i.others))
	}
	if fixed > 0 && len(i.others) > 0 {
		remedies = append(remedies, fmt.Sprintf("start the kernel with isolcpus=managed_irq,%s for those that only their driver places", i.measuring))
	}
	if len(remedies) > 0 {
		f.Grade, f.Reason, f.Remedy = Improvable, "interrupts stop a benchmark where it runs", strings.Join(remedies, "; ")
	}
	return f
}

func (i *inspector) readOnly(name string) bool {
	info, err := os.Stat(i.file(name))
	return err == nil && info.Mode().Perm()&0o222 == 0
}

// servedOnMeasuring reports whether an interrupt, given by the path of its affinity,
// is served on a measuring core at present.
func (i *inspector) servedOnMeasuring(name string) bool {
	text, _ := i.text(path.Join(path.Dir(name), "effective_affinity_list"))
	cpus, err := measure.ParseCPUList(text)
	return err == nil && slices.ContainsFunc(cpus, i.busy)
}

func words(cpus measure.CPUList) string {
	if len(cpus) == 1 {
		return "CPU " + cpus.String()
	}
	return "CPUs " + cpus.String()
}

// workqueues looks at the kernel's own work that is bound to no CPU.
func (i *inspector) workqueues() Finding {
	f := Finding{Name: "kernel work", Grade: Good}
	text, _ := i.text(workqueueMask)
	cpus, err := parseMask(text)
	if err != nil {
		f.Grade, f.Reason = Unavailable, "the kernel does not show where it does work of its own"
		return f
	}
	f.Value = "on " + words(cpus)
	rest, on := i.without(cpus)
	if !on {
		return f
	}
	f.Grade, f.Reason = Improvable, "the kernel's own work runs on measuring cores"
	f.Remedy = "leave a CPU out of --cpus: the kernel needs one"
	if len(i.others) > 0 {
		f.Remedy = "keep it on " + words(i.others)
		f.changes = []change{{workqueueMask, formatMask(rest)}}
	}
	return f
}

// without returns cpus without the measuring ones and their siblings, or all other
// CPUs if none is left, and reports whether any of the former was among them. (An
// interrupt that only a sibling serves would be served anywhere when that goes
// offline, and stay there when the sibling is back.)
func (i *inspector) without(cpus measure.CPUList) (rest measure.CPUList, on bool) {
	for _, cpu := range cpus {
		switch {
		case i.busy(cpu):
			on = true
		case slices.Contains(i.others, cpu):
			rest = append(rest, cpu)
		}
	}
	if len(rest) == 0 {
		rest = i.others
	}
	return rest, on
}

// busy reports whether a CPU is on a measuring core.
func (i *inspector) busy(cpu int) bool {
	return slices.Contains(i.measuring, cpu) || slices.Contains(i.siblings, cpu)
}

// running reports whether a program of this name runs.
func (i *inspector) running(program string) bool {
	for _, name := range i.glob("proc/[0-9]*/comm") {
		if text, _ := i.text(name); text == program {
			return true
		}
	}
	return false
}

// smt looks for hardware threads that share a core with a measuring CPU.
func (i *inspector) smt() Finding {
	f := Finding{Name: "SMT siblings", Grade: Good, Value: "none online"}
	switch {
	case len(i.crowded) > 0:
		f.Grade, f.Value = Improvable, "measuring CPUs share cores: "+i.crowded.String()
		f.Reason, f.Remedy = "two benchmarks, or two threads of one, slow each other down", "name one CPU of each core with --cpus"
	case len(i.siblings) > 0:
		f.Grade, f.Value = Improvable, words(i.siblings)+" on cores of measuring ones"
		f.Reason = "work on a sibling slows a benchmark down"
		f.Remedy = fmt.Sprintf("take %s offline", words(i.siblings))
	default:
		return f
	}
	if i.exists("sys/fs/cgroup/cpuset/cpuset.cpus") {
		// Cpusets would not get a CPU back: cpuset(7), and cpuset_hotplug_workfn of Linux.
		f.Remedy = "switch SMT off in the firmware: with control groups of version 1, cpusets lose a CPU for good when it goes offline"
		return f
	}
	for _, cpu := range i.siblings {
		if name := cpuFile(cpu, "online"); i.exists(name) {
			f.changes = append(f.changes, change{name, "0"})
		}
	}
	return f
}

// slowWakeUp is the shortest time to leave an idle state, in microseconds, that
// shows in measurements.
const slowWakeUp = 10

// idleStates looks at the measuring CPUs only.
func (i *inspector) idleStates() Finding {
	f := Finding{Name: "idle states"}
	slowest, states := 0, 0
	for _, cpu := range i.measuring {
		for _, name := range i.glob(cpuFile(cpu, "cpuidle/state*/latency")) {
			text, _ := i.text(name)
			latency, err := strconv.Atoi(text)
			if err != nil {
				continue
			}
			states++
			if disabled, _ := i.text(path.Join(path.Dir(name), "disable")); disabled != "1" {
				slowest = max(slowest, latency)
			}
		}
	}
	switch {
	case states == 0:
		f.Grade, f.Reason = Unavailable, "the kernel has no control over idle states; firmware or hypervisor decides"
	case slowest <= slowWakeUp:
		f.Grade, f.Value = Good, fmt.Sprintf("wake-up within %d µs", slowest)
	default:
		f.Grade, f.Value = Improvable, fmt.Sprintf("wake-up takes up to %d µs", slowest)
		f.Reason = "benchmarks that wait or hand work over pay for waking a CPU up"
		f.Remedy = fmt.Sprintf("cpupower idle-set -D %d", slowWakeUp)
	}
	return f
}
