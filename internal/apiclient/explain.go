package apiclient

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
)

// RequestExplanation explains the state of a request.
type RequestExplanation struct {
	Request  Request     `json:"request"`
	Findings []Finding   `json:"findings" doc:"What it waits for, stuck items first."`
	Place    *QueueEntry `json:"place,omitempty" doc:"Its position in its project's order of requests; absent if it has none."`
	Progress Progress    `json:"progress"`
	Open     []OpenJob   `json:"open" doc:"Some of its open jobs: those in progress first, then in the order of hand-out."`
	// Next explains the first open job that is not running.
	Next *diagnose.JobExplanation `json:"next,omitempty" doc:"Explanation of the first of these that is not running, or of the first of all; absent if none is open."`
}

// OpenJob is an open job and what it waits for.
type OpenJob struct {
	Key    bench.JobKey    `json:"key"`
	Status bench.JobStatus `json:"status"`
	Waits  string          `json:"waits,omitempty" doc:"What it waits for; absent while it runs."`
}

// ExplainJob explains a job's state.
func (c *Client) ExplainJob(ctx context.Context, key bench.JobKey) (diagnose.JobExplanation, error) {
	return get[diagnose.JobExplanation](ctx, c, v1("jobs", string(key), "explain"), nil)
}

// ExplainRequest explains the state of a request, named by its ID or as project:tag.
func (c *Client) ExplainRequest(ctx context.Context, ref string) (RequestExplanation, error) {
	return get[RequestExplanation](ctx, c, v1("requests", ref, "explain"), nil)
}
