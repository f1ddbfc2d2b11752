package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
)

// unbounded is the value of a flag for no limit.
const unbounded = "none"

// boundFlags limit what benchmarks use. Empty ones have defaults in proportion to the machine.
type boundFlags struct {
	memory, disk                string
	files, processes, openFiles string
	reserve                     string
}

func (f *boundFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.memory, "memory", "", "memory limit of a benchmark, such as 8g, or none; on a shared host, of all jobs together (default: nine tenths of the machine's, in proportion to --cpus)")
	f.addOwn(flags)
	addReserve(flags, &f.reserve)
}

// addOwn adds the flags for resources that jobs do not share, whatever runs beside them.
func (f *boundFlags) addOwn(flags *pflag.FlagSet) {
	flags.StringVar(&f.disk, "disk", "", "disk limit of a benchmark, such as 20GiB, or none (default: half of the file system, in proportion to --cpus, at least 10GiB)")
	flags.StringVar(&f.files, "files", "", "limit of files and directories of a benchmark, or none (default: a million, at most half of what the file system holds)")
	flags.StringVar(&f.processes, "processes", "", "limit of processes and threads of a benchmark, or none (default: 4096, and 1024 for each CPU)")
	flags.StringVar(&f.openFiles, "open-files", "", "limit of open files of each process of a benchmark, or none (default: 65536)")
}

// addReserve adds the flag for the room that stays free for the service.
func addReserve(flags *pflag.FlagSet, reserve *string) {
	flags.StringVar(reserve, "disk-reserve", "", "free disk space that is kept for the service, such as 1GiB, or none: benchmarks are ended before, and /readyz fails (default: a twentieth of the file system, at most 2GiB)")
}

// parseReserve returns the reserve that a flag asks for.
func parseReserve(text string) (diskspace.Reserve, error) {
	if text == unbounded {
		return diskspace.Reserve{Bytes: -1}, nil
	}
	bytes, err := size("--disk-reserve", text)
	return diskspace.Reserve{Bytes: bytes}, err
}

// number parses a limit that is a number; given is false if the text is empty.
func number(flag, text string) (n int, given bool, err error) {
	switch text {
	case "":
		return 0, false, nil
	case unbounded:
		return 0, true, nil
	}
	n, err = strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 {
		return 0, false, fmt.Errorf("%s %q: write a number, or none", flag, text)
	}
	return n, true, nil
}

// apply sets the limits of a slot given by flags, and defaults for the others.
func (f *boundFlags) apply(config *measure.SandboxConfig, defaults machine.Bounds) error {
	var err error
	switch f.memory {
	case "":
		config.MemoryBytes = defaults.MemoryBytes
	case unbounded:
	default:
		if config.MemoryBytes, err = memorySize("--memory", f.memory); err != nil {
			return err
		}
	}
	switch f.disk {
	case "":
		config.DiskBytes = defaults.DiskBytes
	case unbounded:
	default:
		if config.DiskBytes, err = size("--disk", f.disk); err != nil {
			return err
		}
	}
	files := 0
	for _, b := range []struct {
		flag, text string
		otherwise  int
		into       *int
	}{
		{"--files", f.files, int(defaults.Files), &files}, {"--processes", f.processes, defaults.Processes, &config.PIDs},
		{"--open-files", f.openFiles, defaults.OpenFiles, &config.OpenFiles},
	} {
		n, given, err := number(b.flag, b.text)
		if err != nil {
			return err
		}
		if *b.into = n; !given {
			*b.into = b.otherwise
		}
	}
	config.Inodes = int64(files)
	_, err = parseReserve(f.reserve)
	return err
}

// own returns the flags of [boundFlags.addOwn] that were given, for other processes, or an error if one of them is wrong.
func (f *boundFlags) own() ([]string, error) {
	if err := f.apply(&measure.SandboxConfig{}, machine.Bounds{}); err != nil {
		return nil, err
	}
	var argv []string
	for _, given := range [][2]string{{"--disk", f.disk}, {"--files", f.files}, {"--processes", f.processes}, {"--open-files", f.openFiles}} {
		if given[1] != "" {
			argv = append(argv, given[:]...)
		}
	}
	return argv, nil
}

// thisMachine returns the resources of this machine, as far as known. dir is on the file system on which jobs work, or will be.
func thisMachine(dir string) machine.Size {
	m := machine.Size{CPUs: runtime.NumCPU()}
	if facts, err := measure.ReadFacts("/"); err == nil {
		m.CPUs, m.MemoryBytes = facts.LogicalCPUs, facts.MemoryBytes
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) { // until it exists
		if space, err := diskspace.Of(dir); err == nil {
			m.DiskBytes, m.Files = space.Size, space.Files
			break
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/pid_max"); err == nil {
		m.MaxProcesses, _ = strconv.Atoi(strings.TrimSpace(string(text))) // 0 means unknown
	}
	return m
}

// share returns the slot's share of the machine: by its CPUs, or by its memory on a shared host.
func (f *collectorFlags) share(cpus measure.CPUList, m machine.Size) float64 {
	switch {
	case f.shared.slotMemory > 0 && m.MemoryBytes > 0:
		return float64(f.shared.slotMemory) / float64(m.MemoryBytes)
	case len(cpus) > 0:
		return float64(len(cpus)) / float64(max(1, m.CPUs))
	}
	return 1
}

// boundsText describes limits for the log.
func boundsText(c measure.SandboxConfig) string {
	text := func(n int64, of func(uint64) string) string {
		if n == 0 {
			return "no limit"
		}
		return of(uint64(n))
	}
	count := func(n uint64) string { return humanize.Comma(int64(n)) }
	return fmt.Sprintf("memory: %s, disk: %s, files: %s, processes: %s, open files: %s", text(c.MemoryBytes, humanize.IBytes),
		text(c.DiskBytes, humanize.IBytes), text(c.Inodes, count), text(int64(c.PIDs), count), text(int64(c.OpenFiles), count))
}
