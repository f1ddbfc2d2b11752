// Package protocol is the contract between workflows, the activities that they
// call and the clients that start and signal them: names, inputs, results,
// signals, search attributes and error types.
//
// Every name that stands in a recorded history stands here, so that renaming a
// Go function breaks no history. Inputs and results are one struct each and only
// ever gain fields. The package must not know how anything is done: it holds no
// code that a workflow could not replay.
package protocol

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
)

// OrchestratorTaskQueue is where workflows and the activities around them run.
const OrchestratorTaskQueue = "benchloom/orchestrator"

// Workflow types.
const (
	RequestWorkflow   = "Request"
	JobWorkflow       = "Job"
	QueueWorkflow     = "Queue"
	ReconcileWorkflow = "Reconcile"
	WatchWorkflow     = "Watch"
)

// Reconciliation runs from this Schedule.
const (
	ReconcileScheduleID = "reconcile"
	ReconcileWorkflowID = "reconcile"
)

// StatusQuery is answered by every workflow with its Status type.
const StatusQuery = "status"

// Signals. Each is a nudge: what it says can be read from the record as well, so
// a lost or doubled one does no harm.
const (
	// SignalAdmitted tells a request that it may start its jobs.
	SignalAdmitted = "admitted"
	// SignalHandOut gives a request jobs to start as its children; payload [HandOut].
	SignalHandOut = "hand-out"
	// SignalJobEnded tells a request that a job which it waits for has ended;
	// payload [JobEnded].
	SignalJobEnded = "job-ended"
	// SignalRunStarted tells a job that a collector has begun; payload [RunStarted].
	SignalRunStarted = "run-started"
	// SignalParentCompleted tells a request that the jobs of what it waits for are
	// done.
	SignalParentCompleted = "parent-completed"
	// SignalMoved tells a job that it waits at another pool now; payload [Moved].
	SignalMoved = "moved"
	// SignalQueueChanged tells a queue to look again.
	SignalQueueChanged = "queue-changed"
)

// UpdateArtifactsReady tells a request that its artifacts are ready; payload
// [ArtifactsReady]. The row was written before, so it is a nudge as well.
const UpdateArtifactsReady = "artifacts-ready"

// Search attributes, for lists in the Temporal Web UI and CLI. The artifact is
// under Tag: "Commit" is a keyword of the list filters' language.
var (
	AttrProject = temporal.NewSearchAttributeKeyKeyword("Project")
	AttrTarget  = temporal.NewSearchAttributeKeyKeyword("Target")
	AttrTag     = temporal.NewSearchAttributeKeyKeyword("Tag")
	AttrUser    = temporal.NewSearchAttributeKeyKeyword("User")
	AttrState   = temporal.NewSearchAttributeKeyKeyword("State")
	AttrRequest = temporal.NewSearchAttributeKeyKeyword("Request")
	AttrPR      = temporal.NewSearchAttributeKeyInt64("PR")
)

// SearchAttributes lists every attribute that a namespace needs.
func SearchAttributes() []temporal.SearchAttributeKey {
	return []temporal.SearchAttributeKey{AttrProject, AttrTarget, AttrTag, AttrUser, AttrState, AttrRequest, AttrPR}
}

// RequestInput starts a Request workflow.
type RequestInput struct {
	Project string
	ID      bench.RequestID
}

// ArtifactsReady names a request's artifact.
type ArtifactsReady struct{ Tag, Parent string }

// RequestStatus answers the status query of a Request workflow.
type RequestStatus struct {
	Project string
	ID      bench.RequestID
	Phase   RequestPhase
	// Waits says what it waits for, in words.
	Waits    string
	Progress JobCounts
	Shared   SharedJobs
}

// RequestResult is what a Request workflow returns; a cancelled one has it as the
// details of its cancellation.
type RequestResult struct {
	Outcome bench.Outcome
	// Baseline is what the artifact was compared with; empty: with nothing.
	Baseline string
	Message  string
	// Jobs counts those of the request itself, without optional ones.
	Jobs JobCounts
}

// SharedJobs are the jobs that a request waits for and another one has started.
type SharedJobs struct {
	// Workflows are the IDs of the first of them, at most [ShownShared].
	Workflows []string
	Total     int
}

// ShownShared bounds how many shared jobs a request names.
const ShownShared = 20

// JobCounts counts a request's jobs.
type JobCounts struct{ Total, Open, Success, Failure, Cancelled int }

// JobInput starts a Job workflow.
type JobInput struct {
	Project string
	Key     bench.JobKey
	// Workflow is the job's workflow ID, RequestWorkflow that of the request that it
	// was handed out to.
	Workflow        string
	Request         bench.RequestID
	RequestWorkflow string
	Tag             string
	Target          bench.Target
	User            string
	Summary         string
	TaskQueue       string
	SizeClass       bench.SizeClass
	Priority        Priority
	// Attempts is how many attempts the job's own failures leave it.
	Attempts int
	// Dispatches counts the RunJob activities of earlier runs of the workflow.
	Dispatches int
	Unbegun    Unbegun `json:",omitzero"`
}

// Unbegun counts the dispatches in a row that began no run, since the record had so
// many runs of the job. Those that were given back are not counted.
type Unbegun struct{ Dispatches, Runs int }

// JobStatus answers the status query of a Job workflow.
type JobStatus struct {
	Project    string
	Key        bench.JobKey
	Phase      JobPhase
	Waits      string
	TaskQueue  string
	Run        bench.RunID
	Collector  string
	Dispatches int
	LastError  string
}

// JobResult is what a Job workflow returns; a cancelled one has it as the details of
// its cancellation.
type JobResult struct {
	Status  bench.JobStatus
	Message string
	// Run is the last one that a collector has begun; empty: none was seen to begin.
	Run bench.RunID
	// Dispatches counts how often the job was dispatched to a collector.
	Dispatches int
}

// QueueInput starts a Queue workflow.
type QueueInput struct{ Project string }

// QueueStatus answers the status query of a Queue workflow.
type QueueStatus struct {
	Project string
	Phase   QueuePhase
	Queue   QueueState
}

// ReconcileStatus answers the status query of a Reconcile workflow.
type ReconcileStatus struct {
	Phase  ReconcilePhase
	Result ReconcileResult
}

// ReconcileResult is what a pass of the reconciliation has done.
type ReconcileResult struct {
	// Repairs counts the workflows that were started again or cancelled.
	Repairs int
}

// HandOut lists jobs that a request is to start.
type HandOut struct{ Jobs []JobInput }

// JobEnded names a job that has ended.
type JobEnded struct {
	Key    bench.JobKey
	Status bench.JobStatus
}

// RunStarted names the run that a collector has begun.
type RunStarted struct {
	Run       bench.RunID
	Number    int
	Collector string
}

// Moved names the pool at which a job waits since it has moved.
type Moved struct {
	TaskQueue string
	SizeClass bench.SizeClass
}

// Activities of the orchestrator.
const (
	LoadRequest   = "LoadRequest"
	AskAdmission  = "AskAdmission"
	Admit         = "Admit"
	Expand        = "Expand"
	Progress      = "Progress"
	JobsDone      = "JobsDone"
	Complete      = "Complete"
	CancelRequest = "CancelRequest"
	ExpireRequest = "ExpireRequest"
	AssessJob     = "AssessJob"
	RecordJobEnd  = "RecordJobEnd"
	Reconcile     = "ReconcileRecord"
	WatchCommits  = "WatchCommits"
)

// RunJob is the collectors' one activity.
const RunJob = "RunJob"

// RequestRef names a request.
type RequestRef struct {
	Project string
	ID      bench.RequestID
}

// RequestFacts is what a Request workflow needs to know of its row.
type RequestFacts struct {
	Type     bench.RequestType
	Tag      string
	User     string
	PR       int
	Targets  []bench.Target
	Status   bench.RequestStatus
	Admitted bool
	JobsDone bool
	// WaitsFor is the tag that has to be done first, ParentDone whether it is.
	WaitsFor   string
	ParentDone bool
	// ArtifactsWithin is for how many more seconds the request waits for its
	// artifacts; 0: as long as it takes.
	ArtifactsWithin int
	// Stages are what the request goes through once it is admitted.
	Stages []bench.Stage
	Shared SharedJobs
	// End is how the request ended; nil: it has not.
	End *CompleteResult
}

// ExpandInput asks for the jobs of one stage of a request.
type ExpandInput struct {
	Request RequestRef
	Stage   bench.Stage
}

// ProgressInput asks where the jobs of one stage stand; of all without one.
type ProgressInput struct {
	Request RequestRef
	Stage   bench.Stage
	// Optional asks for the jobs that block nothing instead of the others.
	Optional bool
}

// ExpandResult is what the jobs of a stage are.
type ExpandResult struct {
	Counts JobCounts
	// HandedOut are jobs that the request is to start at once.
	HandedOut []JobInput
	Shared    SharedJobs
	// Failed is why the request cannot run at all.
	Failed string
}

// ProgressResult is where the jobs of a stage stand.
type ProgressResult struct {
	Counts JobCounts
	// Failure quotes a job that failed.
	Failure   string
	Shared    SharedJobs
	Cancelled bool
	// ParentLacks: the request's own jobs have ended, and its parent has not been
	// measured everywhere where they ran.
	ParentLacks bool
}

// CompleteInput ends a request.
type CompleteInput struct {
	Request RequestRef
	// Failed is why nothing of it could run; empty when its jobs decide.
	Failed string
}

// CompleteResult is how a request ended.
type CompleteResult struct {
	RequestResult
	// OptionalOpen is how many optional jobs are still open.
	OptionalOpen int
}

// CancelInput cancels a request.
type CancelInput struct {
	Request RequestRef
	Who     string
	Why     string
}

// QueueState is what a queue looked like after admission.
type QueueState struct {
	Slots int
	// Paused says by whom and why nothing is admitted; empty: it is not paused.
	Paused     string
	InProgress []QueueEntry
	Waiting    int
	// Next are the first of those that wait.
	Next []QueueEntry
}

// QueueEntry is a request in a queue.
type QueueEntry struct {
	ID     bench.RequestID
	Tag    string
	Reason string
}

// RunJobInput tells a collector what to run; the rest is the fence's answer.
type RunJobInput struct {
	Project string
	Key     bench.JobKey
	Reason  bench.RunReason
}

// RunJobResult is what a collector says of a finished run. The record decides
// what became of the job.
type RunJobResult struct {
	Run     bench.RunID
	Outcome bench.RunOutcome
}

// RunCheckpoint travels in a RunJob heartbeat.
type RunCheckpoint struct {
	Run        bench.RunID
	Phase      string
	TestCase   string
	Iteration  int
	Iterations int
	Done       int
	Total      int
}

// AssessInput asks what is to be done after a RunJob activity that failed.
type AssessInput struct {
	Project string
	Key     bench.JobKey
	Kind    bench.FailureKind
	Message string
	// Unbegun is what the last answer said.
	Unbegun Unbegun `json:",omitzero"`
}

// Assessment is the answer: again (after a pause), or not.
type Assessment struct {
	Again bool
	// PauseSeconds is how long to wait first.
	PauseSeconds int
	// Attempts is how many attempts are left to the job's own failures.
	Attempts int
	Reason   bench.RunReason
	// Level is the priority level of the next dispatch; 0: as before.
	Level int `json:",omitempty"`
	// Moved is where the job is by its row; empty: where it was.
	Moved Moved
	// Unbegun counts this dispatch, too.
	Unbegun Unbegun `json:",omitzero"`
	// GaveUp says why not, when not.
	GaveUp string
}

// JobEndInput records the end of a job.
type JobEndInput struct {
	Project   string
	Key       bench.JobKey
	TaskQueue string
	GaveUp    string
	Cancelled bool
}

// JobEndResult is what the record says of the job.
type JobEndResult struct {
	Status  bench.JobStatus
	Message string
}

// Types of the application errors that activities return. Each names the
// failure kind that decides what the workflow does.
const (
	ErrTypeInfrastructure = "Infrastructure"
	ErrTypeTooSmall       = "TooSmall"
	ErrTypeJobFailure     = "JobFailure"
	ErrTypePermanent      = "Permanent"
	ErrTypeJobClosed      = "JobClosed"
	ErrTypeNotTaken       = "NotTaken"
)

// FailureOf is the kind and the words of a RunJob activity's error.
func FailureOf(err error) (bench.FailureKind, string) {
	var application *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case temporal.IsCanceledError(err):
		return bench.FailCancelled, "cancelled"
	case errors.As(err, &timeout):
		return bench.FailInfrastructure, "the collector was silent: " + timeout.TimeoutType().String() + " timeout"
	case errors.As(err, &application):
		switch application.Type() {
		case ErrTypeTooSmall:
			return bench.FailTooSmall, application.Message()
		case ErrTypeJobFailure:
			return bench.FailJob, application.Message()
		case ErrTypePermanent, ErrTypeJobClosed:
			return bench.FailPermanent, application.Message()
		case ErrTypeNotTaken:
			return bench.FailNotTaken, application.Message()
		}
		return bench.FailInfrastructure, application.Message()
	}
	return bench.FailInfrastructure, err.Error()
}
