package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/e2e/livestack"
)

// settle is the time after which an undisturbed stack counts as idle.
const settle = 10 * time.Second

func idleName(process, state string) string { return "Idle/process=" + process + "/state=" + state }

// othersProcess stands for everything on the machine outside the stack.
const othersProcess = "others"

// measureIdle watches the idle stack. It reports, per process, the resident memory at
// the end (VmRSS: RssAnon + RssFile + RssShmem) and the CPU time used by it and its
// descendants, and the CPU time of the rest of the machine, which tells how far the
// other figures can be trusted.
func measureIdle(ctx context.Context, s *livestack.Stack, state string, watch time.Duration, report *report) error {
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	pids, err := s.Processes()
	if err != nil {
		return err
	}
	begun := time.Now()
	busyBefore, err := machineBusy("/proc/stat")
	if err != nil {
		return err
	}
	before, err := usageNow(pids)
	if err != nil {
		return err
	}
	if err := sleep(ctx, watch); err != nil {
		return err
	}
	after, err := usageNow(pids)
	if err != nil {
		return err
	}
	busyAfter, err := machineBusy("/proc/stat")
	if err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	var all usage
	for _, name := range slices.Sorted(maps.Keys(pids)) {
		used := usage{cpu: after[name].cpu - before[name].cpu, rss: after[name].rss}
		all.cpu, all.rss = all.cpu+used.cpu, all.rss+used.rss
		if err := report.add(used.figure(idleName(name, state), took)); err != nil {
			return err
		}
	}
	if err := report.add(all.figure(idleName("all", state), took)); err != nil {
		return err
	}
	others := max(0, busyAfter-busyBefore-all.cpu)
	return report.add(figure{idleName(othersProcess, state), 1, []benchfmt.Value{{Value: rounded(others.Seconds()/took, 4), Unit: unitCPU}}})
}

// machineBusy returns the time that all CPUs together were not idle, from the first
// line of /proc/stat (proc_stat(5)). Time taken by a hypervisor counts; the time of
// guests is already in user time.
func machineBusy(path string) (time.Duration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading the machine's CPU time: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	const user, idle, ioWait, steal = 1, 4, 5, 8
	if len(fields) <= steal || fields[0] != "cpu" {
		return 0, fmt.Errorf("reading the machine's CPU time: %s begins with %q", path, line)
	}
	var busy time.Duration
	for i := user; i <= steal; i++ {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the machine's CPU time: %w", err)
		}
		if i != idle && i != ioWait {
			busy += time.Duration(ticks) * clockTick
		}
	}
	return busy, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// usage is the CPU time and memory used by a process.
type usage struct {
	cpu time.Duration // including its descendants
	rss int64         // bytes, of the process alone
}

func (u usage) figure(name string, took float64) figure {
	return figure{name, 1, []benchfmt.Value{{Value: float64(u.rss), Unit: unitRSS}, {Value: rounded(u.cpu.Seconds()/took, 4), Unit: unitCPU}}}
}

// usageNow reads the usage of the named processes of this machine.
func usageNow(pids map[string]int) (map[string]usage, error) { return usageOf("/proc", pids, cpuClock) }

// usageOf reads the usage of the named processes. A descendant that is named itself
// does not count for its ancestor. The clock returns the CPU time of a process that lives:
// /proc counts it in ticks, and rounds both parts of it down.
func usageOf(proc string, pids map[string]int, clock func(pid int) (time.Duration, error)) (map[string]usage, error) {
	stats, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return nil, err
	}
	all := make(map[int]processStat)
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		if stat, err := parseStat(string(text)); err == nil {
			if exact, err := clock(stat.pid); err == nil {
				stat.cpu += exact - stat.own
			}
			all[stat.pid] = stat
		}
	}
	owner := make(map[int]string)
	for name, pid := range pids {
		owner[pid] = name
	}
	used := make(map[string]usage)
	for name, pid := range pids {
		if _, alive := all[pid]; !alive {
			return nil, fmt.Errorf("process %s (%d) of the stack has ended; see its log", name, pid)
		}
		status, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "status"))
		if err != nil {
			return nil, fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		rss, err := kibibytes(string(status), "VmRSS:")
		if err != nil {
			return nil, fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		used[name] = usage{rss: rss}
	}
	for pid, stat := range all {
		for above := pid; above > 1; above = all[above].parent {
			if name, named := owner[above]; named {
				u := used[name]
				u.cpu += stat.cpu
				used[name] = u
				break
			}
		}
	}
	return used, nil
}

// processStat holds part of /proc/PID/stat, see proc_pid_stat(5).
type processStat struct {
	pid, parent int
	own         time.Duration // user and system
	cpu         time.Duration // including ended children
}

// clockTick is the unit of times in /proc: USER_HZ is 100 on all architectures
// that Go supports.
const clockTick = 10 * time.Millisecond

func parseStat(text string) (processStat, error) {
	// The program's name, in parentheses, may contain anything.
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return processStat{}, fmt.Errorf("no program name in %q", text)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text[:open]))
	if err != nil {
		return processStat{}, fmt.Errorf("process ID: %w", err)
	}
	fields := strings.Fields(text[end+1:]) // the first one is field 3 of the manual, the state
	const parent, userTime, systemTime, childrenSystemTime = 4 - 3, 14 - 3, 15 - 3, 17 - 3
	if len(fields) <= childrenSystemTime {
		return processStat{}, fmt.Errorf("too few fields in %q", text)
	}
	stat := processStat{pid: pid}
	if stat.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return processStat{}, fmt.Errorf("parent's process ID: %w", err)
	}
	for i, field := range fields[userTime : childrenSystemTime+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return processStat{}, fmt.Errorf("CPU time: %w", err)
		}
		stat.cpu += time.Duration(ticks) * clockTick
		if userTime+i == systemTime {
			stat.own = stat.cpu
		}
	}
	return stat, nil
}
