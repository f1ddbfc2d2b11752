package plan

import (
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// Stages lists what a request goes through once it is admitted. What differs from the
// baseline is verified last, when all is there that is compared. The suite is nil for
// commands, and where it is not known: writing the jobs says so.
func Stages(r bench.Request, config bench.ProjectConfig, loaded *suite.Suite) []bench.Stage {
	var stages []bench.Stage
	if loaded != nil {
		source := loaded.Artifact()
		for _, tag := range []string{r.Tag, r.Parent, r.Versus} {
			if provider, _ := config.Artifacts.For(tag, source.Provider, source.Parameters); provider == bench.BuildProvider {
				stages = []bench.Stage{bench.StageBuild}
			}
		}
	}
	if r.Type.HasParent() {
		stages = append(stages, bench.StageParent)
	}
	stages = append(stages, bench.StageOwn)
	if config.Verify && r.Type.Tracked() {
		stages = append(stages, bench.StageVerify)
	}
	return stages
}

// MeasuredPart is a part of a job with where it was measured: after an escalation a job
// has several.
type MeasuredPart struct {
	Key       bench.JobKey
	SizeClass bench.SizeClass
	Pool      string
	TestCases []bench.TestCase
}

// AsMeasured divides jobs into the parts that were measured, each where it was.
func AsMeasured(jobs []bench.Job, parts []MeasuredPart) []bench.PlannedJob {
	var out []bench.PlannedJob
	for _, j := range jobs {
		for _, p := range parts {
			if p.Key == j.Key {
				j.TestCases, j.SizeClass, j.Pool, j.Shape = p.TestCases, p.SizeClass, p.Pool, ""
				out = append(out, bench.PlannedJob{Job: j})
			}
		}
	}
	return out
}

// Backfills tells whether the request's parent is measured for what it lacks. That of a
// merged commit that nobody has asked for, such as one before the look-back, stays
// unmeasured.
func (f Facts) Backfills() bool {
	r := f.Request
	return r.Parent != "" && (r.Type != bench.Master || r.WaitsFor == r.Parent)
}

// Parent plans jobs of the parent's artifact after the request's own: as those are
// expected to be measured and, once they are there, as they were. Where a part of a job
// has escalated, the parent is measured there as well.
//
// The error is a [placement.Unplaceable] when nobody is left there who meets the
// constraints.
func (f Facts) Parent(own []bench.PlannedJob) ([]bench.PlannedJob, error) {
	jobs := make([]bench.PlannedJob, 0, len(own))
	for _, j := range own {
		at, err := f.within(j.At().Pool)
		if err != nil {
			return nil, err
		}
		parents, err := bench.NewSuiteJob(f.Request.Project, bench.Work{
			Tag: f.Request.Parent, Kind: j.Kind, Target: j.Target, Backend: j.Backend, Profile: j.Profile,
			SuiteHash: j.SuiteHash, TestCases: j.TestCases, Iterations: j.Iterations,
		})
		if err != nil {
			return nil, err
		}
		parents.Shape, parents.MinClass = j.Shape, j.MinClass
		jobs = append(jobs, f.job(parents, at))
	}
	return jobs, nil
}

// Verify plans jobs that measure again, in turns with the baseline, the test cases that
// differ from it: a difference that the machine has made is gone then. Those of optional
// targets block nothing and stay as they are.
func (f Facts) Verify(baseline string, differ map[bench.TestCase]bool) ([]bench.PlannedJob, error) {
	own, err := f.Own()
	if err != nil {
		return nil, err
	}
	optional := f.Optional()
	var jobs []bench.PlannedJob
	for _, j := range own {
		var cases []bench.TestCase
		for _, tc := range j.TestCases {
			if differ[tc] && !optional[tc.Target] {
				cases = append(cases, tc)
			}
		}
		if len(cases) > 0 {
			j.Versus = baseline
			jobs = append(jobs, f.of(j, cases))
		}
	}
	return jobs, nil
}

// of is a job for some of its test cases.
func (f Facts) of(j bench.PlannedJob, cases []bench.TestCase) bench.PlannedJob {
	j.TestCases = cases
	if j.Shape != "" && j.Command == nil {
		j.Shape = string(j.SuiteShape())
	}
	j.Key = f.key(j.Job)
	return j
}

// Generation gives a planned job the generation in which the request gets it.
func (f Facts) Generation(j bench.PlannedJob, generation int) bench.PlannedJob {
	j.Generation = generation
	j.Key = f.key(j.Job)
	return j
}
