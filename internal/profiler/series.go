package profiler

import (
	"cmp"
	"strings"
	"time"
)

// Unit of all values of a series. It is a base unit, from which pages derive their labels.
type Unit string

// The units of series.
const (
	Seconds             Unit = "s"
	Bytes               Unit = "bytes"
	BytesPerSecond      Unit = "bytes/s"
	OperationsPerSecond Unit = "operations/s"
	FaultsPerSecond     Unit = "faults/s"
	// CPUs is CPU time per time: 1 is one CPU in full use.
	CPUs Unit = "CPUs"
	// Ratio is a part of the whole, from 0 to 1.
	Ratio   Unit = "ratio"
	Hertz   Unit = "Hz"
	Celsius Unit = "°C"
)

// Scope is the subject of a series.
type Scope string

const (
	// ScopeMachine is the whole machine with everything that runs on it. One agent of a host records it.
	ScopeMachine Scope = "machine"
	// ScopeJob is the job's control group.
	ScopeJob Scope = "job"
	// ScopeTiming is a phase of the job; the name is the phase's.
	ScopeTiming Scope = "timing"
)

// Metric is the quantity of a system series.
type Metric string

// The metrics of machines and jobs; docs/profiling.md explains each one.
const (
	CPUUtil             Metric = "cpu_util"
	CPUSteal            Metric = "cpu_steal"
	CPUFrequency        Metric = "cpu_frequency"
	CPUTemperature      Metric = "cpu_temperature"
	CPUUsed             Metric = "cpu_used"
	CPUPressure         Metric = "cpu_pressure"
	MemoryFree          Metric = "memory_free"
	MemoryUsed          Metric = "memory_used"
	MemoryPressure      Metric = "memory_pressure"
	PageFaults          Metric = "page_faults"
	MajorPageFaults     Metric = "major_page_faults"
	IOPressure          Metric = "io_pressure"
	DiskIOPS            Metric = "disk_iops"
	DiskThroughputRead  Metric = "disk_throughput_read"
	DiskThroughputWrite Metric = "disk_throughput_write"
	NetThroughputSent   Metric = "net_throughput_sent"
	NetThroughputRecv   Metric = "net_throughput_recv"
	GPUUtil             Metric = "gpu_util"
	GPUMemoryFree       Metric = "gpu_memory_free"
)

var units = map[Metric]Unit{
	CPUUtil: Ratio, CPUSteal: Ratio, CPUFrequency: Hertz, CPUTemperature: Celsius, CPUUsed: CPUs, CPUPressure: Ratio,
	MemoryFree: Bytes, MemoryUsed: Bytes, MemoryPressure: Ratio, PageFaults: FaultsPerSecond, MajorPageFaults: FaultsPerSecond,
	IOPressure: Ratio, DiskIOPS: OperationsPerSecond, DiskThroughputRead: BytesPerSecond, DiskThroughputWrite: BytesPerSecond,
	NetThroughputSent: BytesPerSecond, NetThroughputRecv: BytesPerSecond, GPUUtil: Ratio, GPUMemoryFree: Bytes,
}

// Series identifies a series of an attempt.
type Series struct {
	Scope Scope `json:"scope"`
	// Name is a [Metric], or the name of a phase.
	Name string `json:"name"`
	// Device is the part of the machine: a CPU ("cpu3"), a network interface, the UUID of a GPU; empty for all together.
	Device string `json:"device,omitempty"`
}

// Unit returns the unit of the series' values; empty if there is no such metric.
func (s Series) Unit() Unit {
	if s.Scope == ScopeTiming {
		return Seconds
	}
	return units[Metric(s.Name)]
}

// String returns scope, name and device, such as job/cpu_used or machine/cpu_util/cpu3.
func (s Series) String() string {
	text := string(s.Scope) + "/" + s.Name
	if s.Device != "" {
		text += "/" + s.Device
	}
	return text
}

func (s Series) compare(other Series) int {
	return cmp.Or(strings.Compare(string(s.Scope), string(other.Scope)), strings.Compare(s.Name, other.Name), strings.Compare(s.Device, other.Device))
}

// Batch holds the values of one series from about ten seconds. The three slices are equally long: for each value, the batch index
// then current, and the time.
type Batch struct {
	Series
	Unit Unit `json:"unit"`
	// Attempt is the attempt at the run that recorded the values, Host the machine.
	Attempt string `json:"attempt"`
	Host    string `json:"host"`
	// Sequence counts the batches of the series in this attempt from 0. One that is missing was dropped; one that arrives twice was
	// sent again because its answer was lost.
	Sequence int       `json:"sequence"`
	Values   []float64 `json:"values"`
	Batches  []int     `json:"batches"`
	// Times are in UTC. Within an attempt they advance with the monotonic clock, even when the system's clock is set. The time of a
	// timing is the end of the phase.
	Times Times `json:"times"`
}

// Times are a column of a batch.
type Times []time.Time

// MarshalJSON encodes the times as encoding/json would, with one allocation instead of one for each.
func (t Times) MarshalJSON() ([]byte, error) {
	if t == nil {
		return []byte("null"), nil
	}
	b := make([]byte, 0, 2+len(t)*len(`"2006-01-02T15:04:05.999999999Z",`))
	b = append(b, '[')
	for i, at := range t {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		var err error
		if b, err = at.AppendText(b); err != nil {
			return nil, err
		}
		b = append(b, '"')
	}
	return append(b, ']'), nil
}

// Absence is a metric that a machine, or a job's control group, does not have.
type Absence struct {
	Scope  Scope  `json:"scope"`
	Metric Metric `json:"metric"`
	Reason string `json:"reason"`
}

// Upload holds a batch of each series that has values, to be sent at once.
type Upload struct {
	// Attempt and Host are those of each batch.
	Attempt string    `json:"attempt"`
	Host    string    `json:"host"`
	Batches []Batch   `json:"batches"`
	Absent  []Absence `json:"absent,omitempty"`
	// Summary is in the last upload of an attempt; nil if others follow, or the attempt was cut off.
	Summary *Summary `json:"summary,omitempty"`
	// DroppedTotal counts the values that this attempt has measured and lost so far.
	DroppedTotal int64 `json:"dropped_total"`
}

// Values returns the number of values.
func (u Upload) Values() int {
	n := 0
	for _, b := range u.Batches {
		n += len(b.Values)
	}
	return n
}
