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
	// Disturbed says why the iteration is disturbed, as "cause: size; …"; empty: it is
	// not. In turns, both sides of a pair carry the mark.
	Disturbed string
	Facts     json.RawMessage
}

// Bounds of what a run delivers for a test case.
const (
	// MaxIterations bounds the iterations of a test case.
	MaxIterations = 1000
	// MaxValues bounds the metrics of one iteration: two thousand values that a program
	// prints, and those of its process.
	MaxValues = 2500
)

// BlockReceipt is the answer to an uploaded block. A block that is sent again gets the
// same receipt.
type BlockReceipt struct {
	Accepted   int // test cases whose accepted result is this run's
	Superseded int // test cases that already had another run's result, or whose job has ended
}

// Samples holds all values of one metric of one test case of one artifact, by
// iteration, measured in one surrounding.
type Samples struct {
	// Series is the ID of the series in the record; 0: not known.
	Series   int64
	TestCase TestCase
	Metric   Metric
	Kind     JobKind
	Surrounding
	// Segment holds the settings of the machine; results of another segment compare only
	// if measured in turns.
	Segment Segment
	Values  []float64
	// Iterations numbers the values. In turns, the numbers begin anew with each look, and
	// values of two artifacts with the same index are a pair.
	Iterations []int
	// Disturbed marks the values of disturbed iterations.
	Disturbed []bool
	// DisturbedBy is the most frequent cause of the marks; empty if there is none.
	DisturbedBy string
	// InTurns is set when the artifact was measured in turns with the one it is compared
	// with.
	InTurns bool
}

// SessionDisturbed reports whether so many of the values are disturbed that no model and
// no verdict may use them.
func (s Samples) SessionDisturbed() bool {
	marked := 0
	for _, d := range s.Disturbed {
		if d {
			marked++
		}
	}
	return SessionDisturbed(marked, len(s.Disturbed))
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
	Segment     Segment
	Iteration   int
	CollectedAt time.Time
	// Disturbed says why the iteration is disturbed; empty: it is not.
	Disturbed string
	Values    map[Metric]float64
	// InTurns holds the tags of the two artifacts that were measured in turns, the
	// baseline first, separated by a space; empty: they were not.
	InTurns string
}

// MissingResult is a test case of an artifact that has no result and will get none
// from the present jobs.
type MissingResult struct {
	TestCase TestCase
	// Reason says why it was left out or why it failed.
	Reason string
	// Failed is set if it failed: others were left out, cancelled or found invalid.
	Failed bool
}
