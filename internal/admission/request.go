package admission

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Policy selects the rule for requests of one topological level.
type Policy string

const (
	// Spec puts the type (master before try) before the pull request's number. It is the default: an empty or
	// unknown policy means Spec.
	Spec Policy = "spec"
	// Upstream puts the pull request's number before the type, as rust-lang/rustc-perf does.
	Upstream Policy = "upstream"
)

// Request holds the fields of a request that the order depends on. See [RequestsOf].
type Request struct {
	// ID identifies the request. It is the last tie-break.
	ID bench.RequestID
	// Tag names the artifact: a commit's SHA or a version. Empty while it is unknown.
	Tag string
	// Type is release, master or try. A request of any other type is ordered like a try build, after all of them.
	Type bench.RequestType
	// ParentTag is the tag of the artifact that must be measured first; empty for none. A caller that has given up
	// on a parent, for example because it is too old, leaves it empty or counts it as finished.
	ParentTag string
	// PR is the pull request's number; 0 for none, which comes before all numbers.
	PR int
	// CreatedAt is the time of the request's submission.
	CreatedAt time.Time
	// CommitDate is the date of the release or commit, compared as an instant. A release without one gets the start
	// of the calendar day (UTC) of CreatedAt.
	CommitDate time.Time
	// Status is the request's status. A completed request has no position: its tag counts as finished.
	Status bench.RequestStatus
}

// Group is one of the four parts of the order; lower groups come first.
type Group int

// The groups, first to last.
const (
	GroupInProgress Group = iota + 1
	GroupReleases
	GroupReady
	GroupWaiting
)

// String returns the group's name for people.
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

// Position is a request's position in the order, with the reason.
type Position struct {
	// Request is the request as it was given.
	Request Request
	// Index counts from 0, the request that is next or already runs.
	Index int
	// Group is the request's part of the order.
	Group Group
	// Level is the topological index: the number of distinct unfinished ancestors along the parent links, up to
	// the first finished or running one. A parent that is neither requested nor finished counts as one. On a
	// cycle it is the number of requests that form the cycle.
	Level int
	// InCycle is set when the request is its own ancestor.
	InCycle bool
	// Reason explains the position in words.
	Reason string
	// Admissible is set when the request itself is ready to start: its artifacts are ready and its parent is
	// finished, not just running. This applies to try builds and commits alike. The caller decides how many may run
	// at once.
	Admissible bool
	// Blocked explains in words why the request is not admissible; empty if it is.
	Blocked string
}
