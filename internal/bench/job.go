package bench

import (
	"cmp"
	"fmt"
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

// NewSuiteJob makes a job that measures test cases of a suite. It has neither key,
// location nor turn yet.
func NewSuiteJob(project string, w Work) (Job, error) {
	if w.Kind != KindCompileTime && w.Kind != KindRuntime {
		return Job{}, invalid("job kind", string(w.Kind), "a suite's jobs are of kind compiletime or runtime")
	}
	return newJob(Job{Project: project, Work: w})
}

// NewBuildJob makes a job that builds an artifact. It has neither key, location nor
// turn yet.
func NewBuildJob(project string, spec BuildSpec, generation int) (Job, error) {
	return newJob(Job{Project: project, Generation: generation, Work: Work{
		Kind: KindBuild, Target: spec.Target, Tag: spec.Tag, TestCases: []TestCase{}, Build: &spec,
	}})
}

// CommandBenchmark names the one test case of a command.
const CommandBenchmark = "command"

// NewCommandJob makes a job that runs a command: a request's only one, of line 0, or
// one of a batch, whose lines count from 1. The name may be empty. The job has neither
// key, location nor turn yet.
func NewCommandJob(project string, c Command, target Target, line int, name string) (Job, error) {
	return newJob(Job{Project: project, Work: Work{
		Kind: KindCommand, Target: target, TestCases: []TestCase{{Benchmark: CommandBenchmark, Target: target}},
		Iterations: c.Iterations, Command: &c, Line: line, Name: name,
	}})
}

func newJob(j Job) (Job, error) {
	j.Status = JobQueued
	if err := j.checkWork(); err != nil {
		return Job{}, err
	}
	return j, nil
}

// Validate refuses a job that cannot be meant or that is not ready to be recorded:
// one that its kind's constructor would not make, or that lacks a key, a location or
// a turn.
func (j Job) Validate() error {
	if err := j.check(); err != nil {
		return fmt.Errorf("job %s: %w", j.Key, err)
	}
	return nil
}

func (j Job) check() error {
	if err := j.checkWork(); err != nil {
		return err
	}
	switch j.Status {
	case JobQueued, JobHandedOut, JobInProgress, JobSuccess, JobFailure, JobCancelled:
	default:
		return invalid("job status", string(j.Status), "use queued, handed_out, in_progress, success, failure or cancelled")
	}
	switch {
	case j.Key == "":
		return invalid("job", "", "it has no key")
	case j.SizeClass < 1 || j.Pool == "" || j.TaskQueue == "":
		return invalid("job", string(j.Key), "it has no size class, no pool or no task queue")
	case j.Queue == "":
		return invalid("job", string(j.Key), "it is in no queue")
	case j.Status.Open() != (j.CompletedAt == nil):
		return invalid("job status", string(j.Status), "a job that has ended, and no other, has an end")
	}
	return nil
}

// checkWork refuses what the kind of job cannot have.
func (j Job) checkWork() error {
	switch {
	case j.Project == "":
		return invalid("job", string(j.Key), "it belongs to no project")
	case j.Target == "":
		return invalid("job", string(j.Key), "it has no target")
	case j.Iterations < 0:
		return invalid("iterations", fmt.Sprint(j.Iterations), "use a positive number")
	case j.Generation < 0:
		return invalid("generation", fmt.Sprint(j.Generation), "the first is 0")
	}
	for _, tc := range j.TestCases {
		if tc.Benchmark == "" || tc.Target != j.Target {
			return invalid("test case", tc.String(), "a job's test cases are of its target, "+string(j.Target))
		}
	}
	switch j.Kind {
	case KindCompileTime, KindRuntime:
		return j.Work.checkSuite()
	case KindBuild:
		return j.Work.checkBuild()
	case KindCommand:
		return j.Work.checkCommand()
	}
	_, err := ParseJobKind(string(j.Kind))
	return cmp.Or(err, invalid("job kind", string(j.Kind), "write it in lower case"))
}

func (w Work) checkSuite() error {
	switch {
	case w.Command != nil || w.Build != nil || w.Line != 0 || w.Name != "":
		return invalid("job kind", string(w.Kind), "it measures a suite: it has no command, build, line or name")
	case w.Tag == "":
		return invalid("tag", "", "the job measures no artifact")
	case w.Versus == w.Tag:
		return invalid("versus", w.Versus, "an artifact cannot be measured in turns with itself")
	case w.SuiteHash == "":
		return invalid("suite", "", "the job measures no suite")
	case len(w.TestCases) == 0:
		return invalid("test cases", "", "the job has none")
	}
	return nil
}

func (w Work) checkBuild() error {
	switch {
	case w.Build == nil:
		return invalid("job kind", string(w.Kind), "it does not say what is built")
	case w.Build.Target != w.Target:
		return invalid("target", string(w.Build.Target), "the build is for another target than its job")
	case w.Tag == "":
		return invalid("tag", "", "the build names no artifact")
	case w.Command != nil || w.Line != 0 || w.Name != "" || w.Versus != "" || w.SuiteHash != "" || len(w.TestCases) > 0:
		return invalid("job kind", string(w.Kind), "it builds: it has no command, line, name, suite, test cases, nor anything to measure in turns with")
	}
	return nil
}

func (w Work) checkCommand() error {
	switch {
	case w.Command == nil || len(w.Command.Argv) == 0:
		return invalid("command", "", "the job has no command line")
	case len(w.TestCases) != 1 || w.TestCases[0] != TestCase{Benchmark: w.TestCases[0].Benchmark, Target: w.Target}:
		return invalid("test cases", fmt.Sprint(len(w.TestCases)), "a command has one test case, without parameters")
	case w.Line < 0:
		return invalid("line", fmt.Sprint(w.Line), "the lines of a batch count from 1")
	case w.Build != nil || w.Tag != "" || w.Versus != "" || w.SuiteHash != "" || w.Backend != "" || w.Profile != "":
		return invalid("job kind", string(w.Kind), "it runs a command: it has no build, artifact, suite, backend or profile")
	}
	return nil
}

// SuiteShape is the shape of a job of a suite with the test cases that it has now.
func (w Work) SuiteShape() Shape {
	parts := SuiteShape(w.Kind, w.Target, w.TestCases, w.Iterations)
	if w.Versus != "" {
		parts = parts.InTurns()
	}
	return parts.Shape()
}

// PlannedJob is a job that is to be recorded, with what its record keeps in another
// form.
type PlannedJob struct {
	Job
	// Set names the only collectors that may take the job, where not all of its pool
	// do; the record has them by their task queue. Empty: all of the pool.
	Set []string
	// AffinityFor bounds the wait for a collector that has the job's caches, from the
	// moment of recording; 0: it waits for none. The record has its end,
	// AffinityUntil.
	AffinityFor time.Duration
}

// At is the place where the job is to wait.
func (j PlannedJob) At() Place {
	return Place{Pool: Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, Set: j.Set}
}

// PutAt decides the place where the job is to wait.
func (j *PlannedJob) PutAt(p Place) {
	j.Target, j.SizeClass, j.Pool, j.Set, j.TaskQueue = p.Target, p.SizeClass, p.Name, p.Set, p.TaskQueue()
}

// Validate refuses a job that cannot be recorded.
func (j PlannedJob) Validate() error {
	switch err := j.Job.Validate(); {
	case err != nil:
		return err
	case j.Status != JobQueued:
		return invalid("job status", string(j.Status), "a job begins as queued")
	case j.TaskQueue != j.At().TaskQueue():
		return invalid("task queue", j.TaskQueue, "it is not that of the job's pool or set of collectors")
	case j.AffinityFor < 0:
		return invalid("affinity", j.AffinityFor.String(), "use a positive duration")
	}
	return nil
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

// JobEnd is how a job has ended.
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
