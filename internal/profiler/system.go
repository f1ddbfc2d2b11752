package profiler

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/benchloom/benchloom/internal/machine"
)

// MachineCollectors returns the collectors of the whole machine, without those of GPUs. The reader's CPUs are those of the size
// class, each of which has a series of its own; it should keep its files open. Reader and thermometer are closed with the agent.
func MachineCollectors(r *machine.Reader, t *machine.Thermometer) []Collector {
	var cpus namedCPUs
	var reading machine.Reading
	return []Collector{
		&collector{name: "CPUs, pressure, frequency and page faults", closer: r, collect: func(c *Collected) error {
			r.ReadInto(&reading)
			cpus = cpus.of(reading.CPUs)
			c.wholeMachine(reading, cpus)
			return nil
		}},
		&collector{name: "memory", closer: r, collect: func(c *Collected) error {
			available, err := r.MemoryAvailable()
			if err != nil {
				return c.lackIf(err, MemoryFree)
			}
			c.value(MemoryFree, float64(available))
			return nil
		}},
		&collector{name: "network", closer: r, collect: func(c *Collected) error {
			interfaces, err := r.Networks()
			if err != nil {
				return c.lackIf(err, NetThroughputSent, NetThroughputRecv)
			}
			c.networks(interfaces)
			return nil
		}},
		&collector{name: "disks", closer: r, collect: func(c *Collected) error {
			use, err := r.Disks()
			if err != nil {
				return c.lackIf(err, DiskThroughputRead, DiskThroughputWrite, DiskIOPS)
			}
			c.disks(use)
			return nil
		}},
		&collector{name: "temperature", closer: t, collect: func(c *Collected) error {
			degrees, err := t.Celsius()
			if err != nil {
				return c.lackIf(err, CPUTemperature)
			}
			c.value(CPUTemperature, degrees)
			return nil
		}},
	}
}

// JobCollectors returns the collectors of a job's control group. The reader is closed with the agent.
func JobCollectors(g *machine.GroupReader) []Collector {
	var r machine.GroupReading
	return []Collector{&collector{name: "the job's control group", closer: g, collect: func(c *Collected) error {
		if err := g.ReadInto(&r); err != nil {
			return err
		}
		c.group(r)
		return nil
	}}}
}

// collector reads a part of a source.
type collector struct {
	name    string
	collect func(*Collected) error
	closer  io.Closer
	// latest holds the answer of the last call. It is reused: fresh memory costs more than the sample.
	latest Collected
}

func (c *collector) Name() string { return c.name }

func (c *collector) Collect(context.Context) (Collected, error) {
	c.latest.Values = c.latest.Values[:0]
	clear(c.latest.Absent)
	if err := c.collect(&c.latest); err != nil {
		return Collected{}, err
	}
	return c.latest, nil
}

// Close closes the whole source. Later reads of its parts open it again.
func (c *collector) Close() error { return c.closer.Close() }

func (c *Collected) value(metric Metric, value float64) {
	c.Values = append(c.Values, Value{Metric: metric, Value: value})
}

func (c *Collected) counter(metric Metric, device string, total float64) {
	c.Values = append(c.Values, Value{Metric: metric, Device: device, Value: total, Counter: true})
}

func (c *Collected) lack(metric Metric, reason string) {
	if c.Absent == nil {
		c.Absent = map[Metric]string{}
	}
	c.Absent[metric] = reason
}

// lackIf notes that metrics are absent if the error says so, and otherwise returns it.
func (c *Collected) lackIf(err error, metrics ...Metric) error {
	var lacking *machine.AbsentError
	if !errors.As(err, &lacking) {
		return err
	}
	for _, metric := range metrics {
		c.lack(metric, lacking.Reason)
	}
	return nil
}

// namedCPUs are the CPUs of a reading in ascending order, with the names of their series.
type namedCPUs []namedCPU

type namedCPU struct {
	number int
	name   string
}

// of returns the CPUs of a reading: mostly the same as in the reading before.
func (c namedCPUs) of(times map[int]machine.CPUTimes) namedCPUs {
	same := len(c) == len(times)
	for _, cpu := range c {
		_, has := times[cpu.number]
		same = same && has
	}
	if same {
		return c
	}
	var anew namedCPUs
	for _, number := range slices.Sorted(maps.Keys(times)) {
		anew = append(anew, namedCPU{number: number, name: "cpu" + strconv.Itoa(number)})
	}
	return anew
}

func (c *Collected) wholeMachine(r machine.Reading, cpus namedCPUs) {
	if r.Count > 0 {
		count := float64(r.Count)
		c.counter(CPUUtil, "", (r.All.Busy+r.All.Interrupts).Seconds()/count)
		c.counter(CPUSteal, "", r.All.Steal.Seconds()/count)
	}
	for _, cpu := range cpus {
		times := r.CPUs[cpu.number]
		c.counter(CPUUtil, cpu.name, (times.Busy + times.Interrupts).Seconds())
	}
	if reason, absent := r.Absent[machine.CPUTime]; absent {
		c.lack(CPUUtil, reason)
		if r.Count == 0 {
			c.lack(CPUSteal, reason)
		}
	}
	for _, q := range kinds {
		metric := pressures[q]
		if stalled, ok := r.Stalled[q]; ok {
			c.counter(metric, "", stalled.Seconds())
		} else {
			c.lack(metric, r.Absent[q])
		}
	}
	if reason, absent := r.Absent[machine.Frequency]; absent {
		c.lack(CPUFrequency, reason)
	} else {
		const mega = 1e6
		c.value(CPUFrequency, r.MHz*mega)
	}
	faults := func(metric Metric, count *int64) {
		if count == nil {
			c.lack(metric, "the machine does not count page faults in /proc/vmstat")
		} else {
			c.counter(metric, "", float64(*count))
		}
	}
	faults(PageFaults, r.Faults)
	faults(MajorPageFaults, r.MajorFaults)
}

// kinds are the quantities of pressure in the order of series, which is the same in each sample.
var kinds = []machine.Quantity{machine.CPUPressure, machine.MemoryPressure, machine.IOPressure}

var pressures = map[machine.Quantity]Metric{
	machine.CPUPressure: CPUPressure, machine.MemoryPressure: MemoryPressure, machine.IOPressure: IOPressure,
}

func (c *Collected) networks(interfaces []machine.Interface) {
	var sum machine.Traffic
	add := func(device string, t machine.Traffic) {
		c.counter(NetThroughputSent, device, float64(t.SentBytes))
		c.counter(NetThroughputRecv, device, float64(t.ReceivedBytes))
	}
	for _, i := range interfaces {
		add(i.Name, i.Traffic)
		sum.SentBytes += i.SentBytes
		sum.ReceivedBytes += i.ReceivedBytes
	}
	add("", sum)
}

func (c *Collected) disks(use machine.DiskUse) {
	c.counter(DiskThroughputRead, "", float64(use.ReadBytes))
	c.counter(DiskThroughputWrite, "", float64(use.WrittenBytes))
	c.counter(DiskIOPS, "", float64(use.Operations))
}

func (c *Collected) group(r machine.GroupReading) {
	if r.CPU != nil {
		c.counter(CPUUsed, "", r.CPU.Seconds())
	}
	if r.MemoryBytes != nil {
		c.value(MemoryUsed, float64(*r.MemoryBytes))
	}
	if r.Faults != nil && r.MajorFaults != nil {
		c.counter(PageFaults, "", float64(*r.Faults))
		c.counter(MajorPageFaults, "", float64(*r.MajorFaults))
	}
	if r.Disk != nil {
		c.disks(*r.Disk)
	}
	for _, q := range kinds {
		if stalled, ok := r.Stalled[q]; ok {
			c.counter(pressures[q], "", stalled.Seconds())
		}
	}
	for q, reason := range r.Absent {
		for _, metric := range groupMetrics[q] {
			c.lack(metric, reason)
		}
	}
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
