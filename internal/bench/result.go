package bench

import (
	"cmp"
	"encoding/json"
	"time"
)

// TestCaseResult is the result of one run for one test case.
type TestCaseResult struct {
	TestCase TestCase
	// Tag names the measured artifact of a job that measures in turns; empty: the job's
	// own.
	Tag string
	// Skipped is the reason for leaving the test case out; it then has no collections.
	Skipped     string
	Collections []Collection
}

// Collection holds all statistics of one iteration.
type Collection struct {
	Iteration   int
	CollectedAt time.Time
	Values      map[Metric]float64
	Facts       json.RawMessage
}

// BlockReceipt is the answer to an uploaded block. A block that is sent again gets the
// same receipt.
type BlockReceipt struct {
	Accepted   int // test cases whose accepted result is this run's
	Superseded int // test cases that already had another run's result, or whose job has ended
}

// Samples holds all values of one metric of one test case of one artifact, by
// iteration, measured in one surrounding.
type Samples struct {
	TestCase TestCase
	Metric   Metric
	Kind     JobKind
	Surrounding
	Values []float64
	// InTurns is set when the artifact was measured in turns with the one it is compared
	// with.
	InTurns bool
}

// Surrounding holds the conditions of a measurement. Results are comparable only if
// theirs are equal.
type Surrounding struct {
	SizeClass  SizeClass
	HardwareID string
	CoLocated  bool
}

// Before reports whether comparisons prefer this surrounding to another one in which both
// sides were measured as well: alone before co-located, a larger size class before a
// smaller one.
func (s Surrounding) Before(other Surrounding) bool {
	if s.CoLocated != other.CoLocated {
		return other.CoLocated
	}
	return cmp.Or(-cmp.Compare(s.SizeClass, other.SizeClass), cmp.Compare(s.HardwareID, other.HardwareID)) < 0
}

// ExportedCollection is one collection with all fields of an export.
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
// from the present jobs.
type MissingResult struct {
	TestCase TestCase
	// Reason says why it was left out or why it failed.
	Reason string
}
