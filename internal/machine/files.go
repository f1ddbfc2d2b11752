package machine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fileReader reads small files of /proc and /sys. Opening and closing them costs more than reading, so those that are read ten times a second
// stay open; the kernel writes them anew for each reading from their beginning.
type fileReader struct {
	keep bool

	mu sync.Mutex
	// open has the open files, and nil for those that there were not.
	open   map[string]*kept
	buffer []byte
}

// whole is the size below which a reading has all of a file: the kernel fills a page before it returns a part (seq_file).
const whole = 2048

// text returns the content of a file.
func (f *fileReader) text(path string) (string, error) {
	if !f.keep {
		content, err := os.ReadFile(path)
		return string(content), err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file, known := f.open[path]
	if !known {
		opened, err := os.Open(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if err == nil {
			file = keep(opened)
		}
		if f.open == nil {
			f.open = map[string]*kept{}
		}
		f.open[path] = file
	}
	if file == nil {
		return "", &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
	if f.buffer == nil {
		f.buffer = make([]byte, 16<<10)
	}
	for n := 0; ; {
		if n == len(f.buffer) {
			f.buffer = append(f.buffer, make([]byte, len(f.buffer))...)
		}
		m, err := file.readAt(f.buffer[n:], int64(n))
		if err != nil { // a control group, or a device, that has gone
			file.Close()
			delete(f.open, path)
			return "", fmt.Errorf("reading %s: %w", path, err)
		}
		if n += m; m == 0 || n < whole {
			return string(f.buffer[:n]), nil
		}
	}
}

// Close closes the files. Reading looks for them again.
func (f *fileReader) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.open {
		if file != nil {
			file.Close()
		}
	}
	clear(f.open)
	return nil
}

// counters reads named numbers from a file with a name and a number on each line, such as /proc/vmstat. Names that it lacks are left out.
func (f *fileReader) counters(path string, names ...string) (map[string]int64, error) {
	text, err := f.text(path)
	if err != nil {
		return nil, err
	}
	found := make(map[string]int64, len(names))
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, " ")
		if !slices.Contains(names, name) {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %s is no number: %w", path, name, err)
		}
		if found[name] = n; len(found) == len(names) {
			break
		}
	}
	return found, nil
}

// number reads a file that holds one.
func (f *fileReader) number(path string) (int64, error) {
	text, err := f.text(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
}

// parseStalled returns the time in the line "some" of pressure information, "some avg10=0.00 avg60=0.00 avg300=0.00 total=12" in
// microseconds; see Documentation/accounting/psi.rst of Linux.
func parseStalled(text string) (time.Duration, bool) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "some ") {
			continue
		}
		_, total, _ := strings.Cut(line, "total=")
		microseconds, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
		return time.Duration(microseconds) * time.Microsecond, err == nil
	}
	return 0, false
}

// stat is the part of /proc/stat that readings have.
type stat struct {
	all      CPUTimes
	cpus     map[int]CPUTimes
	count    int
	switches int64
}

// parseStat reads /proc/stat, and of its CPUs those that are wanted; none means all.
func parseStat(text string, wanted []int) (stat, error) {
	s := stat{cpus: map[int]CPUTimes{}}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		digits, isCPU := strings.CutPrefix(name, "cpu")
		switch {
		case name == "ctxt":
			n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err != nil {
				return stat{}, fmt.Errorf("%q: %w", line, err)
			}
			s.switches = n
			return s, nil // the rest counts processes and interrupts
		case !isCPU:
			continue
		case digits == "":
			times, err := parseCPUTimes(rest)
			if err != nil {
				return stat{}, err
			}
			s.all = times
			continue
		}
		cpu, err := strconv.Atoi(digits)
		if err != nil {
			return stat{}, fmt.Errorf("%q: %w", line, err)
		}
		s.count++
		if len(wanted) > 0 && !slices.Contains(wanted, cpu) {
			continue
		}
		if s.cpus[cpu], err = parseCPUTimes(rest); err != nil {
			return stat{}, err
		}
	}
	return s, nil
}

// parseCPUTimes reads the columns of a CPU, in ticks: user, nice, system, idle, iowait, irq, softirq, steal and others that are part of
// these; see proc_stat(5). Old kernels have fewer.
func parseCPUTimes(text string) (CPUTimes, error) {
	var t CPUTimes
	column := 0
	for field := range strings.FieldsSeq(text) {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return CPUTimes{}, fmt.Errorf("the times of a CPU, %q: %w", text, err)
		}
		of := &t.Busy
		switch column {
		case 3, 4:
			of = &t.Idle
		case 5, 6:
			of = &t.Interrupts
		case 7:
			of = &t.Steal
		}
		*of += time.Duration(ticks) * tick
		if column++; column > 7 {
			break
		}
	}
	if column < 4 {
		return CPUTimes{}, fmt.Errorf("the times of a CPU, %q, have %d columns", text, column)
	}
	return t, nil
}

// tick is the unit of the counters of /proc/stat, USER_HZ, on all architectures
// that Go supports.
const tick = 10 * time.Millisecond
