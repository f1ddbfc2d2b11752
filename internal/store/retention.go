package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Keep says how long a kind is kept; [bench.Forever]: nothing of it is removed.
type Keep struct {
	Kind bench.RetentionKind
	For  time.Duration
	// Projects holds the durations of projects that differ.
	Projects map[string]time.Duration
}

// Removed counts rows of a kind: runs, requests, suites and so on, and the bytes that they
// and what belongs to them take, without indexes.
type Removed struct {
	Rows  int64
	Bytes int64
}

func (r *Removed) add(other Removed) { r.Rows, r.Bytes = r.Rows+other.Rows, r.Bytes+other.Bytes }

const (
	// removedAtOnce bounds the rows of a kind that one transaction removes.
	removedAtOnce = 500
	// removedRequests bounds the requests that one call removes, each in transactions of
	// its own.
	removedRequests = 200
)

// RemoveExpired removes rows of a kind that were kept long enough by the database's clock,
// in batches: more reports that another call may find others. Nothing open is removed, nor
// anything that kept rows refer to or need. Repeating the call changes nothing.
func (s *Store) RemoveExpired(ctx context.Context, keep Keep) (removed Removed, more bool, err error) {
	doing := "removing expired " + string(keep.Kind)
	switch keep.Kind {
	case bench.KeepOutput:
		removed, err = s.removeOutput(ctx, keep)
		more = removed.Rows == removedAtOnce
	case bench.KeepCommands, bench.KeepAdHoc, bench.KeepTry, bench.KeepCanaries:
		removed, more, err = s.removeRequests(ctx, keep)
	case bench.KeepSamples:
		removed, more, err = s.removeSamples(ctx, keep)
	default:
		sql, ok := expiredRows[keep.Kind]
		if !ok {
			return removed, false, fmt.Errorf("%s: there is no such kind", doing)
		}
		removed, err = one[Removed](ctx, s.pool, `
			with `+kept+`, due as (`+sql.due+` limit @most), gone as (
				delete from `+sql.table+` t using due where t.`+sql.key+` = due.`+sql.key+` returning pg_column_size(t.*) as bytes
			)
			select count(*) as rows, coalesce(sum(bytes), 0)::bigint as bytes from gone`, keep.args(removedAtOnce))
		more = removed.Rows == removedAtOnce
	}
	return removed, more && err == nil, wrap(doing, err)
}

// ExpiredNow counts what [Store.RemoveExpired] would remove now.
func (s *Store) ExpiredNow(ctx context.Context, keep Keep) (Removed, error) {
	var sql string
	switch keep.Kind {
	case bench.KeepOutput:
		sql = `select count(*) as rows, coalesce(sum(` + outputBytes + `), 0)::bigint as bytes from job_run n where n.id in (` + dueOutput + `)`
	case bench.KeepCommands, bench.KeepAdHoc, bench.KeepTry, bench.KeepCanaries:
		sql = `select count(*) as rows, coalesce(sum((` + requestBytes + `)), 0)::bigint as bytes from benchmark_request r where r.id in (` + dueRequests + `)`
	case bench.KeepSamples:
		sql = expiredWeeks + ` select count(*) as rows, coalesce(sum(` + attemptBytes + `), 0)::bigint as bytes ` + dueAttempts
	default:
		kind := expiredRows[keep.Kind]
		sql = `select count(*) as rows, coalesce(sum(pg_column_size(t.*)), 0)::bigint as bytes from ` + kind.table + ` t where t.` + kind.key + ` in (` + kind.due + `)`
	}
	n, err := one[Removed](ctx, s.pool, `with `+kept+` `+sql, keep.args(0))
	return n, wrap("counting expired "+string(keep.Kind), err)
}

// args returns the arguments of statements that begin with [kept].
func (k Keep) args(most int) pgx.NamedArgs {
	var projects []string
	var seconds []float64
	for name, d := range k.Projects {
		projects, seconds = append(projects, name), append(seconds, d.Seconds())
	}
	return pgx.NamedArgs{"seconds": k.For.Seconds(), "projects": projects, "own": seconds, "kind": string(k.Kind), "most": most, "window": canaryWindow}
}

// kept gives the time before which rows of a project have expired. It has no row for
// projects whose rows are kept forever; the empty name stands for rows without a project.
const kept = `kept as materialized (
	select k.project, now() - make_interval(secs => k.seconds) as before from (
		select p.name as project, coalesce(o.seconds, @seconds::float8) as seconds
		from project p left join unnest(@projects::text[], @own::float8[]) as o (project, seconds) on o.project = p.name
		union all select '', @seconds::float8
	) k where k.seconds > 0
)`

// expiredRows are kinds whose rows are removed as they are: the table, a unique key, and a
// query for the keys of those that have expired.
var expiredRows = map[bench.RetentionKind]struct{ table, key, due string }{
	bench.KeepDeliveries: {"artifact_notice", "ctid", `
		select n.ctid from artifact_notice n join benchmark_request r on r.id = n.request_id join kept k on k.project = r.project
		where n.last_at < k.before and r.status = 'completed'`},
	bench.KeepSuites: {"suite_bundle", "hash", `
		select b.hash from suite_bundle b join kept k on k.project = ''
		where b.created_at < k.before
			and not exists (select from project p where p.suite_hash = b.hash)
			and not exists (select from job_queue j where j.suite_hash = b.hash)
			and not exists (select from queue_pause u where u.suite_hash = b.hash)`},
	bench.KeepShapes: {"size_statistics", "ctid", `
		select z.ctid from size_statistics z join kept k on k.project = ''
		where z.updated_at < k.before
			and not exists (select from job_queue j where j.project = z.project and j.shape = z.shape and j.shape <> '' and j.status in ('queued', 'handed_out', 'in_progress'))`},
	bench.KeepNoise: {"noise_model", "ctid", `
		select m.ctid from noise_model m join kept k on k.project = '' where m.updated_at < k.before`},
	bench.KeepAudit: {"audit", "id", `
		select a.id from audit a join kept k on k.project = ''
		where a.at < k.before and not exists (select from test_result r where r.invalid_audit = a.id)
		order by a.id`},
	bench.KeepTokens: {"access_token", "hash", `
		select a.hash from access_token a join kept k on k.project = '' where least(a.revoked_at, a.expires_at) < k.before`},
	bench.KeepInvitations: {"collector_invitation", "name", `
		select i.name from collector_invitation i join kept k on k.project = '' where i.enrolled_at is null and i.expires_at < k.before`},
}

// dueOutput selects the IDs of runs whose output has expired.
const dueOutput = `
	select n.id from job_run n join job_queue j on j.id = n.job_id join kept k on k.project = j.project
	where n.finished_at is not null and n.output_removed_at is null and n.finished_at < k.before
	order by n.finished_at`

// outputBytes is the size of the output of run n.
const outputBytes = `octet_length(n.output_tail) + octet_length(n.progress::text)
	+ coalesce((select sum(octet_length(l.data)) from run_log l where l.run_id = n.id), 0)
	+ coalesce((select sum(octet_length(e.output_tail)) from error e where e.run_id = n.id), 0)`

// removeOutput removes what runs printed. The size of a log stays, so that a reader learns
// that there was one.
func (s *Store) removeOutput(ctx context.Context, keep Keep) (removed Removed, err error) {
	err = s.inTx(ctx, "removing output", func(tx pgx.Tx) error {
		runs, err := column[bench.RunID](ctx, tx, `
			with `+kept+` select n.id from job_run n where n.id in (`+dueOutput+` limit @most) order by n.id for update`, keep.args(removedAtOnce))
		if err != nil || len(runs) == 0 {
			return err
		}
		removed, err = one[Removed](ctx, tx, `
			select count(*) as rows, coalesce(sum(`+outputBytes+`), 0)::bigint as bytes from job_run n where n.id = any($1)`, runs)
		if err != nil {
			return err
		}
		for _, sql := range []string{
			`delete from run_log where run_id = any($1)`,
			`update error set output_tail = '' where run_id = any($1) and output_tail <> ''`,
			`update job_run set output_tail = '', progress = '{}', output_removed_at = now() where id = any($1)`,
		} {
			if _, err := tx.Exec(ctx, sql, runs); err != nil {
				return err
			}
		}
		return nil
	})
	return removed, err
}

// RetentionState describes a kind: how long it is kept, and what was removed.
type RetentionState struct {
	Kind       bench.RetentionKind
	Keep       time.Duration
	Projects   map[string]time.Duration
	Removed    int64
	Bytes      int64
	LastPassAt time.Time
}

// RecordRetention records a pass over a kind, with what it has removed.
func (s *Store) RecordRetention(ctx context.Context, keep Keep, removed Removed) error {
	seconds := make(map[string]int64, len(keep.Projects))
	for project, d := range keep.Projects {
		seconds[project] = int64(d.Seconds())
	}
	_, err := s.pool.Exec(ctx, `
		insert into retention as r (kind, keep_seconds, projects, removed, removed_bytes) values (@kind, @keep, @projects, @removed, @bytes)
		on conflict (kind) do update set keep_seconds = excluded.keep_seconds, projects = excluded.projects,
			removed = r.removed + excluded.removed, removed_bytes = r.removed_bytes + excluded.removed_bytes, last_pass_at = now()`,
		pgx.NamedArgs{"kind": string(keep.Kind), "keep": int64(keep.For.Seconds()), "projects": seconds, "removed": removed.Rows, "bytes": removed.Bytes})
	return wrap("recording the removal of "+string(keep.Kind), err)
}

// Retention lists the kinds with what is known of them; none before the first pass.
func (s *Store) Retention(ctx context.Context) ([]RetentionState, error) {
	type row struct {
		Kind         bench.RetentionKind
		KeepSeconds  int64
		Projects     json.RawMessage
		Removed      int64
		RemovedBytes int64
		LastPassAt   time.Time
	}
	rows, err := all[row](ctx, s.pool, `select kind, keep_seconds, projects, removed, removed_bytes, last_pass_at from retention`)
	if err != nil {
		return nil, wrap("reading the retention", err)
	}
	known := make(map[bench.RetentionKind]RetentionState, len(rows))
	for _, r := range rows {
		state := RetentionState{Kind: r.Kind, Keep: seconds(r.KeepSeconds), Removed: r.Removed, Bytes: r.RemovedBytes, LastPassAt: r.LastPassAt}
		var own map[string]int64
		if err := json.Unmarshal(r.Projects, &own); err != nil {
			return nil, fmt.Errorf("reading the retention of %s: %w", r.Kind, err)
		}
		state.Projects = make(map[string]time.Duration, len(own))
		for project, n := range own {
			state.Projects[project] = seconds(n)
		}
		known[r.Kind] = state
	}
	var out []RetentionState
	for _, kind := range bench.RetentionKinds() {
		if state, ok := known[kind]; ok {
			out = append(out, state)
		}
	}
	return out, nil
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// OldestKept returns when the oldest row of a kind ended; false if there is none.
func (s *Store) OldestKept(ctx context.Context, kind bench.RetentionKind) (time.Time, bool, error) {
	at, err := value[*time.Time](ctx, s.pool, oldestKept[kind])
	if err != nil || at == nil {
		return time.Time{}, false, wrap("looking for the oldest "+string(kind), err)
	}
	return *at, true, nil
}

var oldestKept = map[bench.RetentionKind]string{
	bench.KeepOutput:      `select min(finished_at) from job_run where finished_at is not null and output_removed_at is null`,
	bench.KeepSamples:     `select min(began_at) from profile_attempt`,
	bench.KeepCommands:    `select min(completed_at) from benchmark_request where type = 'adhoc' and status = 'completed' and (command is not null or deferred)`,
	bench.KeepAdHoc:       `select min(completed_at) from benchmark_request where type = 'adhoc' and status = 'completed' and command is null and not deferred`,
	bench.KeepTry:         `select min(completed_at) from benchmark_request where type = 'try' and status = 'completed'`,
	bench.KeepCanaries:    `select min(ended_at) from canary`,
	bench.KeepSuites:      `select min(created_at) from suite_bundle`,
	bench.KeepDeliveries:  `select min(last_at) from artifact_notice`,
	bench.KeepShapes:      `select min(updated_at) from size_statistics`,
	bench.KeepNoise:       `select min(updated_at) from noise_model`,
	bench.KeepAudit:       `select min(at) from audit`,
	bench.KeepTokens:      `select min(least(revoked_at, expires_at)) from access_token where least(revoked_at, expires_at) < now()`,
	bench.KeepInvitations: `select min(expires_at) from collector_invitation where enrolled_at is null`,
}
