package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// postgresProcess has many processes, which share much of their memory. All others are
// single processes.
const postgresProcess = "postgres"

// memory holds the memory of the stack's processes at the moment at which their peaks
// were reset.
type memory struct {
	pids map[string]int
	used map[string]int64 // bytes
}

// growing is the memory growth of a process.
type growing struct {
	process, unit string
	bytes         int64
}

// memoryBefore resets the peaks (VmHWM), by writing 5 to clear_refs
// (proc_pid_clear_refs(5)), and returns the present use of memory.
func memoryBefore(pids map[string]int) (memory, error) {
	m := memory{pids: pids, used: make(map[string]int64)}
	for name, pid := range pids {
		if name == postgresProcess {
			used, err := proportional(pid)
			if err != nil {
				return m, err
			}
			m.used[name] = used
			continue
		}
		if err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte("5"), 0); err != nil {
			return m, fmt.Errorf("resetting the peak memory of %s: %w", name, err)
		}
		used, err := statusField(pid, "VmRSS:")
		if err != nil {
			return m, fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		m.used[name] = used
	}
	return m, nil
}

// growth returns, for each process, its peak resident memory since then minus its use
// then; for Postgres, the present use of all its processes minus their use then.
func (m memory) growth() ([]growing, error) {
	var out []growing
	for _, name := range slices.Sorted(maps.Keys(m.pids)) {
		if name == postgresProcess {
			now, err := proportional(m.pids[name])
			if err != nil {
				return nil, err
			}
			out = append(out, growing{name, unitPSS, now - m.used[name]})
			continue
		}
		peak, err := statusField(m.pids[name], "VmHWM:")
		if err != nil {
			return nil, fmt.Errorf("reading the peak memory of %s: %w", name, err)
		}
		out = append(out, growing{name, unitGrowth, peak - m.used[name]})
	}
	return out, nil
}

func statusField(pid int, field string) (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	return kibibytes(string(text), field)
}

// kibibytes returns the value of a line such as "VmRSS:  1234 kB" in bytes.
func kibibytes(text, field string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, field); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s %w", field, err)
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("no %s the process has ended", field)
}

// proportional returns the proportional set size of a process and its children, in
// which shared pages count once.
func proportional(pid int) (total int64, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		stat, err := parseStat(string(text))
		if err != nil || stat.pid != pid && stat.parent != pid {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		if err != nil {
			continue // as above
		}
		used, err := kibibytes(string(rollup), "Pss:")
		if err != nil {
			return 0, fmt.Errorf("reading the memory of process %d: %w", stat.pid, err)
		}
		total += used
	}
	return total, nil
}
