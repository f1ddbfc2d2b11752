package plan

import (
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/suite"
)

// Stages lists the stages of a request after admission, up to the end of its jobs. Looks
// follow later, see [Facts.Look]. The suite is nil for commands, and
// where it is unknown: writing the jobs reports that.
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
	return append(stages, bench.StageOwn)
}

// MeasuredPart is a part of a job with its pool and size class: after an escalation a job
// has several.
type MeasuredPart struct {
	Key       bench.JobKey
	SizeClass bench.SizeClass
	Pool      string
	TestCases []bench.TestCase
}

// AsMeasured divides jobs into their measured parts, each where it was measured.
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

// Backfills reports whether the results that the request's parent lacks are measured. A
// merged commit's parent that was never requested, such as one before the look-back, stays
// unmeasured.
func (f Facts) Backfills() bool {
	r := f.Request
	return r.Parent != "" && (r.Type != bench.Master || r.WaitsFor == r.Parent)
}

// Parent plans jobs for the parent's artifact that match the request's own: first as those
// are expected to be measured, later as they were. Where a part of a job has escalated,
// the parent is measured there as well.
//
// The error is a [placement.Unplaceable] when no collector there meets the constraints.
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

// FirstLook is the number of pairs of the first look; see package verdict.
const FirstLook = 6

// Look plans the jobs of a look: they measure test cases of the request again, each with
// this number of pairs, in turns with the baseline and where the request's own jobs are
// measured. They go last, after all other work, unless a person waits for them. Test cases that the suite no longer has and
// those of optional targets, which block nothing, are left out.
func (f Facts) Look(baseline string, cases map[bench.TestCase]bool, pairs int) ([]bench.PlannedJob, error) {
	own, err := f.Own()
	if err != nil {
		return nil, err
	}
	optional := f.Optional()
	var jobs []bench.PlannedJob
	for _, j := range own {
		var again []bench.TestCase
		for _, tc := range j.TestCases {
			if cases[tc] && !optional[tc.Target] {
				again = append(again, tc)
			}
		}
		if len(again) > 0 {
			j.Versus, j.Iterations = baseline, pairs
			if f.Request.Type.Tracked() {
				j.Queue = fairshare.Idle
			}
			jobs = append(jobs, f.of(j, again))
		}
	}
	return jobs, nil
}

// of returns the job for some of its test cases.
func (f Facts) of(j bench.PlannedJob, cases []bench.TestCase) bench.PlannedJob {
	j.TestCases = cases
	if j.Shape != "" && j.Command == nil {
		j.Shape = string(j.SuiteShape())
	}
	j.Key = f.key(j.Job)
	return j
}

// Generation sets the generation of a planned job for the request.
func (f Facts) Generation(j bench.PlannedJob, generation int) bench.PlannedJob {
	j.Generation = generation
	j.Key = f.key(j.Job)
	return j
}
