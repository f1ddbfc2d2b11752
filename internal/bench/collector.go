package bench

import (
	"encoding/json"
	"time"
)

// Collector is one benchmark machine, or one slot of a shared host, as it has
// registered itself and as operators configure it.
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
	// MemoryBytes and CPUs are what a job may use; 0: not known.
	MemoryBytes int64
	CPUs        int
	// CacheDirs are those that it last reported.
	CacheDirs []string
	// Host is the shared host that it is a slot of; empty: none.
	Host          string
	Active        bool
	RegisteredAt  time.Time
	LastHeartbeat time.Time
	CurrentRun    RunID
	// WantedVersion is that of its pool; empty: any.
	WantedVersion string
}

// Outdated tells whether another version than the collector's is wanted.
func (c Collector) Outdated() bool { return c.WantedVersion != "" && c.WantedVersion != c.Version }

// CollectorState is what a collector is seen to do.
type CollectorState string

const (
	CollectorInactive     CollectorState = "inactive"
	CollectorWaiting      CollectorState = "waiting"
	CollectorBenchmarking CollectorState = "benchmarking"
	CollectorDraining     CollectorState = "draining"
	CollectorOffline      CollectorState = "offline"
)

// State is what the collector is seen to do at now. One that has been silent
// for offlineAfter is offline; so is one whose last heartbeat is as far in the
// future, for then a clock was set back and nothing is known of it.
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

// PoolCount is a pool with its registered collectors.
type PoolCount struct {
	Pool
	Live, Total int
	// Away is how long none of them could take a job; 0 while one can.
	Away time.Duration
	// HardwareIDs of its collectors; more than one means that they are not
	// interchangeable.
	HardwareIDs []string
}
