package bench

import (
	"encoding/json"
	"strings"
	"time"
)

// RequestType is the reason for a request.
type RequestType string

const (
	// Release: a published version, compared with the next lower measured one.
	Release RequestType = "release"
	// Master: a merged commit, compared with its parent.
	Master RequestType = "master"
	// Try: a build of proposed changes, compared with its parent.
	Try RequestType = "try"
	// AdHoc: a person's own work, without parents and admission: its jobs go straight
	// to their queue.
	AdHoc RequestType = "adhoc"
)

// ParseRequestType parses a request type; case does not matter.
func ParseRequestType(s string) (RequestType, error) {
	switch t := RequestType(strings.ToLower(s)); t {
	case Release, Master, Try, AdHoc:
		return t, nil
	}
	return "", invalid("request type", s, "use release, master, try or adhoc")
}

// Tracked reports whether requests of this type need admission; ad-hoc ones do not.
func (t RequestType) Tracked() bool { return t != AdHoc }

// HasParent reports whether requests of this type are compared with their parent
// commit. A release is compared with another release.
func (t RequestType) HasParent() bool { return t == Master || t == Try }

// RequestStatus is the status of a request, one of four.
type RequestStatus string

const (
	WaitingForArtifacts RequestStatus = "waiting_for_artifacts"
	ArtifactsReady      RequestStatus = "artifacts_ready"
	InProgress          RequestStatus = "in_progress"
	Completed           RequestStatus = "completed"
)

// ParseRequestStatus parses a status.
func ParseRequestStatus(s string) (RequestStatus, error) {
	switch st := RequestStatus(s); st {
	case WaitingForArtifacts, ArtifactsReady, InProgress, Completed:
		return st, nil
	}
	return "", invalid("request status", s, "use waiting_for_artifacts, artifacts_ready, in_progress or completed")
}

// Outcome is the outcome of a completed request.
type Outcome string

const (
	Success   Outcome = "success"
	Failure   Outcome = "failure"
	Cancelled Outcome = "cancelled"
	Expired   Outcome = "expired"
)

// Standing is a request's status, with its outcome and end once it is completed.
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
		return Standing{}, invalid("request status", string(status)+"/"+string(outcome), "a request has an outcome and an end time if and only if it is completed")
	}
	return Standing{Status: status, Outcome: outcome, CompletedAt: completedAt}, nil
}

// Request is a request to benchmark an artifact, to run commands, or to run a graph. Its
// constructors [NewRelease], [NewMasterCommit], [NewTryBuild], [NewMeasurement],
// [NewProfileRequest], [NewCommandRequest], [NewBatchRequest] and [NewGraphRequest] refuse
// fields that their kind of request cannot have.
type Request struct {
	// ID is empty until the request is recorded.
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
	// Template says which graph template the request runs; nil: none.
	Template *TemplateCall
	Standing
	Timeline
	Findings
	// Message says what the request waits for or, once it is completed, how it ended.
	Message string
}

// CommitSubmitter submits the requests that a commit source makes.
const CommitSubmitter = "commit-source"

// BuildWatch is the account that reopens requests which failed with their build, once that
// build succeeds.
const BuildWatch = "build-watch"

// Submission holds the submitter of a request and the queue of its jobs.
type Submission struct {
	// Submitter is the account whose limits apply.
	Submitter string
	// Queue is the requested queue; empty: the default one.
	Queue string
	// Branch is the submitter's branch, for limits by branch; may be empty.
	Branch string
	// IdempotencyKey is unique among a submitter's requests: submitting twice with the
	// same key gives the same request. Empty: none.
	IdempotencyKey string
}

// Origin describes the origin of a commit or a build. A request without a parent may
// have only the date.
type Origin struct {
	// Parent is the tag that the artifact is compared with; empty: not known.
	Parent string
	// PR is the number of the pull request; 0: none.
	PR int
	// CommitDate is the date of the artifact's commit; nil: not known.
	CommitDate *time.Time
	// WaitsFor is the tag whose jobs must be done before the request may be
	// admitted: its parent, or the nearest ancestor with a request. Empty: none.
	WaitsFor string
	// ParentNote says why there is no parent to wait for or to compare with.
	ParentNote string
}

// Scope limits what is measured and where.
type Scope struct {
	// Selection is part of the suite. For commands it holds at most one target.
	Selection Selection
	// Versus is the tag that an ad-hoc request measures in turns with its artifact and
	// compares with it; empty: none.
	Versus string
	// SizeClass pins an ad-hoc request's jobs to a class; 0: the project's.
	SizeClass SizeClass
	// Constraints limit where an ad-hoc request's jobs may run; nil: none.
	Constraints *Constraints
	// Profiler names the profiler under which an ad-hoc request runs one test case of its
	// artifact, and of Versus if that is given, instead of measuring it; empty: none.
	Profiler string
	// Profiling says what is recorded beside its runs; nil: what the project says.
	Profiling *Profiling
}

// Commands holds the command that an ad-hoc request runs instead of a suite, or
// describes its batch. The commands of a batch are stored only in its jobs.
type Commands struct {
	Command *Command
	// Batch counts the commands that were submitted together; 0: no batch.
	Batch int
	// Digest is a hash of a batch's content. Two requests with the same idempotency key
	// must have the same digest.
	Digest string
	// Deferred is set when the jobs were planned at submission; the request's workflow
	// then starts when the first of them is handed out.
	Deferred bool
}

// TemplateCall describes how a graph was made for the branch of the [Submission]: the same
// call makes the same graph.
type TemplateCall struct {
	// Name names the graph template.
	Name string `json:"name"`
	// Definitions is the content hash of the definitions that contain the template.
	Definitions string `json:"definitions"`
	// Parameters are those in force, and Given those that were given, as name=value.
	Parameters map[string]any `json:"parameters,omitempty"`
	Given      []string       `json:"given,omitempty"`
	// Graph is the content hash of the graph.
	Graph string `json:"graph"`
	// Customised tells in words how the graph differs from the template's; empty: it does
	// not.
	Customised []string `json:"customised,omitempty"`
	// ClonedFrom is the graph that this one is a copy of; empty: none.
	ClonedFrom string `json:"cloned_from,omitempty"`
}

// Timeline holds the times of a request's life; nil: not yet.
type Timeline struct {
	CreatedAt         time.Time
	WorkflowStartedAt *time.Time
	// ReopenedAt is the last time the request was reopened after its end.
	ReopenedAt *time.Time
	AdmittedAt *time.Time
	ExpandedAt *time.Time
	JobsDoneAt *time.Time
}

// Findings holds the result of a completed request.
type Findings struct {
	// Baseline is the tag that the artifact was compared with; empty: none.
	Baseline string
	// Summary is the comparison, as JSON; empty: there was none.
	Summary json.RawMessage
}

// InTurns returns the tag that the request measures in turns with its own artifact and
// compares with it; empty: none. A request for profiles measures nothing.
func (r Request) InTurns() string {
	if r.Profiler != "" {
		return ""
	}
	return r.Versus
}

// OfCommands reports whether the request runs commands instead of measuring an
// artifact.
func (r Request) OfCommands() bool { return r.Command != nil || r.Batch != 0 }

// OfSuite reports whether the request itself measures with its project's suite: it neither
// runs commands nor a graph.
func (r Request) OfSuite() bool { return !r.OfCommands() && r.Template == nil }

// WaitsSince returns the time at which the request was created or last reopened.
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

// Open returns the number of jobs that can still run.
func (p JobProgress) Open() int { return p.Queued + p.HandedOut + p.InProgress }

// Selection limits what part of a suite is measured. Empty lists mean the suite's
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
	// Iterations overrides the suite's number if positive.
	Iterations int `json:"iterations,omitempty"`
}

// IsZero reports whether nothing is selected, so that the suite's defaults apply.
func (s Selection) IsZero() bool { return s.ofOneTarget() && len(s.Targets) == 0 }

// ofOneTarget reports whether at most one target, and nothing else, is selected.
func (s Selection) ofOneTarget() bool {
	return s.Set == "" && s.Iterations == 0 && len(s.Benchmarks)+len(s.Profiles)+len(s.Scenarios)+len(s.Backends) == 0 && len(s.Targets) <= 1
}
