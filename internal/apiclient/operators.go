package apiclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Act holds the reason for an operator's action, recorded in the audit.
type Act struct {
	Reason         string `json:"reason,omitempty" maxLength:"500" doc:"Reason, recorded in the audit."`
	IdempotencyKey string `json:"idempotency_key,omitempty" maxLength:"128" doc:"Repeating a key does nothing and returns the first answer; keys are per user."`
}

// Reason of an operation that may be repeated freely.
type Reason struct {
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Reason, recorded in the audit."`
}

// Expiry ends a request that has waited too long.
type Expiry struct {
	Act
	Force bool `json:"force,omitempty" doc:"End it even if it is in progress."`
}

// Remeasurement measures a request again.
type Remeasurement struct {
	Act
	Benchmarks []string `json:"benchmarks,omitempty" maxItems:"1000" doc:"Only these; empty: all."`
}

// Retrigger repeats jobs of a graph, or of all graphs of a request: by new jobs, or as a rerun.
type Retrigger struct {
	Act
	Jobs       []bench.JobKey `json:"jobs,omitempty" maxItems:"10000" doc:"Keys of the jobs that run again. Without them, those that select matches; of one graph, all without both."`
	Select     string         `json:"select,omitempty" maxLength:"4000" example:"kind=benchmark,state=failure" doc:"FIELD=VALUE,…: kind, stage, state, target and benchmark. A field that is given again adds a value. Beside named jobs, it chooses the portion downstream."`
	Downstream string         `json:"downstream,omitempty" doc:"What becomes of jobs that need those that run again: none, portion (those that select matches) or all. Needed if there are any."`
	Lacking    bool           `json:"lacking,omitempty" doc:"Only test cases without a valid result: of one named job, or of a whole request that has ended, which is planned from the project's current suite where that has changed. Not with select, downstream, times and budget, and not as a rerun."`
	Times      int            `json:"times,omitempty" maximum:"100" minimum:"0" doc:"How often each of them runs, one time after the other; absent: once."`
	Budget     float64        `json:"budget_seconds,omitempty" minimum:"0" doc:"Refuse it if it would take more machine time than this, as its jobs took it last; absent: whatever it takes."`
}

// QueueChange puts jobs of an open request into another queue.
type QueueChange struct {
	Act
	Queue string         `json:"queue" doc:"Where they wait from now on: its level and share count."`
	Jobs  []bench.JobKey `json:"jobs,omitempty" maxItems:"10000" doc:"Keys of the jobs; empty: all that have not begun, and later ones."`
}

// Invalidation marks results as invalid. At least one field must narrow them down.
type Invalidation struct {
	Act
	Project   string     `json:"project,omitempty"`
	Tag       string     `json:"tag,omitempty" doc:"Only results of this artifact of the project."`
	Collector string     `json:"collector,omitempty" doc:"Only results measured by this collector."`
	Since     *time.Time `json:"since,omitempty" doc:"Only results measured at this time or later."`
	Until     *time.Time `json:"until,omitempty" doc:"Only results measured before this time."`
	DryRun    bool       `json:"dry_run,omitempty" doc:"Only report which results these are."`
}

// Purge removes an artifact with all that belongs to it.
type Purge struct {
	Act
	Project string `json:"project"`
	Tag     string `json:"tag"`
	DryRun  bool   `json:"dry_run,omitempty" doc:"Only report what would be removed."`
}

// Operation is an operator's action as recorded in the audit.
type Operation struct {
	ID             int64           `json:"id,omitempty" doc:"Its entry in the audit; absent for a dry run."`
	At             time.Time       `json:"at,omitzero"`
	Who            string          `json:"who"`
	Action         string          `json:"action" example:"request cancel"`
	Project        string          `json:"project,omitempty" doc:"Absent if it concerns several."`
	Subject        string          `json:"subject,omitempty" doc:"A request's ID, a job's key, an artifact's tag or a project."`
	Reason         string          `json:"reason,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	Detail         json.RawMessage `json:"detail,omitempty" doc:"Other parameters."`
	Changed        bool            `json:"changed" doc:"False: there was nothing to do."`
	Message        string          `json:"message" doc:"Result, in words."`
	// The following fields describe the affected objects.
	Requests  []bench.RequestID `json:"requests,omitempty" doc:"Affected requests, the first 20."`
	Jobs      int               `json:"jobs,omitempty"`
	TestCases int               `json:"test_cases,omitempty"`
	Runs      int               `json:"runs,omitempty"`
	Graph     string            `json:"graph,omitempty" doc:"The graph that was written, of a retrigger."`
	Results   int               `json:"results,omitempty"`
	// Preview is part of the answer to a dry run that would measure something.
	Preview  *Preview `json:"preview,omitempty" doc:"What a dry run would measure, and its machine time."`
	Repeated bool     `json:"repeated,omitempty" doc:"The idempotency key was used before; this is the answer from then."`
	DryRun   bool     `json:"dry_run,omitempty"`
}

// Preview tells what measuring again would cost.
type Preview struct {
	Jobs           []PreviewedJob `json:"jobs" doc:"The first 100 of them."`
	MachineSeconds float64        `json:"machine_seconds" doc:"Time that they took when they last succeeded, by their test cases."`
	Unknown        int            `json:"unknown,omitempty" doc:"Jobs that never succeeded, whose time is therefore not known."`
}

// PreviewedJob is a job that would be measured again.
type PreviewedJob struct {
	Job       bench.JobKey    `json:"job" doc:"The former one, which it replaces."`
	Name      string          `json:"name,omitempty"`
	Kind      bench.JobKind   `json:"kind"`
	Target    bench.Target    `json:"target"`
	SizeClass bench.SizeClass `json:"size_class" doc:"Of the former one."`
	TestCases int             `json:"test_cases"`
	Seconds   float64         `json:"seconds,omitempty" doc:"Time that they took last; absent: not known."`
}

// RequestOperation is an operation on a request, with the request's state afterwards.
type RequestOperation struct {
	Request
	Operation Operation `json:"operation"`
}

// AuditList is a page of the audit, newest first.
type AuditList struct {
	Operations []Operation `json:"operations"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// CancelRequest ends a request, named by its ID or as project:tag.
func (c *Client) CancelRequest(ctx context.Context, ref string, act Act) (RequestOperation, error) {
	return post[RequestOperation](ctx, c, v1("requests", ref, "cancel"), act)
}

// ExpireRequest ends a request that has waited too long.
func (c *Client) ExpireRequest(ctx context.Context, ref string, e Expiry) (RequestOperation, error) {
	return post[RequestOperation](ctx, c, v1("requests", ref, "expire"), e)
}

// RetryRequest reopens a request that has ended, to measure what lacks a result.
func (c *Client) RetryRequest(ctx context.Context, ref string, act Act) (RequestOperation, error) {
	return post[RequestOperation](ctx, c, v1("requests", ref, "retry"), act)
}

// RemeasureRequest reopens a request that has ended, to measure again what has
// results.
func (c *Client) RemeasureRequest(ctx context.Context, ref string, r Remeasurement) (RequestOperation, error) {
	return post[RequestOperation](ctx, c, v1("requests", ref, "remeasure"), r)
}

// PreviewRemeasurement tells what [Client.RemeasureRequest] would do, and does nothing.
func (c *Client) PreviewRemeasurement(ctx context.Context, ref string, r Remeasurement) (out RequestOperation, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: v1("requests", ref, "remeasure"), query: url.Values{"dry_run": {"true"}}, in: r, out: &out})
	return out, err
}

// Retrigger repeats jobs of a graph, named by its ID, or of all graphs of a request, named
// by its ID or as project:tag. A preview tells what it would do, and does nothing.
func (c *Client) Retrigger(ctx context.Context, ref string, r Retrigger, preview bool) (RequestOperation, error) {
	return c.again(ctx, ref, "retrigger", r, preview)
}

// Rerun runs jobs of a graph, or of all graphs of a request, again as themselves. It is
// otherwise [Client.Retrigger].
func (c *Client) Rerun(ctx context.Context, ref string, r Retrigger, preview bool) (RequestOperation, error) {
	return c.again(ctx, ref, "rerun", r, preview)
}

func (c *Client) again(ctx context.Context, ref, verb string, r Retrigger, preview bool) (out RequestOperation, err error) {
	query := url.Values{}
	if preview {
		query.Set("dry_run", "true")
	}
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: v1("graphs", ref, verb), query: query, in: r, out: &out})
	return out, err
}

// SetQueue puts jobs of an open request into another queue.
func (c *Client) SetQueue(ctx context.Context, ref string, q QueueChange) (RequestOperation, error) {
	return post[RequestOperation](ctx, c, v1("requests", ref, "set-queue"), q)
}

// RetryJob replaces a job that has ended by a new one for what lacks a result.
func (c *Client) RetryJob(ctx context.Context, key bench.JobKey, act Act) (RequestOperation, error) {
	return post[RequestOperation](ctx, c, v1("jobs", string(key), "retry"), act)
}

// InvalidateResults marks results as invalid.
func (c *Client) InvalidateResults(ctx context.Context, i Invalidation) (Operation, error) {
	return post[Operation](ctx, c, v1("results", "invalidate"), i)
}

// PurgeArtifact removes an artifact with its results, requests and jobs.
func (c *Client) PurgeArtifact(ctx context.Context, p Purge) (Operation, error) {
	return post[Operation](ctx, c, v1("artifacts", "purge"), p)
}

// PauseQueue pauses a project: no request is admitted and no job handed out.
func (c *Client) PauseQueue(ctx context.Context, project string, act Act) (Operation, error) {
	return post[Operation](ctx, c, v1("projects", project, "queue", "pause"), act)
}

// ResumeQueue resumes a paused project.
func (c *Client) ResumeQueue(ctx context.Context, project string, act Act) (Operation, error) {
	return post[Operation](ctx, c, v1("projects", project, "queue", "resume"), act)
}

// AuditQuery narrows a list of operations; zero values do not narrow.
type AuditQuery struct {
	Project, Who, Subject string
	Limit                 int
	// Cursor is Next of the previous page.
	Cursor string
}

// Audit lists the actions of operators, newest first.
func (c *Client) Audit(ctx context.Context, q AuditQuery) (AuditList, error) {
	query := url.Values{}
	set(query, "project", q.Project)
	set(query, "who", q.Who)
	set(query, "subject", q.Subject)
	set(query, "cursor", q.Cursor)
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[AuditList](ctx, c, v1("audit"), query)
}
