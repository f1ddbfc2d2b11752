package orchestration

import (
	"context"
	"fmt"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/store"
)

// verifyJobs measure again what differs significantly from the request's baseline,
// in turns with it: a difference that the machine has made is gone then. They are
// decided on once.
func (a *Activities) verifyJobs(ctx context.Context, e expansion) (store.Expansion, error) {
	out := store.Expansion{Stage: bench.StageVerify}
	r := e.request
	before, err := a.Store.StageJobs(ctx, r.ID, bench.StageVerify)
	if err != nil || len(before) > 0 {
		return out, err
	}
	baseline, err := a.baseline(ctx, r)
	if err != nil || baseline == "" {
		return out, err
	}
	differ, err := a.differing(ctx, results.Pair{Project: r.Project, A: baseline, B: r.Tag})
	if err != nil || len(differ) == 0 {
		return out, err
	}
	jobs, err := e.jobs()
	if err != nil {
		return out, err
	}
	for _, j := range jobs {
		var cases []bench.TestCase
		for _, tc := range j.TestCases {
			if differ[tc] && !e.optional()[tc.Target] {
				cases = append(cases, tc)
			}
		}
		if len(cases) == 0 {
			continue
		}
		again := withTestCases(j.Job, cases)
		again.Versus = baseline
		out.Jobs = append(out.Jobs, e.job(j.At().Pool, again))
	}
	return out, nil
}

// differing are the test cases of which a metric that counts differs significantly,
// for a reason that measuring them in turns might take away.
func (a *Activities) differing(ctx context.Context, pair results.Pair) (map[bench.TestCase]bool, error) {
	report, err := results.Compare(ctx, a.Store, a.Suites, pair)
	if err != nil {
		return nil, fmt.Errorf("comparing with the baseline: %w", err)
	}
	differ := make(map[bench.TestCase]bool)
	for _, s := range report.Comparison.Results {
		if s.Significant && s.Basis != stats.ByEquality && !s.InTurns && !bench.Metric(s.Metric).Explains() {
			differ[bench.TestCase{
				Benchmark: s.Benchmark, Profile: s.Profile, Scenario: s.Scenario, Backend: s.Backend, Target: bench.Target(s.Target),
			}] = true
		}
	}
	return differ, nil
}
