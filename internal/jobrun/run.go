package jobrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// Run carries out a job and hands its finished blocks to the sink. A failed
// test case is a result like any other; Run returns nil once every test case
// has been delivered, failed or not.
//
// A returned *[Failure] means that the job as a whole cannot run, here or
// anywhere. Every other error comes from the machine, the sink or the context
// (its cause); blocks delivered before stay valid.
func Run(ctx context.Context, machine Machine, job Job, sink Sink) error {
	if err := machine.check(); err != nil {
		return err
	}
	if err := job.Check(); err != nil {
		return &Failure{Kind: bench.FailPermanent, Message: err.Error()}
	}
	r := &runner{m: machine, job: job, sink: sink, log: quiet{machine.Log}}
	r.progress.Total = len(job.TestCases)
	if err := r.run(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return r.explain(err)
	}
	return nil
}

// runner is the state of a running job.
type runner struct {
	m        Machine
	job      Job
	sink     Sink
	log      io.Writer
	progress Progress
	blocks   int
	counters []measure.Counter
	// freshTemp makes the next command start with an empty temporary directory.
	freshTemp bool

	// atBegin is the room on the disk when the job began.
	atBegin diskspace.Space
	began   time.Time

	// iterations counts the iterations that were kept, disturbed those of them with
	// the mark.
	iterations, disturbed int
	// spent is the time of kept iterations, warm-ups included, lost the time of
	// disturbed iterations that were repeated.
	spent, lost time.Duration
	// script belongs to commands; nil if there is none.
	script *scripted
	// left reports that [Machine.Leave] was called.
	left bool
}

func (r *runner) run(ctx context.Context) (err error) {
	if err := r.requireMetrics(); err != nil {
		return err
	}
	if err := r.m.Sandbox.Clean(ctx); err != nil {
		return fmt.Errorf("emptying the work directory: %w", err)
	}
	if err := r.room(); err != nil {
		return err
	}
	if r.m.Leave != nil {
		defer r.leave()
	} else {
		defer func() { err = errors.Join(err, r.m.Sandbox.Clean(context.WithoutCancel(ctx))) }()
	}
	if err := r.show(); err != nil {
		return err
	}
	if r.job.Kind == bench.KindCommand {
		return r.runCommand(ctx)
	}
	for _, testCases := range byVariant(r.job.TestCases) {
		if err := r.runVariant(ctx, testCases); err != nil {
			return err
		}
		if err := r.clean(); err != nil {
			return err
		}
	}
	return nil
}

// leave leaves the slot to the caller, once.
func (r *runner) leave() {
	if r.m.Leave != nil && !r.left {
		r.left = true
		r.m.Leave()
	}
}

// show lets commands see the artifacts, even those measured in place, and the cache of their own suite.
func (r *runner) show() error {
	var shown measure.Shown
	for _, s := range r.job.Subjects {
		shown.ReadOnly = append(shown.ReadOnly, s.Artifact)
	}
	if r.keeps() {
		if err := (copier{owner: r.m.Owner}).makeDirs(r.m.CacheDir); err != nil {
			return fmt.Errorf("making the suite's cache: %w", err)
		}
		shown.Writable = []string{r.m.CacheDir}
	}
	err := r.m.Sandbox.Show(shown)
	if hidden, ok := errors.AsType[*measure.HiddenError](err); ok {
		return &Failure{Kind: bench.FailPermanent, Message: "the artifact: " + hidden.Error()}
	}
	if err != nil {
		return fmt.Errorf("showing the artifacts to commands: %w", err)
	}
	return nil
}

// keeps reports whether the job has a directory for files that outlive it.
func (r *runner) keeps() bool { return r.job.Suite != nil && r.m.CacheDir != "" }

// requireMetrics refuses a job whose suite requires counters that the machine
// lacks.
func (r *runner) requireMetrics() error {
	r.counters = slices.DeleteFunc(measure.HardwareCounters(), func(c measure.Counter) bool {
		return !slices.Contains(r.m.Counters.Available(), c)
	})
	if r.job.Suite == nil {
		return nil
	}
	var required []measure.Counter
	for _, metric := range r.job.Suite.RequiredMetrics() {
		if counter := measure.Counter(metric); slices.Contains(measure.AllCounters(), counter) {
			required = append(required, counter)
		}
	}
	if err := r.m.Counters.Require(required...); err != nil {
		return &Failure{Kind: bench.FailPermanent, Message: fmt.Sprintf(
			"the suite requires metrics that this machine cannot measure: %v; run it on another machine or remove them from the suite's required metrics", err)}
	}
	return nil
}

// byVariant groups test cases that share a preparation, keeping their order.
func byVariant(testCases []bench.TestCase) [][]bench.TestCase {
	var groups [][]bench.TestCase
	at := map[suite.Variant]int{}
	for _, tc := range testCases {
		variant := suite.VariantOf(tc)
		i, ok := at[variant]
		if !ok {
			i = len(groups)
			at[variant] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], tc)
	}
	return groups
}

// clean removes the directories that this package created in the sandbox's
// directory, now or in an earlier process that was killed.
func (r *runner) clean() error {
	entries, err := os.ReadDir(r.m.Sandbox.WorkDir())
	if err != nil {
		return fmt.Errorf("cleaning the work directory: %w", err)
	}
	for _, entry := range entries {
		if !ownDirectory.MatchString(entry.Name()) {
			continue
		}
		if err := removeTree(filepath.Join(r.m.Sandbox.WorkDir(), entry.Name())); err != nil {
			return fmt.Errorf("cleaning the work directory: %w", err)
		}
	}
	return nil
}

// Directories below the sandbox's.
const (
	workName     = "work"     // ${work}
	preparedName = "prepared" // ${prepared}, with the subject's number
	outcomeName  = "outcome"  // the result of a scenario's preparation, with the numbers of subject and test case
	buildName    = "build"    // the tree that is built
)

// ownDirectory matches these names as padded by [Machine.place], but nothing
// that a person may have put beside them.
var ownDirectory = regexp.MustCompile(`^(work|build|prepared\d|outcome\d-\d+)_*$`)

// phase enters a phase, calls Points and reports progress.
func (r *runner) phase(phase Phase) {
	r.progress.Phase = phase
	r.progress.Iteration, r.progress.Iterations = 0, 0
	if r.m.Points != nil {
		r.m.Points(string(phase))
	}
}

func (r *runner) report(tc bench.TestCase, subject string) {
	r.progress.TestCase, r.progress.Subject = tc, subject
	r.sink.Progress(r.progress)
}

// deliver hands a block to the sink.
func (r *runner) deliver(ctx context.Context, cases []testCase) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.blocks++
	block := Block{Number: r.blocks}
	for _, c := range cases {
		for _, u := range c {
			if dropped := u.result.keepWhole(); len(dropped) > 0 {
				fmt.Fprintf(r.log, "== %s: not all iterations have %v, so none is recorded with it\n", r.label(u.result.TestCase, u.result.Subject), dropped)
			}
			u.delivered = true
			block.Results = append(block.Results, u.result)
		}
	}
	if r.job.Kind == bench.KindCommand { // it has one block
		r.leave()
	}
	if err := r.sink.Block(ctx, block); err != nil {
		return fmt.Errorf("delivering block %d: %w", block.Number, err)
	}
	r.progress.Done += len(cases)
	r.sink.Progress(r.progress)
	return nil
}

// explain adds the remedy to errors for which there is one.
func (r *runner) explain(err error) error {
	if _, short := errors.AsType[*diskspace.ShortError](err); short {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk of %s is full; free space there or give the collector another state directory: %w", r.m.Sandbox.WorkDir(), err)
	}
	return err
}

// quiet forwards writes and ignores their errors: an unwritable log is no reason
// to stop measuring.
type quiet struct{ w io.Writer }

func (q quiet) Write(p []byte) (int, error) {
	if q.w != nil {
		_, _ = q.w.Write(p)
	}
	return len(p), nil
}
