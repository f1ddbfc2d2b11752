package jobrun

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// Artifacts provides artifacts; *artifact.Cache implements it. Acquire is called under no lock and locks the artifact until
// the handle is released. It must not be nil.
type Artifacts interface {
	Acquire(context.Context, artifact.Request, artifact.ProgressFunc) (*artifact.Handle, error)
}

// LocalOptions describes a measurement on this machine without a service.
type LocalOptions struct {
	// SuiteDir is the folder of a suite.
	SuiteDir  string
	Selection bench.Selection
	// Tags are the artifacts: one to measure, or several to compare. The same tag twice compares an artifact with itself.
	Tags []string
	// Provider, with its Parameters, replaces the suite's artifact source if not empty.
	Provider   string
	Parameters map[string]string
	// Target is this machine's target, used when the selection names none; empty means that of [bench.HostTarget].
	Target bench.Target
	// Artifacts is usually a cache shared by all users of the machine.
	Artifacts Artifacts
	// Machine.CacheDir contains a directory per suite, named after it.
	Machine Machine
	// Progress may be nil.
	Progress func(Progress)
	// Fetching receives the progress of fetching artifacts; it may be nil.
	Fetching func(artifact.Progress)
	// Finished, if set, receives each block as soon as it is done.
	Finished func(Block)
}

// LocalResults holds the results of a local run.
type LocalResults struct {
	Suite    *suite.Suite
	Subjects []LocalSubject
	// Results carry the name of their subject. A cancelled run has those of the finished blocks.
	Results []Result
}

// LocalSubject is an artifact of a local run.
type LocalSubject struct {
	// Name identifies the subject in results: the tag, followed by "#2" and so on when the same tag is measured several
	// times.
	Name     string
	Identity string
}

// Of returns the results of one subject in the order of measurement.
func (r *LocalResults) Of(subject string) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(result Result) bool { return result.Subject != subject })
}

// Local loads a suite, acquires the artifacts and runs the jobs of a selection on this machine, each with all artifacts
// interleaved. Results returned with an error are those of finished blocks.
func Local(ctx context.Context, o LocalOptions) (*LocalResults, error) {
	dir, err := filepath.Abs(o.SuiteDir)
	if err != nil {
		return nil, fmt.Errorf("finding the suite: %w", err)
	}
	s, err := suite.LoadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(o.Selection.Targets) == 0 {
		target := o.Target
		if target == "" {
			if target, err = bench.HostTarget(runtime.GOOS, runtime.GOARCH); err != nil {
				return nil, err
			}
		}
		o.Selection.Targets = []bench.Target{target}
	}
	plans, err := s.Expand(o.Selection)
	if err != nil {
		return nil, err
	}
	if o.Machine.CacheDir != "" {
		o.Machine.CacheDir = filepath.Join(o.Machine.CacheDir, s.Name())
	}
	local := &local{options: o, out: &LocalResults{Suite: s}}
	for _, plan := range plans {
		local.total += len(plan.TestCases)
	}
	return local.out, local.run(ctx, dir, plans)
}

// local is a running local run and the sink of its jobs.
type local struct {
	options LocalOptions
	out     *LocalResults
	// done counts the test cases of ended jobs, total those of all jobs.
	done, total int
}

func (l *local) run(ctx context.Context, dir string, plans []suite.JobPlan) error {
	if len(l.options.Tags) == 0 {
		return fmt.Errorf("%w: no artifact named; name one, such as a version", bench.ErrInvalid)
	}
	var target bench.Target
	var subjects []Subject
	release := func() error { return nil }
	for _, plan := range plans {
		// Plans are grouped by target; artifacts belong to one.
		if subjects == nil || plan.Target != target {
			if err := release(); err != nil {
				return err
			}
			var err error
			target = plan.Target
			if subjects, release, err = l.acquire(ctx, target); err != nil {
				return err
			}
		}
		job := Job{
			Kind: plan.Kind, Subjects: subjects, Suite: l.out.Suite, SuiteDir: dir,
			TestCases: plan.TestCases, Iterations: l.out.Suite.Iterations(l.options.Selection),
		}
		if err := Run(ctx, l.options.Machine, job, l); err != nil {
			return errors.Join(err, release())
		}
		l.done += len(plan.TestCases)
	}
	return release()
}

// acquire acquires all artifacts for a target; release releases them.
func (l *local) acquire(ctx context.Context, target bench.Target) (subjects []Subject, release func() error, err error) {
	l.Progress(Progress{Phase: Fetching})
	var handles []*artifact.Handle
	release = func() error {
		var errs []error
		for _, h := range handles {
			errs = append(errs, h.Release())
		}
		return errors.Join(errs...)
	}
	l.out.Subjects = nil
	for _, tag := range l.options.Tags {
		handle, err := l.options.Artifacts.Acquire(ctx, l.request(tag, target), l.options.Fetching)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("getting %s: %w", tag, err), release())
		}
		handles = append(handles, handle)
		name := l.name(tag)
		subjects = append(subjects, Subject{Tag: name, Artifact: handle.Dir()})
		l.out.Subjects = append(l.out.Subjects, LocalSubject{Name: name, Identity: handle.Identity()})
	}
	return subjects, release, nil
}

func (l *local) request(tag string, target bench.Target) artifact.Request {
	source := l.out.Suite.Artifact()
	if l.options.Provider != "" {
		source = suite.Artifact{Provider: l.options.Provider, Parameters: l.options.Parameters}
	}
	return artifact.Request{Provider: source.Provider, Tag: tag, Target: string(target), Parameters: source.Parameters}
}

// name returns the tag, numbered if a subject already has it.
func (l *local) name(tag string) string {
	name := tag
	for n := 2; slices.ContainsFunc(l.out.Subjects, func(s LocalSubject) bool { return s.Name == name }); n++ {
		name = fmt.Sprintf("%s#%d", tag, n)
	}
	return name
}

// Block collects a block's results.
func (l *local) Block(_ context.Context, b Block) error {
	l.out.Results = append(l.out.Results, b.Results...)
	if l.options.Finished != nil {
		l.options.Finished(b)
	}
	return nil
}

// Progress counts over all jobs.
func (l *local) Progress(p Progress) {
	p.Done, p.Total = l.done+p.Done, l.total
	if l.options.Progress != nil {
		l.options.Progress(p)
	}
}
