package plan

import (
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// CoverageQuery asks for the coverage of an artifact where its results are comparable: in
// one pool and size class. A failure counts only for the suite it happened with.
type CoverageQuery struct {
	Tag string
	bench.Pool
	SuiteHash string
}

// QueryOf returns the query for the test cases of a job.
func QueryOf(j bench.Job) CoverageQuery {
	return CoverageQuery{Tag: j.Tag, Pool: bench.Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, SuiteHash: j.SuiteHash}
}

// Coverage sorts the test cases of an artifact on a pool. Those in none of the three maps
// remain to be measured.
type Coverage struct {
	// Stored test cases have an accepted result, with or without a job row.
	Stored map[bench.TestCase]bool
	// Running maps test cases to the open job that measures them.
	Running map[bench.TestCase]bench.JobKey
	// Impossible gives the reason why a test case will have no result: its job, with the
	// same suite, has failed.
	Impossible map[bench.TestCase]string
}

// Uncovered divides the planned jobs of a stage by the coverage where they would run. rest
// holds the part that is neither measured nor being measured, shared the open jobs that
// measure other parts.
//
// A parent's failed test cases are not tried again for each child. For a request's own
// artifact every test case without a result is measured.
func (f Facts) Uncovered(stage bench.Stage, jobs []bench.PlannedJob, covered map[CoverageQuery]Coverage) (rest []bench.PlannedJob, shared []bench.JobKey) {
	for _, j := range jobs {
		c := covered[QueryOf(j.Job)]
		var missing []bench.TestCase
		for _, tc := range j.TestCases {
			running, open := c.Running[tc]
			_, impossible := c.Impossible[tc]
			switch {
			case c.Stored[tc] || impossible && stage == bench.StageParent:
			case open:
				shared = append(shared, running)
			default:
				missing = append(missing, tc)
			}
		}
		if len(missing) > 0 {
			rest = append(rest, f.of(j, missing))
		}
	}
	slices.Sort(shared)
	return rest, slices.Compact(shared)
}
