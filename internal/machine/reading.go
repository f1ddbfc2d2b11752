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
	// CPUs are the logical CPUs of the job; none means all that this process may
	// use.
	CPUs []int
	// SharedCPUs is set if other jobs run on the same CPUs on purpose. The CPU time
	// of others is then no disturbance, and is not read.
	SharedCPUs bool
	// Elsewhere is set if the reading process keeps off the CPUs, so that their time includes none of its own.
	Elsewhere bool
	// Now is the clock. Its monotonic reading, if it has one, measures time.
	Now func() time.Time
	// KeepOpen is set for a reader that is read many times a second: its files stay open until Close.
	KeepOpen bool
}

// Reader takes readings. Any number of goroutines may use it.
type Reader struct {
	config Config
	// root ends with a slash.
	root  string
	cpus  []int
	files fileReader
	// missing is set if there is no proc file system.
	missing bool
	begin   time.Time

	stat, memory, events, networks, disks *file
	pressures                             []pressure
	// frequencies and throttling have a file of each of the job's CPUs, if these are known.
	frequencies, throttling []*file
	// hardware tells networks of hardware from virtual ones, whole disks from their parts.
	hardware, whole devices
}

// pressure is the file of a resource.
type pressure struct {
	quantity Quantity
	resource string
	file     *file
}

// NewReader returns a reader. It never fails: values that the machine lacks are
// missing from the readings.
func NewReader(c Config) *Reader {
	root := strings.TrimSuffix(filepath.Clean(c.Root), string(filepath.Separator)) + string(filepath.Separator)
	r := &Reader{config: c, root: root, cpus: slices.Clone(c.CPUs), begin: c.Now(), files: fileReader{keep: c.KeepOpen}}
	_, err := os.Stat(r.path("proc"))
	r.missing = err != nil
	if len(r.cpus) == 0 && !r.missing {
		r.cpus = r.allowed()
	}
	proc := func(name string) *file { return r.files.at(r.path("proc/" + name)) }
	r.stat, r.memory, r.events, r.networks, r.disks = proc("stat"), proc("meminfo"), proc("vmstat"), proc("net/dev"), proc("diskstats")
	for _, p := range []pressure{{quantity: CPUPressure, resource: "cpu"}, {quantity: MemoryPressure, resource: "memory"}, {quantity: IOPressure, resource: "io"}} {
		p.file = proc("pressure/" + p.resource)
		r.pressures = append(r.pressures, p)
	}
	r.frequencies, r.throttling = r.ofCPUs(r.cpus, frequencyFile), r.ofCPUs(r.cpus, throttlingFile)
	return r
}

// Files of a CPU.
const (
	frequencyFile  = "cpufreq/scaling_cur_freq"
	throttlingFile = "thermal_throttle/core_throttle_count"
)

// ofCPUs returns a file of each CPU.
func (r *Reader) ofCPUs(cpus []int, name string) []*file {
	var files []*file
	for _, cpu := range cpus {
		files = append(files, r.files.at(r.path("sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)+"/"+name)))
	}
	return files
}

func (r *Reader) path(name string) string { return r.root + name }

// Close closes the files that a reader keeps open.
func (r *Reader) Close() error { return r.files.Close() }

// allowed returns the CPUs that this process may use; nil if that is unknown.
func (r *Reader) allowed() []int {
	text, err := os.ReadFile(r.path("proc/self/status"))
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
	// Self is the CPU time of the reading process on the job's CPUs, or anywhere if it does not keep off them.
	Self time.Duration
	// CPUs holds the counters of the job's CPUs, in steps of a tick (10 ms).
	CPUs map[int]CPUTimes
	// All is the sum of the counters of the machine's CPUs, Count their number; 0 means that /proc/stat cannot be read.
	All   CPUTimes
	Count int
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
	// Faults counts page faults of the whole machine, MajorFaults those of them that read from a disk; nil if unknown.
	Faults, MajorFaults *int64
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
	var reading Reading
	r.ReadInto(&reading)
	return reading
}

// ReadInto takes a reading in place of an earlier one, whose maps it uses again: for readers that
// read many times a second, fresh memory costs as much as reading.
func (r *Reader) ReadInto(reading *Reading) {
	now, cpus := r.config.Now(), emptied(reading.CPUs)
	*reading = Reading{
		Wall: now.Round(0), Uptime: now.Sub(r.begin),
		Stalled: emptied(reading.Stalled), Absent: emptied(reading.Absent),
	}
	if !r.config.Elsewhere {
		reading.Self = selfTime()
	}
	if r.missing {
		for _, q := range []Quantity{CPUTime, CPUPressure, MemoryPressure, IOPressure, Frequency, Throttling, Swapping} {
			reading.Absent[q] = noProc
		}
		return
	}
	r.readCPUs(reading, cpus)
	for _, p := range r.pressures {
		r.readPressure(reading, p)
	}
	r.readFrequency(reading)
	r.readThrottling(reading)
	r.readMemory(reading)
}

// emptied returns a map without its entries, or a new one for nil.
func emptied[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	clear(m)
	return m
}

// readCPUs reads the times of CPUs into a map without entries.
func (r *Reader) readCPUs(reading *Reading, cpus map[int]CPUTimes) {
	counts := stat{cpus: cpus}
	err := r.files.view(r.stat, func(text []byte) error { return counts.parse(text, r.cpus) })
	if err != nil {
		reading.Absent[CPUTime] = fmt.Sprintf("/proc/stat cannot be read: %v", err)
		return
	}
	reading.Switches, reading.All, reading.Count = counts.switches, counts.all, counts.count
	if r.config.SharedCPUs {
		reading.Absent[CPUTime] = "other jobs share the CPUs on purpose"
		return
	}
	for _, cpu := range r.cpus {
		if _, ok := counts.cpus[cpu]; !ok {
			// Containers with lxcfs number their CPUs anew.
			reading.Absent[CPUTime] = fmt.Sprintf("/proc/stat does not list CPU %d: it is offline, or the container hides it", cpu)
			return
		}
	}
	if len(counts.cpus) == 0 {
		reading.Absent[CPUTime] = "/proc/stat lists no CPU"
		return
	}
	reading.CPUs = counts.cpus
}

func (r *Reader) readPressure(reading *Reading, of pressure) {
	var stalled time.Duration
	var ok bool
	err := r.files.view(of.file, func(text []byte) error {
		stalled, ok = parseStalled(text)
		return nil
	})
	if err != nil {
		// If pressure is switched off (psi=0), opening succeeds and reading fails.
		reading.Absent[of.quantity] = "the kernel has no pressure information: it is built without, or booted without psi=1"
		return
	}
	if !ok {
		reading.Absent[of.quantity] = fmt.Sprintf("/proc/pressure/%s has no line \"some\"", of.resource)
		return
	}
	reading.Stalled[of.quantity] = stalled
}

// filesOf returns the files of the job's CPUs, or of those that were read if the job's are not known.
func (r *Reader) filesOf(reading *Reading, files []*file, name string) []*file {
	if len(r.cpus) == 0 {
		return r.ofCPUs(slices.Collect(maps.Keys(reading.CPUs)), name)
	}
	return files
}

// numbers returns the numbers in the files of CPUs that can be read.
func (r *Reader) numbers(files []*file) []int64 {
	var values []int64
	for _, f := range files {
		if v, err := r.files.number(f); err == nil {
			values = append(values, v)
		}
	}
	return values
}

func (r *Reader) readFrequency(reading *Reading) {
	kilohertz := r.numbers(r.filesOf(reading, r.frequencies, frequencyFile))
	if len(kilohertz) == 0 {
		reading.Absent[Frequency] = "the machine does not show the frequency of its CPUs, as most virtual machines"
		return
	}
	reading.MHz = float64(slices.Max(kilohertz)) / 1000
}

func (r *Reader) readThrottling(reading *Reading) {
	counts := r.numbers(r.filesOf(reading, r.throttling, throttlingFile))
	if len(counts) == 0 {
		reading.Absent[Throttling] = "the machine does not count when heat slows its CPUs down"
		return
	}
	for _, n := range counts {
		reading.Throttled += n
	}
}

func (r *Reader) readMemory(reading *Reading) {
	counts := []named{{name: "pswpin"}, {name: "pswpout"}, {name: "pgfault"}, {name: "pgmajfault"}}
	if err := r.files.find(r.events, counts); err != nil {
		reading.Absent[Swapping] = fmt.Sprintf("/proc/vmstat cannot be read: %v", err)
		return
	}
	in, out, faults, major := counts[0], counts[1], counts[2], counts[3]
	if faults.found {
		reading.Faults = &faults.value
	}
	if major.found {
		reading.MajorFaults = &major.value
	}
	if !in.found || !out.found {
		reading.Absent[Swapping] = "/proc/vmstat does not count swapping: the kernel is built without swap"
		return
	}
	reading.SwappedPages = in.value + out.value
}
