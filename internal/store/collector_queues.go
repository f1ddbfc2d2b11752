package store

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/placement"
)

const (
	// maxSets bounds the sets that a collector serves besides its pool: each task queue
	// costs an open poll.
	maxSets = 3
	// setTurn is the time for which each of several sets is served in turn: several
	// heartbeats, but short compared with most jobs.
	setTurn = 30 * time.Second
	// notInTemporal is the level given to jobs that only wait as rows: after all others.
	notInTemporal = fairshare.LastLevel + 1
)

// CollectorTaskQueues lists the task queues from which a collector takes jobs, at most
// four: first its pool's; then, if its size class has several pools, the one shared by
// all their collectors, where commands wait for the first idle one; then those of its
// sets with open jobs, see [placement.Serve]. A collector that was set aside takes only
// its canaries.
func (s *Store) CollectorTaskQueues(ctx context.Context, c bench.Collector) ([]string, error) {
	pool := bench.Pool{Target: c.Target, SizeClass: c.SizeClass, Name: c.Pool}
	if c.SetAsideAt != nil {
		return []string{bench.ForCanaries(pool, c.Name).TaskQueue()}, nil
	}
	queues := []string{pool.TaskQueue()}
	everybody, err := column[string](ctx, s.pool, `
		select name from collector_config where target = $1 and size_class = $2 and exists (
			select from collector_config p where p.target = $1 and p.size_class = $2 and p.pool <> $3)`, c.Target, c.SizeClass, c.Pool)
	if err != nil {
		return nil, wrap("listing the collectors that share commands with "+c.Name, err)
	}
	if len(everybody) > 0 {
		queues = append(queues, bench.Place{Pool: pool, Set: everybody}.TaskQueue())
	}
	type row struct {
		placement.SetQueue
		Seconds float64 // now
	}
	// Held jobs are not read, however many there are.
	rows, err := all[row](ctx, s.pool, `
		select t.task_queue, coalesce(r.level, @last_level) as level, coalesce(r.since, w.since) as since,
			r.since is not null or exists (select from job_queue j where j.task_queue = t.task_queue and j.status = 'queued' and j.held = '') as ready,
			exists (select from job_run n join job_queue j on j.id = n.job_id
				where n.id = @run and n.outcome = '' and j.task_queue = t.task_queue) as current,
			extract(epoch from now())::float8 as seconds
		from collector_set t
		cross join lateral (
			select least(
				(select min(j.request_created) from job_queue j
					where j.task_queue = t.task_queue and j.constraints is not null and j.status in ('queued', 'handed_out', 'in_progress')),
				(select min(j.request_created) from job_queue j where j.task_queue = t.task_queue and `+unconstrained+`)) as since
		) w
		cross join lateral (
			select min(j.priority) as level, min(j.request_created) as since from job_queue j
			where j.task_queue = t.task_queue and j.status in ('handed_out', 'in_progress')
				and not exists (select from job_run u where u.job_id = j.id and u.outcome = '')
		) r
		where @name = any(t.collectors) and t.target = @target and t.size_class = @size_class and w.since is not null and t.task_queue <> all(@queues)`,
		pgx.NamedArgs{
			"name": c.Name, "target": c.Target, "size_class": c.SizeClass, "run": string(c.CurrentRun),
			"last_level": notInTemporal, "queues": queues,
		})
	if err != nil {
		return nil, wrap("listing the task queues of collector "+c.Name, err)
	}
	if len(rows) == 0 {
		return queues, nil
	}
	sets := make([]placement.SetQueue, len(rows))
	for i, r := range rows {
		sets[i] = r.SetQueue
	}
	// Collectors turn to a set at different times.
	name := fnv.New32a()
	_, _ = name.Write([]byte(c.Name)) // it never fails
	turn := uint64(max(0, rows[0].Seconds)/setTurn.Seconds()) + uint64(name.Sum32())
	return append(queues, placement.Serve(sets, maxSets+1-len(queues), turn)...), nil
}
