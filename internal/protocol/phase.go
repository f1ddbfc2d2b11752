package protocol

import "github.com/benchloom/benchloom/internal/bench"

// The phases of each workflow type, as its State search attribute and its status
// query show them. Every constant here needs a line in workflows.Phases and a
// recorded history.

// RequestPhase is the phase of a Request workflow.
type RequestPhase string

// Phases of a Request workflow.
const (
	// RequestStarting is set by the start, before an orchestrator takes the workflow up.
	RequestStarting          RequestPhase = "starting"
	RequestWaitsForArtifacts RequestPhase = "waiting_for_artifacts"
	RequestWaitsForParent    RequestPhase = "waiting_for_parent"
	RequestWaitsForAdmission RequestPhase = "waiting_for_admission"
	RequestExpanding         RequestPhase = "expanding"
	RequestBuilding          RequestPhase = "building"
	RequestBackfilling       RequestPhase = "backfilling"
	RequestInProgress        RequestPhase = "in_progress"
	// RequestVerifying means that its jobs have ended and its slot is free, while what may
	// have changed is measured again, in turns with the baseline.
	RequestVerifying  RequestPhase = "verifying"
	RequestCompleting RequestPhase = "completing"
	// RequestOptionalJobs means completed, with jobs of optional targets still open.
	RequestOptionalJobs RequestPhase = "optional_jobs"
	RequestCompleted    RequestPhase = "completed"
	RequestCancelled    RequestPhase = "cancelled"
)

// JobPhase is the phase of a Job workflow. The last one is the job's status.
type JobPhase string

// Phases of a Job workflow.
const (
	// JobWaitsForCollector is set by the start, before a collector takes the job up.
	JobWaitsForCollector JobPhase = "waiting_for_collector"
	JobBenchmarking      JobPhase = "benchmarking"
	JobPausing           JobPhase = "pausing"
	JobRecording         JobPhase = "recording"
	JobSucceeded                  = JobPhase(bench.JobSuccess)
	JobFailed                     = JobPhase(bench.JobFailure)
	JobCancelled                  = JobPhase(bench.JobCancelled)
)

// QueuePhase is the phase of a Queue workflow.
type QueuePhase string

// Phases of a Queue workflow.
const (
	QueueIdle      QueuePhase = "idle"
	QueueAdmitting QueuePhase = "admitting"
	QueueFull      QueuePhase = "full"
	QueuePaused    QueuePhase = "paused"
)

// ReconcilePhase is the phase of a Reconcile workflow.
type ReconcilePhase string

// Phases of a Reconcile workflow.
const (
	ReconcileInProgress ReconcilePhase = "in_progress"
	ReconcileCompleted  ReconcilePhase = "completed"
)

// RetainPhase is the phase of a Retain workflow.
type RetainPhase string

// Phases of a Retain workflow.
const (
	RetainInProgress RetainPhase = "in_progress"
	RetainCompleted  RetainPhase = "completed"
)

// WatchPhase is the phase of a Watch workflow.
type WatchPhase string

// Phases of a Watch workflow.
const (
	WatchInProgress WatchPhase = "in_progress"
	WatchCompleted  WatchPhase = "completed"
	// WatchFailing means that the commit source could not be read.
	WatchFailing WatchPhase = "failing"
)
