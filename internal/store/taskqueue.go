package store

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// maxSets is how many sets a collector serves besides its pool: each task queue
// is a poll that it keeps open.
const maxSets = 3

// CollectorTaskQueues lists the task queues from which a collector takes jobs: its
// pool's, then those of the sets that it belongs to and that have open jobs, at
// most four in all: the one whose job it carries out, then those that have jobs
// for anyone to take, the one whose oldest job has waited longest first.
func (s *Store) CollectorTaskQueues(ctx context.Context, c Collector) ([]string, error) {
	pool := bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool}
	sets, err := column[string](ctx, s.pool, `
		select t.task_queue from collector_set t
		cross join lateral (
			select min(j.request_created) as since from job_queue j
			where j.task_queue = t.task_queue and j.constraints is not null and j.status in ('queued', 'handed_out', 'in_progress')
		) w
		where $1 = any(t.collectors) and t.target = $2 and t.size_class = $3 and w.since is not null
		order by
			exists (select from job_run n join job_queue j on j.id = n.job_id
				where n.id = $4 and n.outcome = '' and j.task_queue = t.task_queue) desc,
			exists (select from job_queue j where j.task_queue = t.task_queue and j.constraints is not null and `+unattended+`) desc,
			w.since, t.task_queue limit $5`, c.Name, c.Target, c.SizeClass, string(c.CurrentRun), maxSets)
	return append([]string{pool.TaskQueue()}, sets...), wrap("listing the task queues of collector "+c.Name, err)
}
