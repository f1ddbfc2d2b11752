package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Quantities of a control group besides those of a [Reading].
const (
	MemoryUse  Quantity = "memory"
	PageFaults Quantity = "page faults"
	DiskIO     Quantity = "disk I/O"
)

// Group is a control group: its directory in each hierarchy; empty: it is in none. See cgroups(7).
type Group struct {
	// Unified is the directory in the hierarchy of version 2, the only one of most machines. Where version 1 is in use
	// besides, it has CPU time and pressure.
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
	// Disk counts what was read from and written to block devices.
	Disk   *DiskUse
	Absent map[Quantity]string
}

// GroupReader takes readings of a control group. Its files stay open until Close. Any number of goroutines may use it.
type GroupReader struct {
	Group
	files fileReader
}

// NewGroupReader returns a reader. A group without any directory has nothing but reasons.
func NewGroupReader(g Group) *GroupReader {
	return &GroupReader{Group: g, files: fileReader{keep: true}}
}

// Close closes the files of the group.
func (g *GroupReader) Close() error { return g.files.Close() }

// Read takes a reading. It fails only if the group does not exist.
func (g *GroupReader) Read() (GroupReading, error) {
	r := GroupReading{Stalled: map[Quantity]time.Duration{}, Absent: map[Quantity]string{}}
	if g.Group == (Group{}) {
		for _, q := range []Quantity{CPUTime, CPUPressure, MemoryPressure, IOPressure, MemoryUse, PageFaults, DiskIO} {
			r.Absent[q] = "the job has no control group"
		}
		return r, nil
	}
	for q, read := range map[Quantity]func(*GroupReading) error{CPUTime: g.readCPU, MemoryUse: g.readMemory, PageFaults: g.readFaults, DiskIO: g.readDisk} {
		if err := read(&r); err != nil {
			r.Absent[q] = err.Error()
		}
	}
	if r.CPU == nil && r.MemoryBytes == nil {
		if err := g.gone(); err != nil {
			return GroupReading{}, err
		}
	}
	for q, file := range map[Quantity]string{CPUPressure: "cpu.pressure", MemoryPressure: "memory.pressure", IOPressure: "io.pressure"} {
		stalled, err := g.stalled(file)
		if err != nil {
			r.Absent[q] = err.Error()
			continue
		}
		r.Stalled[q] = stalled
	}
	return r, nil
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
		counts, err := g.files.counters(filepath.Join(g.Unified, "cpu.stat"), "usage_usec")
		usec, ok := counts["usage_usec"]
		if err != nil || !ok {
			return lacking("CPU time", "cpu.stat", err)
		}
		nanoseconds = usec * int64(time.Microsecond)
	case g.CPUAcct != "":
		n, err := g.files.number(filepath.Join(g.CPUAcct, "cpuacct.usage"))
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
	path := filepath.Join(g.Memory, "memory.usage_in_bytes")
	if g.Memory == "" {
		if g.Unified == "" {
			return absent("the job's control group is in no hierarchy that counts memory")
		}
		path = filepath.Join(g.Unified, "memory.current")
	}
	bytes, err := g.files.number(path)
	if err != nil {
		return lacking("memory", filepath.Base(path), err)
	}
	r.MemoryBytes = &bytes
	return nil
}

func (g *GroupReader) readFaults(r *GroupReading) error {
	dir, faults, major := g.Unified, "pgfault", "pgmajfault"
	if g.Memory != "" {
		// Without the prefix, groups below this one are left out.
		dir, faults, major = g.Memory, "total_pgfault", "total_pgmajfault"
	}
	if dir == "" {
		return absent("the job's control group is in no hierarchy that counts page faults")
	}
	counts, err := g.files.counters(filepath.Join(dir, "memory.stat"), faults, major)
	if err != nil {
		return lacking("page faults", "memory.stat", err)
	}
	all, ok1 := counts[faults]
	read, ok2 := counts[major]
	if !ok1 || !ok2 {
		return lacking("page faults", "memory.stat", nil)
	}
	r.Faults, r.MajorFaults = &all, &read
	return nil
}

func (g *GroupReader) readDisk(r *GroupReading) error {
	var use DiskUse
	var err error
	switch {
	case g.BlockIO != "":
		use, err = g.legacyDisk()
	case g.Unified != "":
		var text string
		if text, err = g.files.text(filepath.Join(g.Unified, "io.stat")); err == nil {
			use = parseIOStat(text)
		}
	default:
		return absent("the job's control group is in no hierarchy that counts disk I/O")
	}
	if err != nil {
		return lacking("disk I/O", "io.stat", err)
	}
	r.Disk = &use
	return nil
}

// parseIOStat adds up the devices of io.stat: "8:0 rbytes=1 wbytes=2 rios=3 wios=4 …". A group that did nothing has an empty
// file, and a device without I/O only its number.
func parseIOStat(text string) DiskUse {
	var use DiskUse
	for line := range strings.Lines(text) {
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue
			}
			switch name {
			case "rbytes":
				use.ReadBytes += n
			case "wbytes":
				use.WrittenBytes += n
			case "rios", "wios":
				use.Operations += n
			}
		}
	}
	return use
}

// legacyDisk reads the files of the blkio controller, groups below this one included: lines "8:0 Read 4096" for each device.
func (g *GroupReader) legacyDisk() (DiskUse, error) {
	var use DiskUse
	sum := func(file string, to map[string]*int64) error {
		text, err := g.files.text(filepath.Join(g.BlockIO, file))
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue // the total of all devices
			}
			if n, err := strconv.ParseInt(fields[2], 10, 64); err == nil && to[fields[1]] != nil {
				*to[fields[1]] += n
			}
		}
		return nil
	}
	err := errors.Join(
		sum("blkio.throttle.io_service_bytes_recursive", map[string]*int64{"Read": &use.ReadBytes, "Write": &use.WrittenBytes}),
		sum("blkio.throttle.io_serviced_recursive", map[string]*int64{"Read": &use.Operations, "Write": &use.Operations}),
	)
	return use, err
}

func (g *GroupReader) stalled(file string) (time.Duration, error) {
	if g.Unified == "" {
		return 0, absent("control groups of version 1 do not count pressure")
	}
	text, err := g.files.text(filepath.Join(g.Unified, file))
	if err != nil {
		return 0, lacking("pressure", file, err)
	}
	stalled, ok := parseStalled(text)
	if !ok {
		return 0, lacking("pressure", file, nil)
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
