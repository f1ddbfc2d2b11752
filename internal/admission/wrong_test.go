package admission_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
)

// parts is an order put together from the comparison of each group. With the right parts it agrees with the oracle; the
// wrong ones below replace one part each.
type parts struct {
	group   func(h history, r admission.Request) int
	level   func(h history, r admission.Request) int
	release comparison
	ready   comparison
	waiting comparison
	// last decides between equal keys.
	last comparison
}

type comparison func(a, b admission.Request) int

func (p parts) order(h history, _ admission.Policy) []string {
	pending := slices.DeleteFunc(slices.Clone(h.requests), func(r admission.Request) bool { return r.Status == bench.Completed })
	slices.SortStableFunc(pending, func(a, b admission.Request) int {
		if c := cmp.Compare(p.group(h, a), p.group(h, b)); c != 0 {
			return c
		}
		c := 0
		switch p.group(h, a) {
		case 1:
			c = byCreation(a, b)
		case 2:
			c = p.release(a, b)
		case 3:
			c = cmp.Or(cmp.Compare(p.level(h, a), p.level(h, b)), p.ready(a, b))
		case 4:
			c = p.waiting(a, b)
		}
		return cmp.Or(c, p.last(a, b))
	})
	out := make([]string, len(pending))
	for i, r := range pending {
		out[i] = string(r.ID)
	}
	return out
}

func byCreation(a, b admission.Request) int { return a.CreatedAt.Compare(b.CreatedAt) }
func byNumber(a, b admission.Request) int   { return cmp.Compare(a.PR, b.PR) }

func byType(a, b admission.Request) int {
	rank := map[bench.RequestType]int{bench.Release: 0, bench.Master: 1, bench.Try: 2}
	return cmp.Compare(rank[a.Type], rank[b.Type])
}

func byReleaseDate(a, b admission.Request) int {
	date := func(r admission.Request) time.Time {
		if r.CommitDate.IsZero() {
			return r.CreatedAt.UTC().Truncate(24 * time.Hour)
		}
		return r.CommitDate
	}
	return date(a).Compare(date(b))
}

func byVersion(a, b admission.Request) int { return admission.CompareVersions(a.Tag, b.Tag) }
func bySpelling(a, b admission.Request) int {
	return strings.Compare(a.Tag, b.Tag)
}

// then compares by each in turn.
func then(by ...comparison) comparison {
	return func(a, b admission.Request) int {
		for _, c := range by {
			if n := c(a, b); n != 0 {
				return n
			}
		}
		return 0
	}
}

func rightParts() parts {
	return parts{
		group:   func(h history, r admission.Request) int { return h.group(r) },
		level:   func(h history, r admission.Request) int { return len(h.ancestors(r)) },
		release: then(byReleaseDate, byVersion),
		ready:   then(byType, byNumber, byCreation),
		waiting: then(byNumber, byCreation),
		last:    then(bySpelling, func(a, b admission.Request) int { return strings.Compare(string(a.ID), string(b.ID)) }),
	}
}

// wrongParts are orders that are easily written instead of the right one.
var wrongParts = []struct {
	name   string
	mutate func(p *parts)
}{
	{"the number before the type", func(p *parts) { p.ready = then(byNumber, byType, byCreation) }},
	{"creation before the number", func(p *parts) { p.ready = then(byType, byCreation, byNumber) }},
	{"release names as plain text", func(p *parts) { p.release = then(byReleaseDate, bySpelling) }},
	{"releases by creation", func(p *parts) { p.release = then(byCreation, byVersion) }},
	{"releases by name alone", func(p *parts) { p.release = byVersion }},
	{"releases among the commits", func(p *parts) {
		p.group = func(h history, r admission.Request) int {
			if g := h.group(r); g != 2 {
				return g
			}
			return 3
		}
	}},
	{"a running ancestor counts as unfinished", func(p *parts) {
		p.level = func(h history, r admission.Request) int { return len(h.ancestors(r)) + count(h.running(r.ParentTag)) }
	}},
	{"only the direct parent counts", func(p *parts) {
		p.level = func(h history, r admission.Request) int { return count(len(h.ancestors(r)) > 0) }
	}},
	{"a missing parent counts as finished", func(p *parts) {
		p.level = func(h history, r admission.Request) int {
			return count(len(h.ancestors(r)) > 0 && h.holder(r.ParentTag) != nil) * len(h.ancestors(r))
		}
	}},
	{"waiting requests by creation", func(p *parts) { p.waiting = then(byCreation, byNumber) }},
	{"waiting requests among the ready ones", func(p *parts) {
		p.group = func(h history, r admission.Request) int { return min(h.group(r), 3) }
	}},
	{"equal keys as they came", func(p *parts) { p.last = func(_, _ admission.Request) int { return 0 } }},
}

// TestWrongOrdersAreCaught shows that the property tells the right order from wrong ones.
func TestWrongOrdersAreCaught(t *testing.T) {
	t.Parallel()
	require.Nil(t, disagreement(rightParts().order, admission.Spec, histories), "what the wrong orders are made from is itself wrong")
	for _, wrong := range wrongParts {
		t.Run(wrong.name, func(t *testing.T) {
			t.Parallel()
			p := rightParts()
			wrong.mutate(&p)
			require.NotNil(t, disagreement(p.order, admission.Spec, histories))
		})
	}
}
