package profiler_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/profiler"
)

// root is a directory with the files of a machine.
type root struct {
	t   *testing.T
	dir string
}

func newRoot(t *testing.T) root {
	t.Helper()
	r := root{t, t.TempDir()}
	r.step(0)
	return r
}

func (r root) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o644))
}

// step sets all counters to those after a number of tenths of a second, in each of which they grow by the same.
func (r root) step(number int) {
	r.t.Helper()
	n := func(each int) string { return strconv.Itoa(1000 + number*each) }
	// Of four CPUs, cpu1 is busy for half of the time, and cpu2 is stolen for three tenths. A tenth of a second has ten ticks.
	r.write("proc/stat", "cpu  "+n(3)+" 0 "+n(2)+" "+n(32)+" 0 0 0 "+n(3)+" 0 0\n"+
		"cpu0 1 0 0 "+n(10)+" 0 0 0 0 0 0\ncpu1 "+n(3)+" 0 "+n(2)+" "+n(5)+" 0 0 0 0 0 0\n"+
		"cpu2 1 0 0 "+n(7)+" 0 0 0 "+n(3)+" 0 0\ncpu3 1 0 0 "+n(10)+" 0 0 0 0 0 0\nctxt 5\n")
	r.write("proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1024 kB\nMemAvailable: 2048 kB\n")
	r.write("proc/vmstat", "pgfault "+n(70)+"\npgmajfault "+n(3)+"\npswpin 0\npswpout 0\n")
	r.write("proc/net/dev", "Inter-|   Receive                                                |  Transmit\n"+
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"+
		"    lo: "+n(9)+" 0 0 0 0 0 0 0 "+n(9)+" 0 0 0 0 0 0 0\n"+
		"  eth0: "+n(100)+" 0 0 0 0 0 0 0 "+n(50)+" 0 0 0 0 0 0 0\n"+
		"  eth1: "+n(20)+" 0 0 0 0 0 0 0 "+n(10)+" 0 0 0 0 0 0 0\n"+
		"docker0: "+n(100)+" 0 0 0 0 0 0 0 "+n(50)+" 0 0 0 0 0 0 0\n")
	r.write("sys/class/net/eth0/device/vendor", "")
	r.write("sys/class/net/eth1/device/vendor", "")
	r.write("proc/diskstats", "   8 0 sda "+n(4)+" 0 "+n(80)+" 0 "+n(6)+" 0 "+n(40)+" 0 0 0 0\n"+
		"   8 1 sda1 "+n(4)+" 0 "+n(80)+" 0 "+n(6)+" 0 "+n(40)+" 0 0 0 0\n"+
		" 253 0 dm-0 "+n(4)+" 0 "+n(80)+" 0 "+n(6)+" 0 "+n(40)+" 0 0 0 0\n"+
		" 259 0 nvme0n1 "+n(1)+" 0 "+n(20)+" 0 "+n(1)+" 0 "+n(10)+" 0 0 0 0\n")
	for _, disk := range []string{"sda", "dm-0", "nvme0n1"} {
		r.write("sys/block/"+disk+"/size", "1")
	}
	r.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2400000\n")
	r.write("sys/class/hwmon/hwmon0/name", "coretemp\n")
	r.write("sys/class/hwmon/hwmon0/temp1_input", "54500\n")
	r.write("sys/class/hwmon/hwmon0/temp2_input", "61250\n")

	r.write("cgroup/cpu.stat", "usage_usec "+n(150_000)+"\nuser_usec 1\n")
	r.write("cgroup/memory.current", "123456\n")
	r.write("cgroup/memory.stat", "anon 1\npgfault "+n(7)+"\npgmajfault "+n(2)+"\n")
	r.write("cgroup/io.stat", "8:0 rbytes="+n(4096)+" wbytes="+n(512)+" rios="+n(5)+" wios="+n(6)+" dbytes=0 dios=0\n259:0 \n")
	for _, resource := range []string{"cpu", "memory", "io"} {
		some := "some avg10=0.00 avg60=0.00 avg300=0.00 total="
		full := "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
		r.write("proc/pressure/"+resource, some+n(25_000)+full)
		r.write("cgroup/"+resource+".pressure", some+n(12_500)+full)
	}
}

// free is a lock that nobody else wants.
type free struct{}

func (free) TryLock() (bool, error) { return true, nil }

func (free) Unlock() error { return nil }

// observed returns the configuration of an agent that records the machine below root and a control group.
func observed(s profiler.Sender, root string, g machine.Group) profiler.Config {
	c := config(s, profiler.JobCollectors(machine.NewGroupReader(g))...)
	reader := machine.NewReader(machine.Config{Root: root, CPUs: []int{1, 2}, KeepOpen: true, Now: time.Now})
	c.Machine, c.Lock = profiler.MachineCollectors(reader, machine.NewThermometer(root)), free{}
	return c
}

func TestEverySourceOfAMachineHasItsSeries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRoot(t)
		got, written := &receiver{}, &notes{}
		c := observed(got, r.dir, machine.Group{Unified: filepath.Join(r.dir, "cgroup")})
		c.Log = written.log()
		a := newAgent(t, c)
		a.Start(t.Context())
		synctest.Wait()
		r.step(1)
		time.Sleep(150 * time.Millisecond)
		a.End()
		require.Empty(t, written.text.String())
		require.Len(t, got.uploads(), 1)
		require.Empty(t, got.uploads()[0].Absent)
		values := map[string]float64{}
		for _, b := range got.uploads()[0].Batches {
			values[strings.TrimSpace(string(b.Scope)+" "+b.Name+" "+b.Device)] = b.Values[0]
		}
		want := map[string]float64{
			"machine cpu_util": 0.125, "machine cpu_util cpu1": 0.5, "machine cpu_util cpu2": 0, "machine cpu_steal": 0.075,
			"machine cpu_frequency": 2.4e9, "machine cpu_temperature": 61.25,
			"machine cpu_pressure": 0.25, "machine memory_pressure": 0.25, "machine io_pressure": 0.25,
			"machine memory_free": 2 << 20, "machine page_faults": 700, "machine major_page_faults": 30,
			"machine net_throughput_sent": 600, "machine net_throughput_sent eth0": 500, "machine net_throughput_sent eth1": 100,
			"machine net_throughput_recv": 1200, "machine net_throughput_recv eth0": 1000, "machine net_throughput_recv eth1": 200,
			"machine disk_iops": 120, "machine disk_throughput_read": 512_000, "machine disk_throughput_write": 256_000,
			"job cpu_used": 1.5, "job memory_used": 123_456, "job page_faults": 70, "job major_page_faults": 20,
			"job cpu_pressure": 0.125, "job memory_pressure": 0.125, "job io_pressure": 0.125,
			"job disk_iops": 110, "job disk_throughput_read": 40_960, "job disk_throughput_write": 5_120,
		}
		require.InDeltaMapValues(t, want, values, 1e-6)
	})
}

func TestWhatAMachineLacksIsAbsentWithTheReason(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, written := &receiver{}, &notes{}
		c := observed(got, t.TempDir(), machine.Group{})
		c.Log = written.log()
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(10*time.Second + 50*time.Millisecond)
		a.End()
		require.Empty(t, written.text.String(), "it is no failure")
		absent := map[profiler.Metric]bool{}
		for _, absence := range got.uploads()[0].Absent {
			require.NotEmpty(t, absence.Reason)
			absent[absence.Metric] = true
		}
		all := slices.Collect(maps.Keys(profiler.Units))
		for _, metric := range slices.DeleteFunc(all, func(m profiler.Metric) bool { return strings.HasPrefix(string(m), "gpu") }) {
			require.True(t, absent[metric], metric)
		}
		require.Empty(t, got.uploads()[0].Batches)
	})
}

func TestAControlGroupThatIsNotThereIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRoot(t)
		got, written := &receiver{}, &notes{}
		c := observed(got, r.dir, machine.Group{Unified: filepath.Join(r.dir, "gone")})
		c.Log = written.log()
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(950 * time.Millisecond)
		require.EqualValues(t, 11, a.End().Failed)
		require.Equal(t, 1, written.count("reading the job's control group"))
		require.Len(t, got.values(profiler.ScopeMachine, string(profiler.MemoryFree)), 11)
	})
}

// The cost of one sample of this machine, as CPU time: below 500 µs an agent costs less than half a percent of a CPU.
func BenchmarkSample(b *testing.B) {
	reader := machine.NewReader(machine.Config{Root: "/", KeepOpen: true, Now: time.Now})
	group := machine.NewGroupReader(machine.Group{
		Unified: "/sys/fs/cgroup/unified", CPUAcct: "/sys/fs/cgroup/cpuacct", Memory: "/sys/fs/cgroup/memory", BlockIO: "/sys/fs/cgroup/blkio",
	})
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group = machine.NewGroupReader(machine.Group{Unified: "/sys/fs/cgroup"})
	}
	collectors := append(profiler.MachineCollectors(reader, machine.NewThermometer("/")), profiler.JobCollectors(group)...)
	b.ReportAllocs()
	before := reader.Read().Self
	for b.Loop() {
		for _, c := range collectors {
			if _, err := c.Collect(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(reader.Read().Self-before)/float64(b.N), "cpu-ns/op")
}

// A column of times is encoded as encoding/json would, however they look.
func TestTimesAreEncodedAsEachOfThem(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", -3*60*60)
	for _, times := range []profiler.Times{
		nil,
		{},
		{time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)},
		{time.Date(2026, 3, 4, 15, 0, 0, 123_456_789, time.UTC), time.Date(2026, 3, 4, 15, 0, 0, 100_000_000, zone), {}},
	} {
		want, err := json.Marshal([]time.Time(times))
		require.NoError(t, err)
		got, err := json.Marshal(times)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		var back profiler.Times
		require.NoError(t, json.Unmarshal(got, &back))
		require.Len(t, back, len(times))
	}
	_, err := json.Marshal(profiler.Times{time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.ErrorContains(t, err, "year")
}
