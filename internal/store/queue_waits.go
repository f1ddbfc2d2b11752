package store

import (
	"context"
	"strings"
)

// QueueWaits returns how many seconds the oldest handed-out job of each task queue has
// waited for a collector. Task queues without such a job are absent.
func (s *Store) QueueWaits(ctx context.Context, taskQueues []string) (map[string]float64, error) {
	type row struct {
		TaskQueue string
		Seconds   float64
	}
	rows, err := all[row](ctx, s.pool, `
		select task_queue, extract(epoch from now() - min(handed_out_at))::float8 as seconds
		from job_queue where task_queue = any($1) and status = 'handed_out' group by task_queue`, taskQueues)
	waits := make(map[string]float64, len(rows))
	for _, r := range rows {
		waits[r.TaskQueue] = max(0, r.Seconds)
	}
	return waits, wrap("reading the waiting times in "+strings.Join(taskQueues, ", "), err)
}
