package fairshare_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/fairshare"
)

func TestDepth(t *testing.T) {
	t.Parallel()
	for live, want := range map[int][3]int{0: {2, 8, 1}, 1: {4, 16, 2}, 10: {22, 88, 11}} {
		require.Equal(t, want, [3]int{fairshare.Depth(live), fairshare.StrictDepth(live), fairshare.Spare(live)}, "%d live collectors", live)
	}
}

// Temporal advances a fairness key by the whole part of 1000/weight: what it rounds off
// must not change shares by more than a thousandth.
func TestWeightsKeepTheirRatiosInTemporal(t *testing.T) {
	t.Parallel()
	stride := func(weight float64) float64 { return float64(int(1000 / fairshare.TemporalWeight(weight))) }
	for _, weight := range []float64{fairshare.MinWeight, 0.3, 1, 7, 30, 50, 99} {
		require.InEpsilon(t, 1/weight, stride(weight)/stride(1), 0.001, "weight %g", weight)
	}
	require.InEpsilon(t, 1.0/700, stride(700)/stride(1), 0.01)
	require.GreaterOrEqual(t, fairshare.TemporalWeight(fairshare.MinWeight), 0.001)
	require.LessOrEqual(t, fairshare.TemporalWeight(fairshare.MaxWeight), 1000.0)
}

func two(fairshare.Class) int { return 2 }

// candidate is a job of an account in a queue that may go.
func candidate(id int64, queue, submitter string) fairshare.Candidate {
	return fairshare.Candidate{ID: id, Job: fairshare.Job{Queue: queue, Submitter: submitter}, InTurn: true}
}

func TestSelectionFillsQueues(t *testing.T) {
	t.Parallel()
	s := fairshare.NewSelection([]fairshare.Backlog{{Queue: "full", InTemporal: 2}, {Queue: "overfull", InTemporal: 9}, {Queue: "user:ada", InTemporal: 1, Turn: 4}},
		fairshare.Queues{"user:ada": {Name: "user:ada", Class: fairshare.Weighted, Weight: 30, Level: 3}}, two)
	require.Equal(t, []string{"user:ada"}, s.Open())
	require.Equal(t, 1, s.Most())
	found := []fairshare.Candidate{candidate(9, "user:ada", "ada"), candidate(3, "user:ada", "bob")}
	require.Equal(t, []string{"ada", "bob"}, s.Unknown(found))
	s.Limit("ada", fairshare.Unlimited)
	s.Limit("bob", fairshare.Unlimited)
	require.Empty(t, s.Unknown(found))
	require.False(t, s.NeedShared(found))
	chosen, held := s.Sift(found)
	require.Empty(t, held)
	require.Empty(t, s.Open())
	require.Equal(t, []fairshare.Choice{{Candidate: candidate(9, "user:ada", "ada"), Weight: 30, Level: 3, Turn: 4}}, s.Choices(chosen))
}

func TestHeldJobsDoNotBlockJobsBehindThem(t *testing.T) {
	t.Parallel()
	s := fairshare.NewSelection([]fairshare.Backlog{{Queue: "q"}}, nil, two)
	s.Limit("ada", fairshare.Unlimited)
	s.Limit("bob", 1)
	waits, paused, blocked := candidate(1, "q", "ada"), candidate(2, "q", "ada"), candidate(7, "q", "ada")
	waits.InTurn, waits.Blocked, waits.Paused, paused.Paused = false, true, true, true
	blocked.Blocked, blocked.Paused = true, true
	chosen, held := s.Sift([]fairshare.Candidate{waits, paused, blocked, candidate(3, "q", "bob"), candidate(4, "q", "bob")})
	require.Equal(t, []fairshare.Candidate{candidate(3, "q", "bob")}, chosen)
	require.Equal(t, map[fairshare.Held][]int64{fairshare.HeldForTurn: {1}, fairshare.HeldForInput: {7}, fairshare.HeldByPause: {2}, fairshare.HeldByLimit: {4}}, held)
	require.Equal(t, []string{"q"}, s.Open(), "one more is wanted")
	chosen, held = s.Sift([]fairshare.Candidate{candidate(5, "q", "ada"), candidate(6, "q", "ada")})
	require.Equal(t, []fairshare.Candidate{candidate(5, "q", "ada")}, chosen)
	require.Empty(t, held, "what is looked at for nothing stays as it is")
	require.Empty(t, s.Open())
}

// An account begins what it may in the queue that goes first, whatever is found first.
func TestLimitsAreUsedUpInTheFirstQueue(t *testing.T) {
	t.Parallel()
	s := fairshare.NewSelection([]fairshare.Backlog{{Queue: "idle"}, {Queue: "user:ada"}, {Queue: "vip"}}, nil, two)
	s.Limit("ada", 3)
	found := []fairshare.Candidate{
		candidate(1, "idle", "ada"), candidate(2, "idle", "ada"), candidate(3, "user:ada", "ada"), candidate(4, "user:ada", "ada"), candidate(5, "vip", "ada"), candidate(6, "vip", "ada"),
	}
	require.True(t, s.NeedShared(found))
	s.Shared(nil)
	require.False(t, s.NeedShared(found))
	chosen, held := s.Sift(found)
	require.Equal(t, []int64{5, 6, 3}, ids(chosen))
	require.Equal(t, map[fairshare.Held][]int64{fairshare.HeldByLimit: {1, 2}}, held, "behind what is the account's own in its own queue, nothing else may go")
	require.Equal(t, []string{"idle"}, s.Open())
}

func TestLimitsDoNotBlockOthersInASharedQueue(t *testing.T) {
	t.Parallel()
	s := fairshare.NewSelection([]fairshare.Backlog{{Queue: "user:ada"}}, nil, two)
	s.Limit("ada", 0)
	s.Limit("watch", fairshare.Unlimited)
	s.Shared([]string{"user:ada"})
	chosen, held := s.Sift([]fairshare.Candidate{candidate(1, "user:ada", "ada"), candidate(2, "user:ada", "watch")})
	require.Equal(t, []int64{2}, ids(chosen))
	require.Equal(t, map[fairshare.Held][]int64{fairshare.HeldByLimit: {1}}, held)
}

func ids(cs []fairshare.Candidate) []int64 {
	var out []int64
	for _, c := range cs {
		out = append(out, c.ID)
	}
	return out
}

// history is a random backlog of a task queue with what is in force for it.
type history struct {
	depth  int
	free   map[string]int
	queues []fairshare.Backlog
	jobs   map[string][]fairshare.Candidate // by queue, in their order
}

func newHistory(r *rand.Rand) history {
	h := history{depth: 1 + r.IntN(5), free: make(map[string]int), jobs: make(map[string][]fairshare.Candidate)}
	accounts := []string{"ada", "bob", "eve"}
	for _, a := range accounts {
		if h.free[a] = fairshare.Unlimited; r.IntN(2) == 0 {
			h.free[a] = r.IntN(4)
		}
	}
	id := int64(0)
	for _, q := range []string{"idle", "nightly", "user:ada", "user:bob", "vip"} {
		for range r.IntN(12) {
			id++
			c := candidate(id, q, accounts[r.IntN(len(accounts))])
			if q == "user:bob" {
				c.Submitter = "bob"
			}
			c.InTurn, c.Paused = r.IntN(4) > 0, r.IntN(4) == 0
			h.jobs[q] = append(h.jobs[q], c)
		}
		if len(h.jobs[q]) > 0 {
			h.queues = append(h.queues, fairshare.Backlog{Queue: q, InTemporal: r.IntN(4)})
		}
	}
	return h
}

// handOut does what a hand-out does: it looks at as many jobs of each queue as one lacks
// at most, or at so many more.
func (h history) handOut(more int) (chosen []fairshare.Candidate, held map[int64]fairshare.Held) {
	s := fairshare.NewSelection(h.queues, nil, func(fairshare.Class) int { return h.depth })
	held = make(map[int64]fairshare.Held)
	looked, look := make(map[string]int), s.Most()+more
	for len(s.Open()) > 0 {
		var found []fairshare.Candidate
		for _, q := range s.Open() {
			next := h.jobs[q][looked[q]:]
			next = next[:min(len(next), look)]
			looked[q] += len(next)
			found = append(found, next...)
		}
		for _, a := range s.Unknown(found) {
			s.Limit(a, h.free[a])
		}
		if s.NeedShared(found) {
			s.Shared([]string{"user:ada"})
		}
		went, aside := s.Sift(found)
		chosen = append(chosen, went...)
		for why, ids := range aside {
			for _, id := range ids {
				held[id] = why
			}
		}
	}
	return chosen, held
}

// Whatever waits: no queue gets more than it lacks and no account more than its limit;
// nothing goes that may not; no job is passed over by a later one of its queue that
// could not pass it; and nothing that could go is left while its queue lacks jobs.
func TestSelectionProperties(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		h := newHistory(r)
		more := r.IntN(6)
		name := fmt.Sprintf("history %d, %d more at a time: %+v", n, more, h)
		chosen, held := h.handOut(more)
		of, by := make(map[string]int), make(map[string]int)
		went := make(map[int64]bool)
		for _, c := range chosen {
			require.False(t, went[c.ID], name)
			went[c.ID] = true
			of[c.Queue]++
			by[c.Submitter]++
			require.True(t, c.InTurn && !c.Paused, name)
			require.Empty(t, held[c.ID], name)
		}
		for account, count := range by {
			require.LessOrEqual(t, count, h.free[account], name)
		}
		for _, b := range h.queues {
			lacks := max(0, h.depth-b.InTemporal)
			require.LessOrEqual(t, of[b.Queue], lacks, name)
			jobs := h.jobs[b.Queue]
			last := -1
			for i, c := range jobs {
				if went[c.ID] {
					last = i
				}
			}
			for i, c := range jobs {
				may := c.InTurn && !c.Paused
				switch {
				case went[c.ID]:
				case may && i < last:
					require.Equal(t, by[c.Submitter], h.free[c.Submitter], "passed over: %s", name)
				case may && of[b.Queue] < lacks:
					require.Equal(t, by[c.Submitter], h.free[c.Submitter], "left: %s", name)
				}
				require.Equal(t, held[c.ID] == fairshare.HeldForTurn, held[c.ID] != "" && !c.InTurn, name)
				require.Equal(t, held[c.ID] == fairshare.HeldByPause, held[c.ID] != "" && c.InTurn && c.Paused, name)
			}
		}
	}
}
