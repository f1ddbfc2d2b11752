package estimate

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"time"
)

// Job is what a request still has to do in one task queue.
type Job struct {
	// Queue is the task queue, which the collectors of one pool serve.
	Queue string
	// Rest is how long it takes from now if it runs, from its start if not.
	Rest time.Duration
	// Running jobs have a collector already.
	Running bool
}

// Request is a request of the queue.
type Request struct {
	ID string
	// Parent is the ID of the request that must have ended before this one is admitted; empty: none.
	Parent string
	// Admitted requests run already; the others need a free slot.
	Admitted bool
	// NoSlot is set for requests that nobody admits: they start at once.
	NoSlot bool
	// Unforeseeable says what the request waits for when nobody knows how long; it has no estimate then.
	Unforeseeable string
	// Jobs are those that have not ended, in the order in which they are handed out.
	Jobs []Job
	// Alone is how long it takes when its jobs are not known; it holds its slot and no collector for that time.
	Alone time.Duration
}

// Queue is what estimates are made of.
type Queue struct {
	Now time.Time
	// Slots is how many requests may run at once; below 1 is 1.
	Slots int
	// Collectors counts those that are live, by task queue.
	Collectors map[string]int
	// Requests are in the order in which they are admitted.
	Requests []Request
	// Others are the jobs of everybody else in the same task queues. Those that run keep their collectors; those that
	// wait take turns with the requests' jobs, one by one, as fair shares would have it.
	Others []Job
}

// Forecast is when a request starts and ends.
type Forecast struct {
	// Start and End are zero when they are not known. Start is zero, too, for an admitted request.
	Start, End time.Time
	// Why says what keeps Start or End from being known; empty when both are.
	Why string
}

// never is when something happens that nobody can foresee, in seconds from now.
var never = math.Inf(1)

// Forecasts plays the queue through and returns what becomes of each request, in the order of Queue.Requests.
//
// Requests are admitted strictly in order: one that waits for its parent holds up those behind it, where the service would
// let them pass. With one slot it makes no difference, as a parent stands before its children. In return, while every
// pool has a live collector, no estimate becomes later by more collectors, more slots or shorter jobs, which a simulation
// that overtakes cannot promise. A pool without one has jobs that never end; what waits for them is passed over.
func Forecasts(q Queue) []Forecast {
	s := &simulation{now: q.Now, pools: map[string]*pool{}, ends: map[string]float64{}}
	for name, n := range q.Collectors {
		s.pools[name] = &pool{free: make(times, max(0, n))}
	}
	s.occupy(q)
	s.slots = make(times, max(1, q.Slots))
	out := make([]Forecast, len(q.Requests))
	// Those that run have their slots, whatever their number.
	for i, r := range q.Requests {
		if r.Admitted {
			out[i] = s.play(r, i, 0)
		}
	}
	for i, r := range q.Requests {
		switch {
		case r.Admitted:
		case r.Unforeseeable != "":
			out[i] = Forecast{Why: r.Unforeseeable}
		default:
			out[i] = s.admit(r, i)
		}
	}
	return out
}

type simulation struct {
	now   time.Time
	pools map[string]*pool
	slots times
	ends  map[string]float64 // seconds from now, by request
	busy  []float64          // by request, when the last of its running jobs ends
	last  float64            // when the last request was admitted
}

// pool is a task queue with the times at which its collectors are free.
type pool struct {
	free   times
	others []float64 // what else waits there, in seconds
}

func (s *simulation) pool(name string) *pool {
	if s.pools[name] == nil {
		s.pools[name] = &pool{}
	}
	return s.pools[name]
}

// occupy gives the collectors to the jobs that run. One that runs without a live collector is about to be found lost: it
// waits for the next collector like any other.
func (s *simulation) occupy(q Queue) {
	s.busy = make([]float64, len(q.Requests))
	for _, j := range q.Others {
		if j.Running {
			s.pool(j.Queue).run(0, j.Rest)
		} else {
			p := s.pool(j.Queue)
			p.others = append(p.others, seconds(j.Rest))
		}
	}
	for i, r := range q.Requests {
		for _, j := range r.Jobs {
			if j.Running {
				s.busy[i] = max(s.busy[i], s.pool(j.Queue).run(0, j.Rest))
			}
		}
	}
}

// admit finds the slot of a request that waits for one.
func (s *simulation) admit(r Request, i int) Forecast {
	at := 0.0
	if r.Parent != "" {
		end, known := s.ends[r.Parent]
		if !known {
			return Forecast{Why: fmt.Sprintf("waits for request %s, which has no estimate", r.Parent)}
		}
		at = end
	}
	if !r.NoSlot {
		at = max(at, s.last, s.slots[0])
		if math.IsInf(at, 1) {
			return Forecast{Why: "waits for requests whose end is not known"}
		}
		s.last = at
	}
	f := s.play(r, i, at)
	if !math.IsInf(at, 1) {
		f.Start = s.moment(at)
	}
	return f
}

// play runs a request's jobs from the time given and frees its slot at its end.
func (s *simulation) play(r Request, i int, at float64) Forecast {
	end := max(at, s.busy[i], at+seconds(r.Alone))
	stuck := ""
	for _, j := range r.Jobs {
		if j.Running {
			continue
		}
		jobEnd := s.pool(j.Queue).take(at, j.Rest)
		if math.IsInf(jobEnd, 1) && stuck == "" {
			stuck = j.Queue
		}
		end = max(end, jobEnd)
	}
	s.ends[r.ID] = end
	if !r.NoSlot && len(s.slots) > 0 {
		if r.Admitted {
			s.hold(end)
		} else {
			s.slots[0] = end
			heap.Fix(&s.slots, 0)
		}
	}
	switch {
	case stuck != "":
		return Forecast{Why: fmt.Sprintf("no live collector serves %s", stuck)}
	case math.IsInf(end, 1):
		return Forecast{Why: "a job runs where no live collector is"}
	}
	return Forecast{End: s.moment(end)}
}

// hold takes a slot for a request that runs. Where more run than there are slots, after they were made fewer, the next
// one is admitted when all but that many have ended.
func (s *simulation) hold(end float64) {
	if s.slots[0] < end {
		s.slots[0] = end
		heap.Fix(&s.slots, 0)
	}
}

// horizon bounds estimates, in seconds: a hundred years, which a [time.Duration] can hold.
const horizon = 100 * 365 * 24 * 3600

func (s *simulation) moment(at float64) time.Time {
	at = min(at, horizon)
	return s.now.Add(time.Duration(at * float64(time.Second))).Round(time.Second)
}

// take runs a job that waits, after another one's turn.
func (p *pool) take(at float64, rest time.Duration) (end float64) {
	if len(p.others) > 0 {
		p.runFor(0, p.others[0])
		p.others = p.others[1:]
	}
	return p.run(at, rest)
}

// run gives a job to the collector that is free first, not before the time given.
func (p *pool) run(at float64, rest time.Duration) (end float64) { return p.runFor(at, seconds(rest)) }

func (p *pool) runFor(at, rest float64) (end float64) {
	if len(p.free) == 0 {
		return never
	}
	end = max(at, p.free[0]) + rest
	p.free[0] = end
	heap.Fix(&p.free, 0)
	return end
}

func seconds(d time.Duration) float64 { return max(0, d.Seconds()) }

// times is a heap, the earliest first.
type times []float64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(float64)) } //nolint:forcetypeassert // a heap of times
func (t *times) Pop() any {
	last := (*t)[len(*t)-1]
	*t = slices.Delete(*t, len(*t)-1, len(*t))
	return last
}
