package tune

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/measure"
)

// leastSwappiness makes the kernel swap only to avoid running out of memory; 0 can
// end processes instead.
const leastSwappiness = 1

const swappiness = "proc/sys/vm/swappiness"

func (i *inspector) swap() Finding {
	f := Finding{Name: "swap", Grade: Good, Value: "off"}
	areas, ok := i.text("proc/swaps")
	if !ok {
		f.Grade, f.Value, f.Reason = Unavailable, "", "the kernel has no swap"
		return f
	}
	if strings.Count(areas, "\n") == 0 { // its heading
		return f
	}
	text, _ := i.text(swappiness)
	level, err := strconv.Atoi(text)
	f.Value = "on, swappiness " + text
	if err == nil && level <= leastSwappiness {
		return f
	}
	f.Grade, f.Reason, f.Remedy = Improvable, "memory of a benchmark may be on disk when it is needed", "switch swap off, or set swappiness to 1"
	if err == nil {
		f.changes = []change{{swappiness, strconv.Itoa(leastSwappiness)}}
	}
	return f
}

// toggle is a setting whose value should be off.
type toggle struct {
	name, path, off string
	missing, reason string
}

func toggles() []toggle {
	const sysctl = "proc/sys/kernel/"
	return []toggle{
		{"NUMA balancing", sysctl + "numa_balancing", "0", "the kernel does not move memory between nodes", "the kernel unmaps memory to see who uses it, and moves it between nodes"},
		{"NMI watchdog", sysctl + "nmi_watchdog", "0", "the kernel has none", "it occupies a hardware counter and interrupts every CPU"},
		{"soft watchdog", sysctl + "soft_watchdog", "0", "the kernel has none", "its timer interrupts every CPU"},
		{"timer migration", sysctl + "timer_migration", "0", "the kernel does not move timers", "timers of idle CPUs are moved to busy ones, where benchmarks run"},
		{"same-page merging", "sys/kernel/mm/ksm/run", "0", "the kernel does not merge pages", "a kernel thread scans memory, and writing to merged pages is slow"},
	}
}

func (i *inspector) switches() []Finding {
	var out []Finding
	for _, t := range toggles() {
		f := Finding{Name: t.name, Grade: Good, Value: "off"}
		switch value, ok := i.text(t.path); {
		case !ok:
			f.Grade, f.Value, f.Reason = Unavailable, "", t.missing
		case value != t.off:
			f.Grade, f.Value, f.Reason, f.Remedy = Improvable, "on", t.reason, "write "+t.off+" to /"+t.path
			f.changes = []change{{t.path, t.off}}
		}
		out = append(out, f)
	}
	return out
}

// hugePages is never tuned: it changes how fast programs are, not only how steady,
// and would begin a new level in every series.
func (i *inspector) hugePages() Finding {
	f := Finding{Name: "transparent huge pages", Grade: Good}
	const name = "sys/kernel/mm/transparent_hugepage/enabled"
	text, ok := i.text(name)
	_, chosen, marked := strings.Cut(text, "[")
	chosen, _, _ = strings.Cut(chosen, "]")
	f.Value = chosen
	switch {
	case !ok || !marked:
		f.Grade, f.Reason = Unavailable, "the kernel has none"
	case chosen == "always":
		f.Grade, f.Reason = Improvable, "whether a program gets huge pages depends on how fragmented memory is: its speed has two levels"
		f.Remedy = "write madvise or never to /" + name + " at every start; this changes the speed of programs, so --tune does not"
	}
	return f
}

// counters looks at user-space counters of own processes, allowed up to 2; see
// perf_event_paranoid in Documentation/admin-guide/sysctl/kernel.rst of Linux.
func (i *inspector) counters() Finding {
	f := Finding{Name: countersName, Grade: Good}
	const name = "proc/sys/kernel/perf_event_paranoid"
	text, ok := i.text(name)
	level, err := strconv.Atoi(text)
	f.Value = "perf_event_paranoid " + text
	switch {
	case !ok || err != nil:
		f.Grade, f.Value, f.Reason = Unavailable, "", "the kernel has no performance events"
	case level > 2:
		f.Grade, f.Reason = Improvable, "only root may count instructions, the steadiest metric"
		f.Remedy = "sysctl kernel.perf_event_paranoid=2"
	}
	return f
}

// LackCounters notes that instructions cannot be counted although the kernel's
// setting would allow it: most virtual machines have no counters.
func (r *Report) LackCounters(reason string) {
	for n, f := range r.Findings {
		if f.Name == countersName && f.Grade == Good {
			r.Findings[n] = Finding{Name: f.Name, Grade: Unavailable, Reason: reason}
		}
	}
}

const countersName = "hardware counters"

func (i *inspector) aslr() Finding {
	f := Finding{Name: "address randomisation", Grade: Good}
	text, ok := i.text("proc/sys/kernel/randomize_va_space")
	switch {
	case !ok:
		f.Grade, f.Reason = Unavailable, "the kernel does not show it"
	case text == "0":
		f.Value = "off"
	default:
		f.Value = "on; off for benchmarks"
	}
	return f
}

func (i *inspector) hypervisor() Finding {
	f := Finding{Name: "virtual machine", Grade: Good, Value: "no"}
	facts, err := measure.ReadFacts(i.root)
	switch {
	case err != nil:
		f.Grade, f.Value, f.Reason = Unavailable, "", err.Error()
	case facts.Virtualised:
		f.Grade, f.Value = Improvable, "yes"
		if share, ok := i.steal(); ok {
			f.Value += fmt.Sprintf(", %.1f %% of CPU time stolen since its start", 100*share)
		}
		f.Reason, f.Remedy = "the hypervisor gives CPU time, caches and memory bandwidth to others", "use a machine of its own, or dedicated CPUs"
	}
	return f
}

// steal returns the share of time since the machine's start that the hypervisor
// gave to others; see proc_stat(5).
func (i *inspector) steal() (float64, bool) {
	text, _ := i.text("proc/stat")
	first, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, false
	}
	total, stolen := 0.0, 0.0
	for n, field := range fields[1:9] { // guest time is part of user time
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, false
		}
		total += ticks
		if n == 7 {
			stolen = ticks
		}
	}
	return stolen / max(total, 1), true
}

func (i *inspector) container() Finding {
	f := Finding{Name: "container", Grade: Good, Value: "no"}
	for _, sign := range []string{".dockerenv", "run/.containerenv", "run/systemd/container"} {
		if i.exists(sign) {
			f.Grade, f.Value = Improvable, "yes"
			f.Reason = "kernel, caches and settings are shared with whatever else runs on the host"
			f.Remedy = "run 'benchloom doctor' on the host, too; measure on a host without other work"
		}
	}
	return f
}

func (i *inspector) pressure() Finding {
	f := Finding{Name: "pressure readings", Grade: Good, Value: "on"}
	if text, ok := i.text("proc/pressure/cpu"); !ok || !strings.HasPrefix(text, "some ") {
		f.Grade, f.Value = Unavailable, ""
		f.Reason, f.Remedy = "the kernel does not tell how long work waits (PSI): some disturbances stay unseen", "start the kernel with psi=1"
	}
	return f
}
