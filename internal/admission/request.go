package admission

import "time"

// Type says what a request benchmarks.
type Type string

// The request types that are queued. A request of any other type is ordered like a try build, behind all of them.
const (
	Release Type = "release"
	Master  Type = "master"
	Try     Type = "try"
)

// Status is where a request stands.
type Status string

// The statuses of a request. A completed request is never part of an order: its tag counts as finished.
const (
	WaitingForArtifacts Status = "waiting_for_artifacts"
	ArtifactsReady      Status = "artifacts_ready"
	InProgress          Status = "in_progress"
	Completed           Status = "completed"
)

// Policy names the rule for requests of one topological level.
type Policy string

const (
	// Spec puts the type (master before try) before the pull request's number. It is the default: an empty or
	// unknown policy means Spec.
	Spec Policy = "spec"
	// Upstream puts the pull request's number before the type, as rust-lang/rustc-perf does.
	Upstream Policy = "upstream"
)

// Request is what the order needs to know of a benchmark request.
type Request struct {
	// ID identifies the request. It is the last tie-break.
	ID string
	// Tag names the artifact: a commit's SHA or a version. Empty while it is unknown.
	Tag string
	// Type is the request's type.
	Type Type
	// ParentTag is the tag of the artifact that has to be measured first; empty for none. A caller that has given
	// up on a parent (too old, never to be measured) either leaves it empty or counts it as finished.
	ParentTag string
	// PR is the pull request's number; 0 for none, which stands before all numbers.
	PR int
	// CreatedAt is when the request was made.
	CreatedAt time.Time
	// CommitDate is the date of the release or commit, compared as the instant that it is. A release without
	// one has the calendar day (UTC) of CreatedAt, from its first instant.
	CommitDate time.Time
	// Status is the request's status.
	Status Status
}

// Group is one of the four parts of the order, in their order.
type Group int

// The groups, first to last.
const (
	GroupInProgress Group = iota + 1
	GroupReleases
	GroupReady
	GroupWaiting
)

// String names the group as it is shown to people.
func (g Group) String() string {
	switch g {
	case GroupInProgress:
		return "in progress"
	case GroupReleases:
		return "releases"
	case GroupReady:
		return "artifacts ready"
	case GroupWaiting:
		return "waiting for artifacts"
	default:
		return "unknown"
	}
}

// Position is a request's place in the order, with the reasons for it.
type Position struct {
	// Request is the request as it was given.
	Request Request
	// Place counts from 0, which is the next one (or one that already runs).
	Place int
	// Group is the part of the order that the request is in.
	Group Group
	// Level is the topological index: the number of distinct unfinished ancestors along the parent links, up to
	// the first finished or running one. A parent that is neither requested nor finished counts as one. On a
	// cycle it is the number of requests that form the cycle.
	Level int
	// InCycle is set when the request is its own ancestor.
	InCycle bool
	// Reason says in words why the request stands where it stands.
	Reason string
	// Admissible is set when the request may start now, as far as it alone is concerned: its artifacts are ready
	// and its parent is finished (a running parent is not), for a try build as for a commit. How many may run at
	// once is the caller's decision.
	Admissible bool
	// Blocked says in words why the request is not admissible; empty if it is.
	Blocked string
}
