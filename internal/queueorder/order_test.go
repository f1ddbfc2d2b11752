package queueorder_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/queueorder"
)

const histories = 10_000

var policies = []queueorder.Policy{queueorder.Spec, queueorder.Upstream}

func TestOrderAgreesWithTheRulesOnRandomHistories(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	cycles, missing, equal := 0, 0, 0
	for i := range histories {
		h := randomHistory(random)
		for _, policy := range policies {
			positions := queueorder.Order(h.requests, h.completed, policy)
			if want := h.order(policy); !slices.Equal(want, ids(positions)) {
				require.Equal(t, want, ids(positions), "history %d, policy %s: %+v", i, policy, h)
			}
			for place, p := range positions {
				if problem := h.check(p, place); problem != "" {
					require.Fail(t, problem, "%+v in %+v", p, h)
				}
			}
		}
		cycles += count(h.hasCycle())
		missing += count(h.hasMissingParent())
		equal += count(h.hasEqualKeys())
	}
	// The histories are worth nothing unless they hold what is hard.
	require.Greater(t, cycles, histories/10)
	require.Greater(t, missing, histories/10)
	require.Greater(t, equal, histories/10)
}

// check compares all of a position but its place among the others with the rules, and says what is wrong.
func (h history) check(p queueorder.Position, place int) string {
	level, inCycle := len(h.ancestors(p.Request)), h.onCycle(p.Request)
	if p.Request.Status == queueorder.InProgress {
		level, inCycle = 0, false
	}
	switch {
	case p.Place != place:
		return "place"
	case int(p.Group) != h.group(p.Request):
		return "group"
	case p.Level != level:
		return "level"
	case p.InCycle != inCycle:
		return "cycle"
	case p.Admissible != h.admissible(p.Request):
		return "admissible"
	case p.Admissible != (p.Blocked == ""):
		return "blocked"
	case p.Reason == "":
		return "no reason"
	case inCycle && p.Group == queueorder.GroupReady && !strings.Contains(p.Reason, "cycle"):
		return "a member of a cycle does not say so"
	default:
		return ""
	}
}

func count(present bool) int {
	if present {
		return 1
	}
	return 0
}

func (h history) hasCycle() bool {
	return slices.ContainsFunc(h.requests, func(r queueorder.Request) bool {
		return r.Status == queueorder.ArtifactsReady && h.onCycle(r)
	})
}

func (h history) hasMissingParent() bool {
	return slices.ContainsFunc(h.requests, func(r queueorder.Request) bool {
		return r.ParentTag != "" && !h.finished(r.ParentTag) && !h.running(r.ParentTag) && h.holder(r.ParentTag) == nil
	})
}

func (h history) hasEqualKeys() bool {
	seen := map[string]bool{}
	for _, r := range h.requests {
		key := fmt.Sprint(h.group(r), len(h.ancestors(r)), r.Type, r.PR, r.CreatedAt.Unix())
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

func TestOrderDoesNotDependOnTheOrderOfItsInput(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(21, 22))
	for range 2_000 {
		h := randomHistory(random)
		// Even identical IDs must not matter.
		for i := range h.requests {
			if random.IntN(4) == 0 {
				h.requests[i].ID = "same"
			}
		}
		for _, policy := range policies {
			want := queueorder.Order(h.requests, h.completed, policy)
			shuffled := slices.Clone(h.requests)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			require.Equal(t, want, queueorder.Order(shuffled, h.completed, policy), "%+v", h)
		}
	}
}

func TestFinishingTheRunningRequestsDoesNotReorderTheRest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(31, 32))
	moved := 0
	for range 5_000 {
		h := randomHistory(random)
		for _, policy := range policies {
			want := []string{}
			for _, p := range queueorder.Order(h.requests, h.completed, policy) {
				if p.Group != queueorder.GroupInProgress {
					want = append(want, p.Request.ID)
				}
			}
			after := history{requests: slices.Clone(h.requests), completed: h.completed}
			for i, r := range after.requests {
				if r.Status == queueorder.InProgress {
					after.requests[i].Status = queueorder.Completed
					moved++
				}
			}
			got := queueorder.Order(after.requests, after.completed, policy)
			require.Equal(t, want, ids(got), "%+v", h)
		}
	}
	require.Positive(t, moved)
}

func TestOrderLeavesItsArgumentsAlone(t *testing.T) {
	t.Parallel()
	h := randomHistory(rand.New(rand.NewPCG(41, 42)))
	requests, completed := slices.Clone(h.requests), map[string]bool{"a": true}
	queueorder.Order(requests, completed, queueorder.Spec)
	require.Equal(t, h.requests, requests)
	require.Equal(t, map[string]bool{"a": true}, completed)
}

// TestWrongOrdersAreCaught shows that the oracle and the random histories can tell a right order from those that are
// easily written instead: each must differ from the oracle somewhere.
func TestWrongOrdersAreCaught(t *testing.T) {
	t.Parallel()
	type comparator func(h history, a, b queueorder.Request) int
	byType := func(a, b queueorder.Request) int {
		rank := map[queueorder.Type]int{queueorder.Release: 0, queueorder.Master: 1, queueorder.Try: 2}
		return cmp.Compare(rank[a.Type], rank[b.Type])
	}
	byLevel := func(h history, a, b queueorder.Request) int {
		return cmp.Compare(len(h.ancestors(a)), len(h.ancestors(b)))
	}
	byNumber := func(a, b queueorder.Request) int { return cmp.Compare(a.PR, b.PR) }
	byIdentity := func(a, b queueorder.Request) int {
		return cmp.Or(strings.Compare(a.Tag, b.Tag), strings.Compare(a.ID, b.ID))
	}
	byCreation := func(a, b queueorder.Request) int { return a.CreatedAt.Compare(b.CreatedAt) }
	date := func(r queueorder.Request) time.Time {
		day := func(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
		if r.CommitDate.IsZero() {
			return day(r.CreatedAt)
		}
		return day(r.CommitDate)
	}
	byRelease := func(a, b queueorder.Request) int {
		return cmp.Or(date(a).Compare(date(b)), queueorder.CompareVersions(a.Tag, b.Tag))
	}
	// base is right; each wrong one below replaces one part of it.
	type parts struct {
		level   comparator
		ready   func(a, b queueorder.Request) int
		release func(a, b queueorder.Request) int
		waiting func(a, b queueorder.Request) int
	}
	right := parts{
		level:   byLevel,
		ready:   func(a, b queueorder.Request) int { return cmp.Or(byType(a, b), byNumber(a, b), byCreation(a, b)) },
		release: byRelease,
		waiting: func(a, b queueorder.Request) int { return cmp.Or(byNumber(a, b), byCreation(a, b)) },
	}
	order := func(p parts, h history) []string {
		pending := slices.DeleteFunc(slices.Clone(h.requests), func(r queueorder.Request) bool {
			return r.Status == queueorder.Completed
		})
		slices.SortFunc(pending, func(a, b queueorder.Request) int {
			if c := cmp.Compare(h.group(a), h.group(b)); c != 0 {
				return c
			}
			c := 0
			switch h.group(a) {
			case 1:
				c = byCreation(a, b)
			case 2:
				c = p.release(a, b)
			case 3:
				c = cmp.Or(p.level(h, a, b), p.ready(a, b))
			case 4:
				c = p.waiting(a, b)
			}
			return cmp.Or(c, byIdentity(a, b))
		})
		out := make([]string, len(pending))
		for i, r := range pending {
			out[i] = r.ID
		}
		return out
	}
	differsFrom := func(p parts) bool {
		random := rand.New(rand.NewPCG(51, 52))
		for range 2_000 {
			if h := randomHistory(random); !slices.Equal(h.order(queueorder.Spec), order(p, h)) {
				return true
			}
		}
		return false
	}
	require.False(t, differsFrom(right), "the base of the wrong orders is itself wrong")

	numberFirst := right
	numberFirst.ready = func(a, b queueorder.Request) int { return cmp.Or(byNumber(a, b), byType(a, b), byCreation(a, b)) }
	require.True(t, differsFrom(numberFirst), "pull request number before type goes unnoticed")

	spelled := right
	spelled.release = func(a, b queueorder.Request) int {
		return cmp.Or(date(a).Compare(date(b)), strings.Compare(a.Tag, b.Tag))
	}
	require.True(t, differsFrom(spelled), "release names compared as strings go unnoticed")

	runningBlocks := right
	runningBlocks.level = func(h history, a, b queueorder.Request) int {
		blocked := func(r queueorder.Request) int { return len(h.ancestors(r)) + count(h.running(r.ParentTag)) }
		return cmp.Compare(blocked(a), blocked(b))
	}
	require.True(t, differsFrom(runningBlocks), "counting a running parent as unfinished goes unnoticed")

	parentOnly := right
	parentOnly.level = func(h history, a, b queueorder.Request) int {
		return cmp.Compare(count(len(h.ancestors(a)) > 0), count(len(h.ancestors(b)) > 0))
	}
	require.True(t, differsFrom(parentOnly), "looking at the direct parent only goes unnoticed")

	arrival := right
	arrival.waiting = func(a, b queueorder.Request) int { return cmp.Or(byCreation(a, b), byNumber(a, b)) }
	require.True(t, differsFrom(arrival), "waiting requests by arrival go unnoticed")

	created := right
	created.release = func(a, b queueorder.Request) int {
		return cmp.Or(byCreation(a, b), queueorder.CompareVersions(a.Tag, b.Tag))
	}
	require.True(t, differsFrom(created), "releases by creation time go unnoticed")
}

// chain returns n ready commits, each the child of the one before.
func chain(n int) []queueorder.Request {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	requests := make([]queueorder.Request, n)
	for i := range requests {
		requests[i] = queueorder.Request{
			ID: fmt.Sprintf("id%06d", i), Tag: fmt.Sprintf("tag%06d", i), ParentTag: fmt.Sprintf("tag%06d", i-1),
			Type: queueorder.Master, Status: queueorder.ArtifactsReady, PR: n - i, CreatedAt: start.Add(time.Duration(-i) * time.Minute),
		}
	}
	requests[0].ParentTag = ""
	return requests
}

func TestADeepChainIsOrderedFromItsRoot(t *testing.T) {
	t.Parallel()
	requests := chain(10_000)
	slices.Reverse(requests)
	positions := queueorder.Order(requests, nil, queueorder.Spec)
	for i, p := range positions {
		require.Equal(t, i, p.Level)
		require.Equal(t, fmt.Sprintf("tag%06d", i), p.Request.Tag)
		require.Equal(t, i == 0, p.Admissible)
	}
}

func TestALargeCycleIsOrderedByItsOtherKeys(t *testing.T) {
	t.Parallel()
	requests := chain(10_000)
	requests[0].ParentTag = requests[len(requests)-1].Tag
	positions := queueorder.Order(requests, nil, queueorder.Spec)
	for i, p := range positions {
		require.Equal(t, 10_000, p.Level)
		require.True(t, p.InCycle)
		require.False(t, p.Admissible)
		require.Equal(t, i+1, p.Request.PR)
	}
}

func BenchmarkOrder(b *testing.B) {
	mixed := chain(10_000)
	for i := range mixed {
		if i%10 == 0 {
			mixed[i].ParentTag = "done"
		}
		if i%7 == 0 {
			mixed[i].Status = queueorder.WaitingForArtifacts
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for _, c := range []struct {
		name     string
		requests []queueorder.Request
	}{{"chain of 10000", chain(10_000)}, {"10000 in short chains", mixed}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				queueorder.Order(c.requests, map[string]bool{"done": true}, queueorder.Spec)
			}
		})
	}
}
