package bench

import (
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
