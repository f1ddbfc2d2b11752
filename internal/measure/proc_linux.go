package measure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process holds fields of /proc/<pid>/stat; see proc_pid_stat(5). The start time, in clock ticks since boot, distinguishes a
// process from a later one with the same ID.
type process struct {
	pid, parent, session int
	state                byte
	threads              int
	start                uint64
}

// dead reports whether the process has ended; its parent may not have waited for it yet. A process whose main thread alone has
// ended also looks like a zombie, but has other threads.
func (p process) dead() bool { return (p.state == 'Z' || p.state == 'X') && p.threads <= 1 }

// readProcess reads a process's fields; false means that there is no such process.
func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(string(text))
}

func parseStat(text string) (process, bool) {
	// The name, in parentheses, may hold anything, also parentheses and white space.
	opening, closing := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if opening < 0 || closing < opening {
		return process{}, false
	}
	fields := strings.Fields(text[closing+1:])
	// Fields 20 and 22 of the whole line; the first after the name is field 3.
	const threadCount, startTime = 20 - 3, 22 - 3
	if len(fields) <= startTime || len(fields[0]) != 1 {
		return process{}, false
	}
	pid, err1 := strconv.Atoi(strings.TrimSpace(text[:opening]))
	parent, err2 := strconv.Atoi(fields[1])
	session, err3 := strconv.Atoi(fields[3])
	threads, err4 := strconv.Atoi(fields[threadCount])
	start, err5 := strconv.ParseUint(fields[startTime], 10, 64)
	if errors.Join(err1, err2, err3, err4, err5) != nil {
		return process{}, false
	}
	return process{
		pid: pid, parent: parent, session: session, state: fields[0][0], threads: threads, start: start,
	}, true
}

// listProcesses returns all processes of the machine, by ID.
func listProcesses() (map[int]process, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	all := make(map[int]process, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid); ok {
				all[pid] = p
			}
		}
	}
	return all, nil
}

// hasMark reports whether the environment that a process was started with has its TMPDIR in the work directory.
func hasMark(pid int, workDir string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if tmp, ok := bytes.CutPrefix(entry, []byte("TMPDIR=")); ok {
			path := string(tmp)
			return path == workDir || strings.HasPrefix(path, workDir+string(filepath.Separator))
		}
	}
	return false
}

// kill sends SIGKILL, but never to another process that has the same ID by now.
func (p process) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	now, ok := readProcess(p.pid)
	same := ok && now.start == p.start
	if err != nil { // before Linux 5.3
		if same {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		return
	}
	defer unix.Close(fd)
	if same {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// peakRSS returns the calling process's own largest resident set since the last reset, in bytes; 0 means unknown.
func peakRSS() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kibibytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kibibytes << 10
		}
	}
	return 0
}

// resetPeakRSS resets the calling process's largest resident set to the present one; see proc_pid_clear_refs(5). If it
// fails, only small peaks of commands are unknown.
func resetPeakRSS() {
	_ = writeControl("/proc/self", "clear_refs", "5")
}
