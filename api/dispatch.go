package api

import (
	"context"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Dispatcher hands waiting jobs out and moves them. The API calls it after it has
// written the record, without any lock. Each call may be repeated, or be left out:
// the orchestrator does within seconds what was missed.
type Dispatcher interface {
	// Fill hands out the next jobs of a task queue and starts them.
	Fill(ctx context.Context, taskQueue string) error
	// Sweep fills every task queue, and gives what waits in Temporal its present
	// level.
	Sweep(ctx context.Context) error
	// Presume lets the new jobs of a request wait where their like went last. It
	// returns the task queues to which jobs have moved, also with an error.
	Presume(ctx context.Context, id bench.RequestID) (taskQueues []string, err error)
	// Refit moves waiting jobs to where present collectors can run them. It returns
	// the task queues to which jobs have moved, also with an error.
	Refit(ctx context.Context) (taskQueues []string, err error)
	// RefitFor is Refit for a collector that was registered: nothing happens when it
	// can run what it could run before. before is nil when it was not registered.
	RefitFor(ctx context.Context, before *bench.Collector, now bench.Collector) (taskQueues []string, err error)
	// FollowMoves moves what waits in Temporal to the task queues of the rows.
	FollowMoves(ctx context.Context) error
}

// A filler keeps one filling of each task queue under way. Who comes while a task
// queue is being filled shares the next filling: thousands of single submissions do
// not wait for each other.
type filler struct {
	mu sync.Mutex
	// again holds the task queues that are being filled, and whether that is to be
	// repeated.
	again map[string]bool
}

const (
	// fillTimeout bounds one filling: the orchestrator repeats it.
	fillTimeout = 30 * time.Second
	// refitTimeout bounds how long a collector waits for jobs to be moved: tens of
	// thousands move within it.
	refitTimeout = 10 * time.Second
)

// fill hands out what waits in these task queues, after the answer.
func (s *base) fill(ctx context.Context, taskQueues map[string]bool) {
	ctx = context.WithoutCancel(ctx)
	for q := range taskQueues {
		if s.filler.join(q) {
			continue
		}
		s.afterwards.Go(func() {
			for more := true; more; more = s.filler.leave(q) {
				s.fillOne(ctx, q)
			}
		})
	}
}

func (s *base) fillOne(ctx context.Context, taskQueue string) {
	ctx, stop := context.WithTimeout(ctx, fillTimeout)
	defer stop()
	if err := s.dispatcher.Fill(ctx, taskQueue); err != nil {
		s.Log.WarnContext(ctx, "could not hand out at once what was submitted; the orchestrator repeats it", "task_queue", taskQueue, "error", err, "request_id", requestID(ctx))
	}
}

// join reports whether somebody is filling the task queue, who will fill it once more.
// Otherwise the caller is to fill it, and to call leave after each time.
func (f *filler) join(taskQueue string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, filling := f.again[taskQueue]
	if f.again == nil {
		f.again = make(map[string]bool)
	}
	f.again[taskQueue] = filling
	return filling
}

// leave reports whether the caller is to fill the task queue once more.
func (f *filler) leave(taskQueue string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	more := f.again[taskQueue]
	if more {
		f.again[taskQueue] = false
	} else {
		delete(f.again, taskQueue)
	}
	return more
}

// refit moves waiting jobs to where they belong now, by a method of the dispatcher that
// returns the task queues to which jobs have moved. What it could not do, the
// orchestrator does within seconds; meanwhile the fence keeps jobs from collectors that
// cannot run them.
func (s *base) refit(ctx context.Context, refit func(context.Context) ([]string, error)) {
	ctx = context.WithoutCancel(ctx)
	bound, stop := context.WithTimeout(ctx, refitTimeout)
	defer stop()
	taskQueues, err := refit(bound)
	if err != nil {
		s.Log.WarnContext(ctx, "could not move all waiting jobs at once; the orchestrator repeats it", "error", err, "request_id", requestID(ctx))
	}
	if len(taskQueues) == 0 {
		return
	}
	moved := make(map[string]bool)
	for _, q := range taskQueues {
		moved[q] = true
	}
	s.fill(ctx, moved)
	s.afterwards.Go(func() {
		bound, stop := context.WithTimeout(ctx, fillTimeout)
		defer stop()
		if err := s.dispatcher.FollowMoves(bound); err != nil {
			s.Log.WarnContext(ctx, "could not move all jobs in Temporal at once; the orchestrator repeats it", "error", err, "request_id", requestID(ctx))
		}
	})
}
