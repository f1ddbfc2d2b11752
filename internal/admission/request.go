package admission

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
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

// Request holds those fields of a benchmark request that the order depends on. See [RequestsOf].
type Request struct {
	// ID identifies the request. It is the last tie-break.
	ID bench.RequestID
	// Tag names the artifact: a commit's SHA or a version. Empty while it is unknown.
	Tag string
	// Type is release, master or try. A request of any other type is ordered like a try build, behind all of them.
	Type bench.RequestType
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
	// Status is the request's status. A completed request has no position: its tag counts as finished.
	Status bench.RequestStatus
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

// Position says where a request stands in the order, and why.
type Position struct {
	// Request is the request as it was given.
	Request Request
	// Index counts from 0, which is the next one (or one that already runs).
	Index int
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
