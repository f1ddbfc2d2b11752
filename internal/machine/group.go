package machine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Quantities of a control group besides those of a [Reading].
const (
	MemoryUse  Quantity = "memory"
	PageFaults Quantity = "page faults"
	DiskIO     Quantity = "disk I/O"
)

// Group is a control group: its directory in each hierarchy, empty if it is not in that one. See cgroups(7).
type Group struct {
	// Unified is the directory in the hierarchy of version 2, the only one on most machines. Where version 1 is in use
	// as well, it has CPU time and pressure.
	Unified string
	// CPUAcct, Memory and BlockIO are the directories in hierarchies of version 1.
	CPUAcct, Memory, BlockIO string
}

// GroupReading holds the resources that processes of a group, and of groups below it, use and have used. A quantity that could not be
// read is nil or missing, with the reason in Absent.
type GroupReading struct {
	// CPU is the CPU time so far.
	CPU *time.Duration
	// Stalled is the time during which at least one task waited for a resource, by quantity of pressure.
	Stalled map[Quantity]time.Duration
	// MemoryBytes is the memory in use, page cache included.
	MemoryBytes *int64
	// Faults counts page faults so far, MajorFaults those of them that read from a disk.
	Faults, MajorFaults *int64
	// Disk counts the bytes and operations of block devices.
	Disk   *DiskUse
	Absent map[Quantity]string
}

// GroupReader takes readings of a control group. Its files stay open until Close. Any number of goroutines may use it.
type GroupReader struct {
	Group
	files fileReader
	// usage, memory, faults and inputOutput are files of the hierarchies that have them; nil if none has.
	usage, memory, faults, inputOutput *file
	pressures                          []pressure
	// counters of the blkio controller.
	counters []counter
	// counted tells whether the blkio controller counts anything, uncounted is set once it was found not to count.
	counted   func() bool
	uncounted atomic.Bool
}

// NewGroupReader returns a reader. The readings of a group without any directory hold only reasons.
func NewGroupReader(g Group) *GroupReader {
	r := &GroupReader{Group: g, files: fileReader{keep: true}, counted: sync.OnceValue(func() bool { return legacyCounts(g.BlockIO) })}
	in := func(dir, name string) *file {
		if dir == "" {
			return nil
		}
		return r.files.at(dir + "/" + name)
	}
	r.usage = cmp.Or(in(g.Unified, "cpu.stat"), in(g.CPUAcct, "cpuacct.usage"))
	r.memory = cmp.Or(in(g.Memory, "memory.usage_in_bytes"), in(g.Unified, "memory.current"))
	r.faults = in(cmp.Or(g.Memory, g.Unified), "memory.stat")
	r.inputOutput = in(g.Unified, "io.stat")
	for _, p := range []pressure{
		{quantity: CPUPressure, resource: "cpu.pressure"}, {quantity: MemoryPressure, resource: "memory.pressure"}, {quantity: IOPressure, resource: "io.pressure"},
	} {
		p.file = in(g.Unified, p.resource)
		r.pressures = append(r.pressures, p)
	}
	for _, c := range legacyCounters {
		r.counters = append(r.counters, counter{bytes: in(g.BlockIO, c.bytes), operations: in(g.BlockIO, c.operations)})
	}
	return r
}

// counter has the files of a counter of the blkio controller; nil if the group is not in its hierarchy.
type counter struct{ bytes, operations *file }

// Close closes the files of the group.
func (g *GroupReader) Close() error { return g.files.Close() }

// Read takes a reading. It fails only if the group does not exist.
func (g *GroupReader) Read() (GroupReading, error) {
	var r GroupReading
	if err := g.ReadInto(&r); err != nil {
		return GroupReading{}, err
	}
	return r, nil
}

// ReadInto takes a reading in place of an earlier one, whose maps it uses again.
func (g *GroupReader) ReadInto(r *GroupReading) error {
	*r = GroupReading{Stalled: emptied(r.Stalled), Absent: emptied(r.Absent)}
	if g.Group == (Group{}) {
		for _, q := range []Quantity{CPUTime, CPUPressure, MemoryPressure, IOPressure, MemoryUse, PageFaults, DiskIO} {
			r.Absent[q] = "the job has no control group"
		}
		return nil
	}
	for _, part := range groupParts {
		if err := part.read(g, r); err != nil {
			r.Absent[part.quantity] = err.Error()
		}
	}
	if r.CPU == nil && r.MemoryBytes == nil {
		if err := g.gone(); err != nil {
			return err
		}
	}
	for _, p := range g.pressures {
		stalled, err := g.stalled(p)
		if err != nil {
			r.Absent[p.quantity] = err.Error()
			continue
		}
		r.Stalled[p.quantity] = stalled
	}
	return nil
}

// groupParts are the parts of a reading besides pressure.
var groupParts = []struct {
	quantity Quantity
	read     func(*GroupReader, *GroupReading) error
}{
	{CPUTime, (*GroupReader).readCPU}, {MemoryUse, (*GroupReader).readMemory},
	{PageFaults, (*GroupReader).readFaults}, {DiskIO, (*GroupReader).readDisk},
}

// gone returns an error if the group does not exist.
func (g *GroupReader) gone() error {
	for _, dir := range []string{g.Unified, g.CPUAcct, g.Memory, g.BlockIO} {
		if _, err := os.Stat(dir); dir != "" && err != nil {
			return fmt.Errorf("reading the job's control group: %w", err)
		}
	}
	return nil
}

func (g *GroupReader) readCPU(r *GroupReading) error {
	var nanoseconds int64
	switch {
	case g.Unified != "":
		used := []named{{name: "usage_usec"}}
		if err := g.files.find(g.usage, used); err != nil || !used[0].found {
			return lacking("CPU time", "cpu.stat", err)
		}
		nanoseconds = used[0].value * int64(time.Microsecond)
	case g.CPUAcct != "":
		n, err := g.files.number(g.usage)
		if err != nil {
			return lacking("CPU time", "cpuacct.usage", err)
		}
		nanoseconds = n
	default:
		return absent("the job's control group is in no hierarchy that counts CPU time")
	}
	r.CPU = (*time.Duration)(&nanoseconds)
	return nil
}

func (g *GroupReader) readMemory(r *GroupReading) error {
	if g.memory == nil {
		return absent("the job's control group is in no hierarchy that counts memory")
	}
	bytes, err := g.files.number(g.memory)
	if err != nil {
		return lacking("memory", filepath.Base(g.memory.path), err)
	}
	r.MemoryBytes = &bytes
	return nil
}

func (g *GroupReader) readFaults(r *GroupReading) error {
	faults, major := "pgfault", "pgmajfault"
	if g.Memory != "" {
		// Without the prefix, groups below this one are left out.
		faults, major = "total_pgfault", "total_pgmajfault"
	}
	if g.faults == nil {
		return absent("the job's control group is in no hierarchy that counts page faults")
	}
	counts := []named{{name: faults}, {name: major}}
	if err := g.files.find(g.faults, counts); err != nil || !counts[0].found || !counts[1].found {
		return lacking("page faults", "memory.stat", err)
	}
	r.Faults, r.MajorFaults = &counts[0].value, &counts[1].value
	return nil
}

func (g *GroupReader) readDisk(r *GroupReading) error {
	var use DiskUse
	var err error
	switch {
	case g.BlockIO != "":
		use, err = g.legacyDisk()
	case g.Unified != "":
		err = g.files.view(g.inputOutput, func(text []byte) error {
			use = parseIOStat(text)
			return nil
		})
		if err != nil {
			err = lacking("disk I/O", "io.stat", err)
		}
	default:
		return absent("the job's control group is in no hierarchy that counts disk I/O")
	}
	if err != nil {
		return err
	}
	r.Disk = &use
	return nil
}

// parseIOStat adds up the devices of io.stat: "8:0 rbytes=1 wbytes=2 rios=3 wios=4 …". A group that did nothing has an empty
// file, and a device without I/O only its number.
func parseIOStat(text []byte) DiskUse {
	var use DiskUse
	for field := range bytes.FieldsSeq(text) {
		name, value, _ := bytes.Cut(field, []byte("="))
		var n int64
		if parseInto(&n, value) != nil {
			continue
		}
		switch string(name) {
		case "rbytes":
			use.ReadBytes += n
		case "wbytes":
			use.WrittenBytes += n
		case "rios", "wios":
			use.Operations += n
		}
	}
	return use
}

// legacyCounters are the files of the blkio controller, groups below included, most complete first. Throttling counts everything
// that reaches a disk, but since Linux 6.10 only if a limit was ever set for it; BFQ and, before Linux 5.0, CFQ count for their own disks.
// See Documentation/admin-guide/cgroup-v1/blkio-controller.rst of Linux.
var legacyCounters = []struct{ bytes, operations string }{
	{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"},
	{"blkio.bfq.io_service_bytes_recursive", "blkio.bfq.io_serviced_recursive"},
	{"blkio.io_service_bytes_recursive", "blkio.io_serviced_recursive"},
}

// legacyDisk reads the counts of the blkio controller. Without any device, a group has done nothing, unless the controller's root has
// none, either: then nothing is counted, and the files are not read any more.
func (g *GroupReader) legacyDisk() (DiskUse, error) {
	if g.uncounted.Load() {
		return DiskUse{}, errUncounted
	}
	var missing error
	exists := false
	for _, c := range g.counters {
		var use DiskUse
		devices, err := g.legacySum(c.bytes, &use.ReadBytes, &use.WrittenBytes)
		if err != nil {
			missing = cmp.Or(missing, err)
			continue
		}
		if exists = true; devices == 0 {
			continue
		}
		if _, err := g.legacySum(c.operations, &use.Operations, &use.Operations); err != nil {
			return DiskUse{}, lacking("disk I/O", filepath.Base(c.operations.path), err)
		}
		return use, nil
	}
	if !exists {
		return DiskUse{}, lacking("disk I/O", legacyCounters[0].bytes, missing)
	}
	if !g.counted() {
		g.uncounted.Store(true)
		return DiskUse{}, errUncounted
	}
	return DiskUse{}, nil
}

var errUncounted = absent("the blkio controller of this kernel counts no disk I/O: no disk has a limit or the scheduler BFQ")

// legacySum adds up a file of the blkio controller, of lines "8:0 Read 4096" for each device, and returns how many lines that are.
func (g *GroupReader) legacySum(in *file, reads, writes *int64) (lines int, err error) {
	err = g.files.view(in, func(text []byte) error {
		lines = parseBlockIO(text, reads, writes)
		return nil
	})
	return lines, err
}

// parseBlockIO adds to the sums of reads and writes of all devices. The last line is the total of all devices.
func parseBlockIO(text []byte, reads, writes *int64) (lines int) {
	for line := range bytes.Lines(text) {
		var fields [3][]byte
		n := 0
		for field := range bytes.FieldsSeq(line) {
			if n < len(fields) {
				fields[n] = field
			}
			n++
		}
		if n != len(fields) {
			continue
		}
		to := reads
		switch string(fields[1]) {
		case "Read":
		case "Write":
			to = writes
		default:
			continue
		}
		var value int64
		if parseInto(&value, fields[2]) == nil {
			*to += value
			lines++
		}
	}
	return lines
}

// legacyCounts reports whether the blkio controller has counted anything on this machine: for its root, or the highest visible group.
func legacyCounts(group string) bool {
	root := filepath.Clean(group)
	for parent := filepath.Dir(root); parent != root && hasBlockIO(parent); parent = filepath.Dir(root) {
		root = parent
	}
	for _, c := range legacyCounters {
		var ignored int64
		if text, err := os.ReadFile(filepath.Join(root, c.bytes)); err == nil && parseBlockIO(text, &ignored, &ignored) > 0 {
			return true
		}
	}
	return false
}

func hasBlockIO(dir string) bool {
	return slices.ContainsFunc(legacyCounters, func(c struct{ bytes, operations string }) bool {
		_, err := os.Stat(filepath.Join(dir, c.bytes))
		return err == nil
	})
}

func (g *GroupReader) stalled(of pressure) (stalled time.Duration, err error) {
	if of.file == nil {
		return 0, absent("control groups of version 1 do not count pressure")
	}
	ok := false
	err = g.files.view(of.file, func(text []byte) error {
		stalled, ok = parseStalled(text)
		return nil
	})
	if err != nil || !ok {
		return 0, lacking("pressure", of.resource, err)
	}
	return stalled, nil
}

// lacking says why a quantity of a group is absent.
func lacking(what, file string, err error) error {
	switch {
	case err == nil:
		return absent("the control group's %s has no %s", file, what)
	case errors.Is(err, fs.ErrNotExist):
		return absent("the control group has no %s: its controller is not delegated, or this kernel does not count %s", file, what)
	case errors.Is(err, syscall.EOPNOTSUPP):
		return absent("this kernel does not count %s of control groups", what) // psi=0
	}
	return absent("%s of the control group cannot be read: %v", file, err)
}
