package machine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an injected root, with a clock that advances only when told to.
type fake struct {
	t    *testing.T
	root string
	now  time.Time
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, root: t.TempDir(), now: time.Unix(1e9, 0)}
	f.write("proc/stat", stat(100, 100, 0, 0, 0))
	f.write("proc/self/status", "Name:\ttest\nCpus_allowed_list:\t0-1\n")
	f.write("proc/vmstat", "nr_free_pages 1\npswpin 10\npswpout 20\n")
	for _, resource := range []string{"cpu", "memory", "io"} {
		f.pressure(resource, 1000)
	}
	for cpu := range 2 {
		f.write(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu), "3000000\n")
		f.write(fmt.Sprintf("sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", cpu), "7\n")
	}
	return f
}

// stat returns /proc/stat of a machine with two CPUs, in ticks: the busy time of
// each, then interrupts and steal of CPU 1, and the context switches.
func stat(busy0, busy1, interrupts, steal, switches int) string {
	return fmt.Sprintf(`cpu  1 0 0 1000 5 0 0 0 0 0
cpu0 %d 0 0 1000 5 0 0 0 0 0
cpu1 %d 1 2 1000 5 %d 0 %d 0 0
intr 1 2 3
ctxt %d
`, busy0, busy1-3, interrupts, steal, switches)
}

func (f *fake) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.root, name)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(f.t, os.WriteFile(path, []byte(text), 0o644))
}

func (f *fake) remove(name string) {
	f.t.Helper()
	require.NoError(f.t, os.RemoveAll(filepath.Join(f.root, name)))
}

func (f *fake) pressure(resource string, microseconds int) {
	f.t.Helper()
	f.write("proc/pressure/"+resource, fmt.Sprintf("some avg10=0.00 avg60=0.21 avg300=0.96 total=%d\nfull avg10=0.00 avg60=0.13 avg300=0.96 total=1\n", microseconds))
}

func (f *fake) reader(cpus ...int) *machine.Reader {
	return machine.NewReader(machine.Config{Root: f.root, CPUs: cpus, Now: func() time.Time { return f.now }})
}

func pointer[T any](v T) *T { return &v }

func TestADeltaHasWhatHappenedOnTheJobsCPUs(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := f.reader(1)
	begin := r.Read()
	f.now = f.now.Add(10 * time.Second)
	f.write("proc/stat", stat(900, 1000, 20, 30, 4000))
	f.pressure("cpu", 1000+2_500_000)
	f.pressure("memory", 1000+100)
	f.write("proc/vmstat", "pswpin 13\npswpout 24\n")
	f.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2400000\n")
	f.write("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "9\n")
	end := r.Read()
	// What the test itself uses is not foreign; leave it out to be exact.
	end.Self = begin.Self
	require.Equal(t, machine.Delta{
		Elapsed: 10 * time.Second, CPUs: 1, Own: 8 * time.Second,
		Foreign: pointer(time.Second), Interrupts: pointer(200 * time.Millisecond), Steal: pointer(300 * time.Millisecond),
		CPUPressure: pointer(0.25), MemoryPressure: pointer(0.00001), IOPressure: pointer(0.0),
		MHz: pointer(2400.0), Throttled: pointer(int64(2)), SwappedPages: pointer(int64(7)), Switches: 4000,
		Absent: map[machine.Quantity]string{},
	}, machine.Between(begin, end, 8*time.Second))

	end.Self += 400 * time.Millisecond
	require.Equal(t, 600*time.Millisecond, *machine.Between(begin, end, 8*time.Second).Foreign, "the reading process is not foreign")
	require.Zero(t, *machine.Between(begin, end, 20*time.Second).Foreign, "ticks may show less than the job's own time")
}

// A process that keeps off the job's CPUs is no part of their time: what is foreign there is so, however much it has done elsewhere.
func TestAReaderThatIsElsewhereLeavesItsOwnTimeOut(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := machine.NewReader(machine.Config{Root: f.root, CPUs: []int{1}, Elsewhere: true, Now: func() time.Time { return f.now }})
	require.Zero(t, r.Read().Self)
}

func TestSampledTimesAreBoundedByWhatIsNotIdle(t *testing.T) {
	t.Parallel()
	begin := machine.Reading{CPUs: map[int]machine.CPUTimes{0: {}, 1: {}}}
	end := machine.Reading{Uptime: time.Second, CPUs: map[int]machine.CPUTimes{
		0: {Busy: 560 * time.Millisecond, Idle: 490 * time.Millisecond, Steal: 10 * time.Millisecond},
		1: {Busy: 300 * time.Millisecond, Idle: 600 * time.Millisecond},
	}}
	require.Zero(t, *machine.Between(begin, end, 800*time.Millisecond).Foreign)
	end.CPUs[0] = machine.CPUTimes{Busy: 560 * time.Millisecond, Idle: -time.Millisecond}
	require.Equal(t, 60*time.Millisecond, *machine.Between(begin, end, 800*time.Millisecond).Foreign, "an idle time that ran backwards says nothing")
}

func TestWithoutAListTheCPUsOfTheProcessAreRead(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{
		"Cpus_allowed_list:\t1\n":   1,
		"Cpus_allowed_list:\t0-1\n": 2,
		"Cpus_allowed_list:\t0,1\n": 2,
		"Name:\tother\n":            2, // all that are listed
		"Cpus_allowed_list:\tx\n":   2,
	} {
		f := newFake(t)
		f.write("proc/self/status", status)
		r := f.reader()
		begin := r.Read()
		f.now = f.now.Add(time.Second)
		require.Equal(t, want, machine.Between(begin, r.Read(), 0).CPUs, status)
	}
}

func TestWhatAMachineLacksIsAbsentWithTheReason(t *testing.T) {
	t.Parallel()
	for name, lacking := range map[string]struct {
		change func(*fake)
		cpus   []int
		absent map[machine.Quantity]string
	}{
		"without pressure information": {
			change: func(f *fake) { f.remove("proc/pressure") },
			absent: map[machine.Quantity]string{machine.CPUPressure: "no pressure", machine.MemoryPressure: "no pressure", machine.IOPressure: "no pressure"},
		},
		"with other pressure information": {
			change: func(f *fake) { f.write("proc/pressure/cpu", "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n") },
			absent: map[machine.Quantity]string{machine.CPUPressure: `no line "some"`},
		},
		"without cpufreq": {
			change: func(f *fake) {
				f.remove("sys/devices/system/cpu/cpu0/cpufreq")
				f.remove("sys/devices/system/cpu/cpu1/cpufreq")
			},
			absent: map[machine.Quantity]string{machine.Frequency: "virtual machines"},
		},
		"without /sys": {
			change: func(f *fake) { f.remove("sys") },
			absent: map[machine.Quantity]string{machine.Frequency: "frequency", machine.Throttling: "heat"},
		},
		"without swap": {
			change: func(f *fake) { f.write("proc/vmstat", "nr_free_pages 1\n") },
			absent: map[machine.Quantity]string{machine.Swapping: "without swap"},
		},
		"in a container that hides files": {
			change: func(f *fake) { f.remove("proc/vmstat"); f.remove("proc/stat") },
			absent: map[machine.Quantity]string{machine.Swapping: "cannot be read", machine.CPUTime: "cannot be read"},
		},
		"in a container that numbers CPUs anew": {
			cpus:   []int{4, 5},
			absent: map[machine.Quantity]string{machine.CPUTime: "CPU 4", machine.Frequency: "", machine.Throttling: ""},
		},
		"with nonsense in /proc/stat": {
			change: func(f *fake) { f.write("proc/stat", "cpu0 one two\n") },
			absent: map[machine.Quantity]string{machine.CPUTime: "cannot be read"},
		},
		"without /proc": {
			change: func(f *fake) { f.remove("proc") },
			absent: map[machine.Quantity]string{
				machine.CPUTime: "no /proc", machine.CPUPressure: "no /proc", machine.MemoryPressure: "no /proc", machine.IOPressure: "no /proc",
				machine.Frequency: "no /proc", machine.Throttling: "no /proc", machine.Swapping: "no /proc",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			if lacking.change != nil {
				lacking.change(f)
			}
			r := f.reader(lacking.cpus...)
			begin := r.Read()
			f.now = f.now.Add(time.Second)
			d := machine.Between(begin, r.Read(), 0)
			require.Equal(t, time.Second, d.Elapsed)
			require.Len(t, d.Absent, len(lacking.absent))
			for q, words := range lacking.absent {
				require.Contains(t, d.Absent[q], words)
			}
			for q, there := range map[machine.Quantity]bool{
				machine.CPUTime: d.Foreign != nil, machine.CPUPressure: d.CPUPressure != nil, machine.MemoryPressure: d.MemoryPressure != nil,
				machine.IOPressure: d.IOPressure != nil, machine.Frequency: d.MHz != nil, machine.Throttling: d.Throttled != nil,
				machine.Swapping: d.SwappedPages != nil,
			} {
				_, absent := lacking.absent[q]
				require.Equal(t, !absent, there, q)
			}
			require.Empty(t, machine.Judge(d, machine.Norms{}), "what is absent disturbs nothing")
		})
	}
}

func TestCPUsThatAreSharedOnPurposeHaveNoForeignTime(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := machine.NewReader(machine.Config{Root: f.root, SharedCPUs: true, Now: func() time.Time { return f.now }})
	begin := r.Read()
	f.now = f.now.Add(time.Second)
	f.write("proc/stat", stat(200, 200, 0, 0, 7))
	d := machine.Between(begin, r.Read(), 0)
	require.Nil(t, d.Foreign)
	require.Contains(t, d.Absent[machine.CPUTime], "on purpose")
	require.EqualValues(t, 7, d.Switches)
}

func TestCountersThatRunBackwardsAreAbsent(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := f.reader()
	begin := r.Read()
	f.now = f.now.Add(time.Second)
	f.write("proc/stat", stat(10, 200, 0, 0, 0))
	f.pressure("io", 1)
	f.write("proc/vmstat", "pswpin 0\npswpout 0\n")
	d := machine.Between(begin, r.Read(), 0)
	require.Nil(t, d.Foreign)
	require.Nil(t, d.IOPressure)
	require.Nil(t, d.SwappedPages)
	for _, q := range []machine.Quantity{machine.CPUTime, machine.IOPressure, machine.Swapping} {
		require.Contains(t, d.Absent[q], "backwards", q)
	}

	// Steal alone restarts when a virtual machine moves.
	f = newFake(t)
	f.write("proc/stat", stat(100, 100, 0, 50, 0))
	r = f.reader()
	begin = r.Read()
	f.now = f.now.Add(time.Second)
	f.write("proc/stat", stat(100, 100, 0, 3, 0))
	require.Zero(t, *machine.Between(begin, r.Read(), 0).Steal)

	// A CPU that went offline.
	f.write("proc/stat", "cpu  1 0 0 1000 5 0 0 0 0 0\ncpu0 100 0 0 1000 5 0 0 0 0 0\n")
	require.Contains(t, machine.Between(begin, r.Read(), 0).Absent[machine.CPUTime], "offline")
}

func TestAClockThatJumpsIsADisturbanceAndCorruptsNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := f.reader()
	begin := r.Read()
	f.now = f.now.Add(time.Second)
	f.write("proc/stat", stat(150, 100, 0, 0, 0))
	end := r.Read()
	end.Self = begin.Self
	require.Empty(t, machine.Judge(machine.Between(begin, end, 500*time.Millisecond), machine.Norms{}))

	for _, step := range []time.Duration{-3 * time.Hour, 2 * time.Second} {
		jumped := end
		jumped.Wall = jumped.Wall.Add(step)
		d := machine.Between(begin, jumped, 500*time.Millisecond)
		require.Equal(t, time.Second, d.Elapsed)
		require.Equal(t, step, d.ClockStep)
		require.Equal(t, "clock: set by "+step.String()+", or the machine slept", machine.Text(machine.Judge(d, machine.Norms{})))
	}
	adjusted := end
	adjusted.Wall = adjusted.Wall.Add(-900 * time.Millisecond)
	require.Zero(t, machine.Between(begin, adjusted, 0).ClockStep)

	// A clock without a monotonic part that was set back: nothing is known.
	f.now = f.now.Add(-time.Hour)
	d := machine.Between(begin, r.Read(), 0)
	require.Zero(t, d.Elapsed)
	require.Len(t, d.Absent, 7)
	require.Nil(t, d.Foreign)
	require.Empty(t, machine.Judge(d, machine.NormsOf([]machine.Delta{d, d, d})))
}

func TestJudgingAMeasurement(t *testing.T) {
	t.Parallel()
	norms := machine.Norms{Interrupts: pointer(0.01), CPUPressure: pointer(0.2), MemoryPressure: pointer(0.0), IOPressure: pointer(0.1), MHz: pointer(3000.0)}
	ms := time.Millisecond
	for name, c := range map[string]struct {
		delta machine.Delta
		norms machine.Norms
		want  string
	}{
		"quiet": {delta: machine.Delta{
			Foreign: pointer(90 * ms), Steal: pointer(10 * ms), Interrupts: pointer(100 * ms), CPUPressure: pointer(0.24),
			MemoryPressure: pointer(0.05), IOPressure: pointer(0.0), MHz: pointer(2750.0), Throttled: pointer(int64(0)), SwappedPages: pointer(int64(64)),
		}, norms: norms},
		"others on the CPUs":               {delta: machine.Delta{Foreign: pointer(860 * ms)}, want: "foreign CPU time: 43 % of the job's CPUs"},
		"just above":                       {delta: machine.Delta{Foreign: pointer(110 * ms)}, want: "foreign CPU time: 5.5 % of the job's CPUs"},
		"a few ticks of a short iteration": {delta: machine.Delta{Elapsed: 50 * ms, Foreign: pointer(30 * ms), Steal: pointer(10 * ms)}},
		"steal":                            {delta: machine.Delta{Steal: pointer(20 * ms)}, want: "steal: 1.0 % of the job's CPUs"},
		"pressure above what is usual":     {delta: machine.Delta{CPUPressure: pointer(0.3)}, norms: norms, want: "CPU pressure: 30 %, usually 20 %"},
		"pressure of a short iteration":    {delta: machine.Delta{Elapsed: 100 * ms, CPUPressure: pointer(0.6)}, norms: norms},
		"pressure of a series without history": {
			delta: machine.Delta{CPUPressure: pointer(1.0), MemoryPressure: pointer(1.0), IOPressure: pointer(1.0), Interrupts: pointer(time.Second), MHz: pointer(1.0)},
		},
		"memory and I/O": {
			delta: machine.Delta{MemoryPressure: pointer(0.06), IOPressure: pointer(0.5)}, norms: norms,
			want: "memory pressure: 6.0 %, usually 0.0 %; I/O pressure: 50 %, usually 10 %",
		},
		"interrupts":       {delta: machine.Delta{Interrupts: pointer(400 * ms)}, norms: norms, want: "interrupts: 20 %, usually 1.0 %"},
		"a lower clock":    {delta: machine.Delta{MHz: pointer(2000.0)}, norms: norms, want: "frequency: 2000 MHz, usually 3000"},
		"a higher clock":   {delta: machine.Delta{MHz: pointer(4000.0)}, norms: norms, want: "frequency: 4000 MHz, usually 3000"},
		"heat":             {delta: machine.Delta{Throttled: pointer(int64(3))}, want: "throttling: 3 times because of heat"},
		"swapping":         {delta: machine.Delta{SwappedPages: pointer(int64(65))}, want: "swapping: 65 pages"},
		"nothing was read": {delta: machine.Delta{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := c.delta
			d.CPUs = 2
			if d.Elapsed == 0 {
				d.Elapsed = time.Second
			}
			require.Equal(t, c.want, machine.Text(machine.Judge(d, c.norms)))
		})
	}
}

func TestNormsAreMediansOfAtLeastThreeValues(t *testing.T) {
	t.Parallel()
	var series []machine.Delta
	for _, p := range []float64{0.9, 0.1, 0.3} {
		require.Equal(t, machine.Norms{}, machine.NormsOf(series))
		series = append(series, machine.Delta{Elapsed: time.Second, CPUs: 1, CPUPressure: pointer(p), Interrupts: pointer(time.Duration(p * 1e9))})
	}
	require.Equal(t, machine.Norms{CPUPressure: pointer(0.3), Interrupts: pointer(0.3)}, machine.NormsOf(series))
	series = append(series, machine.Delta{CPUPressure: pointer(0.5), MHz: pointer(3.0)})
	own := machine.NormsOf(series)
	require.InDelta(t, 0.4, *own.CPUPressure, 1e-12)
	require.Nil(t, own.MHz, "one value is no norm")

	known := machine.Norms{CPUPressure: pointer(0.7), MHz: pointer(2.0)}
	require.Equal(t, machine.Norms{CPUPressure: known.CPUPressure, MHz: known.MHz, Interrupts: own.Interrupts}, known.Or(own))
}
