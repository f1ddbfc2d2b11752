package estimate

import (
	"container/heap"
	"fmt"
	"math"
	"time"
)

// Job is a request's remaining work in one task queue.
type Job struct {
	// TaskQueue is the task queue served by the collectors of one pool.
	TaskQueue string
	// Rest is the remaining time, from now if the job runs, else from its start.
	Rest time.Duration
	// Running reports whether the job already has a collector.
	Running bool
}

// Request is a request in progress or waiting for admission.
type Request struct {
	ID string
	// Parent is the ID of the request that must have ended before this one is admitted; empty if there is none.
	Parent string
	// Admitted reports whether the request is in progress; others need a free slot.
	Admitted bool
	// NoSlot is set for requests without admission: they start immediately.
	NoSlot bool
	// Unforeseeable is the reason for a wait of unknown duration; the request then has no estimate.
	Unforeseeable string
	// Jobs are the unfinished jobs in dispatch order.
	Jobs []Job
	// Alone is the request's duration if its jobs are unknown; it then occupies its slot, but no collector.
	Alone time.Duration
}

// Input is the input of forecasts.
type Input struct {
	Now time.Time
	// Slots is the number of requests that may run at once; values below 1 mean 1.
	Slots int
	// Collectors is the number of live collectors by task queue.
	Collectors map[string]int
	// Requests are in order of admission.
	Requests []Request
	// Others are all other jobs in the same task queues. Running ones keep their collectors; waiting ones alternate with the
	// requests' jobs, approximating fair shares.
	Others []Job
}

// Forecast is the estimated start and end of a request.
type Forecast struct {
	// Start and End are zero if unknown. Start is also zero for an admitted request.
	Start, End time.Time
	// Why is the reason why Start or End is unknown; empty if both are known.
	Why string
}

// never represents an unpredictable time, in seconds from now.
var never = math.Inf(1)

// Forecasts simulates the requests and returns a forecast for each, in the order of Input.Requests.
//
// Whenever a slot is free, the first request in order is admitted whose parent has ended. Requests without parents, with one
// slot, never overtake each other; then, while every pool has a live collector, more collectors, more slots or shorter jobs
// never make a forecast later. (If requests overtake each other, as they may with several slots, an advantage of one can
// delay another, in the forecast as in reality.)
func Forecasts(q Input) []Forecast {
	s := newSimulation(q)
	// Running requests keep their slots, whatever their number.
	for i, r := range q.Requests {
		if r.Admitted || r.NoSlot {
			s.play(i, 0)
		}
	}
	s.lineUp()
	for s.admitNext() {
	}
	for i, r := range q.Requests {
		switch {
		case s.played[i]:
		case r.Unforeseeable != "":
			s.out[i].Why = r.Unforeseeable
		case s.waits.seen[i]:
			s.out[i].Why = "waits for requests whose end is not known"
		default:
			s.out[i].Why = fmt.Sprintf("waits for request %s, which has no estimate", r.Parent)
		}
	}
	return s.out
}

type simulation struct {
	Input
	out        []Forecast
	taskQueues map[string]*taskQueue
	slots      times     // when each is free
	last       float64   // when the last request was admitted
	busy       []float64 // by request, when the last of its running jobs ends
	played     []bool    // by request
	ends       map[string]float64
	children   map[string][]int // by parent, those that wait for it
	waits      turns
}

func newSimulation(q Input) *simulation {
	s := &simulation{
		Input: q, out: make([]Forecast, len(q.Requests)), taskQueues: map[string]*taskQueue{}, slots: make(times, max(1, q.Slots)),
		busy: make([]float64, len(q.Requests)), played: make([]bool, len(q.Requests)), ends: map[string]float64{}, children: map[string][]int{},
		waits: turns{seen: map[int]bool{}},
	}
	for name, n := range q.Collectors {
		s.taskQueues[name] = &taskQueue{free: make(times, max(0, n))}
	}
	s.occupy()
	return s
}

// taskQueue holds the times at which its collectors are free.
type taskQueue struct {
	free   times
	others []float64 // other waiting jobs, in seconds
}

func (s *simulation) taskQueue(name string) *taskQueue {
	if s.taskQueues[name] == nil {
		s.taskQueues[name] = &taskQueue{}
	}
	return s.taskQueues[name]
}

// occupy assigns collectors to the running jobs. A running job without a live collector will soon be detected as lost: it
// waits for the next collector like any other.
func (s *simulation) occupy() {
	for _, j := range s.Others {
		if j.Running {
			s.taskQueue(j.TaskQueue).run(0, j.Rest)
		} else {
			p := s.taskQueue(j.TaskQueue)
			p.others = append(p.others, seconds(j.Rest))
		}
	}
	for i, r := range s.Requests {
		for _, j := range r.Jobs {
			if j.Running {
				s.busy[i] = max(s.busy[i], s.taskQueue(j.TaskQueue).run(0, j.Rest))
			}
		}
	}
}

// lineUp enqueues the requests that wait for a slot.
func (s *simulation) lineUp() {
	for i, r := range s.Requests {
		if s.played[i] || r.Unforeseeable != "" {
			continue
		}
		end, known := s.ends[r.Parent]
		switch {
		case r.Parent == "":
			s.waits.add(i, 0)
		case known:
			s.waits.add(i, end)
		default:
			s.children[r.Parent] = append(s.children[r.Parent], i)
		}
	}
}

// admitNext gives the next free slot to the next request; it returns false if there is no slot or no request.
func (s *simulation) admitNext() bool {
	at := max(s.last, s.slots[0])
	if math.IsInf(at, 1) {
		return false
	}
	i, from, found := s.waits.next(at)
	if !found {
		return false
	}
	s.last = max(at, from)
	s.out[i].Start = s.moment(s.last)
	s.play(i, s.last)
	for _, child := range s.children[s.Requests[i].ID] {
		s.waits.add(child, s.ends[s.Requests[i].ID])
	}
	return true
}

// play simulates a request's jobs from the given time and frees its slot at its end.
func (s *simulation) play(i int, at float64) {
	r := s.Requests[i]
	end := max(at, s.busy[i], at+seconds(r.Alone))
	stuck := ""
	for _, j := range r.Jobs {
		if j.Running {
			continue
		}
		jobEnd := s.taskQueue(j.TaskQueue).take(at, j.Rest)
		if math.IsInf(jobEnd, 1) && stuck == "" {
			stuck = j.TaskQueue
		}
		end = max(end, jobEnd)
	}
	s.played[i], s.ends[r.ID] = true, end
	if !r.NoSlot {
		s.hold(end)
	} else if !r.Admitted {
		s.out[i].Start = s.moment(at)
	}
	switch {
	case stuck != "":
		s.out[i].Why = "no live collector serves " + stuck
	case math.IsInf(end, 1):
		s.out[i].Why = "a job runs where no live collector is"
	default:
		s.out[i].End = s.moment(end)
	}
}

// hold occupies the first free slot until the given end. If more requests run than there are slots, because the number was
// reduced, the next one is admitted once enough of them have ended.
func (s *simulation) hold(end float64) {
	if s.slots[0] < end {
		s.slots[0] = end
		heap.Fix(&s.slots, 0)
	}
}

// horizon limits estimates, in seconds: a hundred years, which fits a [time.Duration].
const horizon = 100 * 365 * 24 * 3600

func (s *simulation) moment(at float64) time.Time {
	at = min(at, horizon)
	return s.Now.Add(time.Duration(at * float64(time.Second))).Round(time.Second)
}

// take runs a waiting job after the turn of another one.
func (p *taskQueue) take(at float64, rest time.Duration) (end float64) {
	if len(p.others) > 0 {
		p.runFor(0, p.others[0])
		p.others = p.others[1:]
	}
	return p.run(at, rest)
}

// run assigns a job to the collector that is free first, not before the given time.
func (p *taskQueue) run(at float64, rest time.Duration) (end float64) {
	return p.runFor(at, seconds(rest))
}

func (p *taskQueue) runFor(at, rest float64) (end float64) {
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
func (t *times) Pop() any          { return pop((*[]float64)(t)) }

// turns holds the requests that wait for a slot, by number.
type turns struct {
	ready numbers      // whose parent has ended, the first in order first
	later starts       // whose parent ends at a known time
	seen  map[int]bool // requests ever enqueued
}

type start struct {
	at     float64
	number int
}

func (t *turns) add(number int, from float64) {
	if !math.IsInf(from, 1) {
		t.seen[number] = true
		heap.Push(&t.later, start{from, number})
	}
}

// next removes the first request in order that can start at the given time, else the first that can start later, and returns
// its earliest start.
func (t *turns) next(at float64) (number int, from float64, found bool) {
	for len(t.later) > 0 && t.later[0].at <= at {
		heap.Push(&t.ready, heap.Pop(&t.later).(start).number) //nolint:forcetypeassert // a heap of starts
	}
	if len(t.ready) > 0 {
		return heap.Pop(&t.ready).(int), at, true //nolint:forcetypeassert // a heap of numbers
	}
	if len(t.later) > 0 {
		first := heap.Pop(&t.later).(start) //nolint:forcetypeassert // a heap of starts
		return first.number, first.at, true
	}
	return 0, 0, false
}

type numbers []int

func (n numbers) Len() int           { return len(n) }
func (n numbers) Less(i, j int) bool { return n[i] < n[j] }
func (n numbers) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *numbers) Push(x any)        { *n = append(*n, x.(int)) } //nolint:forcetypeassert // a heap of numbers
func (n *numbers) Pop() any          { return pop((*[]int)(n)) }

type starts []start

func (s starts) Len() int      { return len(s) }
func (s starts) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s starts) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].number < s[j].number
}
func (s *starts) Push(x any) { *s = append(*s, x.(start)) } //nolint:forcetypeassert // a heap of starts
func (s *starts) Pop() any   { return pop((*[]start)(s)) }

func pop[T any](list *[]T) any {
	last := (*list)[len(*list)-1]
	*list = (*list)[:len(*list)-1]
	return last
}
