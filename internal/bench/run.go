package bench

import (
	"encoding/json"
	"fmt"
	"time"
)

// RunReason is the reason for an attempt at a job.
type RunReason string

const (
	Scheduled RunReason = "scheduled"
	// Retry and Escalation are automatic, and count towards the job's attempts.
	Retry      RunReason = "retry"
	Escalation RunReason = "escalation"
	// Rerun: a person asked for it. It uses up no attempt, and gives none back.
	Rerun RunReason = "rerun"
)

// RunOutcome is the outcome of one attempt at a job; empty while the run is open.
type RunOutcome string

const (
	RunRunning RunOutcome = ""
	RunSuccess RunOutcome = "success"
	RunFailure RunOutcome = "failure"
	// RunTooSmall: the disk limit was reached.
	RunTooSmall RunOutcome = "too_small"
	// RunTimeout: killed at the time limit of a command or of the run.
	RunTimeout RunOutcome = "timeout"
	// RunOutOfMemory: killed at the memory limit while its collector went on.
	RunOutOfMemory RunOutcome = "oom"
	RunPermanent   RunOutcome = "permanent"
	RunCancelled   RunOutcome = "cancelled"
	// RunLost: the collector died, was shut down, or was fenced off.
	RunLost RunOutcome = "lost"
)

// Failed reports whether the run ended in a failure that counts: the job's own, or
// because the machine was too small.
func (o RunOutcome) Failed() bool {
	switch o {
	case RunFailure, RunTooSmall, RunTimeout, RunOutOfMemory:
		return true
	}
	return false
}

// FailureKind returns the kind of failure that a run ended with. A run that was lost or
// cancelled without its job says nothing about the job.
func (o RunOutcome) FailureKind() FailureKind {
	switch o {
	case RunFailure:
		return FailJob
	case RunTooSmall:
		return FailTooSmall
	case RunTimeout:
		return FailTimeout
	case RunOutOfMemory:
		return FailOutOfMemory
	case RunPermanent:
		return FailPermanent
	}
	return FailInfrastructure
}

// Run is one attempt at a job, begun by [OpenRun] and open until it ends.
type Run struct {
	ID      RunID
	Project string
	Job     JobKey
	// Number counts the runs of the job, from 1.
	Number int
	Reason RunReason
	// Rerun tells for which rerun of the job it began, Generation which results it gives.
	Rerun, Generation int
	// AskedBy is the account that asked for a rerun; empty: not a rerun.
	AskedBy string
	Setting
	// RunEnd is zero while the run is open, except for what was reported so far.
	RunEnd
	// Progress is the progress last reported by the collector, as JSON.
	Progress json.RawMessage
	// LogSize is the size of the whole output in bytes, including what was not kept.
	LogSize    int64
	StartedAt  time.Time
	FinishedAt *time.Time // nil: the run is open
	// Announced is set once the workflow of its job knows of the run.
	Announced bool
}

// Setting describes the collector of a run at the run's start, and the run's limits on
// it.
type Setting struct {
	SizeClass  SizeClass
	Pool       string
	Collector  string
	Epoch      int64 // of the collector's registration
	Version    string
	HardwareID string
	CoLocated  bool
	Facts      json.RawMessage
	// TimeoutSeconds bounds the whole run, by its size class; 0: no limit.
	TimeoutSeconds float64
	// Probe marks a run that is on its size class to learn about it.
	Probe bool
}

// RunEnd describes the end of a run.
type RunEnd struct {
	Outcome    RunOutcome
	Message    string
	OutputTail string
	// MeasuredSeconds is the time spent measuring, PeakMemory the memory used in bytes,
	// CPUSeconds the CPU time used; 0: not known.
	MeasuredSeconds float64
	PeakMemory      int64
	CPUSeconds      float64
}

// RunRest holds the parts of a run that a collector hands in together with its end. Either part may be
// nil.
type RunRest struct {
	Block  *RunBlock
	Output *RunOutput
}

// RunBlock holds all results and errors of some test cases of a run.
type RunBlock struct {
	Results []TestCaseResult
	Errors  []RunError
}

// RunClosed holds the kind of a run's job and the receipt for the rest of the run.
type RunClosed struct {
	Kind  JobKind
	Block BlockReceipt
}

// RunOutput is a piece of a run's output, which begins at an offset in bytes. At most Limit
// bytes of the whole output are kept.
type RunOutput struct {
	Offset int64
	Data   []byte
	Limit  int64
}

// OpenRun begins a run of a job on a collector; first reports that none has begun since the
// job was last asked for. The job's time limit and its mark as a probe apply only on the
// size class for which they were decided. The record adds the number and the start time.
func OpenRun(id RunID, reason RunReason, first bool, j Job, on Collector) (Run, error) {
	if id.Job() != j.Key {
		return Run{}, invalid("run ID", string(id), "it does not belong to job "+string(j.Key))
	}
	if !j.Status.Open() {
		return Run{}, invalid("job status", string(j.Status), "a job that has ended cannot be run")
	}
	by := ""
	if first && j.AskedBy != "" {
		reason, by = Rerun, j.AskedBy
	}
	return Run{
		ID: id, Project: j.Project, Job: j.Key, Reason: reason, Rerun: j.Rerun, Generation: j.Generation, AskedBy: by,
		Setting: Setting{
			SizeClass: on.SizeClass, Pool: on.Pool, Collector: on.Name, Epoch: on.Epoch, Version: on.Version,
			HardwareID: on.HardwareID, CoLocated: on.CoLocated, Facts: on.Facts,
			TimeoutSeconds: j.TimeoutOn(on.SizeClass), Probe: j.Probe && j.SizeClass == on.SizeClass,
		},
	}, nil
}

// Open reports whether the run has not ended.
func (r Run) Open() bool { return r.Outcome == RunRunning }

// Validate refuses an invalid run, for example one without a collector or with only
// part of an end.
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
		return invalid("outcome", string(r.Outcome), "a run has an outcome and an end time if and only if it has ended")
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

// RunError is an error of a run.
type RunError struct {
	Run        RunID
	TestCase   *TestCase // nil: the job as a whole
	Kind       FailureKind
	Message    string
	OutputTail string
	CreatedAt  time.Time
}
