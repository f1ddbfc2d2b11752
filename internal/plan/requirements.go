package plan

import (
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// Needs are the parts of a job that decide where it may run. Every view of a job, from
// its submission to the fence, has them.
type Needs struct {
	Target bench.Target
	// Command: the job carries out a command line, whose results are compared with
	// nothing. All other jobs stay within one pool.
	Command bool
	// MinClass is the smallest size class that will do; 0: any.
	MinClass bench.SizeClass
	// Constraints of the job, its project's included; nil: none.
	Constraints *bench.Constraints
}

// NeedsOf reads the needs of a job.
func NeedsOf(j bench.Job) Needs {
	return Needs{Target: j.Target, Command: j.Kind == bench.KindCommand, MinClass: j.MinClass, Constraints: j.Constraints}
}

// Requirements turns the needs of a job into requirements towards collectors. They are
// made here and nowhere else; who has a job at a place narrows them with
// [placement.Requirements.On] and [placement.Requirements.In].
func (n Needs) Requirements() placement.Requirements {
	r := placement.Requirements{Target: n.Target, MinSize: n.MinClass, AcrossPools: n.Command}
	if n.Constraints != nil {
		r.Constraints = *n.Constraints
	}
	return r
}

// BoundPool names the pool to which the benchmark set of some test cases is bound;
// empty: none is.
func BoundPool(config bench.ProjectConfig, target bench.Target, cases []bench.TestCase) string {
	if len(cases) == 0 {
		return ""
	}
	for _, set := range config.BenchmarkSetsOf(target) {
		if slices.Contains(set.Benchmarks, cases[0].Benchmark) {
			return set.Pool
		}
	}
	return ""
}
