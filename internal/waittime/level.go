package waittime

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// DefaultObjective is the time within which a job should start: that of a large farm of test
	// machines, "about 15 minutes".
	DefaultObjective = 15 * time.Minute
	// MinObjective and MaxObjective bound what may be configured.
	MinObjective, MaxObjective = time.Second, 7 * 24 * time.Hour

	// ShortBlock and LongBlock are the lengths of blocks of time. Blocks begin at multiples of
	// their length since midnight, UTC.
	ShortBlock, LongBlock = 15 * time.Minute, 2 * time.Hour
	// StepLength is the length of a step of waiting times, and Steps their number; the last one
	// has no end.
	StepLength = 15 * time.Minute
	Steps      = 7
)

// Resolution is the precision of waiting times: that of a person who reads them.
const Resolution = 100 * time.Millisecond

// Rounded rounds a waiting time up to the [Resolution], so that what took longer than an
// objective stays longer.
func Rounded(wait time.Duration) time.Duration {
	if rest := wait % Resolution; rest > 0 {
		return wait + Resolution - rest
	}
	return wait
}

// BlockOf returns the beginning of the block of this length in which a moment lies.
func BlockOf(at time.Time, length time.Duration) time.Time { return at.UTC().Truncate(length) }

// Place names a queue at a pool. If both are empty, it stands for all.
type Place struct{ Pool, Queue string }

// Sample is a number of jobs with the same waiting time.
type Sample struct {
	Place
	// Runnable is the moment at which they became able to run, or any in the same [ShortBlock].
	Runnable time.Time
	// Waited is the time that they waited, so far if they have not started, see [Rounded].
	Waited  time.Duration
	Started bool
	// Still says what keeps jobs that have not started from running at present; empty: nothing.
	Still Reason
	Jobs  int
	// Blocked is the time, of all of them together, in which they could not run.
	Blocked map[Reason]time.Duration
}

// Figures describe the waiting of some jobs. A job counts if it has started, or has waited for
// longer than the objective without starting: what becomes of the others is not known yet.
type Figures struct {
	// Started counts the jobs that have started, Waiting those that could run and have not,
	// Overdue those of them that have waited for longer than the objective.
	Started, Waiting, Overdue int
	// Within counts the jobs that started within the objective.
	Within int
	// Median, Ninth and Longest are times within which half, nine tenths and all of the jobs
	// that count have started, or that overdue ones have waited so far. They are 0 if none
	// counts.
	Median, Ninth, Longest time.Duration
}

// Counted returns the number of jobs that count.
func (f Figures) Counted() int { return f.Started + f.Overdue }

// Share returns the part of the jobs that count that started within the objective; false: none
// counts.
func (f Figures) Share() (float64, bool) {
	if f.Counted() == 0 {
		return 0, false
	}
	return float64(f.Within) / float64(f.Counted()), true
}

// Block has the figures of the jobs that became able to run within a block of time.
type Block struct {
	From time.Time
	Figures
}

// Level is the service level at a place.
type Level struct {
	Place
	// Objective is 0 if the queues of the place have several.
	Objective time.Duration
	Figures
	// Steps counts the jobs that count by their waiting time, in steps of [StepLength].
	Steps [Steps]int
	// Blocked is the time in which its jobs could not run, and BlockedNow counts the jobs that
	// cannot at present, by the reason.
	Blocked    map[Reason]time.Duration
	BlockedNow map[Reason]int
	// Blocks has the blocks in which jobs became able to run, in order.
	Blocks []Block
}

// Query says how to sum up.
type Query struct {
	// From is the beginning of the period; what became able to run before, and still waits, is
	// in its first block.
	From time.Time
	// Block is the length of blocks, a multiple of [ShortBlock].
	Block time.Duration
	// Objective returns the objective of a queue.
	Objective func(queue string) time.Duration
}

// Sum sums samples up: all together, and by place, in the order of their names.
func Sum(samples []Sample, q Query) (all Level, places []Level) {
	total, by := newSum(), make(map[Place]*sum)
	for _, s := range samples {
		objective := q.Objective(s.Queue)
		one, known := by[s.Place]
		if !known {
			one = newSum()
			by[s.Place] = one
		}
		if s.Runnable.Before(q.From) {
			s.Runnable = q.From
		}
		block := BlockOf(s.Runnable, q.Block)
		for _, each := range []*sum{total, one} {
			each.add(s, block, objective)
		}
	}
	for _, place := range slices.SortedFunc(maps.Keys(by), func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Queue, b.Queue))
	}) {
		places = append(places, by[place].level(place))
	}
	return total.level(Place{}), places
}

// counts collects the waiting times of the jobs that count.
type counts struct {
	Figures
	waits map[time.Duration]int
}

func (c *counts) add(s Sample, objective time.Duration) (counted bool) {
	overdue := !s.Started && s.Waited > objective
	switch {
	case s.Started:
		c.Started += s.Jobs
		if s.Waited <= objective {
			c.Within += s.Jobs
		}
	case s.Still == "":
		c.Waiting += s.Jobs
	}
	if overdue {
		c.Overdue += s.Jobs
	}
	if counted = s.Started || overdue; counted {
		if c.waits == nil {
			c.waits = make(map[time.Duration]int)
		}
		c.waits[s.Waited] += s.Jobs
	}
	return counted
}

// figures completes the figures by the times within which parts of the jobs started.
func (c *counts) figures() Figures {
	f, waits := c.Figures, slices.Sorted(maps.Keys(c.waits))
	within := func(part float64) time.Duration {
		least, so := int(math.Ceil(part*float64(f.Counted()))), 0
		for _, wait := range waits {
			if so += c.waits[wait]; so >= least {
				return wait
			}
		}
		return 0
	}
	f.Median, f.Ninth, f.Longest = within(0.5), within(0.9), within(1)
	return f
}

// sum is a level that is being summed up.
type sum struct {
	counts
	made       Level
	blocks     map[time.Time]*counts
	objectives map[time.Duration]bool
}

func newSum() *sum {
	return &sum{
		made:   Level{Blocked: make(map[Reason]time.Duration), BlockedNow: make(map[Reason]int)},
		blocks: make(map[time.Time]*counts), objectives: make(map[time.Duration]bool),
	}
}

func (s *sum) add(one Sample, block time.Time, objective time.Duration) {
	s.objectives[objective] = true
	for reason, took := range one.Blocked {
		if took > 0 {
			s.made.Blocked[reason] += took
		}
	}
	if one.Still != "" {
		s.made.BlockedNow[one.Still] += one.Jobs
	}
	if s.counts.add(one, objective) {
		s.made.Steps[min(int(one.Waited/StepLength), Steps-1)] += one.Jobs
	} else if one.Still != "" {
		return // it is in no block before it could run, or is late
	}
	in, known := s.blocks[block]
	if !known {
		in = &counts{}
		s.blocks[block] = in
	}
	in.add(one, objective)
}

func (s *sum) level(place Place) Level {
	l := s.made
	l.Place, l.Figures = place, s.figures()
	if len(s.objectives) == 1 {
		for only := range s.objectives {
			l.Objective = only
		}
	}
	for _, from := range slices.SortedFunc(maps.Keys(s.blocks), time.Time.Compare) {
		l.Blocks = append(l.Blocks, Block{From: from, Figures: s.blocks[from].figures()})
	}
	return l
}
