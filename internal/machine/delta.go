package machine

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Delta describes the machine between two readings. A value that could not be read
// is nil, with the reason in Absent. Shares are of 1.
type Delta struct {
	// Elapsed is the time between the readings, by the monotonic clock.
	Elapsed time.Duration `json:"elapsed_ns"`
	// ClockStep is the time by which the system's clock ran ahead of the monotonic
	// one: it was set, or the machine slept. Steps below a second are left out.
	ClockStep time.Duration `json:"clock_step_ns,omitempty"`
	// CPUs is the number of the job's logical CPUs that were read.
	CPUs int `json:"cpus,omitempty"`
	// Own is the CPU time of the job's own processes, as the caller counted it.
	Own time.Duration `json:"own_cpu_ns"`
	// Foreign is the CPU time of all other processes on the job's CPUs, except that of
	// the reading process. It is exact to a tick (10 ms) for each CPU.
	Foreign *time.Duration `json:"foreign_cpu_ns,omitempty"`
	// Interrupts is the time of interrupts on the job's CPUs; the job may have
	// caused them.
	Interrupts *time.Duration `json:"interrupts_ns,omitempty"`
	// Steal is the time that the hypervisor gave to others while one of the job's
	// CPUs was ready to run.
	Steal *time.Duration `json:"steal_ns,omitempty"`
	// CPUPressure, MemoryPressure and IOPressure are the share of the time in which
	// at least one task of the machine waited for the resource.
	CPUPressure    *float64 `json:"cpu_pressure,omitempty"`
	MemoryPressure *float64 `json:"memory_pressure,omitempty"`
	IOPressure     *float64 `json:"io_pressure,omitempty"`
	// MHz is the highest frequency of the job's CPUs at the end.
	MHz *float64 `json:"mhz,omitempty"`
	// Throttled counts how often heat slowed the job's CPUs down.
	Throttled *int64 `json:"throttled,omitempty"`
	// SwappedPages counts pages that the machine wrote to or read from swap.
	SwappedPages *int64 `json:"swapped_pages,omitempty"`
	// Switches counts context switches of the machine.
	Switches int64               `json:"switches,omitempty"`
	Absent   map[Quantity]string `json:"absent,omitempty"`
}

// leastStep is the least difference of the two clocks that is not an adjustment of
// their speed.
const leastStep = time.Second

// Between returns what happened between two readings of one reader. Own is the
// CPU time of the job's own processes in that time.
//
// A counter that ran backwards, as when a CPU went offline or a virtual machine
// moved to another host, is absent; so is everything if no time has passed.
func Between(begin, end Reading, own time.Duration) Delta {
	d := Delta{Elapsed: end.Uptime - begin.Uptime, Own: own, Absent: map[Quantity]string{}}
	maps.Copy(d.Absent, begin.Absent)
	maps.Copy(d.Absent, end.Absent)
	if step := end.Wall.Sub(begin.Wall) - d.Elapsed; step.Abs() >= leastStep {
		d.ClockStep = step
	}
	if d.Elapsed <= 0 {
		d.Elapsed = 0
		for _, q := range []Quantity{CPUTime, CPUPressure, MemoryPressure, IOPressure, Frequency, Throttling, Swapping} {
			d.Absent[q] = "no time passed between the readings"
		}
		return d
	}
	d.cpuTimes(begin, end)
	for q, share := range map[Quantity]**float64{CPUPressure: &d.CPUPressure, MemoryPressure: &d.MemoryPressure, IOPressure: &d.IOPressure} {
		before, ok1 := begin.Stalled[q]
		after, ok2 := end.Stalled[q]
		if !ok1 || !ok2 || d.backwards(q, after < before) {
			continue
		}
		// It is updated with a delay, so that it may exceed the whole time.
		s := min(1, float64(after-before)/float64(d.Elapsed))
		*share = &s
	}
	if _, absent := d.Absent[Frequency]; !absent {
		mhz := end.MHz
		d.MHz = &mhz
	}
	d.Throttled = d.count(Throttling, begin.Throttled, end.Throttled)
	d.SwappedPages = d.count(Swapping, begin.SwappedPages, end.SwappedPages)
	d.Switches = max(0, end.Switches-begin.Switches)
	return d
}

// backwards notes a counter that ran backwards.
func (d *Delta) backwards(q Quantity, is bool) bool {
	if is {
		d.Absent[q] = "its counter ran backwards"
	}
	return is
}

func (d *Delta) count(q Quantity, before, after int64) *int64 {
	if _, absent := d.Absent[q]; absent || d.backwards(q, after < before) {
		return nil
	}
	n := after - before
	return &n
}

func (d *Delta) cpuTimes(begin, end Reading) {
	if _, absent := d.Absent[CPUTime]; absent {
		return
	}
	if !slices.Equal(slices.Sorted(maps.Keys(begin.CPUs)), slices.Sorted(maps.Keys(end.CPUs))) {
		d.Absent[CPUTime] = "a CPU was switched on or off"
		return
	}
	var sum CPUTimes
	for cpu, after := range end.CPUs {
		before := begin.CPUs[cpu]
		if d.backwards(CPUTime, after.Busy < before.Busy || after.Interrupts < before.Interrupts) {
			return
		}
		// Steal is known to restart when a virtual machine moves to another host.
		steal := max(0, after.Steal-before.Steal)
		busy := after.Busy - before.Busy
		// Samples of a CPU that is busy half of the time err by several ticks per second;
		// what is neither idle nor stolen bounds them. Idle time is known to run backwards.
		if idle := after.Idle - before.Idle; idle >= 0 {
			busy = min(busy, max(0, d.Elapsed-idle-steal))
		}
		sum.Busy += busy
		sum.Interrupts += after.Interrupts - before.Interrupts
		sum.Steal += steal
	}
	d.CPUs = len(end.CPUs)
	foreign := max(0, sum.Busy-d.Own-max(0, end.Self-begin.Self))
	d.Foreign, d.Interrupts, d.Steal = &foreign, &sum.Interrupts, &sum.Steal
}

// Shares returns the CPU time of other processes and that taken by the hypervisor, as
// shares of the time of all of the job's CPUs; nil if unknown.
func (d Delta) Shares() (foreign, steal *float64) {
	of := func(t *time.Duration) *float64 {
		if t == nil || d.Elapsed <= 0 || d.CPUs == 0 {
			return nil
		}
		s := d.share(*t)
		return &s
	}
	return of(d.Foreign), of(d.Steal)
}

// share returns a CPU time as a share of the time of all of the job's CPUs.
func (d Delta) share(t time.Duration) float64 {
	if d.Elapsed <= 0 || d.CPUs == 0 {
		return 0
	}
	return float64(t) / (float64(d.Elapsed) * float64(d.CPUs))
}

// Norms are the medians of a series, which distinguish the effects of its own benchmark
// on the machine from those of others. Nil means unknown. Shares are of 1.
type Norms struct {
	Interrupts     *float64 `json:"interrupts,omitempty"`
	CPUPressure    *float64 `json:"cpu_pressure,omitempty"`
	MemoryPressure *float64 `json:"memory_pressure,omitempty"`
	IOPressure     *float64 `json:"io_pressure,omitempty"`
	MHz            *float64 `json:"mhz,omitempty"`
}

// leastNorm is the number of values that a median needs.
const leastNorm = 3

// NormsOf returns the medians of a series; those with fewer than three values
// are not known.
func NormsOf(series []Delta) Norms {
	median := func(of func(Delta) *float64) *float64 {
		var values []float64
		for _, d := range series {
			if v := of(d); v != nil && !math.IsNaN(*v) {
				values = append(values, *v)
			}
		}
		if len(values) < leastNorm {
			return nil
		}
		slices.Sort(values)
		m := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		return &m
	}
	return Norms{
		Interrupts:     median(Delta.interruptShare),
		CPUPressure:    median(func(d Delta) *float64 { return d.CPUPressure }),
		MemoryPressure: median(func(d Delta) *float64 { return d.MemoryPressure }),
		IOPressure:     median(func(d Delta) *float64 { return d.IOPressure }),
		MHz:            median(func(d Delta) *float64 { return d.MHz }),
	}
}

// Or returns the norms, completed by others where they are not known.
func (n Norms) Or(others Norms) Norms {
	for _, pair := range []struct{ mine, theirs **float64 }{
		{&n.Interrupts, &others.Interrupts},
		{&n.CPUPressure, &others.CPUPressure},
		{&n.MemoryPressure, &others.MemoryPressure},
		{&n.IOPressure, &others.IOPressure},
		{&n.MHz, &others.MHz},
	} {
		if *pair.mine == nil {
			*pair.mine = *pair.theirs
		}
	}
	return n
}

func (d Delta) interruptShare() *float64 {
	if d.Interrupts == nil {
		return nil
	}
	s := d.share(*d.Interrupts)
	return &s
}
