package machine_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machine"
)

// lacks requires that something is absent for a reason.
func lacks(t *testing.T, err error, reason string) {
	t.Helper()
	var absent *machine.AbsentError
	require.ErrorAs(t, err, &absent)
	require.Contains(t, absent.Reason, reason)
}

func TestMemoryAndPageFaultsOfAMachine(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.write("proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 3 kB\n")
	available, err := f.reader().MemoryAvailable()
	require.NoError(t, err)
	require.EqualValues(t, 3<<10, available)
	f.write("proc/meminfo", "MemAvailable: much kB\n")
	_, err = f.reader().MemoryAvailable()
	require.ErrorContains(t, err, "reading the memory of the machine")
	f.write("proc/meminfo", "MemTotal: 8 kB\n")
	_, err = f.reader().MemoryAvailable()
	lacks(t, err, "Linux 3.14")

	require.Nil(t, f.reader().Read().Faults)
	f.write("proc/vmstat", "nr_free_pages 1\npgfault 7000000000\npgmajfault 5\n")
	reading := f.reader().Read()
	require.EqualValues(t, 7_000_000_000, *reading.Faults)
	require.EqualValues(t, 5, *reading.MajorFaults)
	f.write("proc/vmstat", "pswpin 1\npswpout 1\npgfault many\n")
	require.Contains(t, f.reader().Read().Absent[machine.Swapping], "pgfault is no number")

	f.remove("proc")
	_, err = f.reader().MemoryAvailable()
	lacks(t, err, "no /proc")
}

const netHead = "Inter-|   Receive                                                |  Transmit\n" +
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"

func TestNetworksAreThoseOfHardwareIfThereAreAny(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.write("proc/net/dev", netHead+"  lo: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n")
	_, err := f.reader().Networks()
	lacks(t, err, "no network interface but the loopback")

	f.write("proc/net/dev", netHead+"  lo: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n eth0: 20 0 0 0 0 0 0 0 10 0 0 0 0 0 0 0\n veth1: 4 0 0 0 0 0 0 0 3 0 0 0 0 0 0 0\n")
	networks, err := f.reader().Networks()
	require.NoError(t, err)
	require.Equal(t, []machine.Interface{{Name: "eth0", Traffic: machine.Traffic{SentBytes: 10, ReceivedBytes: 20}}, {Name: "veth1", Traffic: machine.Traffic{SentBytes: 3, ReceivedBytes: 4}}}, networks, "a container shows no hardware")

	f.write("sys/class/net/eth0/device/vendor", "")
	networks, err = f.reader().Networks()
	require.NoError(t, err)
	require.Equal(t, []machine.Interface{{Name: "eth0", Traffic: machine.Traffic{SentBytes: 10, ReceivedBytes: 20}}}, networks)

	f.remove("proc/net")
	_, err = f.reader().Networks()
	lacks(t, err, "/proc/net/dev")
}

func TestDisksCountEachByteOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.write("proc/diskstats", `   8 0 sda 1 0 2 0 3 0 4 0 0 0 0
   8 1 sda1 1 0 2 0 3 0 4 0 0 0 0
   7 0 loop0 1 0 2 0 3 0 4 0 0 0 0
 253 0 dm-0 1 0 2 0 3 0 4 0 0 0 0
 104 0 cciss/c0d0 10 0 20 0 30 0 40 0 0 0 0 1 1 1 1 1 1
`)
	_, err := f.reader().Disks()
	lacks(t, err, "shows no disk")
	for _, name := range []string{"sda", "loop0", "dm-0", "cciss!c0d0"} {
		f.write("sys/block/"+name+"/size", "1")
	}
	use, err := f.reader().Disks()
	require.NoError(t, err)
	require.Equal(t, machine.DiskUse{ReadBytes: 22 * 512, WrittenBytes: 44 * 512, Operations: 44}, use)

	f.remove("proc/diskstats")
	_, err = f.reader().Disks()
	lacks(t, err, "/proc/diskstats")
}

func TestTheTemperatureIsThatOfTheHottestSensor(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	_, err := machine.NewThermometer(f.root).Celsius()
	lacks(t, err, "temperature")

	f.write("sys/class/thermal/thermal_zone0/type", "acpitz\n")
	f.write("sys/class/thermal/thermal_zone0/temp", "99000\n")
	f.write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
	f.write("sys/class/thermal/thermal_zone1/temp", "48000\n")
	celsius, err := machine.NewThermometer(f.root).Celsius()
	require.NoError(t, err)
	require.Equal(t, 48.0, celsius, "of a zone without a driver of its own")

	f.write("sys/class/hwmon/hwmon0/name", "nvme\n")
	f.write("sys/class/hwmon/hwmon0/temp1_input", "99000\n")
	f.write("sys/class/hwmon/hwmon3/name", "k10temp\n")
	f.write("sys/class/hwmon/hwmon3/temp1_input", "51125\n")
	f.write("sys/class/hwmon/hwmon3/temp3_input", "50000\n")
	thermometer := machine.NewThermometer(f.root)
	celsius, err = thermometer.Celsius()
	require.NoError(t, err)
	require.Equal(t, 51.125, celsius)

	f.write("sys/class/hwmon/hwmon3/temp3_input", "-1000\n")
	f.write("sys/class/hwmon/hwmon3/temp1_input", "") // the CPU went offline
	celsius, err = thermometer.Celsius()
	require.NoError(t, err)
	require.Equal(t, -1.0, celsius)
}

func TestAReadingHasTheWholeMachineBesideTheJobsCPUs(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.write("proc/stat", "cpu  10 20 30 400 50 6 7 80 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0 0 0\n")
	const tick = 10_000_000
	reading := f.reader(1).Read()
	require.Equal(t, machine.CPUTimes{Busy: 60 * tick, Idle: 450 * tick, Interrupts: 13 * tick, Steal: 80 * tick}, reading.All)
	require.Equal(t, 2, reading.Count)
	require.Len(t, reading.CPUs, 1)
}

func TestFilesThatStayOpenAreReadAnew(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := machine.NewReader(machine.Config{Root: f.root, CPUs: []int{1}, KeepOpen: true, Now: func() time.Time { return f.now }})
	require.Equal(t, time.Second, r.Read().CPUs[1].Busy)
	// Also one that has outgrown the room for it.
	f.write("proc/stat", "cpu  1 0 0 1 0 0 0 0 0 0\n"+strings.Repeat("cpu0 100 0 0 1000 5 0 0 0 0 0\n", 5000)+"cpu1 300 0 0 1 0 0 0 0 0 0\n")
	require.Equal(t, 3*time.Second, r.Read().CPUs[1].Busy)
	f.write("proc/stat", stat(1, 200, 0, 0, 0))
	require.Equal(t, 2*time.Second, r.Read().CPUs[1].Busy)
	require.NoError(t, r.Close())
	require.Equal(t, 2*time.Second, r.Read().CPUs[1].Busy, "closing is no end")
	require.NoError(t, r.Close())
}

func TestTheFilesOfThisMachineAreReadAsOften(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/stat"); err != nil {
		t.Skip("this system has no /proc")
	}
	kept := machine.NewReader(machine.Config{Root: "/", KeepOpen: true, Now: time.Now})
	once := machine.NewReader(machine.Config{Root: "/", Now: time.Now})
	var reading machine.Reading
	for range 20 {
		before := once.Read()
		kept.ReadInto(&reading)
		after := once.Read()
		require.Equal(t, before.Absent, reading.Absent)
		require.GreaterOrEqual(t, reading.Switches, before.Switches, "the kernel writes it anew")
		require.LessOrEqual(t, reading.Switches, after.Switches)
		for q, stalled := range reading.Stalled {
			require.GreaterOrEqual(t, stalled, before.Stalled[q])
		}
	}
	require.NoError(t, kept.Close())
}
