package machine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Quantity is a part of a reading that a machine may lack.
type Quantity string

// The quantities of a reading.
const (
	CPUTime        Quantity = "CPU time"
	CPUPressure    Quantity = "CPU pressure"
	MemoryPressure Quantity = "memory pressure"
	IOPressure     Quantity = "I/O pressure"
	Frequency      Quantity = "frequency"
	Throttling     Quantity = "throttling"
	Swapping       Quantity = "swapping"
)

// Config describes what a [Reader] reads.
type Config struct {
	// Root contains proc and sys: "/" outside tests.
	Root string
	// CPUs are the logical CPUs of the job; none means those that this process may
	// use.
	CPUs []int
	// SharedCPUs is set if other jobs run on the same CPUs on purpose. The CPU time
	// of others is then no disturbance, and is not read.
	SharedCPUs bool
	// Now is the clock. Its monotonic reading, if it has one, measures time.
	Now func() time.Time
}

// Reader takes readings. Any number of goroutines may use it.
type Reader struct {
	config Config
	cpus   []int
	fs     procfs.FS
	// missing is set if there is no proc file system.
	missing error
	begin   time.Time
}

// NewReader returns a reader. It never fails: what the machine lacks is missing
// from the readings.
func NewReader(c Config) *Reader {
	r := &Reader{config: c, cpus: slices.Clone(c.CPUs), begin: c.Now()}
	r.fs, r.missing = procfs.NewFS(filepath.Join(c.Root, "proc"))
	if len(r.cpus) == 0 && r.missing == nil {
		r.cpus = r.allowed()
	}
	return r
}

// allowed returns the CPUs that this process may use; nil if that is unknown.
func (r *Reader) allowed() []int {
	text, err := os.ReadFile(filepath.Join(r.config.Root, "proc/self/status"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return parseList(list)
		}
	}
	return nil
}

// parseList reads the kernel's list format, "0-3,8" (cpuset(7), "List format");
// nil if it is something else.
func parseList(text string) []int {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, err1 := strconv.ParseUint(first, 10, 13)
		high, err2 := strconv.ParseUint(last, 10, 13)
		if err1 != nil || err2 != nil {
			return nil
		}
		for cpu := low; cpu <= high; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus
}

// Reading holds the counters of one moment. Only the difference of two has a
// meaning; see [Between].
type Reading struct {
	// Wall is the system's clock, Uptime the monotonic one, since the reader was
	// made.
	Wall   time.Time
	Uptime time.Duration
	// Self is the CPU time of the reading process.
	Self time.Duration
	// CPUs holds the counters of the job's CPUs, in steps of a tick (10 ms).
	CPUs map[int]CPUTimes
	// Stalled is the time during which at least one task of the machine waited for
	// a resource, by quantity of pressure.
	Stalled map[Quantity]time.Duration
	// MHz is the highest frequency of the job's CPUs.
	MHz float64
	// Throttled counts how often the job's CPUs were slowed down by heat.
	Throttled int64
	// SwappedPages counts pages written to and read from swap.
	SwappedPages int64
	// Switches counts context switches of the whole machine.
	Switches int64
	// Absent says why a quantity could not be read.
	Absent map[Quantity]string
}

// CPUTimes are the counters of a CPU in /proc/stat; see proc_stat(5).
type CPUTimes struct {
	// Busy is the time of processes, the kernel's work for them included. Most kernels
	// sample it at their ticks.
	Busy time.Duration
	// Idle is the time without anything to run, also while waiting for a disk. Kernels
	// that stop their ticks meanwhile (NO_HZ) measure it.
	Idle time.Duration
	// Interrupts is the time of hardware and software interrupts.
	Interrupts time.Duration
	// Steal is the time that the hypervisor gave to others while the CPU was ready
	// to run.
	Steal time.Duration
}

// Read takes a reading. It takes well below a millisecond on a machine with few
// CPUs.
func (r *Reader) Read() Reading {
	now := r.config.Now()
	reading := Reading{
		Wall: now.Round(0), Uptime: now.Sub(r.begin), Self: selfTime(),
		Stalled: map[Quantity]time.Duration{}, Absent: map[Quantity]string{},
	}
	if r.missing != nil {
		for _, q := range []Quantity{CPUTime, CPUPressure, MemoryPressure, IOPressure, Frequency, Throttling, Swapping} {
			reading.Absent[q] = "this system has no /proc"
		}
		return reading
	}
	r.readCPUs(&reading)
	for q, resource := range map[Quantity]string{CPUPressure: "cpu", MemoryPressure: "memory", IOPressure: "io"} {
		r.readPressure(&reading, q, resource)
	}
	r.readFrequency(&reading)
	r.readThrottling(&reading)
	r.readSwapping(&reading)
	return reading
}

func (r *Reader) readCPUs(reading *Reading) {
	stat, err := r.fs.Stat()
	if err != nil {
		reading.Absent[CPUTime] = fmt.Sprintf("/proc/stat cannot be read: %v", err)
		return
	}
	reading.Switches = int64(stat.ContextSwitches)
	if r.config.SharedCPUs {
		reading.Absent[CPUTime] = "other jobs share the CPUs on purpose"
		return
	}
	times := make(map[int]CPUTimes, len(r.cpus))
	for cpu, t := range stat.CPU {
		if len(r.cpus) == 0 || slices.Contains(r.cpus, int(cpu)) {
			times[int(cpu)] = CPUTimes{
				Busy: seconds(t.User + t.Nice + t.System), Idle: seconds(t.Idle + t.Iowait), Interrupts: seconds(t.IRQ + t.SoftIRQ), Steal: seconds(t.Steal),
			}
		}
	}
	for _, cpu := range r.cpus {
		if _, ok := times[cpu]; !ok {
			// Containers with lxcfs number their CPUs anew.
			reading.Absent[CPUTime] = fmt.Sprintf("/proc/stat does not list CPU %d: it is offline, or the container hides it", cpu)
			return
		}
	}
	if len(times) == 0 {
		reading.Absent[CPUTime] = "/proc/stat lists no CPU"
		return
	}
	reading.CPUs = times
}

// seconds converts seconds that were a whole number of ticks.
func seconds(s float64) time.Duration {
	return time.Duration(s*100+0.5) * tick
}

// tick is the unit of the counters of /proc/stat, USER_HZ, on all architectures
// that Go supports.
const tick = 10 * time.Millisecond

func (r *Reader) readPressure(reading *Reading, q Quantity, resource string) {
	psi, err := r.fs.PSIStatsForResource(resource)
	switch {
	case err != nil:
		// Opening succeeds and reading fails where it is switched off (psi=0).
		reading.Absent[q] = "the kernel has no pressure information: it is built without, or booted without psi=1"
	case psi.Some == nil:
		reading.Absent[q] = fmt.Sprintf("/proc/pressure/%s has no line \"some\"", resource)
	default:
		reading.Stalled[q] = time.Duration(psi.Some.Total) * time.Microsecond
	}
}

// cpuFile reads a number from each of the job's CPUs.
func (r *Reader) cpuFiles(reading Reading, name string) []int64 {
	cpus := r.cpus
	if len(cpus) == 0 {
		cpus = slices.Collect(maps.Keys(reading.CPUs))
	}
	var values []int64
	for _, cpu := range cpus {
		text, err := os.ReadFile(filepath.Join(r.config.Root, "sys/devices/system/cpu", fmt.Sprintf("cpu%d", cpu), name))
		if err != nil {
			continue
		}
		if v, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			values = append(values, v)
		}
	}
	return values
}

func (r *Reader) readFrequency(reading *Reading) {
	kilohertz := r.cpuFiles(*reading, "cpufreq/scaling_cur_freq")
	if len(kilohertz) == 0 {
		reading.Absent[Frequency] = "the machine does not show the frequency of its CPUs, as most virtual machines"
		return
	}
	reading.MHz = float64(slices.Max(kilohertz)) / 1000
}

func (r *Reader) readThrottling(reading *Reading) {
	counts := r.cpuFiles(*reading, "thermal_throttle/core_throttle_count")
	if len(counts) == 0 {
		reading.Absent[Throttling] = "the machine does not count when heat slows its CPUs down"
		return
	}
	for _, n := range counts {
		reading.Throttled += n
	}
}

func (r *Reader) readSwapping(reading *Reading) {
	text, err := os.ReadFile(filepath.Join(r.config.Root, "proc/vmstat"))
	if err != nil {
		reading.Absent[Swapping] = fmt.Sprintf("/proc/vmstat cannot be read: %v", err)
		return
	}
	found := false
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "pswpin" && name != "pswpout" {
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			reading.SwappedPages, found = reading.SwappedPages+n, true
		}
	}
	if !found {
		reading.Absent[Swapping] = "/proc/vmstat does not count swapping: the kernel is built without swap"
	}
}
