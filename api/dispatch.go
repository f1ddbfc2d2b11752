package api

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Dispatcher hands out and moves waiting jobs. The API calls it after writing the record,
// without any lock. Each call may be repeated or omitted: the orchestrator makes up for
// it within seconds.
type Dispatcher interface {
	// Fill hands out the next jobs of a task queue and starts them. Many calls at once share
	// a few fills.
	Fill(ctx context.Context, taskQueue string) error
	// Sweep fills every task queue, and applies current levels to jobs that wait in
	// Temporal.
	Sweep(ctx context.Context) error
	// Presume moves the new jobs of a request to where jobs of their shape went last. It
	// returns the task queues that jobs have moved to, also with an error.
	Presume(ctx context.Context, id bench.RequestID) (taskQueues []string, err error)
	// Refit moves waiting jobs to where current collectors can run them. It returns the
	// task queues that jobs have moved to, also with an error.
	Refit(ctx context.Context) (taskQueues []string, err error)
	// RefitFor is Refit after the registration of a collector: it does nothing when the
	// collector can run the same jobs as before. before is nil for a new collector.
	RefitFor(ctx context.Context, before *bench.Collector, now bench.Collector) (taskQueues []string, err error)
	// FollowMoves moves jobs that wait in Temporal to the task queues of their rows.
	FollowMoves(ctx context.Context) error
}

const (
	// fillTimeout bounds one fill; the orchestrator repeats it.
	fillTimeout = 30 * time.Second
	// refitTimeout bounds a collector's wait for a refit; tens of thousands of jobs move
	// within it.
	refitTimeout = 10 * time.Second
)

// fill hands out jobs that wait in these task queues, after the answer.
func (s *base) fill(ctx context.Context, taskQueues map[string]bool) {
	ctx = context.WithoutCancel(ctx)
	for q := range taskQueues {
		s.afterwards.Go(func() { s.fillOne(ctx, q) })
	}
}

func (s *base) fillOne(ctx context.Context, taskQueue string) {
	ctx, stop := context.WithTimeout(ctx, fillTimeout)
	defer stop()
	if err := s.dispatcher.Fill(ctx, taskQueue); err != nil {
		s.Log.WarnContext(ctx, "could not hand out submitted jobs at once; the orchestrator repeats it", "task_queue", taskQueue, "error", err, "request_id", requestID(ctx))
	}
}

// refit moves waiting jobs to where they belong now, with a method of the dispatcher that
// returns the task queues that jobs have moved to. After a failure the orchestrator
// repeats it within seconds; meanwhile the fence keeps jobs from collectors that cannot
// run them.
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
