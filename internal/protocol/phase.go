package protocol

import "github.com/benchloom/benchloom/internal/bench"

// The phases of each workflow type, as its State search attribute and its status
// query show them. Every constant here needs a line in workflows.Phases and a
// recorded history.

// RequestPhase tells where a Request workflow stands.
type RequestPhase string

// Phases of a Request workflow.
const (
	// RequestStarting: no orchestrator has taken it up yet. Its start sets this one.
	RequestStarting          RequestPhase = "starting"
	RequestWaitsForArtifacts RequestPhase = "waiting_for_artifacts"
	RequestWaitsForParent    RequestPhase = "waiting_for_parent"
	RequestWaitsForAdmission RequestPhase = "waiting_for_admission"
	RequestExpanding         RequestPhase = "expanding"
	RequestBuilding          RequestPhase = "building"
	RequestBackfilling       RequestPhase = "backfilling"
	RequestInProgress        RequestPhase = "in_progress"
	RequestCompleting        RequestPhase = "completing"
	// RequestOptionalJobs: completed, with jobs of optional targets still open.
	RequestOptionalJobs RequestPhase = "optional_jobs"
	RequestCompleted    RequestPhase = "completed"
	RequestCancelled    RequestPhase = "cancelled"
)

// JobPhase tells where a Job workflow stands. Its last one is the job's status.
type JobPhase string

// Phases of a Job workflow.
const (
	// JobWaitsForCollector: no collector has taken it up yet. Its start sets this one.
	JobWaitsForCollector JobPhase = "waiting_for_collector"
	JobBenchmarking      JobPhase = "benchmarking"
	JobPausing           JobPhase = "pausing"
	JobRecording         JobPhase = "recording"
	JobSucceeded                  = JobPhase(bench.JobSuccess)
	JobFailed                     = JobPhase(bench.JobFailure)
	JobCancelled                  = JobPhase(bench.JobCancelled)
)

// QueuePhase tells where a Queue workflow stands.
type QueuePhase string

// Phases of a Queue workflow.
const (
	QueueIdle      QueuePhase = "idle"
	QueueAdmitting QueuePhase = "admitting"
	QueueFull      QueuePhase = "full"
	QueuePaused    QueuePhase = "paused"
)

// ReconcilePhase tells where a Reconcile workflow stands.
type ReconcilePhase string

// Phases of a Reconcile workflow.
const (
	ReconcileInProgress ReconcilePhase = "in_progress"
	ReconcileCompleted  ReconcilePhase = "completed"
)

// WatchPhase tells where a Watch workflow stands.
type WatchPhase string

// Phases of a Watch workflow.
const (
	WatchInProgress WatchPhase = "in_progress"
	WatchCompleted  WatchPhase = "completed"
	// WatchFailing: the commit source could not be read.
	WatchFailing WatchPhase = "failing"
)
