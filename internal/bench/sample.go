package bench

import "time"

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

// CollectionRow is one collection with its values, for exports.
type CollectionRow struct {
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

// Lacking is a test case of an artifact that has no result and will have none
// from the jobs so far.
type Lacking struct {
	TestCase TestCase
	// Reason: it was left out, or it failed, and why.
	Reason string
}
