package workers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/internal/machinegate"
)

const (
	// headStart is several times the duration of a poll and its answer (13 ms
	// at the 99th percentile), so that queues with work take turns; four queues
	// are all polled within 200 ms.
	headStart = 40 * time.Millisecond
	// starvedAfter is the wait of a large job after which smaller ones are held back.
	starvedAfter = time.Minute
	// holdFor limits how long they are held back if the large job does not come
	// although it would fit.
	holdFor = 10 * time.Second
	// reportFor is the validity of the API's report about waiting jobs: five
	// heartbeats.
	reportFor = 15 * time.Second
)

// Gate keeps the jobs of all slots of a machine within its budget: it decides
// which polls may be open and returns tasks that arrive but do not fit. The
// slots of a machine share it.
type Gate struct {
	mu    sync.Mutex
	gate  *machinegate.Gate
	slots int
	polls map[*poll]struct{}
	// room holds the functions of keepRoom, by slot.
	room map[string]func() bool
	// changed is closed and replaced when a lane may have become free.
	changed chan struct{}
}

// NewGate returns the gate of a machine whose jobs may cost budget together, in
// the unit of the slots' costs.
func NewGate(budget int64) (*Gate, error) {
	gate, err := machinegate.New(machinegate.Config{
		Budget: budget, HeadStart: headStart, StarvedAfter: starvedAfter, HoldFor: holdFor, ReportFor: reportFor,
	})
	if err != nil {
		return nil, err
	}
	return &Gate{gate: gate, polls: map[*poll]struct{}{}, room: map[string]func() bool{}, changed: make(chan struct{})}, nil
}

// roomEvery is the interval at which a slot without room looks again.
const roomEvery = time.Second

// keepRoom keeps a slot from taking jobs while room reports that there is none for them. room is called under no lock, from
// several goroutines.
func (g *Gate) keepRoom(slot string, room func() bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room[slot] = room
}

// hasRoom reports whether there is room for a job in a slot now.
func (g *Gate) hasRoom(slot string) bool {
	g.mu.Lock()
	room := g.room[slot]
	g.mu.Unlock()
	return room == nil || room()
}

// ownMachine returns the gate of a collector that has its machine for itself.
func ownMachine(name string) (*Gate, error) {
	g, err := NewGate(1)
	if err != nil {
		return nil, err
	}
	return g, g.Add(name, 1)
}

// Add adds a slot whose jobs cost cost each.
func (g *Gate) Add(slot string, cost int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.gate.Add(slot, cost, time.Now()); err != nil {
		return fmt.Errorf("adding slot %s: %w", slot, err)
	}
	g.slots++
	return nil
}

// shared reports whether there are several slots, which may delay each other.
func (g *Gate) shared() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slots > 1
}

// serve sets the queues that a slot polls.
func (g *Gate) serve(slot string, queues []string) {
	g.change(func(time.Time) { g.gate.Serve(slot, queues) })
}

// report records how long the longest waiting job of each queue of a slot has
// waited, in seconds.
func (g *Gate) report(slot string, seconds map[string]float64) {
	if !g.shared() {
		return
	}
	waits := make(map[string]time.Duration, len(seconds))
	for queue, s := range seconds {
		waits[queue] = time.Duration(s * float64(time.Second))
	}
	g.change(func(now time.Time) { g.gate.Report(slot, waits, now) })
}

// change changes the gate, closes polls that must no longer be open, and wakes
// the waiting ones.
func (g *Gate) change(do func(now time.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	do(now)
	g.closePolls(now)
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *Gate) closePolls(now time.Time) {
	for p := range g.polls {
		if p.open == nil {
			continue
		}
		if may, _ := g.gate.MayPoll(p.lane, now); !may {
			p.close()
		}
	}
}

// poll is the only slot of one SDK worker, which reserves it before polling.
// The gate guards its fields.
type poll struct {
	gate *Gate
	lane machinegate.Lane
	// open is the permit with which the worker polls, busy the permit of the task that occupies
	// the machine; nil: there is none. The worker keeps a task's permit until the server has heard
	// of its end, while already polling for the next task.
	open, busy *worker.SlotPermit
	// closing: it takes no more tasks. closed tells its worker.
	closing bool
	closed  chan struct{}
}

// newPoll returns the slot of a worker that polls a lane. The caller must call
// forget at the end.
func (g *Gate) newPoll(lane machinegate.Lane) *poll {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &poll{gate: g, lane: lane, closed: make(chan struct{})}
	g.polls[p] = struct{}{}
	return p
}

func (p *poll) forget() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	delete(p.gate.polls, p)
}

func (p *poll) close() {
	if !p.closing {
		p.closing = true
		close(p.closed)
	}
}

// shut stops it from taking tasks and waits until its task or the context has
// ended.
func (p *poll) shut(ctx context.Context) {
	for {
		p.gate.mu.Lock()
		p.close()
		busy, changed := p.busy != nil, p.gate.changed
		p.gate.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// admit reserves the machine for a task that its worker has received.
func (p *poll) admit() (release func(), ok bool) {
	g := p.gate
	if !g.hasRoom(p.lane.Slot) {
		return nil, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if p.closing || !g.gate.Begin(p.lane, now) {
		return nil, false
	}
	g.closePolls(now)
	own := p.busy
	return func() {
		g.change(func(now time.Time) {
			g.gate.End(p.lane.Slot, now)
			if p.busy == own {
				p.busy = nil
			}
		})
	}, true
}

// ReserveSlot waits until the lane may be polled; see [worker.SlotSupplier].
func (p *poll) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		permit, again, changed := p.tryOpen()
		if permit != nil {
			return permit, nil
		}
		if err := waitFor(ctx, again, changed); err != nil {
			return nil, err
		}
	}
}

func (p *poll) tryOpen() (permit *worker.SlotPermit, again time.Duration, changed <-chan struct{}) {
	g := p.gate
	room := g.hasRoom(p.lane.Slot)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case p.closing || p.open != nil || p.busy != nil:
		return nil, 0, g.changed
	case !room:
		return nil, roomEvery, g.changed
	}
	may, again := g.gate.MayPoll(p.lane, time.Now())
	if may {
		p.open = &worker.SlotPermit{}
	}
	return p.open, again, g.changed
}

// waitFor waits for a change, at most for the given time (0 means no limit), or
// for the end of the context.
func waitFor(ctx context.Context, again time.Duration, changed <-chan struct{}) error {
	var after <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-after:
	}
	return nil
}

// TryReserveSlot reserves nothing: eager tasks would bypass the queue.
func (p *poll) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed records that the poll has returned a task.
func (p *poll) MarkSlotUsed(info worker.SlotMarkUsedInfo) {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.open, p.busy = nil, info.Permit()
}

// ReleaseSlot records that the worker has finished the task, or that the poll
// returned none.
func (p *poll) ReleaseSlot(info worker.SlotReleaseInfo) {
	p.gate.change(func(time.Time) {
		switch info.Permit() {
		case p.open:
			p.open = nil
		case p.busy:
			p.busy = nil
		}
	})
}

// MaxSlots is one: a collector runs one job at a time.
func (p *poll) MaxSlots() int { return 1 }
