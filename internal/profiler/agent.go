package profiler

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Agent records one attempt at a run. Make it with [New], begin with [Agent.Start] and defer [Agent.End]. Its methods may be called
// at any time, in any order and from any goroutine; none of them waits, except End, which is bounded.
//
// An agent is enabled or not for its whole life. If not, it does nothing at all. An enabled one is active at most once: from the
// batch index that its settings name, at the latest until End, for five minutes at most.
type Agent struct {
	config          Config
	system, timings bool
	batches         *batches
	shipping        *shipping
	totals          counts
	sources         []*source
	turn            turn

	// activated is closed when the agent becomes active, closed when it can no longer become active. ending asks for a last sample.
	activated, closed, ending chan struct{}
	// sampled and sent are closed when the goroutine that samples, or sends, has ended.
	sampled, sent chan struct{}
	end           sync.Once

	mu               sync.Mutex
	window           window
	started, stopped bool
	origin           time.Time // when the agent became active
	limit            *time.Timer
	cancel           context.CancelFunc
}

// New returns an agent without starting anything. It fails if the window ends before it starts, or if a needed part is missing.
func New(c Config) (*Agent, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	a := &Agent{config: c, system: c.systemMetrics(), timings: c.timings()}
	if !a.enabled() {
		return a, nil
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	a.window = window{first: c.StartOnBatch, last: c.EndAfterBatch}
	a.batches = newBatches(c.Attempt, c.Host)
	a.shipping = &shipping{sender: c.Sender, queue: newQueue(), totals: &a.totals, log: c.Log, trouble: rate.Sometimes{Interval: logEvery}}
	a.turn = turn{lock: c.Lock, trouble: rate.Sometimes{Interval: logEvery}}
	if a.system {
		a.sources = append(sources(ScopeJob, c.Job), sources(ScopeMachine, c.Machine)...)
	}
	for _, moment := range []*chan struct{}{&a.activated, &a.closed, &a.ending, &a.sampled, &a.sent} {
		*moment = make(chan struct{})
	}
	return a, nil
}

func (a *Agent) enabled() bool { return a.system || a.timings }

// Start begins: the agent is active from now on if the batch index is in its window, else as soon as the index is. Only the first call
// has an effect, and none after [Agent.End]. When the context ends, everything stops immediately, and unsent values are dropped.
func (a *Agent) Start(ctx context.Context) {
	if !a.enabled() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started || a.stopped || a.window.phase == over {
		return
	}
	a.started = true
	running, cancel := context.WithCancel(ctx)
	a.cancel = cancel
	context.AfterFunc(running, func() { a.close(false) })
	go func() {
		defer close(a.sent)
		a.shipping.run(running)
	}()
	go a.flush()
	if a.system {
		go func() {
			defer close(a.sampled)
			a.sample(running)
		}()
	} else {
		close(a.sampled)
	}
	a.window.begin()
	a.settle()
}

// UpdateBatch tells the number of the measured command that begins now. Numbers count the commands of a job from 1; 0 is the time
// before. It returns an [*IndexError], and changes nothing, if the number is below the one before.
func (a *Agent) UpdateBatch(index int) error {
	if !a.enabled() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.window.moveTo(index); err != nil {
		return err
	}
	a.settle()
	return nil
}

// RecordTiming records a phase of the job that has ended. It drops the phase, and counts it, if the phase ends before it begins, if
// its name is empty, unprintable or longer than MaxNameBytes, or if there are more than MaxTimingSeries names or MaxValues phases of a name.
func (a *Agent) RecordTiming(name string, begin, end time.Time) {
	if !a.timings {
		return
	}
	at, index, live := a.place(end)
	if !live {
		return
	}
	took := end.Sub(begin)
	series := Series{Scope: ScopeTiming, Name: name}
	if took < 0 || !a.batches.add(series, point{value: took.Seconds(), at: at, index: index}) {
		a.totals.dropped.Add(1)
	}
}

// Totals account for the values of an attempt.
type Totals struct {
	// Sent values were delivered, Dropped ones were measured and lost.
	Sent, Dropped int64
	// Failed counts the samples of a source that could not be read.
	Failed int64
}

// End takes a last sample, sends what is left, and stops everything. It returns within EndWithin, and drops what cannot be delivered
// until then. Only the first call has an effect; all return the totals.
func (a *Agent) End() Totals {
	if a.enabled() {
		a.end.Do(a.stop)
	}
	return Totals{Sent: a.totals.sent.Load(), Dropped: a.totals.dropped.Load(), Failed: a.totals.failed.Load()}
}

func (a *Agent) stop() {
	a.mu.Lock()
	a.stopped = true
	started := a.started
	a.mu.Unlock()
	if !started {
		return
	}
	defer a.cancel()
	bound := time.NewTimer(EndWithin)
	defer bound.Stop()
	// Each gets a part of the bound: the last sample, delivering, and ending the cancelled goroutines.
	close(a.ending)
	await(a.sampled, EndWithin/4)
	a.close(true)
	await(a.sent, EndWithin/2)
	a.cancel()
	for _, part := range []chan struct{}{a.sampled, a.sent} {
		select {
		case <-part:
		case <-bound.C:
			return
		}
	}
}

// await waits until the channel is closed, but not longer than the bound.
func await(done <-chan struct{}, bound time.Duration) {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// settle follows a change of the window. The caller holds the lock.
func (a *Agent) settle() {
	switch a.window.phase {
	case waiting:
	case active:
		if a.origin.IsZero() {
			a.origin = a.config.Now()
			// The limit is a boundary of batches, so that the last batch is a full one.
			a.limit = time.AfterFunc(MaxActive, func() { a.close(true) })
			close(a.activated)
		}
	case over:
		a.finish(true)
	}
}

// close ends the window for good. Values not taken yet are sent if keep is set, else dropped.
func (a *Agent) close(keep bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finish(keep)
}

func (a *Agent) finish(keep bool) {
	select {
	case <-a.closed:
		return
	default:
	}
	close(a.closed)
	a.window.phase = over
	if a.limit != nil {
		a.limit.Stop()
	}
	rest := a.batches.close()
	if keep {
		a.enqueue(rest)
	} else {
		a.totals.dropped.Add(int64(rest.Values()))
	}
	a.shipping.queue.close()
}

// place returns the time and the batch index of something that happens now, and whether the agent is active. Times advance with the
// monotonic clock from the agent's activation.
func (a *Agent) place(now time.Time) (at time.Time, index int, live bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.window.phase != active {
		return time.Time{}, 0, false
	}
	passed := now.Sub(a.origin)
	return a.origin.Add(passed).Round(0).UTC(), a.window.index, passed < MaxActive
}

// elapsed returns the time since the agent became active.
func (a *Agent) elapsed() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config.Now().Sub(a.origin)
}

// flush hands on the gathered values every ten seconds.
func (a *Agent) flush() {
	select {
	case <-a.activated:
	case <-a.closed:
		return
	}
	timer := time.NewTimer(pace(a.elapsed(), FlushInterval))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.closed:
			return
		}
		a.enqueue(a.batches.take())
		timer.Reset(pace(a.elapsed(), FlushInterval))
	}
}

func (a *Agent) enqueue(u Upload) {
	if len(u.Batches) == 0 && len(u.Absent) == 0 {
		return
	}
	if !a.shipping.queue.put(u) {
		a.totals.dropped.Add(int64(u.Values()))
	}
}

// tick is the unit in which the kernel counts the time of a machine, see proc_stat(5). It counts
// that of a control group exactly.
const tick = 10 * time.Millisecond

// sample samples while the agent is active, and once more at its end.
func (a *Agent) sample(ctx context.Context) {
	defer a.release()
	select {
	case <-a.activated:
	case <-a.closed:
		return
	case <-a.ending:
		select {
		case <-a.activated:
		default:
			return
		}
	}
	alarm := a.config.alarm()
	defer alarm.Close()
	var watched sync.WaitGroup
	defer watched.Wait()
	over := make(chan struct{})
	defer close(over)
	watched.Go(func() {
		select {
		case <-a.closed:
		case <-a.ending:
		case <-over:
		}
		alarm.Stop()
	})
	for only := true; ; only = false {
		a.round(ctx, ScopeJob, ScopeMachine)
		previous := a.elapsed()
		if alarm.Wait(pace(previous, Interval)) {
			continue
		}
		passed := a.elapsed() - previous
		if only {
			// The next job waits for the end of this one.
			if passed < tick {
				a.round(ctx, ScopeJob)
			} else {
				a.round(ctx, ScopeJob, ScopeMachine)
			}
			return
		}
		// Sample the last interval, too. It is short, but at least half an interval.
		rest := time.NewTimer(max(0, Interval/2-passed))
		defer rest.Stop()
		select {
		case <-rest.C:
			a.round(ctx, ScopeJob, ScopeMachine)
		case <-a.closed:
		}
		return
	}
}

// round samples every source of some scopes once.
func (a *Agent) round(ctx context.Context, scopes ...Scope) {
	mine, err := a.turn.take()
	if err != nil {
		a.turn.trouble.Do(func() {
			a.config.Log.Warn("the profiler cannot tell whether another agent records this machine, and does not", "error", err)
		})
	}
	for _, s := range a.sources {
		if s.scope == ScopeMachine && !mine || !slices.Contains(scopes, s.scope) {
			continue
		}
		now := a.config.Now()
		at, index, live := a.place(now)
		if !live {
			return
		}
		fresh, absent, err := s.sample(ctx, now, a.config.Now)
		if err != nil {
			a.totals.failed.Add(1)
			s.failed(a.config.Log, err)
			continue
		}
		for _, absence := range absent {
			a.batches.lack(absence)
		}
		a.totals.dropped.Add(a.batches.addAll(fresh, at, index))
	}
}

// release closes the collectors and lets another agent of the host record the machine.
func (a *Agent) release() {
	for _, s := range a.sources {
		if err := s.close(); err != nil {
			s.failed(a.config.Log, err)
		}
	}
	if err := a.turn.leave(); err != nil {
		a.config.Log.Warn("the profiler cannot let another agent record this machine", "error", err)
	}
}
