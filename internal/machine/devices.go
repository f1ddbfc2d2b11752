package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// AbsentError reports something that the machine does not have or does not show.
type AbsentError struct{ Reason string }

func (e *AbsentError) Error() string { return e.Reason }

func absent(format string, arguments ...any) error {
	if len(arguments) > 0 {
		format = fmt.Sprintf(format, arguments...)
	}
	return &AbsentError{Reason: format}
}

// MemoryAvailable returns the bytes that programs can still get without swapping, as the kernel estimates them. It returns an
// [*AbsentError] if the machine has no such account.
func (r *Reader) MemoryAvailable() (int64, error) {
	var kibibytes int64
	found := false
	err := r.files.view(r.memory, func(text []byte) error {
		for line := range bytes.Lines(text) {
			value, ok := bytes.CutPrefix(line, []byte("MemAvailable:"))
			if !ok {
				continue
			}
			found = true
			return parseInto(&kibibytes, bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB"))))
		}
		return nil
	})
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, absent("this system has no /proc/meminfo")
	case err != nil:
		return 0, fmt.Errorf("reading the memory of the machine: %w", err)
	case !found:
		return 0, absent("/proc/meminfo has no MemAvailable: it needs Linux 3.14")
	}
	return kibibytes << 10, nil
}

// Traffic counts the bytes of a network interface since it was made.
type Traffic struct{ SentBytes, ReceivedBytes int64 }

// Interface is a network interface.
type Interface struct {
	Name string
	Traffic
}

// Networks returns the network interfaces of the machine in the order of the kernel: those of hardware or, on machines that
// show none, as most containers, all but the loopback. It leaves out virtual ones beside hardware: their traffic passes the hardware as
// well, or stays inside.
func (r *Reader) Networks() ([]Interface, error) {
	var all []Interface
	err := r.files.view(r.networks, func(text []byte) (err error) {
		all, err = parseTraffic(text)
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, absent("this system has no /proc/net/dev")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the network interfaces: %w", err)
	}
	isHardware := func(i Interface) bool {
		return r.hardware.have(i.Name, func() string { return r.path("sys/class/net/" + i.Name + "/device") })
	}
	hardware := slices.ContainsFunc(all, isHardware)
	all = slices.DeleteFunc(all, func(i Interface) bool { return hardware && !isHardware(i) || !hardware && i.Name == "lo" })
	if len(all) == 0 {
		return nil, absent("the machine has no network interface but the loopback")
	}
	return all, nil
}

// parseTraffic reads /proc/net/dev: after two lines of heads "eth0: 1 2 3 …", where names may have colons, too.
func parseTraffic(text []byte) ([]Interface, error) {
	var all []Interface
	for line := range bytes.Lines(text) {
		colon := bytes.LastIndexByte(line, ':')
		if colon < 0 {
			continue
		}
		name := string(bytes.TrimSpace(line[:colon]))
		const received, sent = 0, 8
		var t Traffic
		var err error
		column := 0
		for field := range bytes.FieldsSeq(line[colon+1:]) {
			switch column {
			case received:
				err = parseInto(&t.ReceivedBytes, field)
			case sent:
				err = errors.Join(err, parseInto(&t.SentBytes, field))
			}
			column++
		}
		if column <= sent {
			return nil, fmt.Errorf("%q has %d columns", name, column)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, Interface{Name: name, Traffic: t})
	}
	return all, nil
}

// DiskUse counts the work of disks since the machine, or the control group, began.
type DiskUse struct {
	ReadBytes, WrittenBytes int64
	// Operations counts completed reads and writes.
	Operations int64
}

// layered are the names of block devices whose data lie in memory or on other block devices, which count the work.
var layered = []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd"}

// sector is the unit of /proc/diskstats whatever the disk's own is; see Documentation/admin-guide/iostats.rst of Linux.
const sector = 512

// Disks returns the work of all disks, each counted once: without partitions and without devices that lie on others.
func (r *Reader) Disks() (DiskUse, error) {
	var sum DiskUse
	var found bool
	// Partitions are directories in the directories of their disks, where a slash in a name is an exclamation mark.
	whole := func(name string) bool {
		return r.whole.have(name, func() string { return r.path("sys/block/" + strings.ReplaceAll(name, "/", "!")) })
	}
	err := r.files.view(r.disks, func(text []byte) (err error) {
		sum, found, err = parseDisks(text, whole)
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return DiskUse{}, absent("this system has no /proc/diskstats")
	}
	if err != nil {
		return DiskUse{}, fmt.Errorf("reading the disks: %w", err)
	}
	if !found {
		return DiskUse{}, absent("the machine shows no disk")
	}
	return sum, nil
}

// parseDisks adds up the whole disks of /proc/diskstats, and reports whether there are any.
func parseDisks(text []byte, whole func(name string) bool) (sum DiskUse, found bool, err error) {
	for line := range bytes.Lines(text) {
		const device, reads, sectorsRead, writes, sectorsWritten = 2, 3, 5, 7, 9
		var columns [sectorsWritten + 1][]byte
		n := 0
		for field := range bytes.FieldsSeq(line) {
			columns[n] = field
			if n++; n == len(columns) {
				break
			}
		}
		if n < len(columns) {
			continue
		}
		name := columns[device]
		if slices.ContainsFunc(layered, func(prefix string) bool { return bytes.HasPrefix(name, []byte(prefix)) }) || !whole(string(name)) {
			continue
		}
		var in, out, read, written int64
		err := errors.Join(parseInto(&in, columns[reads]), parseInto(&read, columns[sectorsRead]),
			parseInto(&out, columns[writes]), parseInto(&written, columns[sectorsWritten]))
		if err != nil {
			return DiskUse{}, false, fmt.Errorf("%s: %w", name, err)
		}
		found = true
		sum.ReadBytes += read * sector
		sum.WrittenBytes += written * sector
		sum.Operations += in + out
	}
	return sum, found, nil
}

// devices remembers by name which devices have a file that others of their kind lack. No answer changes while a device has its name.
type devices struct {
	mu      sync.Mutex
	answers map[string]bool
}

// have reports whether a device has the file.
func (d *devices) have(name string, path func() string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	has, known := d.answers[name]
	if !known {
		_, err := os.Stat(path())
		has = err == nil
		if d.answers == nil {
			d.answers = map[string]bool{}
		}
		d.answers[name] = has
	}
	return has
}

// Thermometer reads the temperature of the machine's CPUs. Any number of goroutines may use it.
type Thermometer struct {
	sensors []*file
	files   fileReader
}

// NewThermometer finds the sensors below root, "/" outside tests. Without any, [Thermometer.Celsius] says so.
func NewThermometer(root string) *Thermometer {
	// Drivers of CPUs, see Documentation/hwmon of Linux; boards and disks have others.
	hwmon := []string{"coretemp", "k10temp", "k8temp", "zenpower", "cpu_thermal"}
	zones := []string{"x86_pkg_temp", "cpu_thermal", "cpu-thermal", "soc_thermal", "soc-thermal"}
	found := sensors(root, "sys/class/hwmon/hwmon*", "name", hwmon, "temp*_input")
	if len(found) == 0 {
		found = sensors(root, "sys/class/thermal/thermal_zone*", "type", zones, "temp")
	}
	t := &Thermometer{files: fileReader{keep: true}}
	for _, path := range found {
		t.sensors = append(t.sensors, t.files.at(path))
	}
	return t
}

// sensors returns the files of those directories whose kind is a wanted one.
func sensors(root, directories, kind string, wanted []string, files string) []string {
	var found []string
	dirs, _ := filepath.Glob(filepath.Join(root, directories)) // fails only for a bad pattern
	for _, dir := range dirs {
		name, err := os.ReadFile(filepath.Join(dir, kind))
		if err != nil || !slices.Contains(wanted, strings.TrimSpace(string(name))) {
			continue
		}
		inputs, _ := filepath.Glob(filepath.Join(dir, files))
		found = append(found, inputs...)
	}
	return found
}

// Celsius returns the temperature of the hottest sensor of a CPU, in degrees, and an [*AbsentError] if none can be read.
func (t *Thermometer) Celsius() (float64, error) {
	hottest, found := int64(0), false
	for _, sensor := range t.sensors {
		// Sensors of a CPU that is switched off cannot be read.
		if milli, err := t.files.number(sensor); err == nil && (!found || milli > hottest) {
			hottest, found = milli, true
		}
	}
	if !found {
		return 0, absent("the machine does not show the temperature of its CPUs, as most virtual machines")
	}
	return float64(hottest) / 1000, nil
}

// Close closes the sensors.
func (t *Thermometer) Close() error { return t.files.Close() }

const noProc = "this system has no /proc"
