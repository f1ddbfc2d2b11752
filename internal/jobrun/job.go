package jobrun

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// Suite is the part of a suite that a job needs; *suite.Suite implements it. The goroutine that runs the job calls it,
// under no lock. It must not be nil.
type Suite interface {
	Preparation(suite.Variant, suite.Paths) (suite.Preparation, error)
	// Recipe returns a test case's recipe; a positive iterations overrides the suite's own number.
	Recipe(tc bench.TestCase, paths suite.Paths, iterations int) (suite.Recipe, error)
	RequiredMetrics() []bench.Metric
}

// Subject is one artifact under test.
type Subject struct {
	// Tag names the artifact in logs and results.
	Tag string `json:"tag"`
	// Artifact is its directory. It is only read.
	Artifact string `json:"artifact"`
}

// MaxSubjects limits the number of artifacts that a job compares: their directories differ in one digit, so that all paths
// are equally long.
const MaxSubjects = 9

// Job describes a measurement: test cases of a suite on one subject, or on
// several subjects interleaved; or one command.
type Job struct {
	Kind bench.JobKind
	// Subjects are measured in the order ABBA…, with one result per test case and subject. A command has none.
	Subjects []Subject
	// Suite and SuiteDir, the directory of its files, belong to the kinds
	// compiletime and runtime.
	Suite    Suite
	SuiteDir string
	// TestCases are the test cases without a result, in the order of measurement. A command has exactly one.
	TestCases []bench.TestCase
	// Iterations overrides the suite's number of iterations if positive.
	Iterations int
	// Norms are the usual effects of the test cases on the machine; the iterations of this job complete them.
	Norms map[bench.TestCase]machine.Norms
	// KeepPairs delivers, when the job is cancelled, what the unfinished block has measured on all subjects.
	KeepPairs bool
	// Command belongs to the kind command.
	Command *Command
	// Profile belongs to the kind profile, which has one test case and one subject.
	Profile *Profile
}

// Profile runs a test case once under a profiler.
type Profile struct {
	Profiler string
	// Suite applies the profiler; *suite.Suite implements it.
	Suite interface {
		Profiling(tc bench.TestCase, profiler string, paths suite.Paths) (suite.Profiling, error)
	}
	// Limit bounds the files that the profiler writes together, in bytes.
	Limit int64
	// Keep takes the profile while its files exist. A *[Failure] is the test case's, any other error ends the job.
	Keep func(context.Context, ProfileFiles) error
}

// ProfileFiles holds open files, rewound, of one format.
type ProfileFiles struct {
	Format string
	// Type of samples to show first; empty leaves the choice to the files.
	Type  string
	Files []*os.File
}

// Command is the one command line of an ad-hoc job. It runs in an empty directory, unless a script
// says otherwise.
type Command struct {
	Argv []string
	// Env is added to the short fixed environment, as NAME=value.
	Env []string
	// Timeout limits one iteration; 0 means no limit.
	Timeout time.Duration
	// Script says what else the job does, if anything, and Revisions exports its trees.
	Script    *bench.Script
	Revisions Revisions
	// Keep takes the files that the script uploads, while they exist. A *[Failure] is the test case's,
	// any other error ends the job. Nil if nothing is uploaded.
	Keep func(context.Context, []KeptFile) error
}

// KeptFile is an open file, rewound.
type KeptFile struct {
	// Path is relative to the job's directory, with slashes.
	Path string
	Size int64 // in bytes
	File *os.File
}

// Check returns an error if the job lacks what its kind needs.
func (j Job) Check() error {
	if len(j.TestCases) == 0 {
		return fmt.Errorf("%w: job: it has no test cases", bench.ErrInvalid)
	}
	switch j.Kind {
	case bench.KindCommand:
		if j.Command == nil || len(j.Command.Argv) == 0 || len(j.TestCases) != 1 || len(j.Subjects) != 0 {
			return fmt.Errorf("%w: job of kind command: it needs a command line, one test case and no artifact", bench.ErrInvalid)
		}
	case bench.KindCompileTime, bench.KindRuntime:
		if j.Suite == nil || j.Command != nil || len(j.Subjects) == 0 || len(j.Subjects) > MaxSubjects {
			return fmt.Errorf("%w: job of kind %s: it needs a suite, 1 to %d artifacts and no command line", bench.ErrInvalid, j.Kind, MaxSubjects)
		}
	case bench.KindProfile:
		if j.Suite == nil || j.Command != nil || len(j.Subjects) != 1 || len(j.TestCases) != 1 || j.Profile == nil || j.Profile.Suite == nil || j.Profile.Keep == nil || j.Profile.Limit <= 0 {
			return fmt.Errorf("%w: job of kind profile: it needs a suite, a profiler, one artifact and one test case", bench.ErrInvalid)
		}
	default:
		return fmt.Errorf("%w: job kind %q", bench.ErrInvalid, j.Kind)
	}
	return nil
}

// Sink receives the results of a job. Its methods are called from the goroutine
// that runs the job, one at a time and under no lock. It must not be nil.
type Sink interface {
	// Block takes a finished block. An error ends the job.
	Block(context.Context, Block) error
	// Progress is called at every change and must be cheap.
	Progress(Progress)
}

// Phase is a step of a running job.
type Phase string

// The phases of a job. This package reports preparing and measuring, once per block; its callers report fetching and
// uploading. A [Watcher] is told of them in more detail.
const (
	Fetching  Phase = "fetching"
	Preparing Phase = "preparing"
	Measuring Phase = "measuring"
	Uploading Phase = "uploading"
	// SettingUp is the part of an iteration before its measured command. Only watchers are told.
	SettingUp Phase = "setting up"
	// Building is the only phase of [Build].
	Building Phase = "building"
)

// Progress describes how far a job has got.
type Progress struct {
	Phase Phase `json:"phase"`
	// TestCase is being measured; while a whole variant is prepared, its scenario is empty.
	TestCase bench.TestCase `json:"test_case"`
	// Subject is the tag of the artifact.
	Subject string `json:"subject,omitempty"`
	// Iteration is the number of the current iteration, from 1; 0 while
	// preparing and for warm-ups.
	Iteration  int `json:"iteration"`
	Iterations int `json:"iterations"`
	// Done and Total count test cases of the job: those delivered, and all.
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Block is the outcome of the test cases of one variant, or of some of them when all would take too long. It is complete:
// each test case has all of its collections, a failure, or the reason why it was skipped.
type Block struct {
	// Number counts the blocks of a job from 1.
	Number  int      `json:"number"`
	Results []Result `json:"results"`
}

// Result is the outcome of one test case on one subject: exactly one of
// Collections, Failure and Skipped is set.
type Result struct {
	TestCase    bench.TestCase `json:"test_case"`
	Subject     string         `json:"subject,omitempty"`
	Collections []Collection   `json:"collections,omitempty"`
	Failure     *Failure       `json:"failure,omitempty"`
	// Skipped names what the machine or the artifact lacks for this test case.
	Skipped string `json:"skipped,omitempty"`
}

// keepWhole removes metrics that some iterations lack and returns their names: a series has a value for each collection or
// for none, so that fewer values never mean that a collection is missing. (The peak memory of a small program is known only
// in those iterations in which it exceeds the collector's own.)
func (r *Result) keepWhole() []bench.Metric {
	count := make(map[bench.Metric]int)
	for _, c := range r.Collections {
		for m := range c.Metrics {
			count[m]++
		}
	}
	var partial []bench.Metric
	for m, n := range count {
		if n < len(r.Collections) {
			partial = append(partial, m)
		}
	}
	slices.Sort(partial)
	for _, c := range r.Collections {
		for _, m := range partial {
			delete(c.Metrics, m)
		}
	}
	return partial
}

// Collection is all statistics of one iteration.
type Collection struct {
	// Iteration counts from 1.
	Iteration int       `json:"iteration"`
	StartedAt time.Time `json:"started_at"`
	// Duration covers the whole iteration: fresh copy, steps, repetitions and the measured command.
	Duration time.Duration `json:"duration_ns"`
	// Metrics holds times in seconds, sizes in bytes, and counts. Units of a benchfmt output stay as printed ("ns/op").
	Metrics map[bench.Metric]float64 `json:"metrics"`
	// Machine describes the machine during the measured command; nil if it was not read.
	Machine *machine.Delta `json:"machine,omitempty"`
	// Disturbed says why the iteration is disturbed; empty if it is not.
	Disturbed []machine.Reason `json:"disturbed,omitempty"`
	// LeftBehind counts processes that outlived the command and were killed.
	LeftBehind int `json:"left_behind,omitempty"`
	// Unenforced names the limits that the sandbox could not enforce; its Unenforced method has the reasons.
	Unenforced []measure.Limit `json:"unenforced,omitempty"`
}

// Failure explains why a test case or a whole job has no result.
type Failure struct {
	Kind bench.FailureKind `json:"kind"`
	// Message names the thing, the reason and the remedy.
	Message string `json:"message"`
	// Output is the end of the failing command's output, at most [MaxOutputTail] bytes.
	Output string `json:"output,omitempty"`
	// again asks for another run, see [bench.Script].
	again bool
}

func (f *Failure) Error() string { return f.Message }

// MaxOutputTail limits a failure's output, in bytes.
const MaxOutputTail = 4 << 10

// DefaultMaxBlock limits the work that is lost when a collector dies.
const DefaultMaxBlock = 5 * time.Minute
