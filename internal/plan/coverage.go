package plan

import (
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// CoverageQuery asks what there is of an artifact where its results are comparable: in a
// pool on its size class. A failure counts by the definition of the suite.
type CoverageQuery struct {
	Tag string
	bench.Pool
	SuiteHash string
}

// QueryOf asks what there is already of what a job is to measure.
func QueryOf(j bench.Job) CoverageQuery {
	return CoverageQuery{Tag: j.Tag, Pool: bench.Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, SuiteHash: j.SuiteHash}
}

// Coverage sorts the test cases of an artifact on a pool. One in none of the three maps is
// still to be measured.
type Coverage struct {
	// Stored test cases have an accepted result, with or without a job row.
	Stored map[bench.TestCase]bool
	// Running names the open job that a test case is part of.
	Running map[bench.TestCase]bench.JobKey
	// Impossible says why a test case has no result and will have none: the job that was
	// to measure it, from the same suite, has failed.
	Impossible map[bench.TestCase]string
}

// Lacking divides planned jobs of a stage by what is known where they would run. The rest
// is what nobody has measured or is measuring; shared are the open jobs that others of
// their test cases are part of.
//
// What a parent was measured for and failed is not tried for each child again. A request's
// own artifact is measured for all that has no result.
func (f Facts) Lacking(stage bench.Stage, jobs []bench.PlannedJob, covered map[CoverageQuery]Coverage) (rest []bench.PlannedJob, shared []bench.JobKey) {
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
