package suite

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Paths are the places on the machine that a recipe's commands speak of, as
// the variables ${suite}, ${artifact}, ${prepared}, ${work} and ${cache}. In the
// steps of a preparation ${work} is ${prepared}, so that both find their files
// by the same names.
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

// VariantOf is the variant that a test case is measured on.
func VariantOf(tc bench.TestCase) Variant {
	return Variant{Benchmark: tc.Benchmark, Profile: tc.Profile, Backend: tc.Backend, Target: tc.Target}
}

// Requirement is something the machine or the artifact must have, else the
// test cases that need it are left out with the reason.
type Requirement struct {
	// Command must be found on PATH, when not empty.
	Command string
	// File must exist, when not empty.
	File string
	// Run must exit with 0, when not empty.
	Run []string
	Env []string
	// Reason says what is missing, for people: "the race detector needs a C
	// compiler; install gcc".
	Reason string
}

// Step is one thing done before measuring. Exactly one of Run, Write, Append,
// Replace, Copy and Remove is set.
type Step struct {
	Run     []string
	Write   *FileText
	Append  *FileText
	Replace *Replacement
	Copy    *FileCopy
	// Remove is a file or directory that is deleted; absent is fine.
	Remove string
	// Dir is the absolute working directory of Run.
	Dir string
	// Env is the suite's environment of Run, as NAME=value, sorted. Whoever runs
	// it puts a short fixed one below (PATH, HOME, TMPDIR, …), and nothing else.
	Env []string
	// PassEnv names variables of the collector's own environment that Run may
	// see as well: proxy settings, for steps that download.
	PassEnv []string
}

// FileText is text for a file, by absolute path.
type FileText struct{ File, Text string }

// Replacement replaces every occurrence of Old in a file by New; Old must occur.
type Replacement struct{ File, Old, New string }

// FileCopy copies a file or directory. What it copies becomes writable.
type FileCopy struct{ From, To string }

// Preparation makes a variant ready, once per job.
type Preparation struct {
	// Files is a directory of the bundle that is copied to Paths.Prepared
	// first; empty for none.
	Files    string
	Requires []Requirement
	Steps    []Step
	// Hardlink names directories below Paths.Prepared whose files no command
	// ever changes in place: a fresh copy may link them.
	Hardlink []string
	// Timeout bounds all steps together.
	Timeout time.Duration
}

// Recipe measures one test case.
type Recipe struct {
	// Prepare runs once, in a copy of what the variant's preparation made; each
	// iteration then begins with a fresh copy of the outcome.
	Prepare []Step
	// Before runs in each iteration, unmeasured.
	Before  []Step
	Measure Measurement
	// Iterations is the number of collections the test case gets.
	Iterations int
	// Warmups are iterations that are run first and not recorded.
	Warmups int
	// Timeout bounds the measured command of one iteration.
	Timeout time.Duration
}

// Measurement is the command that is measured.
type Measurement struct {
	Run []string
	Dir string
	Env []string
	// Sizes are files whose sizes are metrics ("size:binary"), by absolute
	// path or glob pattern; several matches are added up, none is an error.
	Sizes map[bench.Metric]string
	// Output tells how the standard output is read.
	Output OutputFormat
	// Metrics are the units taken from a benchfmt output. One result line must
	// have each.
	Metrics []bench.Metric
}

// OutputFormat is the format of a measured command's standard output.
type OutputFormat string

const (
	// OutputIgnored: the command itself is measured.
	OutputIgnored OutputFormat = ""
	// OutputBenchfmt: the command is a Go test binary, or anything else that
	// prints Go's benchmark format.
	OutputBenchfmt OutputFormat = "benchfmt"
)

// JobPlan is a job that a selection expands to: the test cases of one kind,
// target, backend and profile.
type JobPlan struct {
	Kind    bench.JobKind
	Target  bench.Target
	Backend string
	Profile string
	// MinSize is the smallest size class that the benchmarks admit.
	MinSize   bench.SizeClass
	TestCases []bench.TestCase
}
