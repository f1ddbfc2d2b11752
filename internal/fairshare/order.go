package fairshare

import (
	"cmp"
	"maps"
	"slices"
)

// Depth returns how many jobs of a weighted queue should wait in Temporal for a task
// queue with this many live collectors, not counting running jobs. Fair sharing may
// give one queue several turns in a row, and it must have a job for each; with fewer
// than four, shares of short jobs are not exact. The other jobs wait as rows, where
// changed weights and levels and cancellations still take effect.
func Depth(liveCollectors int) int { return 2*liveCollectors + 2 }

// StrictDepth is [Depth] for a strict queue. Such a queue gets every turn while it has
// work, so more of it must be in Temporal to keep jobs of later levels from starting in
// between.
func StrictDepth(liveCollectors int) int { return 4 * Depth(liveCollectors) }

// Spare returns how many jobs more than [Depth] or [StrictDepth] wait in Temporal after a hand-out
// of brief jobs, so that several of them end before the next one. Use it only for a queue that has
// the task queue to itself: a changed weight would apply to these jobs later.
func Spare(liveCollectors int) int { return liveCollectors + 1 }

// Held is the reason for holding a waiting job: hand-outs skip it until it is released.
// A job is held if it may not go but jobs behind it may. Without holding, every hand-out
// might have to look at thousands of such jobs again.
type Held string

const (
	NotHeld      Held = ""
	HeldForTurn  Held = "turn"  // no request that waits for it is in its turn
	HeldForInput Held = "input" // a job that it needs has not ended
	HeldByPause  Held = "pause" // its project's admission is paused
	HeldByLimit  Held = "cap"   // its account has as much under way as its limit allows
)

// Backlog is a queue with jobs that wait for a task queue.
type Backlog struct {
	Queue string
	// InTemporal counts its jobs that wait in Temporal.
	InTemporal int
	// Turn numbers the fairness key of the next jobs handed out.
	Turn int
}

// Candidate is a waiting job that a hand-out looks at.
type Candidate struct {
	ID int64
	Job
	InTurn  bool // a request that waits for it is in its turn
	Blocked bool // for each of these requests, a job that it needs has not ended
	Paused  bool // its project's admission is paused
}

// Choice is a job to hand out next, with its weight, level and turn.
type Choice struct {
	Candidate
	Weight float64
	Level  int
	Turn   int
}

// A Selection chooses the next jobs of one task queue, in rounds: as long as
// [Selection.Open] names queues, the caller passes the next jobs of each, in the order
// in which they wait, to [Selection.Sift]. Jobs that may not go are held, and the next
// round looks at the jobs behind them.
//
// A Selection lives as long as one hand-out, under the lock of the task queue; it is
// not safe for concurrent use.
type Selection struct {
	// Rules are the rules in force.
	Rules Rules

	backlogs []Backlog       // with queues still open
	turns    map[string]int  // by queue
	lacks    map[string]int  // by queue: how many more of its jobs should wait in Temporal
	free     map[string]int  // by account: how many more of its jobs may be under way
	shared   map[string]bool // account queues that contain jobs of other accounts
}

// NewSelection begins a selection that fills these queues. depth returns how many jobs
// of a queue of the class should wait in Temporal.
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

// Open lists the queues whose next jobs must be looked at; none: the selection is
// complete.
func (s *Selection) Open() []string {
	names := make([]string, len(s.backlogs))
	for i, b := range s.backlogs {
		names[i] = b.Queue
	}
	return names
}

// Most returns the largest number of jobs that any queue lacks.
func (s *Selection) Most() int {
	most := 0
	for _, lacks := range s.lacks {
		most = max(most, lacks)
	}
	return most
}

// Unknown lists the accounts of these jobs whose limits [Selection.Limit] has not set.
func (s *Selection) Unknown(found []Candidate) []string {
	accounts := make(map[string]bool)
	for _, c := range found {
		if _, known := s.free[c.Submitter]; !known {
			accounts[c.Submitter] = true
		}
	}
	return slices.Sorted(maps.Keys(accounts))
}

// Limit sets how many more jobs of an account may be under way: [Unlimited] or the
// result of [AccountLimit.Free].
func (s *Selection) Limit(account string, free int) { s.free[account] = free }

// AtLimit lists the accounts whose limits were set: those of which no further job may be
// under way, and the others.
func (s *Selection) AtLimit() (full, others []string) {
	for _, account := range slices.Sorted(maps.Keys(s.free)) {
		if s.free[account] == 0 {
			full = append(full, account)
		} else {
			others = append(others, account)
		}
	}
	return full, others
}

// NeedShared reports whether [Selection.Shared] must be called before these jobs are
// sifted, because one of their accounts has a limit.
func (s *Selection) NeedShared(found []Candidate) bool {
	return s.shared == nil && slices.ContainsFunc(found, func(c Candidate) bool { return s.free[c.Submitter] < Unlimited })
}

// Shared sets the account queues in which jobs of other accounts wait too. In any other
// account queue, one job at its limit means that no job behind it may go.
func (s *Selection) Shared(queues []string) {
	s.shared = make(map[string]bool, len(queues))
	for _, q := range queues {
		s.shared[q] = true
	}
}

// Sift chooses jobs to hand out from the next jobs of the open queues, and returns the
// IDs of those to be held by reason. The other jobs stay as they are.
func (s *Selection) Sift(found []Candidate) (chosen []Candidate, held map[Held][]int64) {
	held = make(map[Held][]int64)
	passed := make(map[string]bool) // queues with held jobs
	// An account's limit is used up in the queue that goes first.
	slices.SortStableFunc(found, func(a, b Candidate) int {
		return cmp.Compare(s.Rules.Queues.Of(a.Queue).Level, s.Rules.Queues.Of(b.Queue).Level)
	})
	for _, c := range found {
		var why Held
		switch {
		case s.lacks[c.Queue] == 0: // the queue has enough already
			continue
		case !c.InTurn:
			why = HeldForTurn
		case c.Blocked:
			why = HeldForInput
		case c.Paused:
			why = HeldByPause
		case s.free[c.Submitter] > 0:
			s.free[c.Submitter]--
			s.lacks[c.Queue]--
			chosen = append(chosen, c)
			continue
		case c.Queue == OfUser(c.Submitter) && !s.shared[c.Queue]:
			continue // the jobs behind it are of the same account
		default:
			why = HeldByLimit
		}
		held[why] = append(held[why], c.ID)
		passed[c.Queue] = true
	}
	// Another round is useful only where jobs were held.
	s.backlogs = slices.DeleteFunc(s.backlogs, func(b Backlog) bool { return s.lacks[b.Queue] == 0 || !passed[b.Queue] })
	return chosen, held
}

// Choices returns the chosen jobs with the weight, level and turn in force, sorted by
// ID.
func (s *Selection) Choices(chosen []Candidate) []Choice {
	out := make([]Choice, len(chosen))
	for i, c := range chosen {
		out[i] = Choice{Candidate: c, Weight: s.Rules.Queues.Of(c.Queue).Weight, Level: s.Rules.Level(c.Job), Turn: s.turns[c.Queue]}
	}
	slices.SortFunc(out, func(a, b Choice) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
