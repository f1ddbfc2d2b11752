package bench

import (
	"encoding/json"
	"fmt"
	"time"
)

// RunReason tells why an attempt at a job was made.
type RunReason string

const (
	Scheduled  RunReason = "scheduled"
	Retry      RunReason = "retry"
	Escalation RunReason = "escalation"
	Rerun      RunReason = "rerun"
)

// RunOutcome is how one attempt at a job ended. The empty outcome is that of a
// run which is still going on.
type RunOutcome string

const (
	RunRunning RunOutcome = ""
	RunSuccess RunOutcome = "success"
	RunFailure RunOutcome = "failure"
	// RunTooSmall: the disk limit was reached.
	RunTooSmall RunOutcome = "too_small"
	// RunTimeout: killed at a time limit, that of a command or that of the run.
	RunTimeout RunOutcome = "timeout"
	// RunOutOfMemory: killed at the memory limit, while its collector lives.
	RunOutOfMemory RunOutcome = "oom"
	RunPermanent   RunOutcome = "permanent"
	RunCancelled   RunOutcome = "cancelled"
	// RunLost: the collector died, was shut down, or was fenced off.
	RunLost RunOutcome = "lost"
)

// Failed tells whether the run ended in a failure that counts: the job's own, or
// one that says that the machine was too small.
func (o RunOutcome) Failed() bool {
	switch o {
	case RunFailure, RunTooSmall, RunTimeout, RunOutOfMemory:
		return true
	}
	return false
}

// Run is one attempt at a job, begun by [OpenRun]. It is open until it has an end.
type Run struct {
	ID      RunID
	Project string
	Job     JobKey
	// Number counts the runs of the job, from 1.
	Number int
	Reason RunReason
	Setting
	// RunEnd is zero, apart from what was reported so far, while the run is open.
	RunEnd
	// Progress is what the run is doing, as its collector last said, as JSON.
	Progress json.RawMessage
	// LogSize is how many bytes of output there are, also those beyond the limit
	// up to which output is kept.
	LogSize    int64
	StartedAt  time.Time
	FinishedAt *time.Time // nil: the run is open
}

// Setting is the collector that carries out a run, as it was at the run's start,
// and what the run may use of it.
type Setting struct {
	SizeClass  SizeClass
	Pool       string
	Collector  string
	Epoch      int64 // of the collector's registration
	Version    string
	HardwareID string
	CoLocated  bool
	Facts      json.RawMessage
	// TimeoutSeconds bounds the whole run, by its size class; 0: nothing does.
	TimeoutSeconds float64
	// Probe: the run is on its size class to learn from it.
	Probe bool
}

// RunEnd is how a run ended.
type RunEnd struct {
	Outcome    RunOutcome
	Message    string
	OutputTail string
	// MeasuredSeconds is how long the run measured, PeakMemory in bytes and
	// CPUSeconds are what it used; 0: not known.
	MeasuredSeconds float64
	PeakMemory      int64
	CPUSeconds      float64
}

// OpenRun begins a run of a job on a collector. A time limit, and that the job is a
// probe, hold on the size class for which they were decided and on no other. The
// record adds number and start.
func OpenRun(id RunID, reason RunReason, j Job, on Collector) (Run, error) {
	if id.Job() != j.Key {
		return Run{}, invalid("run ID", string(id), "it is no run of job "+string(j.Key))
	}
	if !j.Status.Open() {
		return Run{}, invalid("job status", string(j.Status), "a job that has ended is not run")
	}
	return Run{
		ID: id, Project: j.Project, Job: j.Key, Reason: reason,
		Setting: Setting{
			SizeClass: on.SizeClass, Pool: on.Pool, Collector: on.Name, Epoch: on.Epoch, Version: on.Version,
			HardwareID: on.HardwareID, CoLocated: on.CoLocated, Facts: on.Facts,
			TimeoutSeconds: j.TimeoutOn(on.SizeClass), Probe: j.Probe && j.SizeClass == on.SizeClass,
		},
	}, nil
}

// Open tells whether the run has not ended.
func (r Run) Open() bool { return r.Outcome == RunRunning }

// Validate refuses a run that cannot be meant: without a collector, or with an end
// in part.
func (r Run) Validate() error {
	if err := r.check(); err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	return nil
}

func (r Run) check() error {
	switch r.Reason {
	case Scheduled, Retry, Escalation, Rerun:
	default:
		return invalid("reason", string(r.Reason), "use scheduled, retry, escalation or rerun")
	}
	switch {
	case r.Collector == "" || r.Pool == "" || r.SizeClass < 1:
		return invalid("run", string(r.ID), "it has no collector, no pool or no size class")
	case r.Number < 1:
		return invalid("number", fmt.Sprint(r.Number), "the first run is 1")
	case r.Open() != (r.FinishedAt == nil):
		return invalid("outcome", string(r.Outcome), "a run that has ended, and no other, has an outcome and an end")
	case r.Open():
		return nil
	}
	return r.RunEnd.Validate()
}

// Validate refuses an end without a known outcome, or with negative amounts.
func (e RunEnd) Validate() error {
	switch e.Outcome {
	case RunSuccess, RunFailure, RunTooSmall, RunTimeout, RunOutOfMemory, RunPermanent, RunCancelled, RunLost:
	case RunRunning:
		return invalid("outcome", "", "a run's end needs an outcome")
	default:
		return invalid("outcome", string(e.Outcome), "use success, failure, too_small, timeout, oom, permanent, cancelled or lost")
	}
	if e.MeasuredSeconds < 0 || e.PeakMemory < 0 || e.CPUSeconds < 0 {
		return invalid("outcome", string(e.Outcome), "seconds measured, memory and CPU seconds cannot be negative")
	}
	return nil
}

// RunError is what went wrong in a run.
type RunError struct {
	Run        RunID
	TestCase   *TestCase // nil: the job as a whole
	Kind       FailureKind
	Message    string
	OutputTail string
	CreatedAt  time.Time
}
