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

// Artifacts hands out artifacts; *artifact.Cache implements it. Acquire is called under no lock and locks the artifact
// until the handle is released. It must not be nil.
type Artifacts interface {
	Acquire(context.Context, artifact.Request, artifact.ProgressFunc) (*artifact.Handle, error)
}

// LocalOptions says what to measure on this machine, without a service around
// it.
type LocalOptions struct {
	// SuiteDir is the folder of a suite.
	SuiteDir  string
	Selection bench.Selection
	// Tags are the artifacts: one to be measured, or two or more to be
	// compared. The same tag twice compares an artifact with itself.
	Tags []string
	// Provider, with its Parameters, replaces the suite's artifact source, when
	// not empty.
	Provider   string
	Parameters map[string]string
	// Target is this machine's; empty is what [bench.HostTarget] says. It is what is
	// measured when the selection names no targets.
	Target bench.Target
	// Artifacts is usually a cache that is shared by all uses of the machine.
	Artifacts Artifacts
	// Machine's CacheDir holds a directory for each suite, by its name.
	Machine Machine
	// Progress may be nil.
	Progress func(Progress)
	// Fetching is told how far the artifacts are; it may be nil.
	Fetching func(artifact.Progress)
	// Finished, when set, gets each block as soon as it is done.
	Finished func(Block)
}

// LocalResults is all that a local run has measured.
type LocalResults struct {
	Suite    *suite.Suite
	Subjects []LocalSubject
	// Results of subject i carry its name. A run that was cancelled has those of
	// the blocks that were finished.
	Results []Result
}

// LocalSubject is an artifact as it was measured.
type LocalSubject struct {
	// Name tells subjects apart in results: the tag; with "#2" and so on after
	// it when the same tag is measured several times.
	Name     string
	Identity string
}

// Of are the results of one subject, in the order in which they were measured.
func (r *LocalResults) Of(subject string) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(result Result) bool { return result.Subject != subject })
}

// Local loads a suite, acquires the artifacts and runs the jobs of a selection
// on this machine, each with all artifacts interleaved. The results that it
// returns beside an error are those of finished blocks.
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

// local is a local run under way, and the sink of its jobs.
type local struct {
	options LocalOptions
	out     *LocalResults
	// done counts test cases of the jobs that have ended, total those of all.
	done, total int
}

func (l *local) run(ctx context.Context, dir string, plans []suite.JobPlan) error {
	if len(l.options.Tags) == 0 {
		return fmt.Errorf("%w: no artifact was named; name one, such as a version", bench.ErrInvalid)
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

// acquire gets all artifacts for a target. release gives them back.
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

// name is the tag, numbered when a subject has it already.
func (l *local) name(tag string) string {
	name := tag
	for n := 2; slices.ContainsFunc(l.out.Subjects, func(s LocalSubject) bool { return s.Name == name }); n++ {
		name = fmt.Sprintf("%s#%d", tag, n)
	}
	return name
}

// Block keeps a block's results.
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
