package bench

import (
	"maps"
	"slices"
	"time"
)

// JobStatus is the status of a job.
type JobStatus string

const (
	// JobQueued: recorded, not yet in Temporal.
	JobQueued JobStatus = "queued"
	// JobHandedOut: its workflow waits in a task queue for an idle collector.
	JobHandedOut JobStatus = "handed_out"
	// JobInProgress: a collector has passed the fence.
	JobInProgress JobStatus = "in_progress"
	JobSuccess    JobStatus = "success"
	JobFailure    JobStatus = "failure"
	JobCancelled  JobStatus = "cancelled"
)

// Open reports whether the job can still run.
func (s JobStatus) Open() bool {
	return s == JobQueued || s == JobHandedOut || s == JobInProgress
}

// Stage is the part of a request that a job belongs to. A stage begins when all jobs
// of the one before have ended.
type Stage string

const (
	// StageBuild builds artifacts from a revision.
	StageBuild Stage = "build"
	// StageParent measures the parent's missing test cases (backfill).
	StageParent Stage = "parent"
	// StageOwn measures the request's own artifact.
	StageOwn Stage = "own"
	// StageVerify measures test cases that differ from the baseline again, in turns
	// with it.
	StageVerify Stage = "verify"
)

// Command is the command line of an ad-hoc job.
type Command struct {
	Argv []string `json:"argv"`
	// Env is added to the fixed environment.
	Env map[string]string `json:"env,omitempty"`
	// TimeoutSeconds bounds one iteration.
	TimeoutSeconds int `json:"timeout_seconds"`
	Iterations     int `json:"iterations"`
	// Script says what else the job of a graph's node does; nil: nothing.
	Script *Script `json:"script,omitempty"`
}

// Script prepares the last program of a command job, the measured one, and judges its end.
type Script struct {
	// Checkouts are present before the first program of each attempt.
	Checkouts []ScriptCheckout `json:"checkouts,omitempty"`
	// Before runs first, in order; the first that does not succeed ends the attempt.
	Before []ScriptStep `json:"before,omitempty"`
	// Dir is the last program's directory, relative to the job's.
	Dir string `json:"dir,omitempty"`
	// Success lists the exit codes of success; empty: 0 alone. Failure lists patterns (RE2) of
	// output lines that make a program fail whatever its exit code. RetryCodes and
	// RetryPatterns identify ends after which all programs run again, at most Retries times.
	Success       []int    `json:"success,omitempty"`
	Failure       []string `json:"failure,omitempty"`
	RetryCodes    []int    `json:"retry_codes,omitempty"`
	RetryPatterns []string `json:"retry_patterns,omitempty"`
	Retries       int      `json:"retries,omitempty"`
	// Uploads names files that are kept after a success, as paths or patterns (path.Match)
	// relative to the job's directory.
	Uploads []string `json:"uploads,omitempty"`
}

// ScriptCheckout is the tree of a revision in a directory of its own.
type ScriptCheckout struct {
	Repository string `json:"repository"`
	// Revision is the requested name; Commit and Tree are what it meant when the job was
	// written.
	Revision string `json:"revision"`
	Commit   string `json:"commit"`
	Tree     string `json:"tree"`
	// Path is relative to the job's directory; empty: that directory.
	Path string `json:"path,omitempty"`
}

// ScriptStep is one program, never given to a shell.
type ScriptStep struct {
	Argv []string          `json:"argv"`
	Env  map[string]string `json:"env,omitempty"`
	// Dir is relative to the job's directory.
	Dir            string `json:"dir,omitempty"`
	TimeoutSeconds int    `json:"timeout_seconds"`
}

// Environment returns the variables as NAME=value, sorted.
func (s ScriptStep) Environment() []string {
	env := make([]string, 0, len(s.Env))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	return env
}

// Job is the definition of one work item, with its state. Its constructors
// [NewSuiteJob], [NewBuildJob], [NewCommandJob] and [NewProfileJob] refuse fields that their kind of
// job cannot have. A key, a location and a turn are added before it is recorded.
type Job struct {
	// ID ascends in the order in which jobs are recorded; 0: not recorded yet.
	ID      int64
	Project string
	Key     JobKey
	// Generation orders the results of jobs, and of reruns, that measure the same again; the
	// first job has 0.
	Generation int
	// Rerun counts how often the job itself was asked for again, from 0.
	Rerun int
	// AskedBy is the account that asked for the job again, or for it in place of an
	// earlier one; empty: nobody did.
	AskedBy string
	Work
	Location
	Turn
	Sizing
	JobState
}

// Work describes the work of a job.
type Work struct {
	Kind   JobKind
	Target Target
	// Tag names the artifact that is measured or built; empty for a command.
	Tag string
	// Versus is the tag that is measured in turns with Tag; empty: none.
	Versus string
	// Backend and Profile are common to all test cases of a compile-time job.
	Backend string
	Profile string
	// SuiteHash is the content hash of the suite; empty for commands and builds.
	SuiteHash  string
	TestCases  []TestCase
	Iterations int
	Command    *Command   // of a command job
	Build      *BuildSpec // of a build job
	// Profiler is the profiler of a profile job; empty for all others.
	Profiler string
	// Line is the number of the job within its batch, from 1; 0: no batch.
	Line int
	// Chunk numbers the parts of a divided job, from 1; 0: not a part. The test cases of a
	// part are decided when its first run begins.
	Chunk int
	// Name is the submitter's name for a command or, for a job of a graph from a template,
	// the name of its node; may be empty. A build has none, since others share it.
	Name string
}

// Location holds the pool and task queue in which a job waits or runs.
type Location struct {
	SizeClass SizeClass
	Pool      string
	TaskQueue string
	// Constraints limit the collectors that may take the job; nil: none.
	Constraints *Constraints
	// AffinityUntil ends the wait for a collector with the job's caches; nil: no wait.
	AffinityUntil *time.Time
	// MovedFrom is the task queue that the job left because no collector there could
	// take it; empty: the job has not moved. MovedAt is the time of the move.
	MovedFrom string
	MovedAt   *time.Time
}

// Turn decides when a job starts: relative to the jobs of other queues, and within
// its queue after those of older requests.
type Turn struct {
	// Queue is the fair-share queue.
	Queue    string
	Weight   float64
	Priority int // Temporal's, 1 (first) to 5
	// Submitter is the account whose limits apply to the job, on Branch.
	Submitter      string
	Branch         string
	RequestCreated time.Time
}

// Sizing records how the size class of a job was chosen.
type Sizing struct {
	// Shape is common to jobs that differ only in their artifact; empty: the size class
	// is fixed.
	Shape string
	// MinClass is the smallest size class that can run the job; 0: any.
	MinClass SizeClass
	// SelectedAt is the time at which the size class was selected, at hand-out, and
	// SelectedWhy the reason, in a sentence.
	SelectedAt  *time.Time
	SelectedWhy string
	// Probe marks a job that runs on its size class to learn about it.
	Probe bool
	// TimeoutSeconds bounds the whole job on its size class; 0: no limit.
	TimeoutSeconds float64
}

// JobState is the state of a job. CompletedAt is set only when the job has ended.
type JobState struct {
	Status      JobStatus
	Message     string
	CreatedAt   time.Time
	HandedOutAt *time.Time
	// HandedOutTo is the request for which the job was last handed out.
	HandedOutTo RequestID
	StartedAt   *time.Time
	CompletedAt *time.Time
	// Done counts the test cases that have an accepted result. Both sides of a job
	// that measures in turns count.
	Done int
}

// SuiteShape returns the shape of a suite's job with its present test cases.
func (w Work) SuiteShape() Shape {
	parts := SuiteShape(w.Kind, w.Target, w.TestCases, w.Iterations)
	if w.Versus != "" {
		parts = parts.InTurns()
	}
	return parts.Shape()
}

// JobEnd describes a job that has ended.
type JobEnd struct {
	Status  JobStatus
	Message string
	// TaskQueue is the job's last task queue.
	TaskQueue string
	// Run is its last run and Collector the one that began it; empty: none began.
	Run       RunID
	Collector string
	// Batch is the request with which it was written; empty: none.
	Batch RequestID
	// Brief reports that it took less than a second, from its first run.
	Brief bool
	// Needed reports that jobs wait for its end, see fairshare.HeldForInput.
	Needed bool
	// Submitter is the account whose limits applied to it.
	Submitter string
	Consequences
}

// Consequences tells what has to be done after the end of a job. A flag that is true spares work;
// for one that is false, all that might be needed is done.
type Consequences struct {
	// Waiters lists the open requests that wait for the job.
	Waiters []RequestRef
	// BatchOpen reports that jobs of its batch are open.
	BatchOpen bool
	// Unlimited reports that no limit holds jobs of its account.
	Unlimited bool
	// OneClass reports that no target has several size classes to select from.
	OneClass bool
	// Filled reports that the job was brief, and that enough jobs wait in Temporal for its task
	// queue, see fairshare.Depth.
	Filled bool
}

// TimeoutOn returns the time limit of the whole job on a size class, in seconds; 0:
// no limit. The limit was selected for the job's own class and applies to no other.
func (j Job) TimeoutOn(class SizeClass) float64 {
	if class != j.SizeClass {
		return 0
	}
	return j.TimeoutSeconds
}
