//go:build unix

package tune_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// files are the contents of a root directory.
type files map[string]string

// server is a bare machine of four cores with two threads each, untuned: CPUs 0-3
// are the first threads, 4-7 the second ones.
func server() files {
	f := files{
		"sys/devices/system/cpu/online":                "0-7\n",
		"sys/devices/system/cpu/present":               "0-7\n",
		"sys/devices/system/cpu/isolated":              "\n",
		"sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
		"sys/devices/virtual/workqueue/cpumask":        "ff\n",
		"sys/kernel/mm/ksm/run":                        "1\n",
		"sys/kernel/mm/transparent_hugepage/enabled":   "[always] madvise never\n",
		"proc/cpuinfo":                                 "processor: 0\nvendor_id: GenuineIntel\nmodel name: Xeon\nflags: fpu\n",
		"proc/meminfo":                                 "MemTotal: 1024 kB\n",
		"proc/stat":                                    "cpu 1 2 3 4 5 6 7 0 0 0\n",
		"proc/pressure/cpu":                            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
		"proc/irq/default_smp_affinity":                "ff\n",
		"proc/irq/0/smp_affinity_list":                 "0\n",
		"proc/irq/24/smp_affinity_list":                "0-7\n",
		"proc/irq/25/smp_affinity_list":                "2\n",
		"proc/irq/26/smp_affinity_list":                "7\n",
		"proc/irq/126/smp_affinity_list":               "1-3,5\n",
		"proc/swaps":                                   "Filename\tType\tSize\tUsed\tPriority\n/swapfile file 1 0 -2\n",
		"proc/sys/vm/swappiness":                       "60\n",
		"proc/sys/kernel/numa_balancing":               "1\n",
		"proc/sys/kernel/nmi_watchdog":                 "1\n",
		"proc/sys/kernel/soft_watchdog":                "1\n",
		"proc/sys/kernel/timer_migration":              "1\n",
		"proc/sys/kernel/perf_event_paranoid":          "4\n",
		"proc/sys/kernel/randomize_va_space":           "2\n",
		"proc/sys/kernel/random/boot_id":               "6f1c1b1e-0001\n",
		"proc/812/comm":                                "bash\n",

		"sys/devices/system/cpu/cpu1/cpuidle/state0/latency":                 "0\n",
		"sys/devices/system/cpu/cpu1/cpuidle/state1/latency":                 "133\n",
		"sys/devices/system/cpu/cpu1/cpuidle/state1/disable":                 "0\n",
		"sys/devices/system/cpu/cpufreq/policy2/scaling_available_governors": "performance powersave\n",
	}
	for cpu := range 8 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		f[dir+"topology/thread_siblings_list"] = fmt.Sprintf("%d,%d\n", cpu%4, cpu%4+4)
		if cpu > 0 {
			f[dir+"online"] = "1\n"
		}
		policy := fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d/", cpu)
		f[policy+"scaling_governor"] = "powersave\n"
	}
	return f
}

// tuned are the values that a tuned server has with CPUs 2 and 3 measuring.
func tuned() files {
	f := files{
		"sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
		"sys/devices/system/cpu/cpu6/online":           "0\n",
		"sys/devices/system/cpu/cpu7/online":           "0\n",
		"sys/devices/virtual/workqueue/cpumask":        "33\n",
		"sys/kernel/mm/ksm/run":                        "0\n",
		"proc/irq/default_smp_affinity":                "33\n",
		"proc/irq/24/smp_affinity_list":                "0-1,4-5\n",
		"proc/irq/25/smp_affinity_list":                "0-1,4-5\n",
		"proc/irq/26/smp_affinity_list":                "0-1,4-5\n",
		"proc/irq/126/smp_affinity_list":               "1,5\n",
		"proc/sys/vm/swappiness":                       "1\n",
		"proc/sys/kernel/numa_balancing":               "0\n",
		"proc/sys/kernel/nmi_watchdog":                 "0\n",
		"proc/sys/kernel/soft_watchdog":                "0\n",
		"proc/sys/kernel/timer_migration":              "0\n",
	}
	for cpu := range 8 {
		f[fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d/scaling_governor", cpu)] = "performance\n"
	}
	return f
}

// with returns f with other contents; an empty one removes the file.
func (f files) with(changes files) files {
	out := maps.Clone(f)
	for name, content := range changes {
		out[name] = content
		if content == "" {
			delete(out, name)
		}
	}
	return out
}

// write writes the files below a new directory.
func (f files) write(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range f {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return root
}

// read returns the files of a root, except the one of Benchloom's own lock.
func read(t *testing.T, root string) files {
	t.Helper()
	out := files{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(path) == "original-settings.lock" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		out[name] = string(content)
		return err
	}))
	return out
}
