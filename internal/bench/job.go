package bench

import (
	"time"
)

// JobStatus is where a job stands.
type JobStatus string

const (
	// JobQueued: a row, not yet in Temporal.
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

// RunReason tells why an attempt at a job was made.
type RunReason string

const (
	Scheduled  RunReason = "scheduled"
	Retry      RunReason = "retry"
	Escalation RunReason = "escalation"
	Rerun      RunReason = "rerun"
)

// RunOutcome is how one attempt at a job ended. The empty outcome is that of a
// run which is still going on.
type RunOutcome string

const (
	RunRunning RunOutcome = ""
	RunSuccess RunOutcome = "success"
	RunFailure RunOutcome = "failure"
	// RunTooSmall: the disk limit was reached.
	RunTooSmall RunOutcome = "too_small"
	// RunTimeout: killed at a time limit, that of a command or that of the run.
	RunTimeout RunOutcome = "timeout"
	// RunOutOfMemory: killed at the memory limit, while its collector lives.
	RunOutOfMemory RunOutcome = "oom"
	RunPermanent   RunOutcome = "permanent"
	RunCancelled   RunOutcome = "cancelled"
	// RunLost: the collector died, was shut down, or was fenced off.
	RunLost RunOutcome = "lost"
)

// Failed tells whether the run ended in a failure that counts: the job's own, or
// one that says that the machine was too small.
func (o RunOutcome) Failed() bool {
	switch o {
	case RunFailure, RunTooSmall, RunTimeout, RunOutOfMemory:
		return true
	}
	return false
}

// FailureKind says who has to answer a failure; see the table "What can go
// wrong, and who answers" in docs/architecture.md.
type FailureKind string

const (
	// Infrastructure: collector died, worker shut down, API or database away.
	// Tried again on the same size class, never the job's failure.
	FailInfrastructure FailureKind = "infrastructure"
	// TooSmall: the machine was too small, in that the disk limit was reached, or in
	// a way that is not known.
	FailTooSmall FailureKind = "too_small"
	// FailTimeout and FailOutOfMemory speak about size as well.
	FailTimeout     FailureKind = "timeout"
	FailOutOfMemory FailureKind = "out_of_memory"
	// FailJob: a benchmark exits with an error. Counted.
	FailJob FailureKind = "job"
	// FailPermanent: artifact not found, invalid definition. Final at once.
	FailPermanent FailureKind = "permanent"
	FailCancelled FailureKind = "cancelled"
	// FailNotTaken: the collector gave the job back, for its machine had taken another
	// one or takes none any more. Tried again at once.
	FailNotTaken FailureKind = "not_taken"
)

// OfRun tells whether a run has failed, which a larger machine, or another try,
// may mend: not the machinery around it, nor what is final.
func (k FailureKind) OfRun() bool {
	switch k {
	case FailJob, FailTooSmall, FailTimeout, FailOutOfMemory:
		return true
	}
	return false
}

// MaxJobFails is how many attempts a job has by default (MAX_JOB_FAILS of the
// request life cycle): the third failure fails it.
const MaxJobFails = 3

// CollectorState is what a collector is seen to do.
type CollectorState string

const (
	CollectorInactive     CollectorState = "inactive"
	CollectorWaiting      CollectorState = "waiting"
	CollectorBenchmarking CollectorState = "benchmarking"
	CollectorDraining     CollectorState = "draining"
	CollectorOffline      CollectorState = "offline"
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

// Job is a row of job_queue.
type Job struct {
	ID             int64
	Project        string
	Key            JobKey
	Tag            string
	Versus         string // tag that it measures in turns with Tag; empty: none
	Kind           JobKind
	Target         Target
	Backend        string
	Profile        string
	SuiteHash      string
	TestCases      []TestCase
	Iterations     int
	Command        *Command
	Build          *BuildSpec // of a build job
	SizeClass      SizeClass
	Pool           string
	TaskQueue      string
	Generation     int
	Queue          string
	Weight         float64
	Priority       int
	Status         JobStatus
	Message        string
	RequestCreated time.Time
	CreatedAt      time.Time
	HandedOutAt    *time.Time
	HandedOutTo    RequestID
	StartedAt      *time.Time
	CompletedAt    *time.Time
	// MovedFrom is the task queue of the pool that it has left because nobody
	// there could take it, and MovedAt when; empty for one that has not moved.
	MovedFrom string
	MovedAt   *time.Time
	// Submitter is whose limits count for it.
	Submitter   string
	Branch      string
	Constraints *Constraints // nil: none
	// Shape is what makes jobs alike whatever their artifact; empty: its size class
	// is fixed. SelectedAt is when its class was selected, at hand-out, and SelectedWhy
	// why, in a sentence.
	Shape       string
	SelectedAt  *time.Time
	SelectedWhy string
	// MinClass is the smallest size class that will do; 0: any.
	MinClass SizeClass
	// Probe: it runs where it runs to learn from it.
	Probe bool
	// TimeoutSeconds bounds the whole job, by its size class; 0: nothing does.
	TimeoutSeconds float64
	// AffinityUntil is until when it waits for a collector that has its caches.
	AffinityUntil *time.Time
	// Place within its batch, from 1; 0: it belongs to none.
	Place int
	// Name as its submitter calls it; may be empty.
	Name string
	// Set is who takes it, where not all of its pool do, and AffinityFor how long it
	// waits so. Both are for writing: the record has them by its task queue and as
	// AffinityUntil.
	Set         []string      `db:"-"`
	AffinityFor time.Duration `db:"-"`
	// Done is how many of its test cases have an accepted result; of a job that
	// measures in turns, those of either side count.
	Done int
}

// SuiteShape is the shape of a job of a suite with the test cases that it has now.
func (j Job) SuiteShape() Shape {
	parts := SuiteShape(j.Kind, j.Target, j.TestCases, j.Iterations)
	if j.Versus != "" {
		parts = parts.InTurns()
	}
	return parts.Shape()
}

// At is where a job that is to be written waits.
func (j Job) At() Place {
	return Place{Pool: Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, Set: j.Set}
}

// PutAt says where a job that is to be written waits.
func (j *Job) PutAt(p Place) {
	j.Target, j.SizeClass, j.Pool, j.Set, j.TaskQueue = p.Target, p.SizeClass, p.Name, p.Set, p.TaskQueue()
}

// HandOut is a job that was handed out: its workflow is to be started.
type HandOut struct {
	Request   RequestID
	Project   string
	Job       JobKey
	Kind      JobKind
	Tag       string
	Target    Target
	TaskQueue string
	Queue     string
	Turn      int // numbers the queue's fairness keys in the task queue
	Weight    float64
	Priority  int
	SizeClass SizeClass
	Summary   string // what the job is, in words
}

// JobEnd is what a job's record says at its end.
type JobEnd struct {
	Status  JobStatus
	Message string
	// TaskQueue is where it was last.
	TaskQueue string
	// Submitter is whose limits counted for it.
	Submitter string
	// Waiters are the open requests that wait for the job.
	Waiters []Waiter
}

// TimeoutOn is the time limit of the whole job on a size class: the one selected
// for its own class, which says nothing about another. 0: unlimited.
func (j Job) TimeoutOn(class SizeClass) float64 {
	if class != j.SizeClass {
		return 0
	}
	return j.TimeoutSeconds
}
