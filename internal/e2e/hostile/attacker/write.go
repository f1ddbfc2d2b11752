//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// planted makes a file in a directory, and removes it again: it would have been possible.
func planted(dir string) (string, error) {
	f, err := os.CreateTemp(dir, "planted-")
	if err != nil {
		return "", err
	}
	return "a file in " + dir, errors.Join(f.Close(), os.Remove(f.Name()))
}

func spoolWrite(t Targets) (string, error) { return t.inSlots("spool", planted) }

func suitesWrite(t Targets) (string, error) {
	return anyOf(
		func() (string, error) { return t.inSlots("suites", planted) },
		func() (string, error) { return t.inSlots("", planted) },
	)
}

func artifactWrite(t Targets) (string, error) {
	return anyOf(
		func() (string, error) { return planted(t.Artifact) },
		func() (string, error) { return opened(filepath.Join(t.Artifact, "version"), os.O_WRONLY) },
		func() (string, error) {
			return "the modes of the artifact", os.Chmod(filepath.Join(t.Artifact, "version"), 0o666)
		},
		func() (string, error) { return planted(filepath.Join(t.State, "artifacts")) },
	)
}

func suiteWrite(t Targets) (string, error) {
	return anyOf(
		func() (string, error) { return planted(t.Suite) },
		func() (string, error) { return opened(filepath.Join(t.Suite, "suite.yaml"), os.O_WRONLY) },
		func() (string, error) {
			return "the modes of the suite", os.Chmod(filepath.Join(t.Suite, "suite.yaml"), 0o666)
		},
	)
}

func slotWrite(t Targets) (string, error) { return opened(t.VictimFile, os.O_WRONLY) }

func slotPlant(t Targets) (string, error) { return planted(filepath.Dir(t.VictimFile)) }

// keptWrite looks for what another project's suite keeps, and for a place beside it.
func keptWrite(t Targets) (string, error) {
	own := filepath.Dir(t.Kept)
	return anyOf(
		func() (string, error) { return opened(t.Kept, os.O_RDONLY) },
		func() (string, error) { return opened(t.Kept, os.O_WRONLY) },
		func() (string, error) { return listed(own) },
		func() (string, error) { return planted(own) },
		func() (string, error) { return planted(filepath.Dir(own)) },
		func() (string, error) { return planted(filepath.Dir(filepath.Dir(own))) },
	)
}

// procSys opens settings of the machine and writes nothing.
func procSys(_ Targets) (string, error) {
	var tries []func() (string, error)
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/perf_event_paranoid", "/proc/sys/vm/drop_caches",
		"/proc/sys/fs/file-max", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/sys/kernel/mm/transparent_hugepage/enabled",
		"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "/sys/devices/system/cpu/cpu1/online", "/sys/power/state", "/dev/kmsg",
	} {
		tries = append(tries, func() (string, error) { return opened(path, os.O_WRONLY) })
	}
	return anyOf(tries...)
}

// hostname sets the machine's name to what it is.
func hostname(_ Targets) (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	return "the machine's name", unix.Sethostname([]byte(name))
}

// modules loads what is none: whoever may gets another error.
func modules(_ Targets) (string, error) {
	err := unix.FinitModule(-1, "", 0)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return "", err
	}
	return "loading a module of the kernel is possible: " + err.Error(), nil
}
