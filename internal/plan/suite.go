package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/suite"
)

// part of a selection becomes one job: test cases of one kind, target, backend and
// profile that run on one size class and, with benchmark sets, on one pool.
type part struct {
	suite.JobPlan
	pool  string          // of their benchmark set; empty: any
	class bench.SizeClass // 0: any
	// shape is set where the class is still to be selected.
	shape bench.Shape
}

// Own plans the jobs that measure the request's own artifact, or run its command, as if
// nothing were stored yet. The error is a [placement.Unplaceable] when no registered
// collector can ever run one of them; any other error is permanent.
func (f Facts) Own() ([]bench.PlannedJob, error) {
	if _, err := f.constraints(); err != nil {
		return nil, err
	}
	if f.Request.Command != nil {
		commands := NewCommands(f)
		j, err := commands.Job(commands.Only())
		return []bench.PlannedJob{j}, err
	}
	if f.Request.Profiler != "" {
		return f.profiles()
	}
	parts, err := f.parts()
	if err != nil {
		return nil, err
	}
	optional := f.Optional()
	jobs := make([]bench.PlannedJob, 0, len(parts))
	for _, p := range parts {
		at, err := f.choose(f.presumed(p))
		if err != nil && optional[p.Target] {
			continue // no request waits for it
		} else if err != nil {
			return nil, err
		}
		j, err := bench.NewSuiteJob(f.Request.Project, bench.Work{
			Tag: f.Request.Tag, Versus: f.Request.Versus, Kind: p.Kind, Target: p.Target, Backend: p.Backend, Profile: p.Profile,
			SuiteHash: f.SuiteHash, TestCases: p.TestCases, Iterations: f.iterations(),
		})
		if err != nil {
			return nil, err
		}
		j.Shape, j.MinClass = string(p.shape), p.MinSize
		jobs = append(jobs, f.job(j, at))
	}
	if len(jobs) == 0 {
		return nil, errors.New("the selection holds no test case: every benchmark is excluded from it")
	}
	return jobs, nil
}

// iterations returns the number of iterations of the request's own jobs. One that measures
// in turns begins with the first look, unless a person has fixed the number.
func (f Facts) iterations() int {
	if f.Request.InTurns() != "" && f.Request.Selection.Iterations == 0 {
		return FirstLook
	}
	return f.Suite.Iterations(f.Request.Selection)
}

// Shapes lists the shapes of jobs whose size class is still to be selected. It returns
// none for a request that cannot be planned; planning it reports the error.
func (f Facts) Shapes() []bench.Shape {
	if f.Suite == nil {
		return nil
	}
	parts, err := f.parts()
	if err != nil {
		return nil
	}
	var shapes []bench.Shape
	for _, p := range parts {
		if p.shape != "" && !slices.Contains(shapes, p.shape) {
			shapes = append(shapes, p.shape)
		}
	}
	return shapes
}

// parts divides the request's selection of the suite: by kind, target, backend and
// profile, then by benchmark sets, then by size classes.
func (f Facts) parts() ([]part, error) {
	selection := f.Request.Selection
	var err error
	if selection.Targets, err = f.targets(); err != nil {
		return nil, err
	}
	plans, err := f.Suite.Expand(selection)
	if err != nil {
		return nil, fmt.Errorf("expanding the request: %w", err)
	}
	bound, err := f.bySet(plans)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, p := range bound {
		parts = append(parts, f.bySize(p)...)
	}
	return parts, nil
}

// targets returns the request's targets, else the project's, else those of the suite with
// a registered collector.
func (f Facts) targets() ([]bench.Target, error) {
	if len(f.Request.Selection.Targets) > 0 {
		return f.Request.Selection.Targets, nil
	}
	if len(f.Config.Targets) > 0 {
		return slices.Concat(f.Config.Targets, f.Config.OptionalTargets), nil
	}
	if _, err := f.Suite.Expand(f.Request.Selection); err != nil {
		return nil, fmt.Errorf("expanding the request: %w", err) // a name that the suite does not have
	}
	var out []bench.Target
	var first error
	for _, t := range f.Suite.Targets() {
		if _, err := placement.Choose(f.Fleet, f.needs(t, 0).Requirements()); err == nil {
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

// bySet divides by the benchmark sets of targets. A target without sets has one part.
func (f Facts) bySet(plans []suite.JobPlan) ([]part, error) {
	var parts []part
	for _, p := range plans {
		sets := f.Config.BenchmarkSetsOf(p.Target)
		if len(sets) == 0 {
			parts = append(parts, part{JobPlan: p})
			continue
		}
		if err := f.Config.CheckBenchmarkSets([]bench.Target{p.Target}, f.Suite.Benchmarks()); err != nil {
			return nil, fmt.Errorf("project %s: %w", f.Request.Project, err)
		}
		for _, set := range sets {
			some := p
			some.TestCases, some.MinSize = nil, 1
			for _, tc := range p.TestCases {
				if slices.Contains(set.Benchmarks, tc.Benchmark) {
					some.TestCases = append(some.TestCases, tc)
					some.MinSize = max(some.MinSize, f.Suite.MinSize(tc.Benchmark))
				}
			}
			if len(some.TestCases) > 0 {
				parts = append(parts, part{JobPlan: some, pool: set.Pool})
			}
		}
	}
	return parts, nil
}

// bySize divides by size classes. If a person has chosen a class, all run there; otherwise
// each test case runs on the class of its series, for results compare only within one
// class. Test cases without a series, or whose class is gone, stay together: their class
// is selected at hand-out.
func (f Facts) bySize(p part) []part {
	if pin := f.pin(); pin != 0 {
		p.class = pin
		return []part{p}
	}
	classes := make(map[bench.SizeClass]*part)
	for _, tc := range p.TestCases {
		alone := p
		alone.class, alone.MinSize = f.Series[tc], f.Suite.MinSize(tc.Benchmark)
		if alone.class != 0 {
			if _, err := f.choose(alone); err != nil {
				alone.class = 0
			}
		}
		at, known := classes[alone.class]
		if !known {
			alone.TestCases, alone.MinSize = nil, 0
			at = &alone
			classes[alone.class] = at
		}
		at.TestCases, at.MinSize = append(at.TestCases, tc), max(at.MinSize, f.Suite.MinSize(tc.Benchmark))
	}
	if undecided := classes[0]; undecided != nil {
		shape := bench.SuiteShape(p.Kind, p.Target, undecided.TestCases, f.iterations())
		if f.Request.InTurns() != "" {
			shape = shape.InTurns()
		}
		undecided.shape = shape.Shape()
	}
	parts := make([]part, 0, len(classes))
	for _, at := range classes {
		parts = append(parts, *at)
	}
	slices.SortFunc(parts, func(a, b part) int {
		return slices.Index(p.TestCases, a.TestCases[0]) - slices.Index(p.TestCases, b.TestCases[0])
	})
	return parts
}

// presumed lets a part wait on the size class of the latest job of its shape until its own
// class is selected.
func (f Facts) presumed(p part) part {
	if p.shape == "" {
		return p
	}
	there := p
	there.class = f.Learned[p.shape]
	if _, err := f.choose(there); err != nil {
		return p
	}
	return there
}

// needs returns the needs of the request's jobs that measure with a suite.
func (f Facts) needs(target bench.Target, smallest bench.SizeClass) Needs {
	constraints, _ := f.constraints()
	return Needs{Target: target, MinClass: smallest, Constraints: &constraints}
}

// requirements returns the requirements of a part.
func (f Facts) requirements(p part) placement.Requirements {
	return f.needs(p.Target, p.MinSize).Requirements().On(p.class).In(p.pool)
}

// choose places a part.
func (f Facts) choose(p part) (site, error) {
	needs := f.requirements(p)
	at, err := placement.Choose(f.Fleet, needs)
	return site{at, needs.Constraints}, err
}

// within places a job that is bound to a pool, on the pool's collectors that meet the
// constraints.
func (f Facts) within(pool bench.Pool) (site, error) {
	needs := f.needs(pool.Target, 0).Requirements().On(pool.SizeClass).In(pool.Name)
	if needs.Constraints.IsZero() {
		return site{Place: placement.Place{Place: bench.Place{Pool: pool}}}, nil
	}
	at, err := placement.Choose(f.Fleet, needs)
	return site{at, needs.Constraints}, err
}
