package admission

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Order returns the requests in the order in which they will be admitted. completed holds the finished tags (value
// true). Completed requests among the given ones are left out, and their tags count as finished.
//
// The groups and the keys within each:
//
//  1. in progress: by creation time;
//  2. releases whose artifacts are ready: by date (an instant, see [Request.CommitDate]), then name (see
//     [CompareVersions]);
//  3. other requests whose artifacts are ready: by topological index (see [Position.Level]), then, with the policy
//     [Spec], master before try, pull request number, creation time; with [Upstream] the number comes before the
//     type;
//  4. requests waiting for artifacts, releases included: by pull request number, then creation time.
//
// Ties are broken by tag, then ID, then the remaining fields, so that the order is total and independent of the order
// of the input. A running ancestor counts as finished for the index, so that the end of the running request never
// reorders the others.
//
// Parent links may form cycles or lead nowhere, and several requests may be in progress or share a tag. If requests
// share a tag, the parent link of the first by ID counts. Order takes O(n log n) time, whatever the depth of the links.
//
// The rules follow rust-lang/rustc-perf, except for releases, which it orders by tag as plain text.
func Order(requests []Request, completed map[string]bool, policy Policy) []Position {
	links := newAncestry(requests, completed)
	positions := make([]Position, 0, len(requests))
	for _, r := range requests {
		if r.Status == bench.Completed {
			continue
		}
		p := Position{Request: r, Group: groupOf(r)}
		p.Level, p.InCycle = links.level(r)
		positions = append(positions, p)
	}
	sorted := make([]*Position, len(positions)) // a position is large: it moves once
	for i := range positions {
		sorted[i] = &positions[i]
	}
	slices.SortFunc(sorted, func(a, b *Position) int { return compare(a, b, policy) })
	out := make([]Position, len(positions))
	for i := range out {
		out[i] = *sorted[i]
		p := &out[i]
		p.Index = i
		p.Reason = reason(*p, links)
		p.Blocked = blocked(*p, links)
		p.Admissible = p.Blocked == ""
	}
	return out
}

func groupOf(r Request) Group {
	switch {
	case r.Status == bench.InProgress:
		return GroupInProgress
	case r.Status != bench.ArtifactsReady:
		return GroupWaiting
	case r.Type == bench.Release:
		return GroupReleases
	default:
		return GroupReady
	}
}

func compare(a, b *Position, policy Policy) int {
	if c := cmp.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	c := 0
	switch a.Group {
	case GroupInProgress:
		c = a.Request.CreatedAt.Compare(b.Request.CreatedAt)
	case GroupReleases:
		c = cmp.Or(
			releaseDate(a.Request).Compare(releaseDate(b.Request)),
			CompareVersions(a.Request.Tag, b.Request.Tag),
		)
	case GroupReady:
		c = cmp.Or(cmp.Compare(a.Level, b.Level), compareReady(&a.Request, &b.Request, policy))
	case GroupWaiting:
		c = cmp.Or(
			cmp.Compare(a.Request.PR, b.Request.PR),
			a.Request.CreatedAt.Compare(b.Request.CreatedAt),
		)
	}
	if c != 0 {
		return c
	}
	return compareIdentity(&a.Request, &b.Request)
}

func compareReady(a, b *Request, policy Policy) int {
	byType := cmp.Compare(typeRank(a.Type), typeRank(b.Type))
	byNumber := cmp.Compare(a.PR, b.PR)
	byTime := a.CreatedAt.Compare(b.CreatedAt)
	if policy == Upstream {
		return cmp.Or(byNumber, byType, byTime)
	}
	return cmp.Or(byType, byNumber, byTime)
}

// compareIdentity is the final tie-break: 0 only for requests that are equal in every field.
func compareIdentity(a, b *Request) int {
	return cmp.Or(
		strings.Compare(a.Tag, b.Tag),
		cmp.Compare(a.ID, b.ID),
		strings.Compare(a.ParentTag, b.ParentTag),
		strings.Compare(string(a.Type), string(b.Type)),
		strings.Compare(string(a.Status), string(b.Status)),
		cmp.Compare(a.PR, b.PR),
		a.CreatedAt.Compare(b.CreatedAt),
		a.CommitDate.Compare(b.CommitDate),
	)
}

func typeRank(t bench.RequestType) int {
	switch t {
	case bench.Release:
		return 0
	case bench.Master:
		return 1
	case bench.Try:
		return 2
	default:
		return 3
	}
}

// releaseDate returns the instant that orders a release: its date in full precision. A release submitted without a date
// gets the start of the calendar day (UTC) of its submission, so that several submitted in a row are ordered by version.
func releaseDate(r Request) time.Time {
	if r.CommitDate.IsZero() {
		return r.CreatedAt.UTC().Truncate(24 * time.Hour)
	}
	return r.CommitDate
}
