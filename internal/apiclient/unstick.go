package apiclient

import (
	"context"
	"time"
)

// Unstick asks why a request is stuck, and for safe repairs.
type Unstick struct {
	DryRun bool `json:"dry_run,omitempty" doc:"Only look, repair nothing."`
	Force  bool `json:"force,omitempty" doc:"Also reset workflows whose tasks keep failing to their beginning. They read the record again."`
}

// Unstuck lists what a request waits for, stuck items first.
type Unstuck struct {
	Request  Request   `json:"request"`
	Findings []Finding `json:"findings"`
}

// Finding is something that a request waits for.
type Finding struct {
	Subject string     `json:"subject" doc:"ID of a workflow, request or job, or a task queue."`
	What    string     `json:"what" doc:"Description."`
	Since   *time.Time `json:"since,omitempty"`
	Stuck   bool       `json:"stuck" doc:"It does not continue by itself."`
	Remedy  string     `json:"remedy,omitempty" doc:"What a person can do."`
	Repair  string     `json:"repair,omitempty" doc:"What Benchloom can do: restart-request, start-queue, reconcile, or, with force, reset."`
	// Repaired reports whether the repair was made.
	Repaired    bool   `json:"repaired"`
	RepairError string `json:"repair_error,omitempty" doc:"Why the repair failed."`
}

// UnstickRequest finds out why a request, named by its ID or as project:tag, is stuck,
// and makes repairs.
func (c *Client) UnstickRequest(ctx context.Context, ref string, u Unstick) (Unstuck, error) {
	return post[Unstuck](ctx, c, v1("requests", ref, "unstick"), u)
}
