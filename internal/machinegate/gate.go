// Package machinegate decides which polls of a machine may be open, and which of
// the tasks that arrive may run.
//
// A machine has one or more slots, each a collector that runs one job at a
// time. Together their jobs stay within the machine's budget: one job on a
// dedicated machine, an amount of memory on a shared host. A slot polls several
// task queues; a poll may be open only while a job from it could run. The
// queues of a slot take turns, and a large job is not starved by smaller ones.
//
// The package is pure: it has no clock, no effects and no locks, and must not
// know how tasks are polled or what they are. Times are arguments and must not
// decrease.
package machinegate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Lane is one task queue polled by one slot.
type Lane struct{ Slot, Queue string }

// Config configures a machine's gate.
type Config struct {
	// Budget limits the total cost of concurrent jobs, in the unit of the
	// slots' costs; at least 1.
	Budget int64
	// HeadStart is the lead of each of a slot's queues over the one served more
	// recently; 0 means none.
	HeadStart time.Duration
	// StarvedAfter is the time a job may wait at a queue that had no turn here
	// before smaller jobs are held back; 0 means forever.
	StarvedAfter time.Duration
	// HoldFor limits the time that smaller jobs are held back once the large
	// one would fit.
	HoldFor time.Duration
	// ReportFor is the validity of a report about waiting jobs.
	ReportFor time.Duration
}

// Gate is the state of one machine. Create it with [New]; it is not safe for
// concurrent use.
type Gate struct {
	config Config
	slots  map[string]*slot
	used   int64
	turns  uint64
}

type slot struct {
	cost  int64
	lanes []*lane
	// running is the lane whose job runs; nil if none does.
	running *lane
	// fits reports whether its job would fit the budget now; open tells since
	// when.
	fits bool
	open time.Time
}

type lane struct {
	queue string
	// turn is the machine's job count at its last turn; 0 if it had none.
	turn uint64
	// oldest is the start of the longest wait, as of the report at reported;
	// zero if no job waits.
	oldest, reported time.Time
	// served is the time of its last turn, used or not.
	served time.Time
}

// ErrBudget reports a budget below 1 or a slot's cost outside the budget.
var ErrBudget = errors.New("the cost of a slot must be within the machine's budget")

// New returns the gate of a machine without slots, or ErrBudget if the budget
// is below 1.
func New(c Config) (*Gate, error) {
	if c.Budget < 1 {
		return nil, fmt.Errorf("%w: the budget is %d, but must be at least 1", ErrBudget, c.Budget)
	}
	return &Gate{config: c, slots: map[string]*slot{}}, nil
}

// Add adds a slot whose jobs cost cost each. It returns ErrBudget if the cost
// is below 1 or above the budget; an existing name is an error, too.
func (g *Gate) Add(name string, cost int64, now time.Time) error {
	if cost < 1 || cost > g.config.Budget {
		return fmt.Errorf("%w: slot %s costs %d of %d", ErrBudget, name, cost, g.config.Budget)
	}
	if g.slots[name] != nil {
		return fmt.Errorf("slot %s already exists", name)
	}
	g.slots[name] = &slot{cost: cost}
	g.settle(now)
	return nil
}

// Serve sets the queues that a slot polls. The state of queues that stay is
// kept; a running job continues whatever happens to its queue.
func (g *Gate) Serve(name string, queues []string) {
	s := g.slots[name]
	if s == nil {
		return
	}
	lanes := make([]*lane, 0, len(queues))
	for _, q := range queues {
		l := s.lane(q)
		if l == nil {
			l = &lane{queue: q}
		}
		lanes = append(lanes, l)
	}
	s.lanes = lanes
}

func (s *slot) lane(queue string) *lane {
	if at := slices.IndexFunc(s.lanes, func(l *lane) bool { return l.queue == queue }); at >= 0 {
		return s.lanes[at]
	}
	return nil
}

// Report records how long the longest waiting job of each of a slot's queues
// has waited by now; a queue that is not named has no waiting job.
func (g *Gate) Report(name string, waits map[string]time.Duration, now time.Time) {
	s := g.slots[name]
	if s == nil {
		return
	}
	for _, l := range s.lanes {
		l.oldest = time.Time{}
		if wait, ok := waits[l.queue]; ok {
			l.oldest, l.reported = now.Add(-max(0, wait)), now
		}
		// Smaller jobs were held back for it, and it did not come: for some
		// reason it cannot be taken now.
		if s.fits && g.starved(s, l, now) && now.Sub(latest(s.open, l.due(g.config.StarvedAfter))) >= g.config.HoldFor {
			l.served = now
		}
	}
}

// due returns the time from which smaller jobs are held back for the lane's
// waiting job.
func (l *lane) due(after time.Duration) time.Time { return latest(l.oldest, l.served).Add(after) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// starved reports whether smaller jobs must be held back for a lane's waiting
// job.
func (g *Gate) starved(s *slot, l *lane, now time.Time) bool {
	return g.config.StarvedAfter > 0 && s.running == nil && !l.oldest.IsZero() &&
		now.Sub(l.reported) < g.config.ReportFor && !now.Before(l.due(g.config.StarvedAfter))
}

// heldBack reports whether a slot's next job would delay a larger one that has
// waited for too long. A job that fits beside the larger one is not held back,
// nor is any while the larger one waits for jobs as large as itself.
func (g *Gate) heldBack(next *slot, now time.Time) bool {
	for _, s := range g.slots {
		if s.cost <= next.cost || g.used+next.cost+s.cost <= g.config.Budget || g.asLarge(s.cost)+s.cost > g.config.Budget {
			continue
		}
		if slices.ContainsFunc(s.lanes, func(l *lane) bool { return g.starved(s, l, now) }) {
			return true
		}
	}
	return false
}

// asLarge returns the total cost of running jobs that cost at least cost each.
func (g *Gate) asLarge(cost int64) int64 {
	var used int64
	for _, s := range g.slots {
		if s.running != nil && s.cost >= cost {
			used += s.cost
		}
	}
	return used
}

// recheck is the interval at which a held-back lane is checked again, because
// reports expire.
const recheck = time.Second

// MayPoll reports whether a lane's poll may be open now, and after which time
// to ask again; 0 means only after a job has ended or a report.
func (g *Gate) MayPoll(at Lane, now time.Time) (may bool, again time.Duration) {
	s := g.slots[at.Slot]
	if s == nil {
		return false, 0
	}
	l := s.lane(at.Queue)
	if l == nil || !s.fits {
		return false, 0
	}
	if g.heldBack(s, now) {
		return false, recheck
	}
	if wait := s.open.Add(g.headStart(s, l)).Sub(now); wait > 0 {
		return false, wait
	}
	return true, 0
}

// headStart returns the lead of the slot's other queues over a lane: one head
// start for each that was served less recently.
func (g *Gate) headStart(s *slot, l *lane) time.Duration {
	var before time.Duration
	for _, other := range s.lanes {
		if other.turn < l.turn {
			before += g.config.HeadStart
		}
	}
	return before
}

// Begin admits a task that has arrived at a lane. If it returns false, the task
// must be returned: its slot runs another one, or it exceeds the budget.
func (g *Gate) Begin(at Lane, now time.Time) bool {
	s := g.slots[at.Slot]
	if s == nil || s.running != nil || g.used+s.cost > g.config.Budget {
		return false
	}
	l := s.lane(at.Queue)
	if l == nil {
		return false
	}
	g.turns++
	l.turn, l.served = g.turns, now
	s.running = l
	g.used += s.cost
	g.settle(now)
	return true
}

// End releases the cost of a slot's job; without one it does nothing.
func (g *Gate) End(name string, now time.Time) {
	s := g.slots[name]
	if s == nil || s.running == nil {
		return
	}
	s.running.served = now
	s.running = nil
	g.used -= s.cost
	g.settle(now)
}

// settle records for all slots whether their jobs would fit, and since when.
func (g *Gate) settle(now time.Time) {
	for _, s := range g.slots {
		fits := s.running == nil && g.used+s.cost <= g.config.Budget
		if fits && !s.fits {
			s.open = now
		}
		s.fits = fits
	}
}

// Used returns the total cost of the running jobs.
func (g *Gate) Used() int64 { return g.used }

// Running returns the lanes with running jobs, by slot.
func (g *Gate) Running() []Lane {
	var running []Lane
	for name, s := range g.slots {
		if s.running != nil {
			running = append(running, Lane{Slot: name, Queue: s.running.queue})
		}
	}
	slices.SortFunc(running, func(a, b Lane) int { return cmp.Compare(a.Slot, b.Slot) })
	return running
}
