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
	// Target is this machine's target, used when the selection names none; empty means [bench.HostTarget].
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
	// Next, if set, divides the run into looks: it is called before each look with the results so far, and returns the look.
	// Nil means one look at all test cases, with the suite's iterations.
	Next func(*LocalResults) (Look, error)
}

// Look is a part of a local run: each of its test cases is prepared anew and measured in turns on all artifacts.
type Look struct {
	// TestCases are a part of the selected ones. Without any, the run ends.
	TestCases []bench.TestCase
	// Iterations is their number for each test case and artifact; 0 means the suite's.
	Iterations int
}

// LocalResults holds the results of a local run.
type LocalResults struct {
	Suite    *suite.Suite
	Subjects []LocalSubject
	// TestCases are all those selected, in the order of measurement.
	TestCases []bench.TestCase
	// Results carry the name of their subject; there is one per look, test case and subject. In a cancelled run, each has
	// as many collections as all subjects have.
	Results []LocalResult
}

// LocalResult is the outcome of one test case on one subject in one look.
type LocalResult struct {
	Result
	// Look is the number of the look, from 1; 0 if the run was not divided into looks.
	Look int `json:"look,omitempty"`
}

// LocalSubject is an artifact of a local run.
type LocalSubject struct {
	// Name identifies the subject in results: the tag, followed by "#2" and so on when the same tag is measured several
	// times.
	Name     string
	Identity string
}

// Of returns the results of one subject in the order of measurement.
func (r *LocalResults) Of(subject string) []LocalResult {
	return slices.DeleteFunc(slices.Clone(r.Results), func(result LocalResult) bool { return result.Subject != subject })
}

// Local loads a suite, acquires the artifacts and runs the jobs of a selection on this machine, each with all artifacts
// interleaved, in one look or several. Results returned with an error are those measured before it.
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
	local := &local{options: o, dir: dir, plans: plans, out: &LocalResults{Suite: s}}
	for _, plan := range plans {
		local.out.TestCases = append(local.out.TestCases, plan.TestCases...)
	}
	return local.out, local.run(ctx)
}

// local is a running local run and the sink of its jobs.
type local struct {
	options LocalOptions
	dir     string
	plans   []suite.JobPlan
	out     *LocalResults
	// look is the number of the current look.
	look int
	// target of the acquired subjects; handles lock them.
	target   bench.Target
	subjects []Subject
	handles  []*artifact.Handle
	// done counts the test cases of the look's ended jobs, total those of all its jobs.
	done, total int
}

func (l *local) run(ctx context.Context) (err error) {
	if len(l.options.Tags) == 0 {
		return fmt.Errorf("%w: no artifact named; name one, such as a version", bench.ErrInvalid)
	}
	defer func() { err = errors.Join(err, l.release()) }()
	if l.options.Next == nil {
		return l.measure(ctx, Look{TestCases: l.out.TestCases})
	}
	for {
		look, err := l.options.Next(l.out)
		if err != nil || len(look.TestCases) == 0 {
			return err
		}
		l.look++
		if err := l.measure(ctx, look); err != nil {
			return err
		}
	}
}

// measure runs the jobs of one look.
func (l *local) measure(ctx context.Context, look Look) error {
	l.done, l.total = 0, len(look.TestCases)
	if look.Iterations == 0 {
		look.Iterations = l.out.Suite.Iterations(l.options.Selection)
	}
	for _, plan := range l.plans {
		testCases := slices.DeleteFunc(slices.Clone(plan.TestCases), func(tc bench.TestCase) bool { return !slices.Contains(look.TestCases, tc) })
		if len(testCases) == 0 {
			continue
		}
		if err := l.acquire(ctx, plan.Target); err != nil {
			return err
		}
		job := Job{
			Kind: plan.Kind, Subjects: l.subjects, Suite: l.out.Suite, SuiteDir: l.dir,
			TestCases: testCases, Iterations: look.Iterations, KeepPairs: true,
		}
		if err := Run(ctx, l.options.Machine, job, l); err != nil {
			return err
		}
		l.done += len(testCases)
	}
	return nil
}

// acquire acquires all artifacts for a target, to which they belong, unless they are those of the last job.
func (l *local) acquire(ctx context.Context, target bench.Target) error {
	if l.subjects != nil && l.target == target {
		return nil
	}
	if err := l.release(); err != nil {
		return err
	}
	l.Progress(Progress{Phase: Fetching})
	l.target, l.out.Subjects = target, nil
	for _, tag := range l.options.Tags {
		handle, err := l.options.Artifacts.Acquire(ctx, l.request(tag, target), l.options.Fetching)
		if err != nil {
			return fmt.Errorf("getting %s: %w", tag, err)
		}
		l.handles = append(l.handles, handle)
		name := l.name(tag)
		l.subjects = append(l.subjects, Subject{Tag: name, Artifact: handle.Dir()})
		l.out.Subjects = append(l.out.Subjects, LocalSubject{Name: name, Identity: handle.Identity()})
	}
	return nil
}

// release releases the acquired artifacts.
func (l *local) release() error {
	var errs []error
	for _, h := range l.handles {
		errs = append(errs, h.Release())
	}
	l.subjects, l.handles = nil, nil
	return errors.Join(errs...)
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
	for _, r := range b.Results {
		l.out.Results = append(l.out.Results, LocalResult{Result: r, Look: l.look})
	}
	if l.options.Finished != nil {
		l.options.Finished(b)
	}
	return nil
}

// Progress counts over all jobs of the look.
func (l *local) Progress(p Progress) {
	p.Done, p.Total = l.done+p.Done, l.total
	if l.options.Progress != nil {
		l.options.Progress(p)
	}
}
