//go:build unix

package tune_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/tune"
)

func TestSettingsAreGraded(t *testing.T) {
	t.Parallel()
	const (
		good, improvable, unavailable = tune.Good, tune.Improvable, tune.Unavailable
		cpu                           = "sys/devices/system/cpu/"
		kernel                        = "proc/sys/kernel/"
	)
	for _, c := range []struct {
		setting string
		changes files
		cpus    measure.CPUList
		grade   tune.Grade
		value   string
		says    string // in reason or remedy
	}{
		{setting: "frequency governor", grade: improvable, value: "powersave", says: "set the governor 'performance'"},
		{
			setting: "frequency governor", grade: improvable, value: "powersave, performance", says: "varying speed",
			changes: files{cpu + "cpufreq/policy3/scaling_governor": "performance\n"},
		},
		{setting: "frequency governor", grade: good, value: "performance", changes: tuned()},
		{setting: "frequency governor", grade: unavailable, says: "no cpufreq", cpus: measure.CPUList{2}, changes: withoutGovernors()},
		{setting: "turbo", grade: improvable, value: "on", says: "switch turbo off"},
		{setting: "turbo", grade: good, value: "off", changes: tuned()},
		{setting: "turbo", grade: improvable, value: "on", changes: files{cpu + "intel_pstate/no_turbo": "", cpu + "cpufreq/boost": "1\n"}},
		{setting: "turbo", grade: good, value: "off", changes: files{cpu + "intel_pstate/no_turbo": "", cpu + "cpufreq/boost": "0\n"}},
		{setting: "turbo", grade: unavailable, says: "hypervisor", changes: files{cpu + "intel_pstate/no_turbo": ""}},
		{setting: "SMT siblings", grade: improvable, value: "CPUs 6-7 on cores of measuring ones", says: "take CPUs 6-7 offline", cpus: measure.CPUList{2, 3}},
		{setting: "SMT siblings", grade: improvable, value: "CPUs 4-7 on cores of measuring ones"},
		{setting: "SMT siblings", grade: improvable, value: "measuring CPUs share cores: 2,6", says: "one CPU of each core", cpus: measure.CPUList{1, 2, 6}},
		{setting: "SMT siblings", grade: good, value: "none online", changes: files{cpu + "online": "0-3\n"}},
		{setting: "SMT siblings", grade: improvable, says: "firmware", changes: files{"sys/fs/cgroup/cpuset/cpuset.cpus": "0-7\n"}},
		{setting: "idle states", grade: improvable, value: "wake-up takes up to 133 µs", says: "cpupower idle-set"},
		{setting: "idle states", grade: good, value: "wake-up within 0 µs", cpus: measure.CPUList{1}, changes: files{cpu + "cpu1/cpuidle/state1/disable": "1\n"}},
		{setting: "idle states", grade: unavailable, cpus: measure.CPUList{1}, changes: files{cpu + "cpu1/cpuidle/state0/latency": "", cpu + "cpu1/cpuidle/state1/latency": ""}},
		{setting: "CPUs for other work", grade: improvable, value: "none", says: "leave a CPU out of --cpus"},
		{setting: "CPUs for other work", grade: good, value: "0-1,4-5", cpus: measure.CPUList{2, 3}},
		{setting: "CPUs for other work", grade: good, value: "0-1,4-5 (the measuring CPUs are isolated)", cpus: measure.CPUList{2, 3}, changes: files{cpu + "isolated": "2-3\n"}},
		{setting: "CPUs for other work", grade: improvable, value: "none", says: "more CPUs", changes: files{cpu + "online": "0\n"}},
		{setting: "interrupts", grade: improvable, value: "4 of 5 may be served on measuring cores", says: "serve them on CPUs 0-1,4-5", cpus: measure.CPUList{2, 3}},
		{setting: "interrupts", grade: improvable, says: "leave a CPU out"},
		{setting: "interrupts", grade: improvable, says: "stop irqbalance", cpus: measure.CPUList{2, 3}, changes: tuned().with(files{"proc/77/comm": "irqbalance\n"})},
		{setting: "interrupts", grade: good, value: "0 of 5 may be served on measuring cores", cpus: measure.CPUList{2, 3}, changes: tuned()},
		{setting: "kernel work", grade: improvable, value: "on CPUs 0-7", says: "keep it on CPUs 0-1,4-5", cpus: measure.CPUList{2, 3}},
		{setting: "kernel work", grade: good, value: "on CPUs 0-1,4-5", cpus: measure.CPUList{2, 3}, changes: tuned()},
		{setting: "kernel work", grade: unavailable, changes: files{"sys/devices/virtual/workqueue/cpumask": ""}},
		{setting: "swap", grade: improvable, value: "on, swappiness 60", says: "switch swap off"},
		{setting: "swap", grade: good, value: "on, swappiness 1", changes: tuned()},
		{setting: "swap", grade: good, value: "off", changes: files{"proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n"}},
		{setting: "NUMA balancing", grade: improvable, value: "on", says: "write 0 to /proc/sys/kernel/numa_balancing"},
		{setting: "NMI watchdog", grade: good, value: "off", changes: tuned()},
		{setting: "NMI watchdog", grade: unavailable, changes: files{kernel + "nmi_watchdog": ""}},
		{setting: "same-page merging", grade: improvable, value: "on"},
		{setting: "transparent huge pages", grade: improvable, value: "always", says: "--tune does not"},
		{setting: "transparent huge pages", grade: good, value: "madvise", changes: files{"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"}},
		{setting: "transparent huge pages", grade: unavailable, changes: files{"sys/kernel/mm/transparent_hugepage/enabled": ""}},
		{setting: "hardware counters", grade: improvable, value: "perf_event_paranoid 4", says: "perf_event_paranoid=2"},
		{setting: "hardware counters", grade: good, value: "perf_event_paranoid 2", changes: files{kernel + "perf_event_paranoid": "2\n"}},
		{setting: "hardware counters", grade: unavailable, changes: files{kernel + "perf_event_paranoid": ""}},
		{setting: "address randomisation", grade: good, value: "on; off for benchmarks"},
		{setting: "virtual machine", grade: good, value: "no"},
		{
			setting: "virtual machine", grade: improvable, value: "yes, 20.0 % of CPU time stolen since its start", says: "dedicated CPUs",
			changes: files{"proc/cpuinfo": "flags: fpu hypervisor\n", "proc/stat": "cpu 10 0 10 60 0 0 0 20 5 0\n"},
		},
		{setting: "container", grade: good, value: "no"},
		{setting: "container", grade: improvable, value: "yes", says: "on the host, too", changes: files{"run/.containerenv": "x"}},
		{setting: "pressure readings", grade: good, value: "on"},
		{setting: "pressure readings", grade: unavailable, says: "psi=1", changes: files{"proc/pressure/cpu": ""}},
	} {
		t.Run(c.setting+" "+string(c.grade), func(t *testing.T) {
			t.Parallel()
			report, err := tune.Machine{Root: server().with(c.changes).write(t), CPUs: c.cpus}.Inspect()
			require.NoError(t, err)
			f := find(t, report, c.setting)
			require.Equal(t, c.grade, f.Grade)
			if c.value != "" {
				require.Equal(t, c.value, f.Value)
			}
			require.Contains(t, f.Reason+"; "+f.Remedy, c.says)
		})
	}
}

func withoutGovernors() files {
	f := files{}
	for name := range tuned() {
		if strings.HasSuffix(name, "scaling_governor") {
			f[name] = ""
		}
	}
	return f
}

func find(t *testing.T, report tune.Report, name string) tune.Finding {
	t.Helper()
	for _, f := range report.Findings {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "no such setting: "+name)
	return tune.Finding{}
}

// Interrupts that only their driver places are nothing to tune, and matter where they
// are served.
func TestInterruptsPlacedByTheirDriver(t *testing.T) {
	t.Parallel()
	const affinity, effective = "proc/irq/31/smp_affinity_list", "proc/irq/31/effective_affinity_list"
	for served, grade := range map[string]tune.Grade{"2\n": tune.Improvable, "6\n": tune.Improvable, "5\n": tune.Good} {
		root := server().with(tuned()).with(files{affinity: "0-7\n", effective: served}).write(t)
		require.NoError(t, os.Chmod(filepath.Join(root, affinity), 0o444))
		report, err := tune.Machine{Root: root, CPUs: measure.CPUList{2, 3}}.Inspect()
		require.NoError(t, err)
		f := find(t, report, "interrupts")
		require.Equal(t, grade, f.Grade)
		require.Equal(t, grade == tune.Improvable, strings.Contains(f.Remedy, "isolcpus=managed_irq,2-3"))
		require.False(t, f.Tunable)
	}
}

// Whatever is wrong has a reason; what could be better has a remedy as well.
func TestEveryGradeIsExplained(t *testing.T) {
	t.Parallel()
	empty := files{"sys/devices/system/cpu/online": "0-1\n"}
	for name, machine := range map[string]files{
		"untuned": server(), "tuned": server().with(tuned()), "a container that shows nothing": empty,
		"unreadable values": {
			"sys/devices/system/cpu/online": "0-1\n", "proc/irq/default_smp_affinity": "?\n", "proc/irq/1/smp_affinity_list": "x\n", "proc/swaps": "a\nb\n",
			"proc/sys/vm/swappiness": "much\n", "proc/stat": "cpu x\n", "proc/cpuinfo": "flags: hypervisor\n", "proc/meminfo": "MemTotal: 1 kB\n",
			"sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "one\n", "proc/sys/kernel/perf_event_paranoid": "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := tune.Machine{Root: machine.write(t)}.Inspect()
			require.NoError(t, err)
			require.Equal(t, len(report.Findings), report.Count(tune.Good)+report.Count(tune.Improvable)+report.Count(tune.Unavailable))
			for _, f := range report.Findings {
				require.Equal(t, f.Grade == tune.Good, f.Reason == "", f)
				require.False(t, f.Grade == tune.Improvable && f.Remedy == "", f)
				require.False(t, f.Tunable && f.Grade != tune.Improvable, f)
				require.False(t, strings.HasSuffix(f.Reason+f.Remedy, "."), f)
			}
		})
	}
}

func TestAMachineThatShowsNoCPUsIsRefused(t *testing.T) {
	t.Parallel()
	_, err := tune.Machine{Root: t.TempDir()}.Inspect()
	require.ErrorContains(t, err, "Linux only")
	_, err = tune.Machine{Root: server().write(t), CPUs: measure.CPUList{3, 9}}.Inspect()
	require.EqualError(t, err, "CPU 9 is not online: this machine has CPUs 0-7")
	var unknown *tune.NoCPUError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, 9, unknown.CPU)
}

func TestCountersAreMissingWhateverTheKernelAllows(t *testing.T) {
	t.Parallel()
	report, err := tune.Machine{Root: server().with(files{"proc/sys/kernel/perf_event_paranoid": "2\n"}).write(t)}.Inspect()
	require.NoError(t, err)
	report.LackCounters("this machine has none")
	require.Equal(t, tune.Finding{Name: "hardware counters", Grade: tune.Unavailable, Reason: "this machine has none"}, find(t, report, "hardware counters"))
	report, err = tune.Machine{Root: server().write(t)}.Inspect()
	require.NoError(t, err)
	before := find(t, report, "hardware counters")
	report.LackCounters("not allowed")
	require.Equal(t, before, find(t, report, "hardware counters")) // with its remedy
}

func TestLimitsThatDoNotHold(t *testing.T) {
	t.Parallel()
	require.Equal(t, tune.Good, tune.OfLimits(tune.Limits(nil)).Grade)
	list := tune.Limits([]measure.Unenforced{
		{Name: measure.LimitMemory, Reason: "no writable hierarchy"}, {Name: measure.LimitPIDs, Reason: "neither"}, {Name: measure.LimitFiles, Reason: "not root"}, {Name: measure.LimitFiles, Reason: "no mounts"},
	})
	seen := make(map[measure.Limit]bool)
	for _, e := range list {
		require.False(t, seen[e.Limit], e.Limit)
		seen[e.Limit] = true
		require.NotEmpty(t, e.Purpose)
		require.Equal(t, e.Enforced, e.Reason == "" && e.Remedy == "", e.Limit)
	}
	require.Len(t, seen, 15)
	f := tune.OfLimits(list)
	require.Equal(t, tune.Improvable, f.Grade)
	require.Equal(t, "not enforced: files, memory, pids", f.Value)
	require.Equal(t, "files: not root; no mounts; memory: no writable hierarchy; pids: neither", f.Reason)
	require.Equal(t, 1, strings.Count(f.Remedy, "Delegate=yes"), "one remedy for both")
}

// A container may use only some CPUs of its machine.
func TestOwnCPUsMeasureUnlessOthersAreNamed(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"Name:\tx\nCpus_allowed_list:\t2-3\n": "2-3", "Cpus_allowed_list: 2-9\n": "0-3", "Cpus_allowed_list: ?\n": "0-3", "Cpus_allowed_list:\t1,5\n": "1",
	} {
		report, err := tune.Machine{Root: server().with(files{"proc/self/status": status}).write(t)}.Inspect()
		require.NoError(t, err)
		require.Equal(t, want, report.MeasuringCPUs.String(), status)
	}
}

func TestMasksAreInTheKernelsFormat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"0": "", "3": "0-1", "00000001,00000000\n": "32", "f,80000001": "0,31-35", "1,00000000,00000000": "64"} {
		cpus, err := tune.ParseMask(text)
		require.NoError(t, err)
		require.Equal(t, want, cpus.String())
		again, err := tune.ParseMask(tune.FormatMask(cpus))
		require.NoError(t, err)
		require.Equal(t, cpus, again)
	}
	require.Equal(t, "1,00000000,00000003", tune.FormatMask(measure.CPUList{0, 1, 64}))
	for _, text := range []string{"", "-1", "0x3", "g", "1" + strings.Repeat("0", 3000)} {
		_, err := tune.ParseMask(text)
		require.Error(t, err, text)
	}
}
