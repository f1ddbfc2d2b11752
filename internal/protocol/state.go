package protocol

import (
	"time"

	"go.temporal.io/sdk/temporal"
)

// JobAttributes are the search attributes that a Job workflow is started with.
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

// WorkflowStatus is what Temporal says of a workflow ID.
type WorkflowStatus string

// Statuses of the newest run under an ID.
const (
	WorkflowMissing    WorkflowStatus = "missing" // there is none, or it is older than the retention
	WorkflowRunning    WorkflowStatus = "running"
	WorkflowPaused     WorkflowStatus = "paused"
	WorkflowCompleted  WorkflowStatus = "completed"
	WorkflowFailed     WorkflowStatus = "failed"
	WorkflowCanceled   WorkflowStatus = "canceled"
	WorkflowTerminated WorkflowStatus = "terminated"
	WorkflowTimedOut   WorkflowStatus = "timed_out"
)

// Alive tells whether the workflow will go on by itself, or when the operator who
// paused it says so.
func (s WorkflowStatus) Alive() bool { return s == WorkflowRunning || s == WorkflowPaused }

// WorkflowState is what keeps a workflow busy, or what has ended it.
type WorkflowState struct {
	ID     string
	Run    string
	Status WorkflowStatus
	// Started and Closed are zero where that has not happened.
	Started, Closed time.Time
	// Ended says why a closed one ended, in words.
	Ended string
	// TaskAttempt is at which attempt its pending workflow task is; 0 without
	// one. TaskFailure is how the last one that failed did.
	TaskAttempt int
	TaskFailure string
	Activities  []PendingActivity
}

// PendingActivity is an activity that a workflow waits for.
type PendingActivity struct {
	Name    string
	Attempt int
	// Started: a worker is at it. Else it waits for one, or for its next attempt.
	Started bool
	Since   time.Time
	// Failure is how the last attempt failed; empty without one.
	Failure string
}
