package orchestration

import (
	"errors"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// expansion turns a request into jobs: pure, all that it needs is in it.
type expansion struct {
	request bench.Request
	project store.Project
	config  bench.ProjectConfig
	fleet   plan.Fleet
	// loaded is the project's suite; nil for a command.
	loaded *suite.Suite
	// series tells on which size class the series of a test case lives.
	series map[bench.Target]map[bench.TestCase]bench.SizeClass
	// best is the size class that was learned for a shape.
	best func([]bench.Shape) (map[bench.Shape]bench.SizeClass, error)
}

// jobs are all jobs of the request, as if nothing was stored yet.
func (e expansion) jobs() ([]bench.PlannedJob, error) {
	if _, err := e.config.Narrowed(e.request.Constraints); err != nil {
		return nil, permanent(err) // the project's have changed since
	}
	var jobs []bench.PlannedJob
	var err error
	if e.request.Command != nil {
		planner := plan.NewPlanner(e.request, e.config, e.fleet)
		jobs = make([]bench.PlannedJob, 1)
		jobs[0], err = planner.Job(planner.Only())
	} else {
		jobs, err = e.suite(e.loaded)
	}
	var unplaceable *placement.Unplaceable
	if err != nil && !errors.As(err, &unplaceable) {
		return nil, permanent(err)
	}
	return jobs, err
}

// optional are the targets that block nothing.
func (e expansion) optional() map[bench.Target]bool {
	out := make(map[bench.Target]bool)
	for _, t := range e.config.OptionalTargets {
		out[t] = true
	}
	return out
}

// of is a job for another artifact, otherwise the same.
func (e expansion) of(tag string, j bench.PlannedJob) bench.PlannedJob {
	return e.job(bench.Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, bench.Job{
		Work:   bench.Work{Tag: tag, Kind: j.Kind, Target: j.Target, Backend: j.Backend, Profile: j.Profile, SuiteHash: j.SuiteHash, TestCases: j.TestCases, Iterations: j.Iterations},
		Sizing: bench.Sizing{Shape: j.Shape, MinClass: j.MinClass},
	})
}

// queue is whose turn a job of the request uses.
func (e expansion) queue() string {
	return fairshare.OfRequest(e.request.Queue, e.request.Submitter, e.request.Project, e.request.Type, e.config)
}

// targets are the request's, else the project's, else those of the suite that
// have a registered collector.
func (e expansion) targets(s *suite.Suite) ([]bench.Target, error) {
	if len(e.request.Selection.Targets) > 0 {
		return e.request.Selection.Targets, nil
	}
	if len(e.config.Targets) > 0 {
		return slices.Concat(e.config.Targets, e.config.OptionalTargets), nil
	}
	var out []bench.Target
	var first error
	for _, t := range s.Targets() {
		if _, err := placement.Choose(e.fleet, e.wish(t)); err == nil {
			out = append(out, t)
		} else if first == nil {
			first = err
		}
	}
	if len(out) == 0 {
		return nil, first
	}
	return out, nil
}

// pin is the size class that a person has chosen for the request's jobs: its own,
// else the project's; 0 for none.
func (e expansion) pin() bench.SizeClass {
	if e.request.SizeClass != 0 {
		return e.request.SizeClass
	}
	return e.config.Size.Pin()
}

// suite expands the request's selection of a suite into jobs.
func (e expansion) suite(s *suite.Suite) ([]bench.PlannedJob, error) {
	selection := e.request.Selection
	var err error
	if selection.Targets, err = e.targets(s); err != nil {
		return nil, err
	}
	plans, err := s.Expand(selection)
	if err != nil {
		return nil, fmt.Errorf("expanding the request: %w", err)
	}
	bound, err := e.bind(s, plans)
	if err != nil {
		return nil, err
	}
	jobs := make([]bench.PlannedJob, 0, len(bound))
	for _, p := range bound {
		parts, err := e.bySize(s, p, s.Iterations(selection))
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			place, err := placement.Choose(e.fleet, e.sizedWish(p, part))
			if err != nil && e.optional()[p.Target] {
				continue // nobody waits for it
			} else if err != nil {
				return nil, err
			}
			jobs = append(jobs, e.job(place.Pool, bench.Job{
				Work:   bench.Work{Tag: e.request.Tag, Versus: e.request.Versus, Kind: p.Kind, Target: p.Target, Backend: p.Backend, Profile: p.Profile, SuiteHash: e.project.SuiteHash, TestCases: part.cases, Iterations: s.Iterations(selection)},
				Sizing: bench.Sizing{Shape: string(part.shape), MinClass: part.min},
			}))
		}
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("the selection holds no test case: every benchmark is excluded from it")
	}
	return jobs, nil
}

// job fills in what all jobs of the request share.
func (e expansion) job(pool bench.Pool, j bench.Job) bench.PlannedJob {
	identity := bench.JobIdentity{
		Project: e.request.Project, Tag: j.Tag, Versus: j.Versus, Target: j.Target, Backend: j.Backend, Profile: j.Profile, Kind: j.Kind, Suite: j.SuiteHash,
		TestCases: j.TestCases, SizeClass: pool.SizeClass, Generation: j.Generation,
	}
	if !e.request.Type.Tracked() || j.Versus != "" {
		identity.Request = e.request.ID
	}
	if j.Shape != "" && j.Command == nil { // of the test cases that are left
		j.Shape = string(j.SuiteShape())
	}
	if e.forOnePool(j) {
		identity.Pool = pool.Name
	}
	j.Project, j.Key = e.request.Project, identity.Key()
	place, err := e.narrowed(pool)
	if err != nil {
		place.Place = bench.Place{Pool: pool} // checked before; see parentJobs
	}
	j.Turn = bench.Turn{
		Queue: e.queue(), Weight: 1, Priority: plan.DefaultPriority,
		Submitter: e.request.Submitter, Branch: e.request.Branch, RequestCreated: e.request.CreatedAt,
	}
	j.JobState = bench.JobState{Status: bench.JobQueued}
	planned := bench.PlannedJob{Job: j}
	e.settle(&planned, place)
	return planned
}
