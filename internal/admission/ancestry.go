package admission

import "github.com/benchloom/benchloom/internal/bench"

// ancestry holds the parent links of the pending requests and, per tag, how many unfinished tags lie on the way up.
type ancestry struct {
	finished map[string]bool   // tags finished, as the caller says
	running  map[string]bool   // tags in progress
	parents  map[string]string // parent tag of each pending tag
	counts   map[string]int    // unfinished tags reachable from a pending tag, itself included
	cycles   map[string]int    // for a tag on a cycle, the number of tags on it
	rings    map[string]ring   // for a tag on a cycle of links, whatever the statuses
}

// ring is a cycle of parent links. A cycle with a finished or running tag blocks no request, but its links are still
// wrong.
type ring struct {
	members int
	parent  string // of the tag that the ring is looked up by
	broken  string // a tag on it that is finished or running; empty: none is
}

func newAncestry(requests []Request, completed map[string]bool) *ancestry {
	a := &ancestry{
		finished: make(map[string]bool, len(completed)),
		running:  map[string]bool{},
		parents:  make(map[string]string, len(requests)),
		counts:   make(map[string]int, len(requests)),
		cycles:   map[string]int{},
		rings:    map[string]ring{},
	}
	for tag, done := range completed {
		if done {
			a.finished[tag] = true
		}
	}
	owners := make(map[string]*Request, len(requests)) // the request whose parent link counts for a tag
	for i := range requests {
		r := &requests[i]
		switch {
		case r.Tag == "":
		case r.Status == bench.Completed:
			a.finished[r.Tag] = true
		case r.Status == bench.InProgress:
			a.running[r.Tag] = true
		default:
			if owner, taken := owners[r.Tag]; !taken || compareIdentity(r, owner) < 0 {
				owners[r.Tag] = r
				a.parents[r.Tag] = r.ParentTag
			}
		}
	}
	for tag := range a.parents {
		a.count(tag)
	}
	a.findRings(requests)
	return a
}

// findRings follows the links of all requests, finished and running ones included, from each tag once.
func (a *ancestry) findRings(requests []Request) {
	links := make(map[string]*Request, len(requests)) // by tag, the first request by ID
	for i := range requests {
		r := &requests[i]
		if other, taken := links[r.Tag]; r.Tag != "" && (!taken || compareIdentity(r, other) < 0) {
			links[r.Tag] = r
		}
	}
	walked := make(map[string]int, len(links)) // from which start a tag was first reached
	start := 0
	for tag := range links {
		start++
		for walked[tag] == 0 {
			walked[tag] = start
			r, known := links[tag]
			if !known || r.ParentTag == "" {
				break
			}
			tag = r.ParentTag
		}
		if r, known := links[tag]; known && r.ParentTag != "" && walked[tag] == start {
			a.recordRing(tag, links)
		}
	}
}

func (a *ancestry) recordRing(tag string, links map[string]*Request) {
	var tags []string
	broken := ""
	for at := tag; len(tags) == 0 || at != tag; at = links[at].ParentTag {
		tags = append(tags, at)
		if (a.finished[at] || a.running[at]) && (broken == "" || at < broken) {
			broken = at
		}
	}
	for _, at := range tags {
		a.rings[at] = ring{members: len(tags), parent: links[at].ParentTag, broken: broken}
	}
}

// ring returns the cycle of links that the request's own link is part of.
func (a *ancestry) ring(r Request) (ring, bool) {
	on, found := a.rings[r.Tag]
	return on, found && r.Tag != "" && on.parent == r.ParentTag
}

// settled reports whether a parent with this tag does not delay its children in the order: the tag is empty, finished
// or running.
func (a *ancestry) settled(tag string) bool {
	return tag == "" || a.finished[tag] || a.running[tag]
}

// count fills in counts and cycles for the tag and everything on its way up. It is a loop, not a recursion, and
// visits each tag once, since histories may be ten thousand commits deep.
func (a *ancestry) count(tag string) {
	var path []string
	place := map[string]int{} // index of a tag on the path
	below := 0                // unfinished tags above the end of the path
	for !a.settled(tag) {
		if n, known := a.counts[tag]; known {
			below = n
			break
		}
		if start, seen := place[tag]; seen {
			members := path[start:]
			for _, member := range members {
				a.cycles[member] = len(members)
				a.counts[member] = len(members)
			}
			below = len(members)
			path = path[:start]
			break
		}
		parent, pending := a.parents[tag]
		if !pending { // neither requested nor finished: one unknown ancestor
			below = 1
			break
		}
		place[tag] = len(path)
		path = append(path, tag)
		tag = parent
	}
	for i := len(path) - 1; i >= 0; i-- {
		below++
		a.counts[path[i]] = below
	}
}

// level returns the request's topological index (0 for a running one) and whether its own link lies on a cycle.
func (a *ancestry) level(r Request) (index int, inCycle bool) {
	if r.Status == bench.InProgress || a.settled(r.ParentTag) {
		return 0, false
	}
	n, pending := a.counts[r.ParentTag]
	if !pending {
		return 1, false
	}
	_, tagOnCycle := a.cycles[r.Tag]
	return n, tagOnCycle && a.parents[r.Tag] == r.ParentTag
}

// parentOnCycle reports whether the direct parent is part of a cycle. Of all ancestors, the parent is the one that a
// person can act on.
func (a *ancestry) parentOnCycle(r Request) bool {
	return a.cycles[r.ParentTag] > 0
}

// requested reports whether a pending request has the tag.
func (a *ancestry) requested(tag string) bool {
	_, pending := a.parents[tag]
	return pending
}
