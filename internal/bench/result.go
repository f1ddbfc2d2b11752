package bench

import (
	"encoding/json"
	"time"
)

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

// Samples are all values of one metric of one test case of one artifact, by
// iteration, measured in one surrounding.
type Samples struct {
	TestCase TestCase
	Metric   Metric
	Kind     JobKind
	Surrounding
	Values []float64
	// InTurns: measured in turns with what it was asked for together with.
	InTurns bool
}

// Surrounding is what two results must share to be comparable.
type Surrounding struct {
	SizeClass  SizeClass
	HardwareID string
	CoLocated  bool
}

// ExportedCollection is one collection with all that an export tells of it.
type ExportedCollection struct {
	Tag       string
	TestCase  TestCase
	Kind      JobKind
	Collector string
	Pool      string
	Surrounding
	Iteration   int
	CollectedAt time.Time
	Values      map[Metric]float64
}

// MissingResult is a test case of an artifact that has no result and will get none
// from the jobs so far.
type MissingResult struct {
	TestCase TestCase
	// Reason says that the test case was left out or has failed, and why.
	Reason string
}
