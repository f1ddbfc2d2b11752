package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

const collectorColumns = `c.name, c.target, c.size_class, c.pool, c.machine_id, c.epoch, c.version, c.hardware_id, c.facts,
	c.unenforced, c.co_located, c.labels, c.benchmark_sets, c.machine_type, c.machine_group, c.devices,
	c.memory_bytes, c.cpus, c.cache_dirs, c.host, c.active, c.disturbed_by, c.set_aside_at, ` + stuck + ` as stuck, c.canary_failed, c.registered_at, c.last_heartbeat,
	coalesce(c.current_run, '') as current_run,
	coalesce((select w.version from wanted_version w where w.pool in (c.pool, '') order by w.pool desc limit 1), '') as wanted_version`

// stuck matches a collector c that was set aside until it is started anew, even if its machine becomes quiet.
const stuck = `coalesce(c.quiet_from = 'infinity', false)`

// heardOf matches collectors whose last heartbeat is at most that many seconds old.
// Heartbeats further in the future were written before the database's clock was set
// back, and are ignored.
func heardOf(seconds string) string {
	return `last_heartbeat between now() - make_interval(secs => ` + seconds + `) and now() + make_interval(secs => ` + seconds + `)`
}

// RegisterCollector registers a collector and returns it with its new epoch. Runs under
// an older registration are refused from then on. Another machine may take over the name
// once its owner has been silent for offlineAfter, by the database's clock; before,
// RegisterCollector returns ErrNameTaken. A new collector is active; a known one stays
// active or drained; one that was stuck (see [Store.SetStuck]) takes jobs again.
//
// The first registration after an enrolment binds the name to the machine's hardware.
// Other hardware is refused with a [*NewMachineError] until the collector is removed, or
// it or its shared host is enrolled again.
func (s *Store) RegisterCollector(ctx context.Context, c bench.Collector, offlineAfter time.Duration) (bench.Collector, error) {
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	var registered bench.Collector
	err := s.inTx(ctx, "registering collector "+c.Name, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "collector "+c.Name); err != nil {
			return err
		}
		if err := mayRegister(ctx, tx, c, offlineAfter); err != nil {
			return err
		}
		var err error
		registered, err = one[bench.Collector](ctx, tx, `
			insert into collector_config as c (name, target, size_class, pool, machine_id, epoch, version, hardware_id, facts,
				unenforced, co_located, labels, benchmark_sets, machine_type, machine_group, devices, memory_bytes, cpus, cache_dirs, host)
			values (@name, @target, @size_class, @pool, @machine_id, nextval('collector_epoch'), @version, @hardware_id, @facts,
				@unenforced, @co_located, @labels, @benchmark_sets, @machine_type, @machine_group, @devices, @memory_bytes, @cpus, @cache_dirs, @host)
			on conflict (name) do update set target = excluded.target, size_class = excluded.size_class, pool = excluded.pool,
				machine_id = excluded.machine_id, epoch = excluded.epoch, version = excluded.version,
				hardware_id = excluded.hardware_id, facts = excluded.facts, unenforced = excluded.unenforced,
				co_located = excluded.co_located, labels = excluded.labels,
				benchmark_sets = excluded.benchmark_sets, machine_type = excluded.machine_type, machine_group = excluded.machine_group,
				devices = excluded.devices, memory_bytes = excluded.memory_bytes, cpus = excluded.cpus, cache_dirs = excluded.cache_dirs,
				host = excluded.host, registered_at = now(), last_heartbeat = now(), current_run = null,
				available_at = case when c.active or `+stuck+` then now() else c.available_at end, active = c.active or `+stuck+`,
				set_aside_at = case when not `+stuck+` then c.set_aside_at end, disturbed_by = case when not `+stuck+` then c.disturbed_by else '' end,
				quiet_from = case when not `+stuck+` then c.quiet_from end
			returning `+collectorColumns,
			pgx.NamedArgs{
				"name": c.Name, "target": c.Target, "size_class": c.SizeClass, "pool": c.Pool, "machine_id": c.MachineID,
				"version": c.Version, "hardware_id": c.HardwareID, "facts": document(c.Facts, "{}"),
				"unenforced": document(c.Unenforced, "[]"), "co_located": c.CoLocated,
				"labels": c.Labels, "benchmark_sets": list(c.BenchmarkSets),
				"machine_type": cmp.Or(c.MachineType, "hw"), "machine_group": c.MachineGroup, "devices": list(c.Devices),
				"memory_bytes": c.MemoryBytes, "cpus": c.CPUs, "cache_dirs": list(c.CacheDirs), "host": c.Host,
			})
		return err
	})
	return registered, err
}

// NewMachineError reports a registration from hardware other than that of the collector.
type NewMachineError struct {
	Name    string
	Was, Is string // hardware IDs
}

func (e *NewMachineError) Error() string {
	return fmt.Sprintf("collector %s is the machine with hardware ID %s, and this one has %s", e.Name, e.Was, e.Is)
}

// mayRegister refuses a collector whose name belongs to another machine.
func mayRegister(ctx context.Context, tx pgx.Tx, c bench.Collector, offlineAfter time.Duration) error {
	type row struct {
		Taken, Bound bool
		HardwareID   string
	}
	known, err := one[row](ctx, tx, `
		select machine_id <> @machine and `+heardOf("@offline")+` as taken, hardware_id,
			not exists (select from access_token t where t.collector in (@name, @host) and t.created_at > k.registered_at) as bound
		from collector_config k where name = @name for update`,
		pgx.NamedArgs{"name": c.Name, "machine": c.MachineID, "host": c.Host, "offline": offlineAfter.Seconds()})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case known.Taken:
		return ErrNameTaken
	case known.Bound && known.HardwareID != c.HardwareID:
		return &NewMachineError{Name: c.Name, Was: known.HardwareID, Is: c.HardwareID}
	}
	return nil
}

// list returns words as stored: an empty list instead of nil.
func list(words []string) []string {
	if words == nil {
		return []string{}
	}
	return words
}

// idleBeatKept is the age up to which the last heartbeat of an idle collector stands for
// later ones. Each recorded heartbeat writes a page of the log, 8 kB: at one every 3 s,
// most of what an idle installation writes.
const idleBeatKept = 7 * time.Second

// Heartbeat records that a collector is alive, and its current run; run is empty if it is
// idle. For a collector that has been idle for long, one heartbeat every few seconds is
// recorded. It returns ErrFenced if the collector was registered again since, or removed.
func (s *Store) Heartbeat(ctx context.Context, name string, epoch int64, run bench.RunID, progress json.RawMessage) (bench.Collector, error) {
	c, err := one[bench.Collector](ctx, s.pool, `
		with beat as (
			update collector_config as c set last_heartbeat = now(), current_run = nullif($3, ''),
				available_at = case when c.active then now() else c.available_at end
			where c.name = $1 and c.epoch = $2
				and not ($3 = '' and c.current_run is null and c.last_heartbeat between now() - make_interval(secs => $4) and now()
					and (not c.active or c.available_at >= c.last_heartbeat)) -- else it has just become active again
			returning `+collectorColumns+`
		)
		select * from beat
		union all
		select `+collectorColumns+` from collector_config c where c.name = $1 and c.epoch = $2 and not exists (select from beat)`,
		name, epoch, string(run), idleBeatKept.Seconds())
	if errors.Is(err, ErrNotFound) {
		err = ErrFenced
	}
	if err != nil {
		return bench.Collector{}, wrap("recording the heartbeat of collector "+name, err)
	}
	if run != "" && len(progress) > 0 {
		if err := s.SetProgress(ctx, name, run, progress); err != nil && !errors.Is(err, ErrNotFound) { // the run may not have passed the fence yet
			return bench.Collector{}, err
		}
	}
	return c, nil
}

// SetCacheDirs records a collector's cache directories. It returns ErrFenced if the
// collector was registered again since, or removed.
func (s *Store) SetCacheDirs(ctx context.Context, name string, epoch int64, dirs []string) error {
	err := affected(s.pool.Exec(ctx, `update collector_config set cache_dirs = $3 where name = $1 and epoch = $2`, name, epoch, list(dirs)))
	if errors.Is(err, ErrNotFound) {
		err = ErrFenced
	}
	return wrap("recording the cache directories of collector "+name, err)
}

// Collectors lists all registered collectors by name.
func (s *Store) Collectors(ctx context.Context) ([]bench.Collector, error) {
	cs, err := all[bench.Collector](ctx, s.pool, `select `+collectorColumns+` from collector_config c order by c.name`)
	return cs, wrap("listing collectors", err)
}

// SetActive activates or drains a collector. Whether it was set aside no longer matters;
// an activated one is judged by its later runs only.
func (s *Store) SetActive(ctx context.Context, name string, active bool) error {
	err := affected(s.pool.Exec(ctx, `
		update collector_config set active = $2, set_aside_at = null, quiet_from = null, canary_failed = canary_failed and not $2,
			disturbed_by = case when $2 then '' else disturbed_by end, judged_from = case when $2 then now() else judged_from end
		where name = $1`, name, active))
	return wrap("changing collector "+name, err)
}

// RemoveCollector removes a collector, its configuration and its token. Its runs stay; a
// process still running under its name is refused from then on. It returns ErrNotFound if
// the collector is neither registered, enrolled nor invited.
func (s *Store) RemoveCollector(ctx context.Context, name string) error {
	return s.inTx(ctx, "removing collector "+name, func(tx pgx.Tx) error {
		known := false
		for _, sql := range []string{
			`delete from collector_invitation where name = $1`,
			`delete from access_token where collector = $1`,
			`delete from collector_config where name = $1`,
		} {
			tag, err := tx.Exec(ctx, sql, name)
			if err != nil {
				return err
			}
			known = known || tag.RowsAffected() > 0
		}
		if !known {
			return ErrNotFound
		}
		return nil
	})
}

// livePools counts the collectors of each pool: all registered ones in Total, and in Live
// those that are active and had a heartbeat within offlineAfter.
func livePools(ctx context.Context, q querier, offlineAfter time.Duration) ([]bench.PoolCount, error) {
	type row struct {
		Target      bench.Target
		SizeClass   bench.SizeClass
		Pool        string
		Live, Total int
		AwaySeconds float64
		HardwareIDs []string
	}
	rows, err := all[row](ctx, q, `
		select target, size_class, pool, count(*) as total,
			extract(epoch from now() - max(available_at))::float8 as away_seconds,
			count(*) filter (where active and `+heardOf("$1")+`) as live,
			array_agg(distinct hardware_id order by hardware_id) as hardware_ids
		from collector_config group by target, size_class, pool order by target, size_class, pool`, offlineAfter.Seconds())
	pools := make([]bench.PoolCount, len(rows))
	for i, r := range rows {
		pools[i] = bench.PoolCount{
			Pool: bench.Pool{Target: r.Target, SizeClass: r.SizeClass, Name: r.Pool},
			Live: r.Live, Total: r.Total, HardwareIDs: r.HardwareIDs,
		}
		if r.Live == 0 {
			pools[i].Away = time.Duration(max(0, r.AwaySeconds) * float64(time.Second))
		}
	}
	return pools, err
}
