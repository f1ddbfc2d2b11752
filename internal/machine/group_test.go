package machine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machine"
)

func pressure(total string) string {
	return "some avg10=0.00 avg60=0.21 avg300=0.96 total=" + total + "\nfull avg10=0.00 avg60=0.13 avg300=0.96 total=1\n"
}

// groupOf writes the files of a control group in every hierarchy.
func groupOf(t *testing.T) (f *fake, unified, cpuacct, memory, blkio string) {
	t.Helper()
	f = newFake(t)
	for name, text := range map[string]string{
		"unified/cpu.stat":        "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n",
		"unified/cpu.pressure":    pressure("1500000"),
		"unified/memory.pressure": pressure("0"),
		"unified/io.pressure":     pressure("70"),
		"unified/memory.current":  "4096\n",
		"unified/memory.stat":     "anon 1\npgfault 70\npgmajfault 7\n",
		"unified/io.stat":         "8:0 rbytes=4096 wbytes=512 rios=1 wios=2 dbytes=9 dios=9\n8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n252:0 \n",
		"cpuacct/cpuacct.usage":   "3000000001\n",
		"memory/memory.stat":      "pgfault 1\npgmajfault 0\ntotal_pgfault 80\ntotal_pgmajfault 8\n",

		"memory/memory.usage_in_bytes":                    "8192\n",
		"blkio/blkio.throttle.io_service_bytes_recursive": "8:0 Read 4096\n8:0 Write 512\n8:0 Sync 1\n8:0 Total 4608\n8:16 Read 4\n8:16 Write 0\nTotal 4612\n",
		"blkio/blkio.throttle.io_serviced_recursive":      "8:0 Read 3\n8:0 Write 2\n8:0 Discard 9\n8:0 Total 5\nTotal 5\n",
	} {
		f.write(name, text)
	}
	at := func(name string) string { return filepath.Join(f.root, name) }
	return f, at("unified"), at("cpuacct"), at("memory"), at("blkio")
}

func TestAControlGroupOfVersionTwo(t *testing.T) {
	t.Parallel()
	_, unified, _, _, _ := groupOf(t)
	reading, err := machine.NewGroupReader(machine.Group{Unified: unified}).Read()
	require.NoError(t, err)
	require.Equal(t, machine.GroupReading{
		CPU: pointer(2500 * time.Millisecond),
		Stalled: map[machine.Quantity]time.Duration{
			machine.CPUPressure: 1500 * time.Millisecond, machine.MemoryPressure: 0, machine.IOPressure: 70 * time.Microsecond,
		},
		MemoryBytes: pointer(int64(4096)), Faults: pointer(int64(70)), MajorFaults: pointer(int64(7)),
		Disk:   &machine.DiskUse{ReadBytes: 4097, WrittenBytes: 514, Operations: 10},
		Absent: map[machine.Quantity]string{},
	}, reading)
}

func TestAControlGroupOfVersionOne(t *testing.T) {
	t.Parallel()
	_, _, cpuacct, memory, blkio := groupOf(t)
	reading, err := machine.NewGroupReader(machine.Group{CPUAcct: cpuacct, Memory: memory, BlockIO: blkio}).Read()
	require.NoError(t, err)
	const none = "control groups of version 1 do not count pressure"
	require.Equal(t, machine.GroupReading{
		CPU: pointer(3*time.Second + 1), Stalled: map[machine.Quantity]time.Duration{},
		MemoryBytes: pointer(int64(8192)), Faults: pointer(int64(80)), MajorFaults: pointer(int64(8)),
		Disk:   &machine.DiskUse{ReadBytes: 4100, WrittenBytes: 512, Operations: 5},
		Absent: map[machine.Quantity]string{machine.CPUPressure: none, machine.MemoryPressure: none, machine.IOPressure: none},
	}, reading)
}

func TestAControlGroupInBothVersionsHasCPUTimeAndPressureOfVersionTwo(t *testing.T) {
	t.Parallel()
	_, unified, cpuacct, memory, blkio := groupOf(t)
	reading, err := machine.NewGroupReader(machine.Group{Unified: unified, CPUAcct: cpuacct, Memory: memory, BlockIO: blkio}).Read()
	require.NoError(t, err)
	require.Empty(t, reading.Absent)
	require.Equal(t, 2500*time.Millisecond, *reading.CPU)
	require.Equal(t, 70*time.Microsecond, reading.Stalled[machine.IOPressure])
	require.EqualValues(t, 8192, *reading.MemoryBytes)
	require.EqualValues(t, 80, *reading.Faults)
	require.EqualValues(t, 4100, reading.Disk.ReadBytes)
}

func TestWhatAControlGroupLacksIsAbsentWithTheReason(t *testing.T) {
	t.Parallel()
	f, unified, _, _, _ := groupOf(t)
	for file, c := range map[string]struct {
		quantity machine.Quantity
		text     string
		missing  string
		broken   string
	}{
		"cpu.stat":       {machine.CPUTime, "user_usec 1\n", "no cpu.stat", "cpu.stat has no CPU time"},
		"memory.current": {machine.MemoryUse, "max\n", "its controller is not delegated", "memory.current of the control group cannot be read"},
		"memory.stat":    {machine.PageFaults, "pgfault 1\n", "its controller is not delegated", "memory.stat has no page faults"},
		"cpu.pressure":   {machine.CPUPressure, "full total=1\n", "this kernel does not count pressure", "cpu.pressure has no pressure"},
		"io.pressure":    {machine.IOPressure, "some avg10=0 total=x\n", "this kernel does not count pressure", "io.pressure has no pressure"},
		"io.stat":        {machine.DiskIO, "", "its controller is not delegated", ""},
	} {
		if c.broken != "" {
			f.write("unified/"+file, c.text)
			reading, err := machine.NewGroupReader(machine.Group{Unified: unified}).Read()
			require.NoError(t, err)
			require.Contains(t, reading.Absent[c.quantity], c.broken, file)
		}
		f.remove("unified/" + file)
		reading, err := machine.NewGroupReader(machine.Group{Unified: unified}).Read()
		require.NoError(t, err)
		require.Contains(t, reading.Absent[c.quantity], c.missing, file)
	}

	reading, err := machine.NewGroupReader(machine.Group{}).Read()
	require.NoError(t, err)
	require.Len(t, reading.Absent, 7)
	// A hierarchy for memory alone.
	reading, err = machine.NewGroupReader(machine.Group{Memory: filepath.Join(f.root, "memory")}).Read()
	require.NoError(t, err)
	require.Len(t, reading.Absent, 5)
	require.NotNil(t, reading.MemoryBytes)

	_, err = machine.NewGroupReader(machine.Group{Unified: filepath.Join(f.root, "gone")}).Read()
	require.ErrorContains(t, err, "reading the job's control group")
}

// Files of the blkio controller: that of Linux 6.18 without a limit on a virtual machine, which counts nothing, and those of its documentation.
func TestDiskWorkOfAControlGroupOfVersionOne(t *testing.T) {
	t.Parallel()
	const (
		nothing     = "Total 0\n"
		throttled   = "blkio.throttle.io_service_bytes_recursive"
		scheduled   = "blkio.bfq.io_service_bytes_recursive"
		old         = "blkio.io_service_bytes_recursive"
		bytes       = "254:0 Read 4096\n254:0 Write 512\n254:0 Sync 4608\n254:0 Async 0\n254:0 Discard 0\n254:0 Total 4608\nTotal 4608\n"
		operations  = "254:0 Read 3\n254:0 Write 2\n254:0 Sync 5\n254:0 Async 0\n254:0 Discard 0\n254:0 Total 5\nTotal 5\n"
		throttledIO = "blkio.throttle.io_serviced_recursive"
	)
	work := &machine.DiskUse{ReadBytes: 4096, WrittenBytes: 512, Operations: 5}
	for name, c := range map[string]struct {
		root, group map[string]string
		want        *machine.DiskUse
		absent      string
	}{
		"counted by a limit":       {map[string]string{throttled: bytes}, map[string]string{throttled: bytes, throttledIO: operations}, work, ""},
		"counted by a scheduler":   {map[string]string{throttled: nothing, scheduled: bytes}, map[string]string{throttled: nothing, scheduled: bytes, "blkio.bfq.io_serviced_recursive": operations}, work, ""},
		"counted by an old kernel": {map[string]string{old: bytes}, map[string]string{old: bytes, "blkio.io_serviced_recursive": operations}, work, ""},
		"an idle group":            {map[string]string{throttled: bytes}, map[string]string{throttled: nothing, throttledIO: nothing}, &machine.DiskUse{}, ""},
		"a kernel that counts nothing": {
			map[string]string{throttled: nothing, scheduled: nothing}, map[string]string{throttled: nothing, scheduled: nothing}, nil, "counts no disk I/O",
		},
		"no operations":             {map[string]string{throttled: bytes}, map[string]string{throttled: bytes}, nil, "no " + throttledIO},
		"no file of the controller": {nil, map[string]string{"tasks": ""}, nil, "no " + throttled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			for file, text := range c.root {
				f.write("blkio/"+file, text)
			}
			for file, text := range c.group {
				f.write("blkio/benchloom/job/"+file, text)
				if c.root != nil { // each group on the way has the same files
					f.write("blkio/benchloom/"+file, text)
				}
			}
			r := machine.NewGroupReader(machine.Group{BlockIO: filepath.Join(f.root, "blkio/benchloom/job")})
			defer func() { require.NoError(t, r.Close()) }()
			// Nothing of an earlier reading is left.
			reading := machine.GroupReading{
				Stalled: map[machine.Quantity]time.Duration{machine.CPUPressure: time.Second}, Absent: map[machine.Quantity]string{machine.Frequency: "as before"},
			}
			for range 2 {
				require.NoError(t, r.ReadInto(&reading))
				require.Equal(t, c.want, reading.Disk)
				require.Contains(t, reading.Absent[machine.DiskIO], c.absent)
				require.Empty(t, reading.Stalled)
				require.NotContains(t, reading.Absent, machine.Frequency)
			}
		})
	}
}

// The kernel's own files end when their group does, and are written anew for each reading.
func TestAControlGroupOfTheKernel(t *testing.T) {
	t.Parallel()
	var dir string
	for _, mount := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil && dir == "" {
			dir, _ = os.MkdirTemp(mount, "benchloom-machine-test-")
		}
	}
	if dir == "" {
		t.Skip("control groups cannot be made here")
	}
	t.Cleanup(func() { os.Remove(dir) })
	r := machine.NewGroupReader(machine.Group{Unified: dir})
	for range 3 {
		reading, err := r.Read()
		require.NoError(t, err)
		require.NotNil(t, reading.CPU)
		require.Zero(t, *reading.CPU, "nothing runs there")
	}
	require.NoError(t, os.Remove(dir))
	_, err := r.Read()
	require.ErrorContains(t, err, "reading the job's control group")
	require.NoError(t, r.Close())
}
