// Package machinegate decides which polls of a machine may be open, and which of
// the tasks that arrive may run.
//
// A machine has one or more slots, each a collector that runs one job at a time.
// Together their jobs stay within the machine's budget: a machine of its own has a
// budget of one job, a shared host one of memory. A slot polls several task
// queues; a poll may be open only while what it would bring may run. Queues of a
// slot take turns, and a job that is large is not starved by smaller ones.
//
// The package is pure: it has no clock, no effects and no locks, and must not know
// how tasks are polled or what they are. Times come in as arguments and must not
// go back.
package machinegate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Lane is one task queue as one slot polls it.
type Lane struct{ Slot, Queue string }

// Config bounds a machine.
type Config struct {
	// Budget bounds the total cost of jobs that run at once, in the unit of the
	// slots' costs; at least 1.
	Budget int64
	// HeadStart is the lead of each of a slot's queues over the one served more
	// recently; 0: none.
	HeadStart time.Duration
	// StarvedAfter is the time a job may wait at a queue that had no turn here
	// before smaller jobs are held back; 0: for ever.
	StarvedAfter time.Duration
	// HoldFor bounds the time smaller jobs are held back once the large one would fit.
	HoldFor time.Duration
	// ReportFor is the validity of a report about waiting jobs.
	ReportFor time.Duration
}

// Gate is one machine's state. Make it with [New]; it is not safe for concurrent
// use.
type Gate struct {
	config Config
	slots  map[string]*slot
	used   int64
	turns  uint64
}

type slot struct {
	cost  int64
	lanes []*lane
	// running is the lane whose job runs; nil: none.
	running *lane
	// fits tells whether its job would fit the budget now, and since when.
	fits bool
	open time.Time
}

type lane struct {
	queue string
	// turn counts the jobs of the machine up to its last one; 0: it had none.
	turn uint64
	// oldest is the start of the longest wait, as of the report at reported; zero:
	// no job waits.
	oldest, reported time.Time
	// served is the time of its last turn, used or not.
	served time.Time
}

// ErrBudget: the budget is none, or a slot's cost is not within it.
var ErrBudget = errors.New("the cost of a slot has to be within the machine's budget")

// New makes the gate of a machine without slots. ErrBudget when the budget is
// below 1.
func New(c Config) (*Gate, error) {
	if c.Budget < 1 {
		return nil, fmt.Errorf("%w: a budget of %d is none", ErrBudget, c.Budget)
	}
	return &Gate{config: c, slots: map[string]*slot{}}, nil
}

// Add adds a slot whose jobs take cost each. ErrBudget when the cost is below 1 or
// above the budget; a name that is there already is an error, too.
func (g *Gate) Add(name string, cost int64, now time.Time) error {
	if cost < 1 || cost > g.config.Budget {
		return fmt.Errorf("%w: slot %s costs %d of %d", ErrBudget, name, cost, g.config.Budget)
	}
	if g.slots[name] != nil {
		return fmt.Errorf("slot %s is there already", name)
	}
	g.slots[name] = &slot{cost: cost}
	g.settle(now)
	return nil
}

// Serve sets which queues a slot polls. What is known of those that stay is kept;
// a job that runs goes on whatever happens to its queue.
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

// Report says for how long the longest waiting job of each of a slot's queues has
// waited by now; a queue that is not named has none.
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
		// Smaller ones were held back for it, and nothing came: what waits cannot be
		// taken now, whatever the reason.
		if s.fits && g.starved(s, l, now) && now.Sub(latest(s.open, l.due(g.config.StarvedAfter))) >= g.config.HoldFor {
			l.served = now
		}
	}
}

// due is from when on smaller ones are held back for what waits.
func (l *lane) due(after time.Duration) time.Time { return latest(l.oldest, l.served).Add(after) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// starved tells whether smaller jobs are to be held back for what waits at a lane.
func (g *Gate) starved(s *slot, l *lane, now time.Time) bool {
	return g.config.StarvedAfter > 0 && s.running == nil && !l.oldest.IsZero() &&
		now.Sub(l.reported) < g.config.ReportFor && !now.Before(l.due(g.config.StarvedAfter))
}

// heldBack tells whether a slot's next job would be in the way of a larger one that
// waits for too long. One that fits beside that is not, nor is any while the larger
// one waits for jobs that are as large itself.
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

// recheck is the interval at which a lane held back for a larger job asks again,
// because reports expire.
const recheck = time.Second

// MayPoll tells whether a lane's poll may be open now. Where that changes by time
// alone it tells when to ask again; 0: only after a job has ended, or a report.
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

// headStart returns the lead of the slot's other queues over a lane: one for each
// that was served less recently.
func (g *Gate) headStart(s *slot, l *lane) time.Duration {
	var before time.Duration
	for _, other := range s.lanes {
		if other.turn < l.turn {
			before += g.config.HeadStart
		}
	}
	return before
}

// Begin takes the machine for a task that has arrived at a lane. When it says no,
// the task is to be given back: its slot runs another one, or the budget does not
// hold it.
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

// End gives back what a slot's job has taken; without one it does nothing.
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

// settle notes for all slots whether their jobs would fit, and since when.
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

// Running lists the lanes whose jobs run, by slot.
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
