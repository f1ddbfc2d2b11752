package store

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// Revisions are hashes of what changes: open pages ask for them every second,
// so each is one statement that reads little. The column xmin of a row changes whenever the
// row does.

// ServiceRevision changes with the state of requests, of jobs in Temporal, of collectors, of
// sources of commits, and with each operation.
func (s *Store) ServiceRevision(ctx context.Context, offlineSeconds float64) (string, error) {
	revision, err := value[string](ctx, s.pool, `
		select md5(concat_ws('|',
			(select concat(count(*), string_agg(concat_ws(',', o.id, o.xmin), ';' order by o.id)) from (
				select r.id, r.xmin from benchmark_request r where r.status <> 'completed' order by r.project, r.created_at limit 1000) o),
			(select max(r.created_at) from benchmark_request r),
			(select string_agg(concat_ws(',', t.type, l.at), ';' order by t.type) from unnest(array['release', 'master', 'try', 'adhoc']) as t (type)
				cross join lateral (select max(r.completed_at) as at from benchmark_request r where r.status = 'completed' and r.type = t.type) l),
			(select concat_ws(',', count(*), count(*) filter (where j.status = 'in_progress'), max(j.started_at)) from job_queue j
				where j.status in ('handed_out', 'in_progress')),
			(select string_agg(concat_ws(',', n.id, n.progress), ';' order by n.id) from job_run n where n.outcome = ''),
			(select string_agg(concat_ws(',', c.name, c.epoch, c.active, c.current_run, c.disturbed_by, c.set_aside_at, c.canary_failed,
				c.last_heartbeat < now() - make_interval(secs => $1)), ';' order by c.name) from collector_config c),
			(select string_agg(concat_ws(',', q.project, q.paused_at), ';' order by q.project) from queue_pause q),
			(select string_agg(concat_ws(',', o.project, o.failing_since, o.message), ';' order by o.project) from commit_source o),
			(select max(a.id) from audit a)))`, offlineSeconds)
	return revision, wrap("reading the revision of the service", err)
}

// RequestRevision changes with a request, its jobs and runs, its comparison, the requests
// around it in its project, and each operation on the project. It returns ErrNotFound for an
// unknown request.
//
// Of the many jobs of a request for commands only those in Temporal are read, and the latest
// ends: no job leaves Temporal without a change of either.
func (s *Store) RequestRevision(ctx context.Context, id bench.RequestID) (string, error) {
	revision, err := value[string](ctx, s.pool, `
		select md5(concat_ws('|', r.xmin,
			case when r.deferred then (
				select concat_ws(',',
					(select string_agg(concat_ws(',', j.id, j.xmin, n.id, n.progress), ';' order by j.id) from job_queue j
						left join job_run n on n.job_id = j.id and n.outcome = ''
						where j.submitted_with = r.id and j.status in ('handed_out', 'in_progress')),
					(select string_agg(concat_ws(',', s.status, l.id), ';' order by s.status) from unnest(array['success', 'failure', 'cancelled']) as s (status)
						cross join lateral (select j.id from job_queue j where j.submitted_with = r.id and j.status = s.status order by j.completed_at desc, j.id desc limit 1) l)))
			end,
			case when not r.deferred or r.reopened_at is not null then (
				select concat_ws(',', count(*), max(j.handed_out_at), max(j.started_at), max(j.moved_at), count(j.completed_at), max(j.completed_at), count(*) filter (where j.status = 'queued'),
					string_agg(concat_ws(',', n.id, n.progress), ';' order by n.id))
				from request_job rj join job_queue j on j.id = rj.job_id left join job_run n on n.job_id = j.id and n.outcome = ''
				where rj.request_id = r.id)
			end,
			(select c.xmin from comparison c where c.request_id = r.id and c.superseded_at is null),
			case when r.type <> 'adhoc' and r.status <> 'completed' then (
				select concat_ws(',', count(*), max(o.admitted_at), max(o.jobs_done_at)) from benchmark_request o
				where o.project = r.project and o.status <> 'completed')
			end,
			(select q.paused_at from queue_pause q where q.project = r.project),
			(select max(a.id) from audit a where a.project = r.project)))
		from benchmark_request r where r.id = $1`, id)
	return revision, wrap("reading the revision of request "+string(id), err)
}

// JobRevision changes with a job, its runs, their progress, their output and what was sampled during them. It returns
// ErrNotFound for an unknown job.
func (s *Store) JobRevision(ctx context.Context, key bench.JobKey) (string, error) {
	// 30 s after a run's end, what was sampled is known to be complete.
	revision, err := value[string](ctx, s.pool, `
		select md5(concat_ws('|', j.xmin,
			(select string_agg(concat_ws(',', n.id, n.xmin, n.finished_at < now() - make_interval(secs => $2)), ';' order by n.id) from job_run n where n.job_id = j.id),
			(select string_agg(concat_ws(',', a.id, a.part), ';' order by a.id) from profile_attempt a join job_run n on n.id = a.run_id where n.job_id = j.id)))
		from job_queue j where j.key = $1`, key, LateProfile.Seconds())
	return revision, wrap("reading the revision of job "+string(key), err)
}
