package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// expiredRequest matches a request r of kind @kind that ended before k.before.
const expiredRequest = `r.status = 'completed' and r.completed_at < k.before
	and r.type = case @kind::text when 'try' then 'try' else 'adhoc' end
	and case @kind::text
		when 'commands' then r.command is not null or r.deferred
		when 'adhoc' then r.command is null and not r.deferred and not exists (select from canary c where c.request_id = r.id)
		when 'canaries' then exists (select from canary c where c.request_id = r.id and ` + oldCanary + `)
		else true
	end`

// oldCanary matches a canary c from which nothing is derived any more: enough newer ones
// exist, or its collector was removed.
const oldCanary = `c.outcome <> '' and (
	(select count(*) from canary newer where newer.collector = c.collector and newer.id > c.id and newer.outcome in ('passed', 'changed')) >= @window
	or not exists (select from collector_config n where n.name = c.collector))`

// needed matches an artifact a to which something refers other than request r and
// expired requests of its type.
const needed = `(
	exists (
		select from benchmark_request q where q.project = a.project and q.tag = a.tag and ` + another + `
	) or exists (
		select from benchmark_request q where q.project = a.project and q.parent = a.tag and ` + another + `
	) or exists (
		select from benchmark_request q where q.project = a.project and q.baseline = a.tag and ` + another + `
	) or exists (
		select from benchmark_request q where q.project = a.project and q.versus = a.tag and ` + another + `
	) or exists (
		select from benchmark_request q where q.project = a.project and q.waits_for = a.tag and q.status <> 'completed'
	) or exists (
		select from comparison_verdict av join comparison ac on ac.id = av.comparison_id join benchmark_request q on q.id = ac.request_id
		where av.against_id = a.id and ` + another + `
	))`

const another = `q.id <> r.id and not (q.type = r.type and q.status = 'completed' and q.completed_at < k.before)`

// expendable matches a request r whose jobs nothing else needs: no other request is linked
// to one, none holds a result that represents a needed artifact, and its comparison tells
// nothing of the history of a needed artifact. Jobs of commands belong to their request
// alone. A build stays, and so does its job.
const expendable = `case @kind::text
	when 'commands' then not exists (select from job_queue j where j.submitted_with = r.id and j.status in ('queued', 'handed_out', 'in_progress'))
	else not exists (
		select from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = r.id and j.kind <> 'build' and (
			j.status in ('queued', 'handed_out', 'in_progress')
			or exists (select from request_job o where o.job_id = j.id and o.request_id <> r.id)
			or exists (
				select from job_run n join test_result t on t.run_id = n.id join artifact a on a.id = t.artifact_id
				where n.job_id = j.id and t.invalid_at is null and not t.probe and not t.in_turns and ` + needed + `))
	) and (@kind::text = 'canaries' or not exists (
		select from comparison c join comparison_verdict v on v.comparison_id = c.id join artifact a on a.id = c.artifact_id
		where c.request_id = r.id and (v.suspected and v.measured or v.verdict = 'changed') and ` + needed + `))
end`

// dueRequests selects the IDs of requests that may be removed, the oldest first.
const dueRequests = `
	select r.id from benchmark_request r join kept k on k.project = r.project
	where ` + expiredRequest + ` and ` + expendable + `
	order by r.completed_at, r.id`

// jobBytes is the size of job j and what belongs to it, without indexes. A value takes 56
// bytes.
const jobBytes = `pg_column_size(j.*)
	+ coalesce((select sum(pg_column_size(jt.*)) from job_test_case jt where jt.job_id = j.id), 0)
	+ coalesce((
		select sum(pg_column_size(n.*) + coalesce((select sum(octet_length(l.data)) from run_log l where l.run_id = n.id), 0)
			+ coalesce((select sum(pg_column_size(e.*)) from error e where e.run_id = n.id), 0)
			+ coalesce((
				select sum(pg_column_size(t.*) + coalesce((
					select sum(pg_column_size(c.*) + 56 * (
						(select count(*) from pstat p where p.collection_id = c.id) + (select count(*) from pstat_runtime p where p.collection_id = c.id)))
					from collection c where c.result_id = t.id), 0))
				from test_result t where t.run_id = n.id), 0))
		from job_run n where n.job_id = j.id), 0)`

// requestBytes is the size of request r and of its jobs.
const requestBytes = `pg_column_size(r.*) + coalesce((
	select sum(` + jobBytes + `) from request_job rj join job_queue j on j.id = rj.job_id where rj.request_id = r.id and j.kind <> 'build'), 0)`

// removeRequests removes expired requests with their jobs, each in transactions of its
// own.
func (s *Store) removeRequests(ctx context.Context, keep Keep) (removed Removed, more bool, err error) {
	ids, err := column[bench.RequestID](ctx, s.pool, `with `+kept+dueRequests+` limit @most`, keep.args(removedRequests))
	if err != nil {
		return removed, false, err
	}
	for _, id := range ids {
		for done := false; !done; {
			var part Removed
			if part, done, err = s.removeRequest(ctx, id, keep); err != nil {
				return removed, false, err
			}
			removed.add(part)
		}
	}
	if keep.Kind == bench.KeepCanaries {
		_, err = s.pool.Exec(ctx, `
			with `+kept+` delete from canary c using kept k
			where k.project = '' and c.request_id is null and c.ended_at < k.before and `+oldCanary, keep.args(0))
	}
	return removed, len(ids) == removedRequests && removed.Rows > 0, err
}

// removeRequest removes up to [removedAtOnce] jobs of a request with their runs and
// results, and then the request. It removes nothing, and is done, if the request is not
// due any more: it was opened again, or is needed now.
func (s *Store) removeRequest(ctx context.Context, id bench.RequestID, keep Keep) (removed Removed, done bool, err error) {
	done = true
	args := keep.args(removedAtOnce)
	args["id"] = id
	err = s.inTx(ctx, "removing request "+string(id), func(tx pgx.Tx) error {
		project, err := value[string](ctx, tx, `select project from benchmark_request where id = $1`, id)
		if err != nil {
			return err
		}
		if err := lockJobWriting(ctx, tx, project); err != nil {
			return err
		}
		// Several rows, locked before anything is decided.
		if _, err := value[bench.RequestID](ctx, tx, `select id from benchmark_request where id = $1 for no key update`, id); err != nil {
			return err
		}
		if _, err := value[bench.RequestID](ctx, tx, `
			with `+kept+` select r.id from benchmark_request r join kept k on k.project = r.project
			where r.id = @id and `+expiredRequest+` and `+expendable, args); err != nil {
			return err
		}
		jobs, bytes, err := removeJobs(ctx, tx, args)
		if err != nil {
			return err
		}
		removed.Bytes = bytes
		if done = jobs < removedAtOnce; !done {
			return nil
		}
		bytes, err = value[int64](ctx, tx, `delete from benchmark_request r where r.id = $1 returning pg_column_size(r.*)`, id)
		removed.add(Removed{Rows: 1, Bytes: bytes})
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return Removed{}, true, nil
	}
	if err != nil {
		return Removed{}, false, err
	}
	return removed, done, nil
}

// removeJobs removes the first jobs of request @id, at most @most, and returns their
// number.
func removeJobs(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) (n int, bytes int64, err error) {
	jobs, err := column[int64](ctx, tx, `
		select j.id from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = @id and j.kind <> 'build' order by j.id limit @most`, args)
	if err != nil || len(jobs) == 0 {
		return 0, 0, err
	}
	// Everything is locked in order before it is removed; see [PurgeArtifact].
	for _, sql := range []string{
		`select a.id from artifact a where a.id in (select unnest(array[j.artifact_id, j.versus_artifact_id]) from job_queue j where j.id = any($1))
			order by a.project, a.tag for no key update`,
		`select j.id from job_queue j where j.id = any($1) order by j.id for update`,
	} {
		if _, err := column[int64](ctx, tx, sql, jobs); err != nil {
			return 0, 0, err
		}
	}
	if _, err := column[string](ctx, tx, `select n.id from job_run n where n.job_id = any($1) order by n.id for update`, jobs); err != nil {
		return 0, 0, err
	}
	if _, err := column[int64](ctx, tx, `
		select t.id from test_result t join job_run n on n.id = t.run_id where n.job_id = any($1) order by t.id for update of t`, jobs); err != nil {
		return 0, 0, err
	}
	if bytes, err = value[int64](ctx, tx, `select coalesce(sum(`+jobBytes+`), 0)::bigint from job_queue j where j.id = any($1)`, jobs); err != nil {
		return 0, 0, err
	}
	own, err := column[int64](ctx, tx, `select j.artifact_id from job_queue j where j.id = any($1) and j.kind in ('command', 'profile')`, jobs)
	if err != nil {
		return 0, 0, err
	}
	for _, step := range []struct {
		sql string
		of  []int64
	}{
		// Their workflow IDs stay used: later jobs of the artifact begin with this generation.
		{`update artifact a set first_generation = greatest(a.first_generation, (
			select max(j.generation) + 1 from job_queue j where j.id = any($1) and a.id in (j.artifact_id, j.versus_artifact_id)))
			where a.id in (select unnest(array[j.artifact_id, j.versus_artifact_id]) from job_queue j where j.id = any($1) and j.kind not in ('command', 'profile'))`, jobs},
		{`delete from test_result where run_id in (select id from job_run where job_id = any($1))`, jobs},
		{`delete from job_run where job_id = any($1)`, jobs},
		{`delete from job_queue where id = any($1)`, jobs},
		{`delete from artifact where id = any($1)`, own}, // their results belong to no other
	} {
		if _, err := tx.Exec(ctx, step.sql, step.of); err != nil {
			return 0, 0, err
		}
	}
	return len(jobs), bytes, nil
}
