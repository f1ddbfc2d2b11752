package admission_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
)

const histories = 2_500

var policies = []admission.Policy{admission.Spec, admission.Upstream}

// orderer is a way to order a history's requests; it returns their IDs.
type orderer func(h history, policy admission.Policy) []string

// disagreement is the property that the order is judged by: on random histories it agrees with the oracle. It returns
// the first history on which it does not; nil for none in n.
func disagreement(order orderer, policy admission.Policy, n int) *history {
	random := rand.New(rand.NewPCG(11, 12))
	for range n {
		if h := randomHistory(random); !slices.Equal(h.order(policy), order(h, policy)) {
			return &h
		}
	}
	return nil
}

func TestOrderAgreesWithTheRulesOnRandomHistories(t *testing.T) {
	t.Parallel()
	requireAgreement(t, histories)
}

func TestLongOrderAgreesWithTheRulesOnManyRandomHistories(t *testing.T) {
	t.Parallel()
	requireAgreement(t, 8*histories)
}

func requireAgreement(t *testing.T, n int) {
	t.Helper()
	for _, policy := range policies {
		h := disagreement(func(h history, policy admission.Policy) []string {
			return ids(admission.Order(h.requests, h.completed, policy))
		}, policy, n)
		if h != nil {
			require.Equal(t, h.order(policy), ids(admission.Order(h.requests, h.completed, policy)), "policy %s: %+v", policy, *h)
		}
	}
}

// The histories are worth nothing unless they hold what is hard: at least a tenth each.
func TestRandomHistoriesContainHardCases(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	cycles, missing, equal := 0, 0, 0
	for range histories {
		h := randomHistory(random)
		cycles += count(h.hasCycle())
		missing += count(h.hasMissingParent())
		equal += count(h.hasEqualKeys())
	}
	require.Greater(t, cycles, histories/10)
	require.Greater(t, missing, histories/10)
	require.Greater(t, equal, histories/10)
}

func TestPositionsAgreeWithTheRulesOnRandomHistories(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(61, 62))
	for range histories {
		h := randomHistory(random)
		for _, policy := range policies {
			for place, p := range admission.Order(h.requests, h.completed, policy) {
				if problem := h.check(p, place); problem != "" {
					require.Fail(t, problem, "%+v in %+v", p, h)
				}
			}
		}
	}
}

// check compares all of a position but its index with the rules, and says what is wrong.
func (h history) check(p admission.Position, index int) string {
	level, inCycle := len(h.ancestors(p.Request)), h.onCycle(p.Request)
	if p.Request.Status == bench.InProgress {
		level, inCycle = 0, false
	}
	switch {
	case p.Index != index:
		return "index"
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
	case (inCycle || h.linked(p.Request)) && !strings.Contains(p.Reason, "cycle") && !strings.Contains(p.Reason, "own parent"):
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
	return slices.ContainsFunc(h.requests, func(r admission.Request) bool {
		return r.Status == bench.ArtifactsReady && h.onCycle(r)
	})
}

func (h history) hasMissingParent() bool {
	return slices.ContainsFunc(h.requests, func(r admission.Request) bool {
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
	for range histories {
		h := randomHistory(random)
		// Even identical IDs must not matter.
		for i := range h.requests {
			if random.IntN(4) == 0 {
				h.requests[i].ID = "same"
			}
		}
		for _, policy := range policies {
			want := admission.Order(h.requests, h.completed, policy)
			shuffled := slices.Clone(h.requests)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			require.Equal(t, want, admission.Order(shuffled, h.completed, policy), "%+v", h)
		}
	}
}

func TestFinishingTheRunningRequestsDoesNotReorderTheRest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(31, 32))
	moved := 0
	for range histories {
		h := randomHistory(random)
		for _, policy := range policies {
			want := []string{}
			for _, p := range admission.Order(h.requests, h.completed, policy) {
				if p.Group != admission.GroupInProgress {
					want = append(want, string(p.Request.ID))
				}
			}
			after := history{requests: slices.Clone(h.requests), completed: h.completed}
			for i, r := range after.requests {
				if r.Status == bench.InProgress {
					after.requests[i].Status = bench.Completed
					moved++
				}
			}
			got := admission.Order(after.requests, after.completed, policy)
			require.Equal(t, want, ids(got), "%+v", h)
		}
	}
	require.Positive(t, moved)
}

func TestOrderLeavesItsArgumentsAlone(t *testing.T) {
	t.Parallel()
	h := randomHistory(rand.New(rand.NewPCG(41, 42)))
	requests, completed := slices.Clone(h.requests), map[string]bool{"a": true}
	admission.Order(requests, completed, admission.Spec)
	require.Equal(t, h.requests, requests)
	require.Equal(t, map[string]bool{"a": true}, completed)
}

// chain returns n ready commits, each the child of the one before.
func chain(n int) []admission.Request {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	requests := make([]admission.Request, n)
	for i := range requests {
		requests[i] = admission.Request{
			ID: bench.RequestID(fmt.Sprintf("id%06d", i)), Tag: fmt.Sprintf("tag%06d", i), ParentTag: fmt.Sprintf("tag%06d", i-1),
			Type: bench.Master, Status: bench.ArtifactsReady, PR: n - i, CreatedAt: start.Add(time.Duration(-i) * time.Minute),
		}
	}
	requests[0].ParentTag = ""
	return requests
}

func TestADeepChainIsOrderedFromItsRoot(t *testing.T) {
	t.Parallel()
	requests := chain(10_000)
	slices.Reverse(requests)
	positions := admission.Order(requests, nil, admission.Spec)
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
	positions := admission.Order(requests, nil, admission.Spec)
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
			mixed[i].Status = bench.WaitingForArtifacts
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for _, c := range []struct {
		name     string
		requests []admission.Request
	}{{"chain of 10000", chain(10_000)}, {"10000 in short chains", mixed}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				admission.Order(c.requests, map[string]bool{"done": true}, admission.Spec)
			}
		})
	}
}
