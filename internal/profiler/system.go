package profiler

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/benchloom/benchloom/internal/machine"
)

// MachineCollectors returns the collectors of the whole machine, without those of GPUs. The reader's CPUs are those of the size
// class, each of which has a series of its own; it should keep its files open. Reader and thermometer are closed with the agent.
func MachineCollectors(r *machine.Reader, t *machine.Thermometer) []Collector {
	return []Collector{
		&collector{name: "CPUs, pressure, frequency and page faults", closer: r, collect: func() (Collected, error) { return wholeMachine(r.Read()), nil }},
		&collector{name: "memory", closer: r, collect: func() (Collected, error) {
			available, err := r.MemoryAvailable()
			return orAbsent(Collected{Values: []Value{{Metric: MemoryFree, Value: float64(available)}}}, err)
		}},
		&collector{name: "network", closer: r, collect: func() (Collected, error) {
			interfaces, err := r.Networks()
			return orAbsent(networks(interfaces), err)
		}},
		&collector{name: "disks", closer: r, collect: func() (Collected, error) {
			use, err := r.Disks()
			return orAbsent(Collected{Values: disks(use)}, err)
		}},
		&collector{name: "temperature", closer: t, collect: func() (Collected, error) {
			degrees, err := t.Celsius()
			return orAbsent(Collected{Values: []Value{{Metric: CPUTemperature, Value: degrees}}}, err)
		}},
	}
}

// JobCollectors returns the collectors of a job's control group. The reader is closed with the agent.
func JobCollectors(g *machine.GroupReader) []Collector {
	return []Collector{&collector{name: "the job's control group", closer: g, collect: func() (Collected, error) {
		r, err := g.Read()
		if err != nil {
			return Collected{}, err
		}
		return group(r), nil
	}}}
}

// collector reads a part of a source.
type collector struct {
	name    string
	collect func() (Collected, error)
	closer  io.Closer
}

func (c *collector) Name() string { return c.name }

func (c *collector) Collect(context.Context) (Collected, error) { return c.collect() }

// Close closes the whole source. Parts of it that are read later open it again.
func (c *collector) Close() error { return c.closer.Close() }

// orAbsent returns what was read or, if the machine does not have it, the reason for each of its metrics.
func orAbsent(c Collected, err error) (Collected, error) {
	var lacking *machine.AbsentError
	if !errors.As(err, &lacking) {
		return c, err
	}
	reasons := map[Metric]string{}
	for _, v := range c.Values {
		reasons[v.Metric] = lacking.Reason
	}
	return Collected{Absent: reasons}, nil
}

func wholeMachine(r machine.Reading) Collected {
	const others = 8
	c := Collected{Values: make([]Value, 0, len(r.CPUs)+others), Absent: map[Metric]string{}}
	seconds := func(metric Metric, device string, value float64) {
		c.Values = append(c.Values, Value{Metric: metric, Device: device, Value: value, Counter: true})
	}
	if r.Count > 0 {
		count := float64(r.Count)
		seconds(CPUUtil, "", (r.All.Busy+r.All.Interrupts).Seconds()/count)
		seconds(CPUSteal, "", r.All.Steal.Seconds()/count)
	}
	for cpu, times := range r.CPUs {
		seconds(CPUUtil, "cpu"+strconv.Itoa(cpu), (times.Busy + times.Interrupts).Seconds())
	}
	if reason, absent := r.Absent[machine.CPUTime]; absent {
		c.Absent[CPUUtil] = reason
		if r.Count == 0 {
			c.Absent[CPUSteal] = reason
		}
	}
	for _, q := range kinds {
		metric := pressures[q]
		if stalled, ok := r.Stalled[q]; ok {
			seconds(metric, "", stalled.Seconds())
		} else {
			c.Absent[metric] = r.Absent[q]
		}
	}
	if reason, absent := r.Absent[machine.Frequency]; absent {
		c.Absent[CPUFrequency] = reason
	} else {
		const mega = 1e6
		c.Values = append(c.Values, Value{Metric: CPUFrequency, Value: r.MHz * mega})
	}
	faults := func(metric Metric, count *int64) {
		if count == nil {
			c.Absent[metric] = "the machine does not count page faults in /proc/vmstat"
		} else {
			c.Values = append(c.Values, Value{Metric: metric, Value: float64(*count), Counter: true})
		}
	}
	faults(PageFaults, r.Faults)
	faults(MajorPageFaults, r.MajorFaults)
	return c
}

// kinds are the quantities of pressure in the order of series: that of each sample is the same.
var kinds = []machine.Quantity{machine.CPUPressure, machine.MemoryPressure, machine.IOPressure}

var pressures = map[machine.Quantity]Metric{
	machine.CPUPressure: CPUPressure, machine.MemoryPressure: MemoryPressure, machine.IOPressure: IOPressure,
}

func networks(interfaces map[string]machine.Traffic) Collected {
	var sum machine.Traffic
	c := Collected{Values: make([]Value, 0, 2*len(interfaces)+2)}
	add := func(device string, t machine.Traffic) {
		c.Values = append(c.Values,
			Value{Metric: NetThroughputSent, Device: device, Value: float64(t.SentBytes), Counter: true},
			Value{Metric: NetThroughputRecv, Device: device, Value: float64(t.ReceivedBytes), Counter: true})
	}
	for name, traffic := range interfaces {
		add(name, traffic)
		sum.SentBytes += traffic.SentBytes
		sum.ReceivedBytes += traffic.ReceivedBytes
	}
	add("", sum)
	return c
}

func disks(use machine.DiskUse) []Value {
	return []Value{
		{Metric: DiskThroughputRead, Value: float64(use.ReadBytes), Counter: true},
		{Metric: DiskThroughputWrite, Value: float64(use.WrittenBytes), Counter: true},
		{Metric: DiskIOPS, Value: float64(use.Operations), Counter: true},
	}
}

func group(r machine.GroupReading) Collected {
	c := Collected{Values: make([]Value, 0, len(units)), Absent: map[Metric]string{}}
	if r.CPU != nil {
		c.Values = append(c.Values, Value{Metric: CPUUsed, Value: r.CPU.Seconds(), Counter: true})
	}
	if r.MemoryBytes != nil {
		c.Values = append(c.Values, Value{Metric: MemoryUsed, Value: float64(*r.MemoryBytes)})
	}
	if r.Faults != nil && r.MajorFaults != nil {
		c.Values = append(c.Values,
			Value{Metric: PageFaults, Value: float64(*r.Faults), Counter: true},
			Value{Metric: MajorPageFaults, Value: float64(*r.MajorFaults), Counter: true})
	}
	if r.Disk != nil {
		c.Values = append(c.Values, disks(*r.Disk)...)
	}
	for _, q := range kinds {
		stalled, ok := r.Stalled[q]
		if !ok {
			continue
		}
		c.Values = append(c.Values, Value{Metric: pressures[q], Value: stalled.Seconds(), Counter: true})
	}
	for q, reason := range r.Absent {
		for _, metric := range groupMetrics[q] {
			c.Absent[metric] = reason
		}
	}
	return c
}

var groupMetrics = map[machine.Quantity][]Metric{
	machine.CPUTime:        {CPUUsed},
	machine.MemoryUse:      {MemoryUsed},
	machine.PageFaults:     {PageFaults, MajorPageFaults},
	machine.DiskIO:         {DiskIOPS, DiskThroughputRead, DiskThroughputWrite},
	machine.CPUPressure:    {CPUPressure},
	machine.MemoryPressure: {MemoryPressure},
	machine.IOPressure:     {IOPressure},
}
