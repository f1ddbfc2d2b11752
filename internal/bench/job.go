package bench

import (
	"time"
)

// JobStatus is where a job stands.
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

// Open tells whether the job can still run.
func (s JobStatus) Open() bool {
	return s == JobQueued || s == JobHandedOut || s == JobInProgress
}

// Stage is the part of a request that a job belongs to. A request goes through its
// stages in this order, each after the jobs of the one before have ended.
type Stage string

const (
	// StageBuild makes the artifacts that are built from a revision.
	StageBuild Stage = "build"
	// StageParent measures what the parent lacks: backfill.
	StageParent Stage = "parent"
	// StageOwn measures the request's own artifact.
	StageOwn Stage = "own"
	// StageVerify measures again what differs from the baseline, in turns with it.
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
}

// Job is the definition of one work item, and where it stands. It is made by
// [NewSuiteJob], [NewBuildJob] or [NewCommandJob], each of which refuses what that
// kind of job cannot have; a key, a location and a turn are added before it is
// recorded.
type Job struct {
	// ID ascends in the order in which jobs are recorded; 0: not yet.
	ID      int64
	Project string
	Key     JobKey
	// Generation tells jobs that measure the same again from the first, which is of
	// generation 0.
	Generation int
	Work
	Location
	Turn
	Sizing
	JobState
}

// Work is what a job does.
type Work struct {
	Kind   JobKind
	Target Target
	// Tag names the artifact that is measured or built; empty for a command.
	Tag string
	// Versus is the tag that is measured in turns with Tag; empty: none.
	Versus string
	// Backend and Profile are what all test cases of a compile-time job share.
	Backend string
	Profile string
	// SuiteHash is the content hash of the suite; empty for commands and builds.
	SuiteHash  string
	TestCases  []TestCase
	Iterations int
	Command    *Command   // of a command job
	Build      *BuildSpec // of a build job
	// Line is the number of the job within its batch, from 1; 0: it belongs to none.
	Line int
	// Name is the submitter's own for a command; may be empty.
	Name string
}

// Location is where a job waits or runs.
type Location struct {
	SizeClass SizeClass
	Pool      string
	TaskQueue string
	// Constraints narrow the collectors that may take the job; nil: nothing does.
	Constraints *Constraints
	// AffinityUntil ends the wait for a collector that has the job's caches; nil: it
	// waits for none.
	AffinityUntil *time.Time
	// MovedFrom is the task queue of the pool that the job has left because nobody
	// there could take it, and MovedAt when; empty for one that has not moved.
	MovedFrom string
	MovedAt   *time.Time
}

// Turn decides when a job goes: after the jobs of other queues, and within its
// queue after those of older requests.
type Turn struct {
	// Queue is the fair-share queue.
	Queue    string
	Weight   float64
	Priority int // Temporal's, from 1, which goes first, to 5
	// Submitter is the account whose limits count for the job, on Branch.
	Submitter      string
	Branch         string
	RequestCreated time.Time
}

// Sizing is how the size class of a job was chosen.
type Sizing struct {
	// Shape makes jobs alike whatever their artifact; empty: the size class is fixed.
	Shape string
	// MinClass is the smallest size class that will do; 0: any.
	MinClass SizeClass
	// SelectedAt is when the size class was selected, at hand-out, and SelectedWhy
	// the reason, in a sentence.
	SelectedAt  *time.Time
	SelectedWhy string
	// Probe: the job runs on its size class to learn from it.
	Probe bool
	// TimeoutSeconds bounds the whole job on its size class; 0: nothing does.
	TimeoutSeconds float64
}

// JobState is where a job stands. Only a job that has ended has CompletedAt.
type JobState struct {
	Status      JobStatus
	Message     string
	CreatedAt   time.Time
	HandedOutAt *time.Time
	// HandedOutTo is the request whose turn it was at the last hand-out.
	HandedOutTo RequestID
	StartedAt   *time.Time
	CompletedAt *time.Time
	// Done counts the test cases that have an accepted result; of a job that
	// measures in turns, those of either side count.
	Done int
}

// SuiteShape is the shape of a job of a suite with the test cases that it has now.
func (w Work) SuiteShape() Shape {
	parts := SuiteShape(w.Kind, w.Target, w.TestCases, w.Iterations)
	if w.Versus != "" {
		parts = parts.InTurns()
	}
	return parts.Shape()
}

// JobEnd is how a job has ended.
type JobEnd struct {
	Status  JobStatus
	Message string
	// TaskQueue is where it was last.
	TaskQueue string
	// Submitter is whose limits counted for it.
	Submitter string
	// Waiters are the open requests that wait for the job.
	Waiters []RequestRef
}

// TimeoutOn is the time limit of the whole job on a size class: the one selected
// for its own class, which says nothing about another. 0: unlimited.
func (j Job) TimeoutOn(class SizeClass) float64 {
	if class != j.SizeClass {
		return 0
	}
	return j.TimeoutSeconds
}
