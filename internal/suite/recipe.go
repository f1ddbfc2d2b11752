package suite

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Paths holds the directories on the machine that a recipe's commands refer to
// by the variables ${suite}, ${artifact}, ${prepared}, ${work} and ${cache}. In
// the steps of a preparation ${work} is ${prepared}, so that both find their
// files under the same names.
type Paths struct {
	// Suite is the unpacked bundle; read only.
	Suite string
	// Artifact is the directory of the artifact under test; read only.
	Artifact string
	// Prepared is the directory in which a variant is prepared. It starts as a copy of
	// the benchmark's files.
	Prepared string
	// Work is the directory of one iteration: a fresh copy of Prepared. Its path has
	// the same length for every iteration, artifact and collector.
	Work string
	// Cache outlives jobs and belongs to the suite: downloads go there.
	Cache string
	// CPUs is the number of CPUs that commands may use: the variable ${cpus}.
	CPUs int
}

// Variant is prepared once and then measured under each scenario.
type Variant struct {
	Benchmark string
	Profile   string
	Backend   string
	Target    bench.Target
}

// VariantOf returns the variant of a test case.
func VariantOf(tc bench.TestCase) Variant {
	return Variant{Benchmark: tc.Benchmark, Profile: tc.Profile, Backend: tc.Backend, Target: tc.Target}
}

// Requirement is something that the machine or the artifact must have;
// otherwise the test cases that need it are skipped with the reason.
type Requirement struct {
	// Command, if not empty, must be on PATH.
	Command string
	// File, if not empty, must exist.
	File string
	// Run, if not empty, must exit with 0.
	Run []string
	Env []string
	// Reason tells people what is missing: "the race detector needs a C
	// compiler; install gcc".
	Reason string
}

// Step is an action before measuring. Exactly one of Run, Write, Append,
// Replace, Copy and Remove is set.
type Step struct {
	Run     []string
	Write   *FileText
	Append  *FileText
	Replace *Replacement
	Copy    *FileCopy
	// Remove is a file or directory to delete, if it exists.
	Remove string
	// Dir is the absolute working directory of Run.
	Dir string
	// Env is the suite's environment of Run, as NAME=value, sorted. The caller
	// adds a short fixed one (PATH, HOME, TMPDIR, …) and nothing else.
	Env []string
	// PassEnv names variables of the collector's own environment that Run may
	// see as well, such as proxy settings for steps that download.
	PassEnv []string
	// Network lets Run reach the network. It matters only for steps before a measured command: steps that prepare always
	// reach it.
	Network bool
	// Timeout bounds Run; 0 means that only the limit of all steps together does.
	Timeout time.Duration
}

// FileText is text for a file, given by its absolute path.
type FileText struct{ File, Text string }

// Replacement replaces every occurrence of Old in a file by New; Old must occur.
type Replacement struct{ File, Old, New string }

// FileCopy copies a file or directory. The copy is writable.
type FileCopy struct{ From, To string }

// Preparation prepares a variant, once per job.
type Preparation struct {
	// Files is a directory of the bundle that is copied to Paths.Prepared
	// first; empty for none.
	Files    string
	Requires []Requirement
	Steps    []Step
	// Hardlink names directories below Paths.Prepared whose files are never
	// changed in place: a fresh copy may link them.
	Hardlink []string
	// Timeout limits all steps together.
	Timeout time.Duration
}

// Recipe measures one test case.
type Recipe struct {
	// Prepare runs once, in a copy of the variant's preparation; each iteration
	// then starts from a fresh copy of the outcome.
	Prepare []Step
	// Before runs in each iteration, unmeasured.
	Before  []Step
	Measure Measurement
	// Iterations is the number of collections of the test case.
	Iterations int
	// Warmups is the number of unrecorded iterations that run first.
	Warmups int
	// Timeout limits the measured command of one iteration, and Before as a whole unless
	// BeforeTimeout is set.
	Timeout, BeforeTimeout time.Duration
}

// Measurement is the command that is measured.
type Measurement struct {
	Run []string
	Dir string
	Env []string
	// Network lets the command reach the network, not only a loopback interface of its own.
	Network bool
	// Sizes maps metrics ("size:binary") to files by absolute path or glob
	// pattern; the sizes of several matches are added up, and no match is an
	// error.
	Sizes map[bench.Metric]string
	// Output is the format of the standard output.
	Output OutputFormat
	// Metrics are the units taken from a benchfmt output. Each result line must
	// have all of them.
	Metrics []bench.Metric
	// OnlyOutput leaves out the metrics of the process itself.
	OnlyOutput bool
}

// OutputFormat is the format of a measured command's standard output.
type OutputFormat string

const (
	// OutputIgnored: the command itself is measured.
	OutputIgnored OutputFormat = ""
	// OutputBenchfmt: the command is a Go test binary or another program that
	// prints Go's benchmark format.
	OutputBenchfmt OutputFormat = "benchfmt"
)

// recordOutput is the value of record that leaves out the metrics of the process.
const recordOutput = "output"

// JobPlan is a job of an expanded selection: the test cases of one kind,
// target, backend and profile.
type JobPlan struct {
	Kind    bench.JobKind
	Target  bench.Target
	Backend string
	Profile string
	// MinSize is the smallest size class that the benchmarks allow.
	MinSize   bench.SizeClass
	TestCases []bench.TestCase
}
