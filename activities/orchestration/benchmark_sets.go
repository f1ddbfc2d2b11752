package orchestration

import (
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// boundPlan is a job plan and the pool that its benchmark set is bound to.
type boundPlan struct {
	suite.JobPlan
	pool string // empty: any
}

// bind divides job plans by the benchmark sets of their targets: one job per
// benchmark set, target, backend and profile. Targets without sets have one as
// ever.
func (e expansion) bind(s *suite.Suite, plans []suite.JobPlan) ([]boundPlan, error) {
	var bound []boundPlan
	for _, p := range plans {
		sets := e.config.BenchmarkSetsOf(p.Target)
		if len(sets) == 0 {
			bound = append(bound, boundPlan{JobPlan: p})
			continue
		}
		if err := e.config.CheckBenchmarkSets([]bench.Target{p.Target}, s.Benchmarks()); err != nil {
			return nil, fmt.Errorf("project %s: %w", e.project.Name, err)
		}
		for _, set := range sets {
			part := p
			part.TestCases, part.MinSize = nil, 1
			for _, tc := range p.TestCases {
				if slices.Contains(set.Benchmarks, tc.Benchmark) {
					part.TestCases = append(part.TestCases, tc)
					part.MinSize = max(part.MinSize, s.MinSize(tc.Benchmark))
				}
			}
			if len(part.TestCases) > 0 {
				bound = append(bound, boundPlan{part, set.Pool})
			}
		}
	}
	return bound, nil
}

// forOnePool tells whether a job is meant for its pool in particular: that of a
// parent, which has to be measured where its child is, or of a benchmark set. The
// same test cases on another pool are another job then.
func (e expansion) forOnePool(j bench.Job) bool {
	return j.Tag != e.request.Tag || len(e.config.BenchmarkSetsOf(j.Target)) > 0 && j.Command == nil
}
