package bench

import (
	"encoding/json"
	"time"
)

// Collector is one benchmark machine, or one slot of a shared host, as it registered
// and as operators have configured it.
type Collector struct {
	Name          string
	Target        Target
	SizeClass     SizeClass
	Pool          string
	MachineID     string
	Epoch         int64
	Version       string
	HardwareID    string
	Facts         json.RawMessage
	Unenforced    json.RawMessage
	CoLocated     bool
	Labels        map[string]string
	BenchmarkSets []string
	// MachineType is hw, vm or dc.
	MachineType  string
	MachineGroup string
	Devices      []string
	// MemoryBytes and CPUs are available to a job; 0: not known.
	MemoryBytes int64
	CPUs        int
	// CacheDirs lists the cache directories it last reported.
	CacheDirs []string
	// Host is the shared host of a slot; empty: not a slot.
	Host   string
	Active bool
	// DisturbedBy says why its last runs are disturbed; empty: they are not.
	DisturbedBy string
	// SetAsideAt is the time at which it was set aside for that reason, to take no jobs;
	// nil: it was not.
	SetAsideAt *time.Time
	// Stuck is set if it was set aside until it is restarted.
	Stuck bool
	// CanaryFailed is set while it waits for a canary to pass.
	CanaryFailed  bool
	RegisteredAt  time.Time
	LastHeartbeat time.Time
	CurrentRun    RunID
	// WantedVersion is the version wanted for its pool; empty: any.
	WantedVersion string
}

// Outdated reports whether the collector's version differs from the wanted one.
func (c Collector) Outdated() bool { return c.WantedVersion != "" && c.WantedVersion != c.Version }

// CollectorState is the observed state of a collector.
type CollectorState string

const (
	CollectorInactive     CollectorState = "inactive"
	CollectorWaiting      CollectorState = "waiting"
	CollectorBenchmarking CollectorState = "benchmarking"
	CollectorDraining     CollectorState = "draining"
	CollectorOffline      CollectorState = "offline"
)

// State returns the collector's observed state at now. It is offline after offlineAfter
// without a heartbeat, and if its last heartbeat is that far in the future: a clock was
// set back, and its state is unknown.
func (c Collector) State(now time.Time, offlineAfter time.Duration) CollectorState {
	switch {
	case now.Sub(c.LastHeartbeat).Abs() > offlineAfter:
		return CollectorOffline
	case !c.Active && c.CurrentRun != "":
		return CollectorDraining
	case !c.Active:
		return CollectorInactive
	case c.CurrentRun != "":
		return CollectorBenchmarking
	}
	return CollectorWaiting
}

// PoolCount is a pool with the number of its collectors.
type PoolCount struct {
	Pool
	Live, Total int
	// Away is the time for which no collector could take a job; 0 while one can.
	Away time.Duration
	// HardwareIDs lists the hardware IDs of its collectors. More than one means that
	// they are not interchangeable.
	HardwareIDs []string
}
