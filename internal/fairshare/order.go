package fairshare

import (
	"cmp"
	"maps"
	"slices"
)

// Depth returns how many jobs of a weighted queue are to wait in Temporal for a task
// queue with this many live collectors; jobs that run do not count. By fair shares
// one queue may get several turns in a row, and must not be out of jobs at any of
// them; with fewer than four, shares of short jobs are not exact. The rest waits as
// rows, where weights, levels and cancellations still reach it.
func Depth(liveCollectors int) int { return 2*liveCollectors + 2 }

// StrictDepth is [Depth] for a strict queue. Such a queue gets every turn while it has
// work: more of it must be in Temporal, for nothing of a later level is to start in
// between.
func StrictDepth(liveCollectors int) int { return 4 * Depth(liveCollectors) }

// Held says why a waiting job is held: hand-outs pass it over until it is released.
// A job is held when it could not go while jobs behind it could, so that thousands of
// them are looked at once and not by every hand-out.
type Held string

const (
	NotHeld     Held = ""
	HeldForTurn Held = "turn"  // no request that waits for it has its turn
	HeldByPause Held = "pause" // its project's admission is paused
	HeldByLimit Held = "cap"   // its account has as much under way as its limit allows
)

// Backlog is a queue with jobs that wait for a task queue.
type Backlog struct {
	Queue string
	// InTemporal counts those of its jobs that wait in Temporal.
	InTemporal int
	// Turn numbers the fairness key of what it hands out next.
	Turn int
}

// Candidate is a waiting job that a hand-out looks at.
type Candidate struct {
	ID int64
	Job
	InTurn bool // a request that waits for it has its turn
	Paused bool // its project's admission is
}

// Choice is a job that goes next, with what it is handed out with.
type Choice struct {
	Candidate
	Weight float64
	Level  int
	Turn   int
}

// A Selection chooses the jobs of one task queue that go next. It sees them in rounds:
// as long as [Selection.Open] names queues, the caller gives the next jobs of each of
// those, in the order in which they wait, to [Selection.Sift]. What may not go is held,
// and the jobs behind it are looked at in its place.
//
// A Selection lives as long as one hand-out, under the lock of the task queue; it is
// not safe for concurrent use.
type Selection struct {
	// Rules are in force; their limits grow by [Selection.Limit].
	Rules Rules

	backlogs []Backlog       // with queues still open
	turns    map[string]int  // by queue
	lacks    map[string]int  // by queue: how many more of its jobs are to wait in Temporal
	free     map[string]int  // by account: how many more of its jobs may be under way
	shared   map[string]bool // queues of accounts with jobs of others
}

// NewSelection begins a selection of what these queues lack: depth tells how many jobs
// of a queue of a class are to wait in Temporal.
func NewSelection(backlogs []Backlog, queues Queues, depth func(Class) int) *Selection {
	s := &Selection{Rules: Rules{Queues: queues}, turns: make(map[string]int), lacks: make(map[string]int), free: make(map[string]int)}
	for _, b := range backlogs {
		s.turns[b.Queue] = b.Turn
		if lacks := depth(queues.Of(b.Queue).Class) - b.InTemporal; lacks > 0 {
			s.lacks[b.Queue] = lacks
			s.backlogs = append(s.backlogs, b)
		}
	}
	return s
}

// Open lists the queues of which more jobs are to be looked at; none: the selection is
// complete.
func (s *Selection) Open() []string {
	names := make([]string, len(s.backlogs))
	for i, b := range s.backlogs {
		names[i] = b.Queue
	}
	return names
}

// Most returns how many jobs the queue lacks that lacks most.
func (s *Selection) Most() int {
	most := 0
	for _, lacks := range s.lacks {
		most = max(most, lacks)
	}
	return most
}

// Unknown lists the accounts of jobs whose limits were not given to [Selection.Limit].
func (s *Selection) Unknown(found []Candidate) []string {
	accounts := make(map[string]bool)
	for _, c := range found {
		if _, known := s.free[c.Submitter]; !known {
			accounts[c.Submitter] = true
		}
	}
	return slices.Sorted(maps.Keys(accounts))
}

// Limit says how many more jobs of an account may be under way: [Unlimited], or
// [Load.Free].
func (s *Selection) Limit(account string, free int) { s.free[account] = free }

// NeedShared reports whether [Selection.Shared] must be called before these are sifted:
// one of their accounts has a limit.
func (s *Selection) NeedShared(found []Candidate) bool {
	return s.shared == nil && slices.ContainsFunc(found, func(c Candidate) bool { return s.free[c.Submitter] < Unlimited })
}

// Shared names the queues of accounts in which jobs of other accounts wait. In all
// other queues of accounts one job at its limit tells that nothing behind it may go.
func (s *Selection) Shared(queues []string) {
	s.shared = make(map[string]bool, len(queues))
	for _, q := range queues {
		s.shared[q] = true
	}
}

// Sift chooses from the next jobs of the open queues those that go, and returns the IDs
// of those to be held. Nothing becomes of the others.
func (s *Selection) Sift(found []Candidate) (chosen []Candidate, held map[Held][]int64) {
	held = make(map[Held][]int64)
	passed := make(map[string]bool) // queues of which jobs are held
	// What an account may begin at all, it begins in the queue that goes first.
	slices.SortStableFunc(found, func(a, b Candidate) int {
		return cmp.Compare(s.Rules.Queues.Of(a.Queue).Level, s.Rules.Queues.Of(b.Queue).Level)
	})
	for _, c := range found {
		var why Held
		switch {
		case s.lacks[c.Queue] == 0: // looked at for nothing
			continue
		case !c.InTurn:
			why = HeldForTurn
		case c.Paused:
			why = HeldByPause
		case s.free[c.Submitter] > 0:
			s.free[c.Submitter]--
			s.lacks[c.Queue]--
			chosen = append(chosen, c)
			continue
		case c.Queue == OfUser(c.Submitter) && !s.shared[c.Queue]:
			continue // behind it are more of the same account
		default:
			why = HeldByLimit
		}
		held[why] = append(held[why], c.ID)
		passed[c.Queue] = true
	}
	// Only behind jobs that are held may there be others that go.
	s.backlogs = slices.DeleteFunc(s.backlogs, func(b Backlog) bool { return s.lacks[b.Queue] == 0 || !passed[b.Queue] })
	return chosen, held
}

// Choices gives chosen jobs the weight, level and turn that are in force, sorted by ID.
func (s *Selection) Choices(chosen []Candidate) []Choice {
	out := make([]Choice, len(chosen))
	for i, c := range chosen {
		out[i] = Choice{Candidate: c, Weight: s.Rules.Queues.Of(c.Queue).Weight, Level: s.Rules.Level(c.Job), Turn: s.turns[c.Queue]}
	}
	slices.SortFunc(out, func(a, b Choice) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
