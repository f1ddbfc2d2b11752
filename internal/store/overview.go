package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Unserved is a task queue in which jobs wait and from which no live collector takes any.
type Unserved struct {
	TaskQueue string
	// Jobs counts those that wait, up to [maxUnserved].
	Jobs int
	// Since is when the longest waiting job was written.
	Since time.Time
}

// maxUnserved bounds the jobs that are counted of one task queue.
const maxUnserved = 10_001

// Unserved lists by name the task queues with waiting jobs that are served by no active
// collector heard of within offlineAfter.
func (s *Store) Unserved(ctx context.Context, offlineAfter time.Duration) ([]Unserved, error) {
	list, err := all[Unserved](ctx, s.pool, `
		with recursive waiting as (
			(select task_queue from job_queue where status = 'queued' order by task_queue limit 1)
			union all
			select (select j.task_queue from job_queue j where j.status = 'queued' and j.task_queue > w.task_queue order by j.task_queue limit 1)
			from waiting w where w.task_queue is not null
		), queues as (
			select task_queue from waiting where task_queue is not null
			union select j.task_queue from job_queue j where j.status = 'handed_out'
		), live as (
			select c.name, 'bench/' || c.target || '/' || c.size_class || '/' || c.pool as task_queue from collector_config c
			where c.active and c.last_heartbeat > now() - make_interval(secs => $1)
		)
		select q.task_queue, n.jobs, n.since from queues q
		cross join lateral (
			select count(*) as jobs, min(w.created_at) as since from (
				select j.created_at from job_queue j where j.task_queue = q.task_queue and j.status in ('queued', 'handed_out') limit $2) w
		) n
		where n.jobs > 0 and not exists (select from live where live.task_queue = q.task_queue)
			and not exists (select from collector_set t join live on live.name = any(t.collectors) where t.task_queue = q.task_queue)
		order by q.task_queue`, offlineAfter.Seconds(), maxUnserved)
	return list, wrap("listing the task queues without a collector", err)
}

// Pauses lists the projects that are paused, by name.
func (s *Store) Pauses(ctx context.Context) ([]Pause, error) {
	list, err := all[Pause](ctx, s.pool, `select `+pauseColumns+` from queue_pause order by project`)
	return list, wrap("listing the paused projects", err)
}

// StuckReason tells why a request does not go on, as far as the record knows.
type StuckReason string

// Reasons for which a request is stuck.
const (
	// StuckUnstarted: it has no workflow although it should have had one for a minute.
	StuckUnstarted StuckReason = "unstarted"
	// StuckUnannounced: its artifacts were not announced for a day.
	StuckUnannounced StuckReason = "unannounced"
	// StuckBetween: its last job ended ten minutes ago, and nothing has followed.
	StuckBetween StuckReason = "between"
)

// Stuck is a request that does not go on.
type Stuck struct {
	ID      bench.RequestID
	Project string
	Tag     string
	Why     StuckReason
	Since   time.Time
}

// maxStuck bounds the requests that are listed as stuck.
const maxStuck = 50

// StuckRequests lists open requests that do not go on by themselves, the longest first. The
// requests of paused projects are left out, and so is what only Temporal knows.
func (s *Store) StuckRequests(ctx context.Context) ([]Stuck, error) {
	list, err := all[Stuck](ctx, s.pool, `
		select r.id, r.project, coalesce(r.tag, '') as tag, w.why, w.since from benchmark_request r
		cross join lateral (
			select case
				when r.workflow_started_at is null and not r.deferred then 'unstarted'
				when r.status = 'waiting_for_artifacts' then 'unannounced'
				else 'between' end as why,
				case when r.status = 'in_progress' and r.workflow_started_at is not null then coalesce((
						select max(j.completed_at) from request_job rj join job_queue j on j.id = rj.job_id where rj.request_id = r.id), r.admitted_at, r.created_at)
					else coalesce(r.reopened_at, r.created_at) end as since
		) w
		where r.status <> 'completed' and not exists (select from queue_pause q where q.project = r.project)
			and ((r.workflow_started_at is null and not r.deferred and w.since < now() - interval '1 minute')
				or (r.status = 'waiting_for_artifacts' and w.since < now() - interval '1 day')
				or (r.status = 'in_progress' and r.workflow_started_at is not null and r.jobs_done_at is null and w.since < now() - interval '10 minutes'
					and not exists (select from request_job rj join job_queue j on j.id = rj.job_id
						where rj.request_id = r.id and j.status in ('queued', 'handed_out', 'in_progress'))))
		order by w.since, r.id limit $1`, maxStuck)
	return list, wrap("listing the requests that do not go on", err)
}

// Running is a run that is under way.
type Running struct {
	Run       bench.RunID
	Collector string
	Reason    bench.RunReason
	SizeClass bench.SizeClass
	StartedAt time.Time
	// Progress as last reported, as JSON.
	Progress json.RawMessage
	Job      bench.JobKey
	// Name of the job, given by its submitter; may be empty.
	Name    string
	Kind    bench.JobKind
	Project string
	Tag     string
	// Request that waits for it; empty: none does any more.
	Request bench.RequestID
}

// RunningRuns lists at most limit runs that are under way, the oldest first, and counts all.
func (s *Store) RunningRuns(ctx context.Context, limit int) (list []Running, total int, err error) {
	list, err = all[Running](ctx, s.pool, `
		select n.id as run, n.collector, n.reason, n.size_class, n.started_at, n.progress, j.key as job, j.name, j.kind, j.project, coalesce(j.tag, '') as tag,
			coalesce((select rj.request_id from request_job rj join benchmark_request r on r.id = rj.request_id
				where rj.job_id = j.id and not rj.superseded order by r.status <> 'completed' desc, r.created_at limit 1), '') as request
		from job_run n join job_queue j on j.id = n.job_id where n.outcome = '' order by n.started_at, n.id limit $1`, limit)
	if err != nil {
		return nil, 0, wrap("listing the runs under way", err)
	}
	if total = len(list); total == limit {
		total, err = value[int](ctx, s.pool, `select count(*) from job_run where outcome = ''`)
	}
	return list, total, wrap("counting the runs under way", err)
}

// latestOf bounds the requests of a project among which its newest verdicts are sought.
const latestOf = 20

// NewestVerdicts lists the newest tracked requests of each project that have ended, the latest
// first within a project.
func (s *Store) NewestVerdicts(ctx context.Context) ([]bench.Request, error) {
	list, err := all[bench.Request](ctx, s.pool, `
		select `+requestColumns+` from project p cross join lateral (
			select * from benchmark_request b where b.project = p.name and b.expanded_at is not null and b.type <> 'adhoc'
			order by b.expanded_at desc limit $1
		) r
		where r.status = 'completed' order by r.project, r.completed_at desc, r.id`, latestOf)
	return list, wrap("listing the newest verdicts", err)
}
