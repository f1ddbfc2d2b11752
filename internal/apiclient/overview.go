package apiclient

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Overview shows what needs attention, what runs, and what was found last.
type Overview struct {
	Attention []Attention `json:"attention" doc:"What is wrong, the gravest first; empty: nothing that the record knows of."`
	Running   []Running   `json:"running" doc:"Runs under way, the oldest first; at most 50."`
	// RunningTotal counts all of them.
	RunningTotal int             `json:"running_total" doc:"Number of runs under way."`
	Verdicts     []LatestVerdict `json:"verdicts" doc:"By project: its newest requests that have ended, at most three each."`
}

// AttentionKind tells what is wrong.
type AttentionKind string

// Kinds of what needs attention, the gravest first.
const (
	AttentionPool       AttentionKind = "pool"
	AttentionRequest    AttentionKind = "request"
	AttentionRepository AttentionKind = "repository"
	AttentionPause      AttentionKind = "pause"
)

// Attention is something that is wrong.
type Attention struct {
	Kind    AttentionKind `json:"kind" enum:"pool,request,repository,pause" doc:"A pool without a collector, a request that does not go on, a repository that cannot be read, or a paused project."`
	Subject string        `json:"subject" doc:"Task queue, ID of the request, or project."`
	Project string        `json:"project,omitempty"`
	What    string        `json:"what" doc:"In words."`
	Since   *time.Time    `json:"since,omitempty"`
	Remedy  string        `json:"remedy" doc:"What a person can do."`
}

// Running is a run that is under way.
type Running struct {
	Run       bench.RunID     `json:"run"`
	Collector string          `json:"collector"`
	Reason    bench.RunReason `json:"reason"`
	SizeClass bench.SizeClass `json:"size_class"`
	StartedAt time.Time       `json:"started_at"`
	Progress  RunProgress     `json:"progress,omitzero"`
	Job       bench.JobKey    `json:"job"`
	Name      string          `json:"name,omitempty" doc:"Name of the job, given by its submitter."`
	Kind      bench.JobKind   `json:"kind"`
	Project   string          `json:"project"`
	Tag       string          `json:"tag,omitempty"`
	Request   bench.RequestID `json:"request,omitempty" doc:"Absent: no request waits for it any more."`
}

// LatestVerdict holds the newest requests of a project that have ended.
type LatestVerdict struct {
	Project  string    `json:"project"`
	Requests []Request `json:"requests" doc:"Newest first."`
}

// Overview shows what needs attention, what runs, and what was found last.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return get[Overview](ctx, c, v1("overview"), nil)
}
