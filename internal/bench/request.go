package bench

import (
	"encoding/json"
	"strings"
	"time"
)

// RequestType tells why an artifact is to be benchmarked.
type RequestType string

const (
	// Release: a published version, compared with the next lower measured one.
	Release RequestType = "release"
	// Master: a merged commit, compared with its parent.
	Master RequestType = "master"
	// Try: a build of proposed changes, compared with its parent.
	Try RequestType = "try"
	// AdHoc: a person's own work: no parents, no admission, straight to the
	// queues.
	AdHoc RequestType = "adhoc"
)

// ParseRequestType reads a request type; case does not matter.
func ParseRequestType(s string) (RequestType, error) {
	switch t := RequestType(strings.ToLower(s)); t {
	case Release, Master, Try, AdHoc:
		return t, nil
	}
	return "", invalid("request type", s, "use release, master, try or adhoc")
}

// Tracked tells whether requests of this type are admitted one after another;
// ad-hoc ones are not.
func (t RequestType) Tracked() bool { return t != AdHoc }

// HasParent tells whether requests of this type are compared with the commit that
// they were made from. A release is compared with another release.
func (t RequestType) HasParent() bool { return t == Master || t == Try }

// RequestStatus is where a request stands. There are exactly four.
type RequestStatus string

const (
	WaitingForArtifacts RequestStatus = "waiting_for_artifacts"
	ArtifactsReady      RequestStatus = "artifacts_ready"
	InProgress          RequestStatus = "in_progress"
	Completed           RequestStatus = "completed"
)

// ParseRequestStatus reads a status.
func ParseRequestStatus(s string) (RequestStatus, error) {
	switch st := RequestStatus(s); st {
	case WaitingForArtifacts, ArtifactsReady, InProgress, Completed:
		return st, nil
	}
	return "", invalid("request status", s, "use waiting_for_artifacts, artifacts_ready, in_progress or completed")
}

// Outcome is how a completed request ended.
type Outcome string

const (
	Success   Outcome = "success"
	Failure   Outcome = "failure"
	Cancelled Outcome = "cancelled"
	Expired   Outcome = "expired"
)

// Standing is a request's status with what that status carries: only a
// completed request has an outcome and an end.
type Standing struct {
	Status      RequestStatus `json:"status"`
	Outcome     Outcome       `json:"outcome,omitempty"`
	CompletedAt *time.Time    `json:"completed_at,omitempty"`
}

// NewStanding refuses an outcome or an end without completion, and completion
// without either.
func NewStanding(status RequestStatus, outcome Outcome, completedAt *time.Time) (Standing, error) {
	done := status == Completed
	if done != (outcome != "") || done != (completedAt != nil) {
		return Standing{}, invalid("request status", string(status)+"/"+string(outcome), "a completed request, and no other, has an outcome and an end")
	}
	return Standing{Status: status, Outcome: outcome, CompletedAt: completedAt}, nil
}

// Request is a row of benchmark_request.
type Request struct {
	ID         RequestID
	Project    string
	Type       RequestType
	Tag        string
	Parent     string
	PR         int
	CommitDate *time.Time
	Standing
	// WaitsFor is the tag whose jobs must be done before the request may be
	// admitted: its parent's, or that of the nearest ancestor with a request.
	// Empty: it waits for nobody.
	WaitsFor string
	// ParentNote says why there is no parent to wait for or to compare with.
	ParentNote string
	Submitter  string
	Selection  Selection
	// Versus is the tag that an ad-hoc request measures its artifact in turns with,
	// and compares it with; empty: with none.
	Versus string
	// SizeClass pins an ad-hoc request's jobs to a class; 0: the project's.
	SizeClass SizeClass
	// Queue is the one that was named; empty: the default one.
	Queue  string
	Branch string
	// Constraints narrow where its jobs may run; nil: nothing does.
	Constraints *Constraints
	// Deferred: its jobs were written with it, and its workflow starts with the
	// first that is handed out.
	Deferred bool
	Command  *Command
	// Batch is how many commands were submitted in one request; 0: it is none.
	Batch int
	// Digest is of all that a batch asks for; two with the same key are to agree in
	// it.
	Digest            string
	IdempotencyKey    string
	CreatedAt         time.Time
	WorkflowStartedAt *time.Time
	// ReopenedAt is when it was last opened again after its end.
	ReopenedAt *time.Time
	AdmittedAt *time.Time
	ExpandedAt *time.Time
	JobsDoneAt *time.Time
	Baseline   string
	Summary    json.RawMessage
	Message    string
	// Limited: the submitter may not have more waiting than its limit says. For
	// writing; what nobody submits is not refused.
	Limited bool `db:"-"`
}

// WaitsSince is when it began to wait: when it was made, or opened again.
func (r Request) WaitsSince() time.Time {
	if r.ReopenedAt != nil {
		return *r.ReopenedAt
	}
	return r.CreatedAt
}

// JobProgress counts a request's jobs.
type JobProgress struct {
	Total, Queued, HandedOut, InProgress, Success, Failure, Cancelled int
	TestCases, TestCasesDone                                          int
}

// Open tells how many jobs can still run.
func (p JobProgress) Open() int { return p.Queued + p.HandedOut + p.InProgress }

// Waiter is a request that waits for a job.
type Waiter struct {
	Project string
	Request RequestID
}

// Selection narrows what of a suite is measured. Empty lists mean the suite's
// defaults.
type Selection struct {
	// Set is one of the suite's named sets; it is applied first, the other
	// fields narrow or override it.
	Set        string   `json:"set,omitempty"`
	Benchmarks []string `json:"benchmarks,omitempty"`
	Profiles   []string `json:"profiles,omitempty"`
	Scenarios  []string `json:"scenarios,omitempty"`
	Backends   []string `json:"backends,omitempty"`
	Targets    []Target `json:"targets,omitempty"`
	// Iterations overrides the suite's, when positive.
	Iterations int `json:"iterations,omitempty"`
}
