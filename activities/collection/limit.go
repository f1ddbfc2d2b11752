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

// add counts one command. It uses resident sets, not the control group's peak:
// that includes the page cache, which any program fills as far as allowed.
func (u *usage) add(s measure.Sample) {
	u.cpu += s.UserCPU + s.SystemCPU
	u.peakMemory = max(u.peakMemory, s.MaxRSSBytes)
}

// errOverran ends a run that exceeds its time limit.
var errOverran = errors.New("the run's time limit has passed")

// within calls do within the total time that the run's size class allows, and
// classifies its error.
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

// stopwatch counts the measuring time of a run. It is stopped while the run
// waits for the API or the network, which says nothing about the size of the
// machine.
type stopwatch struct {
	now   func() time.Time
	limit time.Duration // 0 means none
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

// start starts or resumes the stopwatch.
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

// stop pauses the stopwatch and its limit, and returns the time counted.
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

// overran reports whether a run was ended at its time limit: blocks finished by
// then count.
func overran(err error) bool { return errors.Is(err, errOverran) }
