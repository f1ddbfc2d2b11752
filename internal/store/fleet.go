package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
)

// Fleet lists all registered collectors as placement needs them, by name. Live are those
// that are active and had a heartbeat within offlineAfter.
func (s *Store) Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error) {
	fleet, err := fleet(ctx, s.pool, offlineAfter)
	return fleet, wrap("listing collectors for placement", err)
}

func fleet(ctx context.Context, q querier, offlineAfter time.Duration) (plan.Fleet, error) {
	type row struct {
		Name         string
		Target       bench.Target
		SizeClass    bench.SizeClass
		Pool         string
		MachineType  string
		MachineGroup string
		Host         string
		Devices      []string
		Labels       map[string]string
		MemoryBytes  int64
		CPUs         int
		CacheDirs    []string
		Active, Live bool
		AwaySeconds  float64
	}
	rows, err := all[row](ctx, q, `
		select name, target, size_class, pool, machine_type, machine_group, host, devices, labels, memory_bytes, cpus, cache_dirs,
			active, active and `+heardOf("$1")+` as live, extract(epoch from now() - available_at)::float8 as away_seconds
		from collector_config order by name`, offlineAfter.Seconds())
	out := make(plan.Fleet, len(rows))
	for i, r := range rows {
		out[i] = placement.Collector{
			Name: r.Name, Pool: bench.Pool{Target: r.Target, SizeClass: r.SizeClass, Name: r.Pool},
			Type: r.MachineType, Group: r.MachineGroup, Host: r.Host, Devices: r.Devices, Labels: r.Labels,
			MemoryBytes: r.MemoryBytes, CPUs: r.CPUs, CacheDirs: r.CacheDirs, Active: r.Active, Live: r.Live,
		}
		if !r.Live {
			out[i].Away = time.Duration(max(0, r.AwaySeconds) * float64(time.Second))
		}
	}
	return out, err
}

// recordSet records which collectors take jobs from a set's task queue. It must follow
// the locking of the jobs that go there. A set is kept while it has open jobs, and for a
// day. One that was recorded within the last hour is not locked.
func recordSet(ctx context.Context, tx pgx.Tx, place bench.Place) error {
	if len(place.Set) == 0 {
		return nil
	}
	fresh, err := value[bool](ctx, tx, `
		select exists (select from collector_set where task_queue = $1 and created_at > now() - interval '1 hour')`, place.TaskQueue())
	if err != nil || fresh {
		return err
	}
	if err := lock(ctx, tx, "sets of collectors"); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into collector_set (task_queue, target, size_class, collectors) values ($1, $2, $3, $4)
		on conflict (task_queue) do update set created_at = now()`,
		place.TaskQueue(), place.Target, place.SizeClass, place.Set)
	return err
}

// placeSets collects the places of jobs that a transaction writes. Their sets are
// recorded after all else is locked.
type placeSets map[string]bench.Place

func (s *placeSets) add(place bench.Place) {
	if len(place.Set) == 0 {
		return
	}
	if *s == nil {
		*s = make(placeSets)
	}
	(*s)[place.TaskQueue()] = place
}

func (s placeSets) record(ctx context.Context, tx pgx.Tx) error {
	for _, place := range s {
		if err := recordSet(ctx, tx, place); err != nil {
			return err
		}
	}
	return nil
}

// withSet completes a job bound for a set's task queue, such as one measured again, with
// the set's collectors. If the set was removed, the job waits for any collector of its
// pool until it is placed again.
func withSet(ctx context.Context, tx pgx.Tx, j bench.PlannedJob) (bench.PlannedJob, error) {
	if len(j.Set) > 0 || !bench.IsSet(j.TaskQueue) {
		return j, nil
	}
	set, err := value[[]string](ctx, tx, `select collectors from collector_set where task_queue = $1`, j.TaskQueue)
	if errors.Is(err, ErrNotFound) {
		j.PutAt(j.At())
		return j, nil
	}
	j.Set = set
	return j, err
}

// PruneSets removes sets of collectors without an open job for a day.
func (s *Store) PruneSets(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		delete from collector_set t where t.created_at < now() - interval '1 day' and not exists (
			select from job_queue j where j.task_queue = t.task_queue and j.status in ('queued', 'handed_out', 'in_progress'))`)
	return wrap("removing sets of collectors", err)
}

// serves matches a collector c that takes jobs from the given task queue: its pool's, or
// that of a set to which it belongs.
func serves(taskQueue string) string {
	return `('bench/' || c.target || '/' || c.size_class || '/' || c.pool = ` + taskQueue + ` or exists (
		select from collector_set cs where cs.task_queue = ` + taskQueue + ` and c.name = any(cs.collectors)
			and c.target = cs.target and c.size_class = cs.size_class))`
}
