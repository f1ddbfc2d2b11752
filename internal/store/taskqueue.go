package store

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// maxSets is how many sets a collector serves besides its pool: each task queue
// is a poll that it keeps open.
const maxSets = 3

// CollectorTaskQueues lists the task queues from which a collector takes jobs: its
// pool's, then those of the sets that it belongs to and that have open jobs, the
// one whose oldest job has waited longest first; at most four in all.
func (s *Store) CollectorTaskQueues(ctx context.Context, c Collector) ([]string, error) {
	pool := bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool}
	sets, err := column[string](ctx, s.pool, `
		select t.task_queue from collector_set t
		cross join lateral (
			select min(j.request_created) as since from job_queue j
			where j.task_queue = t.task_queue and j.status in ('queued', 'handed_out', 'in_progress')
		) w
		where $1 = any(t.collectors) and t.target = $2 and w.since is not null
		order by w.since, t.task_queue limit $3`, c.Name, c.Target, maxSets)
	return append([]string{pool.TaskQueue()}, sets...), wrap("listing the task queues of collector "+c.Name, err)
}
