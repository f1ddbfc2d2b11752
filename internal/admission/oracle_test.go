package admission_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
)

// The oracle: the order as the rules' text says it, written without looking at the implementation, slow and plain.
// A request stands before another if a rule of its group says so; the place of a request is the number of those
// that stand before it.

type history struct {
	requests  []admission.Request
	completed map[string]bool
}

func (h history) running(tag string) bool {
	for _, r := range h.requests {
		if r.Tag == tag && r.Status == bench.InProgress {
			return true
		}
	}
	return false
}

func (h history) finished(tag string) bool {
	for _, r := range h.requests {
		if r.Tag == tag && r.Status == bench.Completed {
			return true
		}
	}
	return h.completed[tag]
}

// holder returns the pending request that stands for a tag: the first by ID.
func (h history) holder(tag string) *admission.Request {
	var first *admission.Request
	for i, r := range h.requests {
		pending := r.Status == bench.ArtifactsReady || r.Status == bench.WaitingForArtifacts
		if r.Tag == tag && pending && (first == nil || r.ID < first.ID) {
			first = &h.requests[i]
		}
	}
	return first
}

// ancestors lists the distinct unfinished ancestors; the way up ends at a finished or running one, at one that
// nobody requested, or where it closes.
func (h history) ancestors(r admission.Request) []string {
	var above []string
	for tag := r.ParentTag; tag != "" && !h.finished(tag) && !h.running(tag) && !slices.Contains(above, tag); {
		above = append(above, tag)
		next := h.holder(tag)
		if next == nil {
			break
		}
		tag = next.ParentTag
	}
	return above
}

func (h history) onCycle(r admission.Request) bool {
	holder := h.holder(r.Tag)
	return r.Tag != "" && holder != nil && holder.ParentTag == r.ParentTag && slices.Contains(h.ancestors(r), r.Tag)
}

// linked reports whether the links from a request lead back to it, through whatever statuses.
func (h history) linked(r admission.Request) bool {
	first := func(tag string) *admission.Request {
		var first *admission.Request
		for i, s := range h.requests {
			if tag != "" && s.Tag == tag && (first == nil || s.ID < first.ID) {
				first = &h.requests[i]
			}
		}
		return first
	}
	own := first(r.Tag)
	if own == nil || own.ParentTag != r.ParentTag {
		return false
	}
	for at, steps := first(r.ParentTag), 0; at != nil && steps <= len(h.requests); at, steps = first(at.ParentTag), steps+1 {
		if at.Tag == r.Tag {
			return true
		}
	}
	return false
}

func (h history) group(r admission.Request) int {
	if r.Status == bench.InProgress {
		return 1
	}
	if r.Status == bench.WaitingForArtifacts {
		return 4
	}
	if r.Type == bench.Release {
		return 2
	}
	return 3
}

// key writes a request's place as text that sorts as the rules say, for everything but the names of releases.
func (h history) key(r admission.Request, policy admission.Policy) (beforeName, afterName string) {
	moment := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000") }
	kind := map[bench.RequestType]string{bench.Release: "0", bench.Master: "1", bench.Try: "2"}[r.Type]
	number := fmt.Sprintf("%09d", r.PR)
	group := fmt.Sprint(h.group(r))
	identity := "\x00" + r.Tag + "\x00" + string(r.ID) // nothing sorts before the separator
	switch h.group(r) {
	case 1:
		return group + moment(r.CreatedAt) + identity, ""
	case 2:
		if r.CommitDate.IsZero() { // asked for by hand: the day counts
			return group + r.CreatedAt.UTC().Format(time.DateOnly) + "T00:00:00.000000000", identity
		}
		return group + moment(r.CommitDate), identity
	case 3:
		level := fmt.Sprintf("%09d", len(h.ancestors(r)))
		if policy == admission.Upstream {
			return group + level + number + kind + moment(r.CreatedAt) + identity, ""
		}
		return group + level + kind + number + moment(r.CreatedAt) + identity, ""
	default:
		return group + number + moment(r.CreatedAt) + identity, ""
	}
}

// order returns the IDs in the order that the rules ask for.
func (h history) order(policy admission.Policy) []string {
	type entry struct {
		admission.Request
		release   bool
		key, rest string
	}
	var pending []entry
	for _, r := range h.requests {
		if r.Status != bench.Completed {
			key, rest := h.key(r, policy)
			pending = append(pending, entry{r, h.group(r) == 2, key, rest})
		}
	}
	before := func(r, s entry) bool {
		if r.key != s.key {
			return r.key < s.key
		}
		if r.release && r.Tag != s.Tag {
			return admission.CompareVersions(r.Tag, s.Tag) < 0
		}
		return r.rest < s.rest
	}
	ids := make([]string, len(pending))
	for _, r := range pending {
		place := 0
		for _, s := range pending {
			if before(s, r) {
				place++
			}
		}
		ids[place] = string(r.ID)
	}
	return ids
}

func (h history) admissible(r admission.Request) bool {
	return r.Status == bench.ArtifactsReady && (r.ParentTag == "" || h.finished(r.ParentTag))
}

// randomHistory makes up to 14 requests with unique IDs. Tags, times and numbers are drawn from few values, so that
// equal keys, shared tags, missing parents and cycles are common.
func randomHistory(random *rand.Rand) history {
	h := history{completed: map[string]bool{}}
	tags := []string{"", "a", "b", "c", "d", "e", "f", "g", "1.9.0", "1.10.0", "1.9"}
	pick := func(values []string) string { return values[random.IntN(len(values))] }
	for range random.IntN(4) {
		h.completed[pick(tags[1:])] = random.IntN(8) > 0
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range random.IntN(15) {
		r := admission.Request{
			ID:        bench.RequestID(fmt.Sprintf("r%02d", i)),
			Tag:       pick(tags),
			ParentTag: pick(append(tags, "", "", "gone")),
			PR:        random.IntN(4),
			CreatedAt: start.Add(time.Duration(random.IntN(3)) * time.Hour),
			Type:      []bench.RequestType{bench.Release, bench.Master, bench.Master, bench.Try}[random.IntN(4)],
			Status: []bench.RequestStatus{
				bench.ArtifactsReady, bench.ArtifactsReady, bench.ArtifactsReady,
				bench.ArtifactsReady, bench.WaitingForArtifacts, bench.InProgress, bench.Completed,
			}[random.IntN(7)],
		}
		if random.IntN(3) > 0 {
			r.CommitDate = start.AddDate(0, 0, -random.IntN(2)).Add(time.Duration(random.IntN(2)) * time.Second)
		}
		h.requests = append(h.requests, r)
	}
	if n := len(h.requests); random.IntN(3) == 0 && n > 0 { // close a ring of one to four
		ring := h.requests[:1+random.IntN(min(n, 4))]
		for i := range ring {
			ring[i].Tag = tags[1+i]
			ring[i].Status = bench.ArtifactsReady
			ring[i].Type = []bench.RequestType{bench.Master, bench.Try}[random.IntN(2)]
			ring[i].ParentTag = tags[1+(i+1)%len(ring)]
		}
	}
	random.Shuffle(len(h.requests), func(i, j int) { h.requests[i], h.requests[j] = h.requests[j], h.requests[i] })
	return h
}

func ids(positions []admission.Position) []string {
	out := make([]string, len(positions))
	for i, p := range positions {
		out[i] = string(p.Request.ID)
	}
	return out
}
