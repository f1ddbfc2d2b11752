package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// fileReader reads small files of /proc and /sys. Opening and closing costs more than reading, so files that are read ten times a second
// stay open; the kernel writes them anew for each reading from their beginning.
type fileReader struct {
	keep bool

	mu sync.Mutex
	// files has the files that were asked for by path.
	files  map[string]*file
	buffer []byte
}

// file is a file that is read again and again.
type file struct {
	path string
	open *kept
	// absent says that there was no file to open; nil if there was one, or nobody has tried.
	absent error
}

func (f *file) close() {
	if f.open != nil {
		f.open.Close()
	}
	f.open, f.absent = nil, nil
}

// at returns the file of a path. Frequent readers keep the file: looking it up costs as much as parsing it.
func (f *fileReader) at(path string) *file {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.files[path]
	if known == nil {
		if f.files == nil {
			f.files = map[string]*file{}
		}
		known = &file{path: path}
		f.files[path] = known
	}
	return known
}

// whole is the size below which one reading returns all of a file: the kernel fills a page before it returns a part (seq_file).
const whole = 2048

// view shows the content of a file to a function, which must not keep it.
func (f *fileReader) view(of *file, see func(text []byte) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := f.read(of, nil)
	if err != nil {
		return err
	}
	return see(text)
}

// read returns the content of a file, or as much as is enough, valid until the next reading; the caller holds the lock.
func (f *fileReader) read(of *file, enough func(text []byte) bool) ([]byte, error) {
	if !f.keep {
		return os.ReadFile(of.path)
	}
	if of.open == nil && of.absent == nil {
		opened, err := os.Open(of.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			of.absent = err
		case err != nil:
			return nil, err
		default:
			of.open = keep(opened)
		}
	}
	if of.absent != nil {
		return nil, of.absent
	}
	if f.buffer == nil {
		f.buffer = make([]byte, 16<<10)
	}
	for n := 0; ; {
		if n == len(f.buffer) {
			f.buffer = append(f.buffer, make([]byte, len(f.buffer))...)
		}
		m, err := of.open.readAt(f.buffer[n:], int64(n))
		if err != nil { // the control group or the device is gone
			of.close()
			return nil, fmt.Errorf("reading %s: %w", of.path, err)
		}
		if n += m; m == 0 || n < whole || enough != nil && enough(f.buffer[:n]) {
			return f.buffer[:n], nil
		}
	}
}

// Close closes the files. A later reading opens them again.
func (f *fileReader) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.files {
		known.close()
	}
	return nil
}

// named is a number that has a name in a file.
type named struct {
	name  string
	value int64
	found bool
}

// find looks for numbers in a file with a name and a number on each line, such as /proc/vmstat. It reads no further than necessary: for
// each reading of that file, the kernel adds up the counters of all CPUs.
func (f *fileReader) find(in *file, wanted []named) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wrong error
	text, err := f.read(in, func(text []byte) bool {
		wrong = parseNamed(text[:bytes.LastIndexByte(text, '\n')+1], wanted)
		return wrong != nil || !slices.ContainsFunc(wanted, func(n named) bool { return !n.found })
	})
	if err == nil && wrong == nil {
		wrong = parseNamed(text, wanted)
	}
	if wrong != nil {
		return fmt.Errorf("%s: %w", in.path, wrong)
	}
	return err
}

// parseNamed looks for numbers that have not been found yet.
func parseNamed(text []byte, wanted []named) error {
	missing := 0
	for _, n := range wanted {
		if !n.found {
			missing++
		}
	}
	for line := range bytes.Lines(text) {
		if missing == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(" "))
		for i := range wanted {
			n := &wanted[i]
			if n.found || string(name) != n.name {
				continue
			}
			if err := parseInto(&n.value, bytes.TrimSpace(value)); err != nil {
				return fmt.Errorf("%s is no number: %w", name, err)
			}
			n.found = true
			missing--
			break
		}
	}
	return nil
}

// number reads a file that holds one.
func (f *fileReader) number(in *file) (n int64, err error) {
	err = f.view(in, func(text []byte) error { return parseInto(&n, bytes.TrimSpace(text)) })
	return n, err
}

func parseInto(n *int64, text []byte) (err error) {
	*n, err = strconv.ParseInt(string(text), 10, 64)
	return err
}

// parseStalled returns the time in the line "some" of pressure information, "some avg10=0.00 avg60=0.00 avg300=0.00 total=12" in
// microseconds; see Documentation/accounting/psi.rst of Linux.
func parseStalled(text []byte) (time.Duration, bool) {
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("some ")) {
			continue
		}
		_, total, _ := bytes.Cut(line, []byte("total="))
		var microseconds int64
		err := parseInto(&microseconds, bytes.TrimSpace(total))
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

// parse reads /proc/stat, and the wanted ones of its CPUs; none means all.
func (s *stat) parse(text []byte, wanted []int) error {
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(line, []byte(" "))
		digits, isCPU := bytes.CutPrefix(name, []byte("cpu"))
		switch {
		case string(name) == "ctxt":
			if err := parseInto(&s.switches, bytes.TrimSpace(rest)); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			return nil // the rest counts processes and interrupts
		case !isCPU:
			continue
		case len(digits) == 0:
			times, err := parseCPUTimes(rest)
			if err != nil {
				return err
			}
			s.all = times
			continue
		}
		cpu, err := strconv.Atoi(string(digits))
		if err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		s.count++
		if len(wanted) > 0 && !slices.Contains(wanted, cpu) {
			continue
		}
		if s.cpus[cpu], err = parseCPUTimes(rest); err != nil {
			return err
		}
	}
	return nil
}

// parseCPUTimes reads the columns of a CPU, in ticks: user, nice, system, idle, iowait, irq, softirq, steal and others that are part of
// these; see proc_stat(5). Old kernels have fewer.
func parseCPUTimes(text []byte) (CPUTimes, error) {
	var t CPUTimes
	column := 0
	for field := range bytes.FieldsSeq(text) {
		var ticks int64
		if err := parseInto(&ticks, field); err != nil {
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
