package plan

import (
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// Needs holds the parts of a job that decide where it may run. Every view of a job, from
// submission to the fence, has them.
type Needs struct {
	Target bench.Target
	// Command is set for a job that runs a command line; its results are not compared.
	// All other jobs stay within one pool.
	Command bool
	// MinClass is the smallest sufficient size class; 0: any.
	MinClass bench.SizeClass
	// Constraints of the job, its project's included; nil: none.
	Constraints *bench.Constraints
}

// NeedsOf reads the needs of a job.
func NeedsOf(j bench.Job) Needs {
	return Needs{Target: j.Target, Command: j.Kind == bench.KindCommand, MinClass: j.MinClass, Constraints: j.Constraints}
}

// Requirements turns the needs of a job into requirements for collectors. They are made
// only here; callers narrow them to a job's location with [placement.Requirements.On] and
// [placement.Requirements.In].
func (n Needs) Requirements() placement.Requirements {
	r := placement.Requirements{Target: n.Target, MinSize: n.MinClass, AcrossPools: n.Command}
	if n.Constraints != nil {
		r.Constraints = *n.Constraints
	}
	return r
}

// BoundPool names the pool that the benchmark set of the test cases is bound to; empty:
// none.
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
