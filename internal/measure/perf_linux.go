package measure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// perfGroupSize is the number of hardware events that every common CPU counts at once, even if the NMI watchdog uses a
// counter.
const perfGroupSize = 4

type perfEvent struct {
	kind     uint32
	config   uint64
	userOnly bool
}

// perfEvents are the events of perf_event_open(2). Hardware events exclude the kernel: perf_event_paranoid = 2, the default
// of the kernel, allows that to all users. Excluding it would stop a count of migrations, which happen there.
var perfEvents = map[Counter]perfEvent{
	CounterInstructions: {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS, true},
	CounterCycles:       {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, true},
	CounterBranchMisses: {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES, true},
	CounterCacheMisses:  {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES, true},
	CounterTaskClock:    {unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, true},
	CounterMigrations:   {unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS, false},
}

// ProbeCounters tries every known counter once on the calling process.
func ProbeCounters() CounterSupport {
	support := CounterSupport{}
	for _, counter := range AllCounters() {
		fd, err := openPerf(perfEvents[counter], -1)
		if err == nil {
			unix.Close(fd)
		} else {
			err = explainPerf(err, perfEvents[counter], "/")
		}
		support[counter] = err
	}
	return support
}

// explainPerf adds the remedy to an error of perf_event_open. It reads /proc below root.
func explainPerf(err error, event perfEvent, root string) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		const file = "/proc/sys/kernel/perf_event_paranoid"
		needed := 1
		if event.userOnly {
			needed = 2
		}
		text, readErr := os.ReadFile(root + file)
		if readErr != nil {
			return fmt.Errorf("perf_event_open is not permitted and %s cannot be read: %w", file, err)
		}
		value := strings.TrimSpace(string(text))
		if level, convErr := strconv.Atoi(value); convErr == nil && level <= needed {
			return fmt.Errorf("perf_event_open is not permitted although %s is %s: a seccomp filter (container) forbids it; "+
				"allow the system call: %w", file, value, err)
		}
		return fmt.Errorf("perf_event_open is not permitted: %s is %s; run `sysctl kernel.perf_event_paranoid=%d`: %w",
			file, value, needed, err)
	case event.kind == unix.PERF_TYPE_HARDWARE &&
		(errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV)):
		return fmt.Errorf("this machine has no hardware counters (virtual machine?): %w", err)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("this kernel has no performance counters, or a seccomp filter (container) hides them: %w", err)
	default:
		return fmt.Errorf("perf_event_open: %w", err)
	}
}

// openPerf opens an event on the calling thread, stopped, so that only programs executed by its children count: they inherit
// the event and enable it when they execute. A member of a group follows its leader.
func openPerf(event perfEvent, leader int) (int, error) {
	attr := unix.PerfEventAttr{
		Type:        event.kind,
		Config:      event.config,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:        unix.PerfBitInherit,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	if event.userOnly {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	if leader < 0 {
		attr.Bits |= unix.PerfBitDisabled | unix.PerfBitEnableOnExec
	}
	return unix.PerfEventOpen(&attr, 0, -1, leader, unix.PERF_FLAG_FD_CLOEXEC)
}

// perfCounters are the open counters of a launching thread. They stay open from command to command: closing one waits for a
// grace period of the kernel, 5 to 15 ms.
type perfCounters struct {
	wanted []Counter // all that were asked for, including those that the machine lacks
	names  []Counter
	fds    []int
	before []perfReading // when the command started, in the order of names
}

// perfReading is the record that read(2) returns for TOTAL_TIME_ENABLED and TOTAL_TIME_RUNNING.
type perfReading struct {
	value            uint64
	enabled, running time.Duration
}

// openPerfCounters opens the given counters, leaving out those that this machine lacks. The calling goroutine must be locked
// to the thread that starts the command. Hardware events form a group, which the CPU counts together or not at all; they are
// read one by one, as most kernels refuse PERF_FORMAT_GROUP for inherited events.
func openPerfCounters(counters []Counter) *perfCounters {
	open := &perfCounters{wanted: slices.Clone(counters)}
	leader, members := -1, 0
	for _, counter := range slices.Compact(slices.Sorted(slices.Values(counters))) {
		event, known := perfEvents[counter]
		if !known {
			continue
		}
		grouped := event.kind == unix.PERF_TYPE_HARDWARE
		group := -1
		if grouped && members < perfGroupSize {
			group = leader
		}
		fd, err := openPerf(event, group)
		if err != nil && group >= 0 {
			// The CPU cannot count the whole group at once: count this event separately and see whether it got its full
			// time.
			group, grouped = -1, false
			fd, err = openPerf(event, group)
		}
		if err != nil {
			continue
		}
		if grouped {
			members++
			if leader < 0 {
				leader = fd
			}
		}
		open.names = append(open.names, counter)
		open.fds = append(open.fds, fd)
	}
	return open
}

// begin takes the readings that the next command's are compared with.
func (p *perfCounters) begin() (err error) {
	p.before, err = p.readings()
	return err
}

// read returns the values since begin, summed over all processes that inherited the events, and the events that did not
// count all the time. An event that was enabled but never ran has no value.
func (p *perfCounters) read() (map[Counter]uint64, []InvalidCounter, error) {
	if len(p.fds) == 0 {
		return nil, nil, nil
	}
	now, err := p.readings()
	if err != nil {
		return nil, nil, err
	}
	values := make(map[Counter]uint64, len(p.fds))
	var invalid []InvalidCounter
	for i, counter := range p.names {
		before := p.before[i]
		enabled, running := now[i].enabled-before.enabled, now[i].running-before.running
		if running < enabled {
			invalid = append(invalid, InvalidCounter{Counter: counter, Enabled: enabled, Running: running})
		}
		if running > 0 {
			values[counter] = now[i].value - before.value
		}
	}
	return values, invalid, nil
}

func (p *perfCounters) readings() ([]perfReading, error) {
	var all []perfReading
	for i, counter := range p.names {
		var record [24]byte
		if n, err := unix.Read(p.fds[i], record[:]); err != nil || n != len(record) {
			return nil, fmt.Errorf("reading counter %s: %d bytes: %w", counter, n, errors.Join(err, fs.ErrInvalid))
		}
		all = append(all, decodePerf(record))
	}
	return all, nil
}

func decodePerf(record [24]byte) perfReading {
	return perfReading{
		value:   binary.NativeEndian.Uint64(record[0:]),
		enabled: time.Duration(binary.NativeEndian.Uint64(record[8:])),
		running: time.Duration(binary.NativeEndian.Uint64(record[16:])),
	}
}

func (p *perfCounters) close() {
	if p == nil {
		return
	}
	for _, fd := range p.fds {
		unix.Close(fd)
	}
}
