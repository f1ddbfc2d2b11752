package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Commit is a recorded commit of a project's branch.
type Commit struct {
	SHA         string    `json:"sha"`
	Parent      string    `json:"parent,omitempty" doc:"First parent."`
	Subject     string    `json:"subject"`
	Author      string    `json:"author"`
	CommittedAt time.Time `json:"committed_at"`
	FirstSeenAt time.Time `json:"first_seen_at"`
	OnBranch    bool      `json:"on_branch" doc:"False: the branch was rewritten and no longer holds it."`
	Skipped     bool      `json:"skipped" doc:"Too old to be requested when it was first seen."`
	// Request is the tracked request for it.
	Request *CommitRequest `json:"request,omitempty" doc:"Absent: there is none."`
}

// CommitRequest is the state of the request for a commit.
type CommitRequest struct {
	ID      bench.RequestID     `json:"id"`
	Status  bench.RequestStatus `json:"status"`
	Outcome bench.Outcome       `json:"outcome,omitempty"`
}

// SourceState is the state of the looks at a project's commits.
type SourceState struct {
	Repository string     `json:"repository"`
	Branch     string     `json:"branch"`
	Head       string     `json:"head,omitempty" doc:"Newest commit up to which all requests are made."`
	LastOKAt   *time.Time `json:"last_ok_at,omitempty" doc:"Absent: no look has succeeded yet."`
	// FailingSince is the start of the first look that failed since the last success.
	FailingSince *time.Time `json:"failing_since,omitempty" doc:"Absent: the last look succeeded."`
	Message      string     `json:"message,omitempty" doc:"Why it fails, or a remark."`
	WorkflowID   string     `json:"workflow_id" doc:"ID of the Schedule, and beginning of the IDs of its workflows, in the Temporal Web UI."`
}

// CommitList is a project's commits, newest first.
type CommitList struct {
	Commits []Commit     `json:"commits"`
	Source  *SourceState `json:"source,omitempty" doc:"Absent: the project names no source."`
}

// Commits lists the newest commits of a project, at most limit; 0: 50.
func (c *Client) Commits(ctx context.Context, project string, limit int) (CommitList, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return get[CommitList](ctx, c, v1("projects", project, "commits"), query)
}

// SyncProject triggers a look at a project's commits without waiting for it, and
// returns the state before it.
func (c *Client) SyncProject(ctx context.Context, project string) (SourceState, error) {
	return post[SourceState](ctx, c, v1("projects", project, "sync"), struct{}{})
}
