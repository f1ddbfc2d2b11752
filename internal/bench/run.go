package bench

import (
	"encoding/json"
	"time"
)

// Run is a row of job_run.
type Run struct {
	ID         RunID
	Project    string
	Job        JobKey
	Number     int
	Reason     RunReason
	SizeClass  SizeClass
	Pool       string
	Collector  string
	Epoch      int64
	Version    string
	HardwareID string
	CoLocated  bool
	Facts      json.RawMessage
	Outcome    RunOutcome
	Message    string
	OutputTail string
	Progress   json.RawMessage
	// LogSize is how many bytes of output there are, also those beyond the limit
	// up to which output is kept.
	LogSize    int64
	StartedAt  time.Time
	FinishedAt *time.Time
	// TimeoutSeconds bounded the whole run, by its size class; 0: nothing did.
	TimeoutSeconds float64
	Probe          bool
	// MeasuredSeconds is how long it measured, PeakMemory in bytes and CPUSeconds
	// are what it used; 0: not known.
	MeasuredSeconds float64
	PeakMemory      int64
	CPUSeconds      float64
}

// RunEnd closes a run.
type RunEnd struct {
	Outcome    RunOutcome
	Message    string
	OutputTail string
	// Seconds is how long it measured, PeakMemory in bytes and CPUSeconds are what
	// it used; 0: not known.
	Seconds    float64
	PeakMemory int64
	CPUSeconds float64
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

// TestCaseResult is what a run found for one test case.
type TestCaseResult struct {
	TestCase TestCase
	// Tag says which of the two artifacts was measured, when the job measures in
	// turns; empty is the job's own.
	Tag string
	// Skipped is why it was left out; then it has no collections.
	Skipped     string
	Collections []Collection
}

// Collection is all statistics of one iteration.
type Collection struct {
	Iteration   int
	CollectedAt time.Time
	Values      map[Metric]float64
	Facts       json.RawMessage
}

// BlockReceipt tells what became of an uploaded block.
//
// A block that is sent again gets the same receipt.
type BlockReceipt struct {
	Accepted   int // test cases whose accepted result is this run's
	Superseded int // test cases that had another one's already, or whose job has ended
}
