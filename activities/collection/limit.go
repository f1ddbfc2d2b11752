package collection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// usage counts the resources a run has used so far.
type usage struct {
	now        func() time.Time
	measured   time.Duration // without fetching, which depends on what is cached
	cpu        time.Duration
	peakMemory int64 // largest resident set of a single process, in bytes
}

// add counts one command. Resident sets are taken, not the control group's peak:
// that has the page cache, which any program fills as far as it may.
func (u *usage) add(s measure.Sample) {
	u.cpu += s.UserCPU + s.SystemCPU
	u.peakMemory = max(u.peakMemory, s.MaxRSSBytes)
}

// errOverran ends what exceeds the run's time limit.
var errOverran = errors.New("the run's time limit has passed")

// within carries out what a run is for, within the time that its size class
// allows for all of it together, and gives an error its kind.
func (c *Collector) within(ctx context.Context, plan apiclient.RunPlan, s *sink, do func(context.Context) error) error {
	limit := time.Duration(plan.TimeoutSeconds * float64(time.Second))
	limited, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.clock = startStopwatch(s.used.now, limit, func() { end(errOverran) })
	defer func() { s.used.measured = s.clock.stop() }()
	err := do(limited)
	if err != nil && ctx.Err() == nil && errors.Is(err, errOverran) {
		return &kindError{bench.FailTimeout, fmt.Errorf("killed after %s, the time limit on size class %d: %w; it is tried on a larger one", limit.Round(time.Millisecond), plan.Run.SizeClass, errOverran)}
	}
	return c.failed(err)
}

// stopwatch takes the time that a run measures. What the API and the network take of
// it says nothing about the size of the machine: it is stopped meanwhile.
type stopwatch struct {
	now   func() time.Time
	limit time.Duration // 0: none
	over  func()        // called when the limit has passed

	mu      sync.Mutex
	took    time.Duration // until it was last stopped
	since   time.Time
	running bool
	timer   *time.Timer
}

func startStopwatch(now func() time.Time, limit time.Duration, over func()) *stopwatch {
	w := &stopwatch{now: now, limit: max(0, limit), over: over}
	w.start()
	return w
}

// start lets it go on.
func (w *stopwatch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return
	}
	w.since, w.running = w.now(), true
	if w.limit > 0 {
		w.timer = time.AfterFunc(w.limit-w.took, w.over)
	}
}

// stop stops it, and its limit, and gives what it has taken so far.
func (w *stopwatch) stop() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		return w.took
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.took, w.running = w.took+w.now().Sub(w.since), false
	return w.took
}

// overran tells whether a run was ended at its time limit: what it has finished
// by then counts.
func overran(err error) bool { return errors.Is(err, errOverran) }
