package api

import (
	"context"
	"sync"
	"time"
)

// filler hands jobs out that were submitted, after their submitter was answered. Of
// a task queue that is being filled already, whoever comes meanwhile shares the next
// time: thousands of single submissions do not wait for each other.
type filler struct {
	mu sync.Mutex
	// again tells of each task queue that is being filled whether that is to be
	// repeated.
	again map[string]bool
}

// fillBound is how long one filling may take: the orchestrator does it again.
const fillBound = 30 * time.Second

// fill lets the task queues take what was submitted.
func (s *server) fill(ctx context.Context, taskQueues map[string]bool) {
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

func (s *server) fillOne(ctx context.Context, taskQueue string) {
	ctx, stop := context.WithTimeout(ctx, fillBound)
	defer stop()
	if err := s.handOut().Fill(ctx, taskQueue); err != nil {
		s.Log.WarnContext(ctx, "could not hand out at once what was submitted; it is repeated", "task_queue", taskQueue, "error", err, "request_id", requestID(ctx))
	}
}

// join tells whether somebody fills the task queue who will do it once more; else
// the caller is the one, and asks leave after each time.
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

// leave tells whether it is to be done once more.
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
