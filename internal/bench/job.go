package bench

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
