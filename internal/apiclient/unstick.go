package apiclient

import (
	"context"
	"time"
)

// Unstick asks why a request does not move, and to mend what is safe to mend.
type Unstick struct {
	DryRun bool `json:"dry_run,omitempty" doc:"Only look: mend nothing."`
	Force  bool `json:"force,omitempty" doc:"Also reset a workflow that cannot decide to its beginning. It reads the record again."`
}

// Unstuck is the answer: what a request waits for, what is stuck first.
type Unstuck struct {
	Request  Request   `json:"request"`
	Findings []Finding `json:"findings"`
}

// Finding is something that a request waits for.
type Finding struct {
	Subject string     `json:"subject" doc:"What it is about: the ID of a workflow, a request or a job, or a task queue."`
	What    string     `json:"what" doc:"What is the case."`
	Since   *time.Time `json:"since,omitempty"`
	Stuck   bool       `json:"stuck" doc:"It does not go on by itself."`
	Remedy  string     `json:"remedy,omitempty" doc:"What a person can do."`
	Repair  string     `json:"repair,omitempty" doc:"What Benchloom can do: restart-request, start-queue, reconcile, or, with force, reset."`
	// Repaired: that was done.
	Repaired    bool   `json:"repaired"`
	RepairError string `json:"repair_error,omitempty" doc:"Why it could not be done."`
}

// UnstickRequest finds out why a request, named by its ID or as project:tag, does
// not move.
func (c *Client) UnstickRequest(ctx context.Context, ref string, u Unstick) (Unstuck, error) {
	return post[Unstuck](ctx, c, v1("requests", ref, "unstick"), u)
}
