package bench

import (
	"encoding/json"
	"strings"
	"time"
)

// RequestType tells why something is to be benchmarked.
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
	if _, err := ParseRequestStatus(string(status)); err != nil {
		return Standing{}, err
	}
	done := status == Completed
	if done != (outcome != "") || done != (completedAt != nil) {
		return Standing{}, invalid("request status", string(status)+"/"+string(outcome), "a completed request, and no other, has an outcome and an end")
	}
	return Standing{Status: status, Outcome: outcome, CompletedAt: completedAt}, nil
}

// Request asks for an artifact, or for commands, to be benchmarked. It is made by
// [NewRelease], [NewMasterCommit], [NewTryBuild], [NewMeasurement],
// [NewCommandRequest] or [NewBatchRequest], each of which refuses what that kind
// of request cannot have.
type Request struct {
	// ID is empty until the request is taken in.
	ID      RequestID
	Project string
	Type    RequestType
	// Tag names the artifact. It is empty for commands, and for a try build whose
	// artifact has no name yet.
	Tag string
	Submission
	Origin
	Scope
	Commands
	Standing
	Timeline
	Findings
	// Message tells people what the request waits for or, once it has completed,
	// how it ended.
	Message string
}

// Submission tells who asked, and how the jobs take their turn.
type Submission struct {
	// Submitter is the account whose limits apply.
	Submitter string
	// Queue is the fair-share queue that was named; empty: the default one.
	Queue string
	// Branch is the submitter's, for limits by branch; may be empty.
	Branch string
	// IdempotencyKey is unique among a submitter's requests: asking twice with the
	// same key gives the same request. Empty: none.
	IdempotencyKey string
}

// Origin tells what a commit or a build was made from. Of requests without a
// parent, only the date may be known.
type Origin struct {
	// Parent is the tag that the artifact is compared with; empty: not known.
	Parent string
	// PR is the number of the pull request; 0: none.
	PR int
	// CommitDate is when the artifact's commit was made; nil: not known.
	CommitDate *time.Time
	// WaitsFor is the tag whose jobs must be done before the request may be
	// admitted: its parent's, or that of the nearest ancestor with a request.
	// Empty: it waits for nobody.
	WaitsFor string
	// ParentNote tells why there is no parent to wait for or to compare with.
	ParentNote string
}

// Scope narrows what is measured and where.
type Scope struct {
	// Selection is part of the suite. For commands it holds at most one target.
	Selection Selection
	// Versus is the tag that an ad-hoc request measures its artifact in turns with,
	// and compares it with; empty: none.
	Versus string
	// SizeClass pins an ad-hoc request's jobs to a class; 0: the project's.
	SizeClass SizeClass
	// Constraints narrow where an ad-hoc request's jobs may run; nil: nothing does.
	Constraints *Constraints
}

// Commands are what an ad-hoc request runs instead of a suite: one command, or a
// batch, whose commands are known to its jobs alone.
type Commands struct {
	Command *Command
	// Batch counts the commands that were submitted together; 0: no batch.
	Batch int
	// Digest is a hash of all that a batch asks for: two requests with the same
	// idempotency key must agree in it.
	Digest string
	// Deferred: the jobs were planned when the request was submitted, and its
	// workflow starts with the first of them that is handed out.
	Deferred bool
}

// Timeline holds the times of a request's life; nil: not yet.
type Timeline struct {
	CreatedAt         time.Time
	WorkflowStartedAt *time.Time
	// ReopenedAt is when the request was last opened again after its end.
	ReopenedAt *time.Time
	AdmittedAt *time.Time
	ExpandedAt *time.Time
	JobsDoneAt *time.Time
}

// Findings are the result of a completed request.
type Findings struct {
	// Baseline is the tag that the artifact was compared with; empty: none.
	Baseline string
	// Summary is the comparison, as JSON; empty: there was none.
	Summary json.RawMessage
}

// OfCommands tells whether the request runs commands and measures no artifact.
func (r Request) OfCommands() bool { return r.Command != nil || r.Batch != 0 }

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

// IsZero tells whether nothing is selected: the suite's defaults hold.
func (s Selection) IsZero() bool { return s.ofOneTarget() && len(s.Targets) == 0 }

// ofOneTarget tells whether nothing but a target is selected, if that.
func (s Selection) ofOneTarget() bool {
	return s.Set == "" && s.Iterations == 0 && len(s.Benchmarks)+len(s.Profiles)+len(s.Scenarios)+len(s.Backends) == 0 && len(s.Targets) <= 1
}
