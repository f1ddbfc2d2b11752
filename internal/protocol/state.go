package protocol

import (
	"time"

	"go.temporal.io/sdk/temporal"
)

// JobAttributes returns the search attributes that a Job workflow starts with.
func JobAttributes(in JobInput) []temporal.SearchAttributeUpdate {
	attributes := []temporal.SearchAttributeUpdate{
		AttrProject.ValueSet(in.Project),
		AttrTarget.ValueSet(string(in.Target)),
		AttrUser.ValueSet(in.User),
		AttrRequest.ValueSet(string(in.Request)),
		AttrState.ValueSet(string(JobWaitsForCollector)),
	}
	if in.Tag != "" {
		attributes = append(attributes, AttrTag.ValueSet(in.Tag))
	}
	return attributes
}

// attrBuildIDs is an attribute of Temporal's own: the workers that have worked on a workflow.
var attrBuildIDs = temporal.NewSearchAttributeKeyKeywordList("BuildIds")

// WorkedOnBy names the worker of a workflow's first task, as Temporal does once that task
// is done. A workflow that starts with it saves one write of the search attributes.
func WorkedOnBy(worker string) temporal.SearchAttributeUpdate {
	return attrBuildIDs.ValueSet([]string{"unversioned", "unversioned:" + worker})
}

// WorkflowStatus is Temporal's status of the newest run of a workflow ID.
type WorkflowStatus string

// Workflow statuses.
const (
	WorkflowMissing    WorkflowStatus = "missing" // none exists, or it is older than the retention
	WorkflowRunning    WorkflowStatus = "running"
	WorkflowPaused     WorkflowStatus = "paused"
	WorkflowCompleted  WorkflowStatus = "completed"
	WorkflowFailed     WorkflowStatus = "failed"
	WorkflowCanceled   WorkflowStatus = "canceled"
	WorkflowTerminated WorkflowStatus = "terminated"
	WorkflowTimedOut   WorkflowStatus = "timed_out"
)

// Alive reports whether the workflow will continue, by itself or once an operator
// resumes it.
func (s WorkflowStatus) Alive() bool { return s == WorkflowRunning || s == WorkflowPaused }

// WorkflowState describes a workflow's pending work, or its end.
type WorkflowState struct {
	ID     string
	Run    string
	Status WorkflowStatus
	// Started and Closed are zero until that happens.
	Started, Closed time.Time
	// Ended says in words why a closed workflow ended.
	Ended string
	// TaskAttempt is the attempt of the pending workflow task; 0 without one.
	// TaskFailure describes the last failed attempt.
	TaskAttempt int
	TaskFailure string
	Activities  []PendingActivity
}

// PendingActivity is an activity that a workflow waits for.
type PendingActivity struct {
	Name    string
	Attempt int
	// Started is set while a worker runs it. Otherwise it waits for a worker, or for
	// its next attempt.
	Started bool
	Since   time.Time
	// Failure describes the last failed attempt; empty without one.
	Failure string
}
