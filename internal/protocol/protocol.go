// Package protocol is the contract between workflows, the activities that they
// call and the clients that start and signal them: names, inputs, results,
// signals, search attributes and error types.
//
// Every name that recorded histories contain is defined here, so that renaming a
// Go function breaks none of them. Inputs and results are one struct each and only
// gain fields. The package must not know how anything is done: it holds no code
// that a workflow could not replay.
package protocol

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
)

// OrchestratorTaskQueue is the task queue of workflows and the activities around them.
const OrchestratorTaskQueue = "benchloom/orchestrator"

// Workflow types.
const (
	RequestWorkflow   = "Request"
	JobWorkflow       = "Job"
	QueueWorkflow     = "Queue"
	ReconcileWorkflow = "Reconcile"
	WatchWorkflow     = "Watch"
	RetainWorkflow    = "Retain"
)

// The Schedule of the reconciliation, and the workflow ID that it uses.
const (
	ReconcileScheduleID = "reconcile"
	ReconcileWorkflowID = "reconcile"
)

// The Schedule of the removal of what was kept long enough, and the workflow ID that it
// uses.
const (
	RetainScheduleID = "retain"
	RetainWorkflowID = "retain"
)

// StatusQuery is the query that every workflow answers with its Status type.
const StatusQuery = "status"

// Signals. Each is a nudge: the record says the same, so a lost or repeated one
// does no harm.
const (
	// SignalAdmitted tells a request that it may start its jobs.
	SignalAdmitted = "admitted"
	// SignalHandOut gives a request jobs to start as its children; payload [HandOut].
	SignalHandOut = "hand-out"
	// SignalJobEnded tells a request that one of the jobs it waits for has ended;
	// payload [JobEnded].
	SignalJobEnded = "job-ended"
	// SignalRunStarted tells a job that a collector has begun; payload [RunStarted].
	SignalRunStarted = "run-started"
	// SignalParentCompleted tells a request that the jobs of its parent are done.
	SignalParentCompleted = "parent-completed"
	// SignalMoved tells a job that it now waits at another pool; payload [Moved].
	SignalMoved = "moved"
	// SignalQueueChanged tells a queue to read the record again.
	SignalQueueChanged = "queue-changed"
)

// UpdateArtifactsReady tells a request that its artifacts are ready; payload
// [ArtifactsReady]. The row is written first, so it is a nudge as well.
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
	// Waits says in words what the request waits for.
	Waits    string
	Progress JobCounts
	Shared   SharedJobs
}

// RequestResult is the result of a Request workflow, or the details of its
// cancellation.
type RequestResult struct {
	Outcome bench.Outcome
	// Baseline names the artifact compared with; empty: there was none.
	Baseline string
	Message  string
	// Jobs counts the request's own jobs, without optional ones.
	Jobs JobCounts
}

// SharedJobs lists jobs that a request waits for and another request has started.
type SharedJobs struct {
	// Workflows holds the IDs of the first [ShownShared] of them.
	Workflows []string
	Total     int
}

// ShownShared bounds the number of shared jobs that a request names.
const ShownShared = 20

// JobCounts counts a request's jobs.
type JobCounts struct{ Total, Open, Success, Failure, Cancelled int }

// JobInput starts a Job workflow.
type JobInput struct {
	Project string
	Key     bench.JobKey
	// Rerun counts how often the job was asked for again. Each rerun has its own workflow.
	Rerun int `json:",omitempty"`
	// Workflow is the job's workflow ID, RequestWorkflow the ID of the request it was
	// handed out to.
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
	// Attempts is the number of attempts that the job's own failures leave it.
	Attempts int
	// Dispatch is the secret of the next dispatch, which the fence demands.
	Dispatch bench.Dispatch `json:",omitempty"`
	// Dispatches counts the RunJob activities of earlier runs of the workflow.
	Dispatches int
	Unbegun    Unbegun `json:",omitzero"`
	// Adopt is a run that goes on without Temporal's knowledge; it must end before any
	// dispatch. Zero: there is none.
	Adopt Adopted `json:",omitzero"`
}

// Unbegun counts consecutive dispatches that began no run, since the number of the job's
// last run was Runs. Dispatches that were given back do not count.
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

// JobResult is the result of a Job workflow, or the details of its cancellation.
type JobResult struct {
	Status  bench.JobStatus
	Message string
	// Run is the last run that a collector began; empty: none began.
	Run bench.RunID
	// Dispatches counts the job's dispatches to collectors.
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

// ReconcileResult is the result of one pass of the reconciliation.
type ReconcileResult struct {
	// Repairs counts the workflows that were restarted or cancelled.
	Repairs int
}

// RetainStatus answers the status query of a Retain workflow.
type RetainStatus struct {
	Phase  RetainPhase
	Result RetainResult
}

// RetainResult counts what one pass has removed.
type RetainResult struct {
	// Removed counts rows by kind; kinds of which nothing was removed are absent.
	Removed map[bench.RetentionKind]int64 `json:",omitempty"`
	// Bytes is the size of all of them, without indexes.
	Bytes int64
}

// HandOut lists jobs for a request to start.
type HandOut struct{ Jobs []JobInput }

// JobEnded names a job that has ended.
type JobEnded struct {
	Key    bench.JobKey
	Status bench.JobStatus
}

// RunStarted names a run that a collector has begun.
type RunStarted struct {
	Run       bench.RunID
	Number    int
	Collector string
}

// Moved names the pool that a job has moved to.
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
	NextLook      = "NextLook"
	Complete      = "Complete"
	CancelRequest = "CancelRequest"
	ExpireRequest = "ExpireRequest"
	AssessJob     = "AssessJob"
	AwaitRun      = "AwaitRun"
	RecordJobEnd  = "RecordJobEnd"
	Reconcile     = "ReconcileRecord"
	WatchCommits  = "WatchCommits"
	Retain        = "RemoveExpired"
)

// RunJob is the collectors' one activity.
const RunJob = "RunJob"

// RequestRef names a request.
type RequestRef struct {
	Project string
	ID      bench.RequestID
}

// RequestFacts holds the parts of a request's row that its workflow needs.
type RequestFacts struct {
	Type     bench.RequestType
	Tag      string
	User     string
	PR       int
	Targets  []bench.Target
	Status   bench.RequestStatus
	Admitted bool
	JobsDone bool
	// Versus is the artifact that an ad-hoc request measures in turns with its own; empty:
	// none.
	Versus string `json:",omitempty"`
	// WaitsFor is the tag of the artifact to be measured first; ParentDone reports
	// whether that is done.
	WaitsFor   string
	ParentDone bool
	// ArtifactsWithin is the remaining wait for the request's artifacts, in seconds;
	// 0: unlimited.
	ArtifactsWithin int
	// Stages lists the request's stages after admission.
	Stages []bench.Stage
	Shared SharedJobs
	// End is nil until the request has ended.
	End *CompleteResult
}

// ExpandInput asks for the jobs of one stage of a request.
type ExpandInput struct {
	Request RequestRef
	Stage   bench.Stage
}

// ProgressInput asks for the progress of one stage's jobs; without a stage, of all.
type ProgressInput struct {
	Request RequestRef
	Stage   bench.Stage
	// Optional asks for the jobs that block nothing instead of the others.
	Optional bool
}

// ExpandResult describes the jobs of a stage.
type ExpandResult struct {
	Counts JobCounts
	// HandedOut lists jobs for the request to start immediately.
	HandedOut []JobInput
	Shared    SharedJobs
	// Failed gives the reason why the request cannot run at all; empty: it can.
	Failed string
	// RecheckSeconds is the time after which a limit of the request's graph passes; 0: there
	// is none.
	RecheckSeconds int `json:",omitempty"`
}

// ProgressResult holds the progress of a stage's jobs.
type ProgressResult struct {
	Counts JobCounts
	// Failure quotes a job that failed.
	Failure   string
	Shared    SharedJobs
	Cancelled bool
	// ParentLacks is set when the request's own jobs have ended and its parent lacks
	// results somewhere they ran.
	ParentLacks bool
	// RecheckSeconds means the same as in [ExpandResult].
	RecheckSeconds int `json:",omitempty"`
}

// LookResult describes a request's comparison with its baseline: its verdicts, or the look
// that is to be measured before there are more.
type LookResult struct {
	// Decided reports that no look is needed any more: each row has its verdict, or there
	// is nothing to compare with.
	Decided bool
	// Look is the number of the look, of at most Looks; it measures Rows rows against
	// Baseline, the artifact or artifacts. Suspects says in words what they are rows of.
	Look, Looks int
	Rows        int
	Suspects    string
	Baseline    string
	Counts      JobCounts
	// HandedOut lists jobs of the look for the request to start immediately.
	HandedOut []JobInput
}

// Text says in words what is being measured.
func (l LookResult) Text() string {
	if l.Look == 0 {
		return fmt.Sprintf("an artifact is built that is measured in turns with %s", l.Baseline)
	}
	suspects := l.Suspects
	if suspects == "" { // of an earlier version
		suspects = fmt.Sprintf("%d suspects", l.Rows)
	}
	return fmt.Sprintf("look %d of at most %d at %s, in turns with %s", l.Look, l.Looks, suspects, l.Baseline)
}

// CompleteInput ends a request.
type CompleteInput struct {
	Request RequestRef
	// Failed gives the reason why none of its jobs could run; empty: the jobs decide.
	Failed string
}

// CompleteResult describes the end of a request.
type CompleteResult struct {
	RequestResult
	// OptionalOpen is the number of optional jobs still open.
	OptionalOpen int
}

// CancelInput cancels a request.
type CancelInput struct {
	Request RequestRef
	Who     string
	Why     string
}

// QueueState describes a queue after admission.
type QueueState struct {
	Slots int
	// Paused names who paused admission and why; empty: it is not paused.
	Paused     string
	InProgress []QueueEntry
	Waiting    int
	// Next lists the first of the waiting requests.
	Next []QueueEntry
}

// QueueEntry is a request in a queue.
type QueueEntry struct {
	ID     bench.RequestID
	Tag    string
	Reason string
}

// RunJobInput tells a collector what to run; the fence answers with the rest.
type RunJobInput struct {
	Project string
	Key     bench.JobKey
	Reason  bench.RunReason
	// Dispatch is the secret that the fence demands.
	Dispatch bench.Dispatch `json:",omitempty"`
}

// RunJobResult is a collector's report of a finished run. The record decides the
// job's outcome.
type RunJobResult struct {
	Run     bench.RunID
	Outcome bench.RunOutcome
}

// RunCheckpoint is the progress in a RunJob heartbeat.
type RunCheckpoint struct {
	Run        bench.RunID
	Phase      string
	TestCase   string
	Iteration  int
	Iterations int
	Done       int
	Total      int
}

// AssessInput asks what to do after a failed RunJob activity.
type AssessInput struct {
	Project string
	Key     bench.JobKey
	Rerun   int `json:",omitempty"` // of the workflow's job
	Kind    bench.FailureKind
	Message string
	// Dispatch is the secret of the dispatch that has ended.
	Dispatch bench.Dispatch `json:",omitempty"`
	// Unbegun repeats the value of the last answer.
	Unbegun Unbegun `json:",omitzero"`
	// Unseen is set if the failure says nothing about the run: it may go on, or may have
	// ended well.
	Unseen bool `json:",omitempty"`
	// Awaited is the adopted run whose end, or loss, is assessed; empty: none.
	Awaited bench.RunID `json:",omitempty"`
}

// Assessment decides whether a job is dispatched again.
type Assessment struct {
	// Adopt is a run that goes on, to be awaited instead; nothing else is set then.
	Adopt Adopted `json:",omitzero"`
	Again bool
	// PauseSeconds is the wait before the next dispatch.
	PauseSeconds int
	// Attempts is the number of attempts that the job's own failures leave it.
	Attempts int
	Reason   bench.RunReason
	// Dispatch is the secret of the next dispatch.
	Dispatch bench.Dispatch `json:",omitempty"`
	// Level is the priority level of the next dispatch; 0: unchanged.
	Level int `json:",omitempty"`
	// Moved is the job's pool by its row; empty: unchanged.
	Moved Moved
	// Unbegun includes this dispatch.
	Unbegun Unbegun `json:",omitzero"`
	// GaveUp gives the reason why there is no further dispatch.
	GaveUp string
}

// JobEndInput records the end of a job.
type JobEndInput struct {
	Project   string
	Key       bench.JobKey
	Rerun     int `json:",omitempty"` // of the workflow's job
	TaskQueue string
	GaveUp    string
	Cancelled bool
}

// JobEndResult is the job's end by the record.
type JobEndResult struct {
	Status  bench.JobStatus
	Message string
	// Run is the job's last run and Collector the one that began it; empty: none began, or
	// an older orchestrator answers.
	Run       bench.RunID `json:",omitempty"`
	Collector string      `json:",omitempty"`
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
	// ErrTypeUnderWay: the collector may not begin, because a run of the job goes on
	// elsewhere.
	ErrTypeUnderWay = "UnderWay"
	// ErrTypeGoesOn: an adopted run has not ended.
	ErrTypeGoesOn = "GoesOn"
)

// FailureOf returns the failure kind and message of a RunJob activity's error.
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
		case ErrTypeNotTaken, ErrTypeUnderWay:
			return bench.FailNotTaken, application.Message()
		}
		return bench.FailInfrastructure, application.Message()
	}
	return bench.FailInfrastructure, err.Error()
}
