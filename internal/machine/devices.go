package machine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AbsentError is the answer to a question for something that the machine does not have or does not show.
type AbsentError struct{ Reason string }

func (e *AbsentError) Error() string { return e.Reason }

func absent(format string, arguments ...any) error {
	return &AbsentError{Reason: fmt.Sprintf(format, arguments...)}
}

// MemoryAvailable returns the bytes that programs can still get without swapping, as the kernel estimates them. It returns an
// [*AbsentError] where there is no such account.
func (r *Reader) MemoryAvailable() (int64, error) {
	var kibibytes int64
	found := false
	err := r.files.view(r.path("proc/meminfo"), func(text []byte) error {
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

// Networks returns the network interfaces of the machine by name: those of hardware. A machine that shows none, as most containers,
// has all but the loopback. Virtual ones beside hardware are left out: what passes them passes the hardware as well, or stays inside.
func (r *Reader) Networks() (map[string]Traffic, error) {
	var all map[string]Traffic
	err := r.files.view(r.path("proc/net/dev"), func(text []byte) (err error) {
		all, err = parseTraffic(text)
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, absent("this system has no /proc/net/dev")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the network interfaces: %w", err)
	}
	hardware := false
	for name := range all {
		hardware = hardware || r.isHardware(name)
	}
	maps.DeleteFunc(all, func(name string, _ Traffic) bool { return hardware && !r.isHardware(name) || !hardware && name == "lo" })
	if len(all) == 0 {
		return nil, absent("the machine has no network interface but the loopback")
	}
	return all, nil
}

func (r *Reader) isHardware(network string) bool {
	return r.exists("sys/class/net/" + network + "/device")
}

// parseTraffic reads /proc/net/dev: after two lines of heads "eth0: 1 2 3 …", where names may have colons, too.
func parseTraffic(text []byte) (map[string]Traffic, error) {
	all := map[string]Traffic{}
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
		all[name] = t
	}
	return all, nil
}

// DiskUse counts the work of disks since the machine, or the control group, began.
type DiskUse struct {
	ReadBytes, WrittenBytes int64
	// Operations counts completed reads and writes.
	Operations int64
}

// layered are the names of block devices whose data lie in memory or on other block devices, which count them.
var layered = []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd"}

// sector is the unit of /proc/diskstats whatever the disk's own is; see Documentation/admin-guide/iostats.rst of Linux.
const sector = 512

// Disks returns the work of all disks, each counted once: without partitions and without devices that lie on others.
func (r *Reader) Disks() (DiskUse, error) {
	var sum DiskUse
	var found bool
	// Partitions are directories in those of their disks. A slash in a name is an exclamation mark there.
	whole := func(name string) bool { return r.exists("sys/block/" + strings.ReplaceAll(name, "/", "!")) }
	err := r.files.view(r.path("proc/diskstats"), func(text []byte) (err error) {
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

// exists reports whether there is a file. The answer for a device never changes while it has its name.
func (r *Reader) exists(name string) bool {
	if is, ok := r.known.Load(name); ok {
		return is.(bool)
	}
	_, err := os.Stat(r.path(name))
	r.known.Store(name, err == nil)
	return err == nil
}

// Thermometer reads the temperature of the machine's CPUs. Any number of goroutines may use it.
type Thermometer struct {
	sensors []string
	files   fileReader
}

// NewThermometer finds the sensors below root, "/" outside tests. Without any, [Thermometer.Celsius] says so.
func NewThermometer(root string) *Thermometer {
	// Drivers of CPUs, see Documentation/hwmon of Linux; boards and disks have others.
	hwmon := []string{"coretemp", "k10temp", "k8temp", "zenpower", "cpu_thermal"}
	zones := []string{"x86_pkg_temp", "cpu_thermal", "cpu-thermal", "soc_thermal", "soc-thermal"}
	t := &Thermometer{sensors: sensors(root, "sys/class/hwmon/hwmon*", "name", hwmon, "temp*_input"), files: fileReader{keep: true}}
	if len(t.sensors) == 0 {
		t.sensors = sensors(root, "sys/class/thermal/thermal_zone*", "type", zones, "temp")
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
	for _, path := range t.sensors {
		// Those of a CPU that is switched off cannot be read.
		if milli, err := t.files.number(path); err == nil && (!found || milli > hottest) {
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
