package apiclient

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
)

// RequestExplanation explains the state of a request.
type RequestExplanation struct {
	Request  Request     `json:"request"`
	Findings []Finding   `json:"findings" doc:"What it waits for, what is stuck first."`
	Place    *QueueEntry `json:"place,omitempty" doc:"Its place in its project's queue; absent when it is not in it."`
	Progress Progress    `json:"progress"`
	Open     []OpenJob   `json:"open" doc:"Some of its open jobs: those under way first, then in the order in which they are handed out."`
	// Next is the first that no collector carries out.
	Next *diagnose.JobExplanation `json:"next,omitempty" doc:"The first of these that no collector carries out, or the first of all; absent when none is open."`
}

// OpenJob is an open job and what it waits for.
type OpenJob struct {
	Key    bench.JobKey    `json:"key"`
	Status bench.JobStatus `json:"status"`
	Waits  string          `json:"waits,omitempty" doc:"Absent when it runs."`
}

// ExplainJob says why a job is where it is.
func (c *Client) ExplainJob(ctx context.Context, key bench.JobKey) (diagnose.JobExplanation, error) {
	return get[diagnose.JobExplanation](ctx, c, v1("jobs", string(key), "explain"), nil)
}

// ExplainRequest says why a request is where it is; the request is named by its
// ID or as project:tag.
func (c *Client) ExplainRequest(ctx context.Context, ref string) (RequestExplanation, error) {
	return get[RequestExplanation](ctx, c, v1("requests", ref, "explain"), nil)
}
