package apiclient

import "time"

// StepName names a step of a request.
type StepName string

// Steps of a request, in order.
const (
	StepArtifacts StepName = "artifacts"
	StepParent    StepName = "parent"
	StepTurn      StepName = "turn"
	StepBuild     StepName = "build"
	StepBackfill  StepName = "backfill"
	StepOwn       StepName = "own"
	StepVerify    StepName = "verify"
	StepCompare   StepName = "compare"
)

// StepState is the state of a step.
type StepState string

// States of steps.
const (
	// StepPlanned: it has not begun, and may turn out not to be needed.
	StepPlanned StepState = "planned"
	// StepWaiting: nothing else is before it, and it waits.
	StepWaiting StepState = "waiting"
	StepRunning StepState = "in_progress"
	StepDone    StepState = "done"
	// StepFailed: it is over, and some of it has failed.
	StepFailed StepState = "failed"
	// StepSkipped: it is not needed.
	StepSkipped StepState = "skipped"
)

// Step is a part of the course of a request.
type Step struct {
	Name  StepName   `json:"name" enum:"artifacts,parent,turn,build,backfill,own,verify,compare"`
	State StepState  `json:"state" enum:"planned,waiting,in_progress,done,failed,skipped"`
	Words string     `json:"words" doc:"What it does or waits for, or why it is skipped."`
	Since *time.Time `json:"since,omitempty" doc:"When it began; absent: it has not, or that is not known."`
	Until *time.Time `json:"until,omitempty" doc:"When it ended; absent: it has not, or that is not known."`
	// Jobs of the step: all, those that have ended, and those of them that failed.
	Jobs       int `json:"jobs,omitempty"`
	JobsDone   int `json:"jobs_done,omitempty"`
	JobsFailed int `json:"jobs_failed,omitempty"`
}
