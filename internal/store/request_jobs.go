package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Queries about a request's jobs, of which there may be thousands.

// ShownJobs selects at most limit of a request's jobs: running ones first, then those
// that failed, those in Temporal, the latest to end and the first that wait. It returns
// them in the order in which they were written, with the total number of jobs.
func (s *Store) ShownJobs(ctx context.Context, id bench.RequestID, limit int) (jobs []bench.Job, total int, err error) {
	alone, err := s.alone(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	chosen := `
		select c.id from request_job rj join job_queue c on c.id = rj.job_id where rj.request_id = $1
		order by array_position(array['in_progress', 'failure', 'handed_out'], c.status), c.completed_at desc nulls last, c.id limit $2`
	if alone { // reads at most limit jobs of each status, by the index
		chosen = `
		select c.id from unnest(array['in_progress', 'failure', 'handed_out', 'success', 'cancelled', 'queued']) with ordinality as s (status, place)
		cross join lateral (
			(select j.id, j.completed_at from job_queue j where j.submitted_with = $1 and j.status = s.status and s.status <> 'queued'
				order by j.completed_at desc, j.id desc limit $2)
			union all
			(select j.id, j.completed_at from job_queue j where j.submitted_with = $1 and j.status = s.status and s.status = 'queued'
				order by j.completed_at, j.id limit $2)
		) c
		order by least(s.place, 4), c.completed_at desc nulls last, c.id limit $2`
	}
	jobs, err = all[bench.Job](ctx, s.pool, `select `+jobColumns+` from job_queue j where j.id = any(array(`+chosen+`)) order by j.id`, id, limit)
	if err != nil {
		return nil, 0, wrap("listing jobs of request "+string(id), err)
	}
	if total = len(jobs); total == limit {
		if alone {
			total, err = jobsWrittenWith(ctx, s.pool, id)
		} else {
			total, err = value[int](ctx, s.pool, `select count(*) from request_job where request_id = $1`, id)
		}
	}
	return jobs, total, wrap("counting the jobs of request "+string(id), err)
}

// JobPage narrows a list of a request's jobs; zero values do not narrow.
type JobPage struct {
	// Status selects jobs of one status, Open all open ones.
	Status bench.JobStatus
	Open   bool
	// After continues a list: only jobs with a higher ID are listed.
	After int64
	Limit int
}

// RequestJobPage lists a request's jobs in the order in which they were written.
func (s *Store) RequestJobPage(ctx context.Context, id bench.RequestID, page JobPage) ([]bench.Job, error) {
	doing := "listing jobs of request " + string(id)
	alone, err := s.alone(ctx, id)
	if err != nil {
		return nil, err
	}
	from := `request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = @request and rj.job_id > @after and (@status = '' or j.status = @status) and (not @open or j.status in ('queued', 'handed_out', 'in_progress'))`
	if alone && page.Open && page.Status == "" { // reads at most limit jobs of each status, by the index
		from = `job_queue j where j.id = any(array(
			select o.id from unnest(array['queued', 'handed_out', 'in_progress']) as s (status) cross join lateral (
				select c.id from job_queue c where c.submitted_with = @request and c.status = s.status and c.completed_at is null and c.id > @after
				order by c.completed_at, c.id limit @limit) o
			order by o.id limit @limit))`
	}
	jobs, err := all[bench.Job](ctx, s.pool, `select `+jobColumns+` from `+from+` order by j.id limit @limit`,
		pgx.NamedArgs{"request": id, "after": page.After, "status": string(page.Status), "open": page.Open, "limit": page.Limit})
	return jobs, wrap(doing, err)
}

// OpenTaskQueues lists the task queues of a stage's open jobs.
func (s *Store) OpenTaskQueues(ctx context.Context, id bench.RequestID, stage bench.Stage) ([]string, error) {
	queues, err := column[string](ctx, s.pool, `
		select distinct j.task_queue from request_job rj
		cross join lateral (select status, task_queue from job_queue where id = rj.job_id offset 0) j -- by its ID, whatever the planner takes the open ones to be
		where rj.request_id = $1 and rj.stage = $2 and j.status in ('queued', 'handed_out', 'in_progress')
		order by j.task_queue`, id, string(stage))
	return queues, wrap("listing the task queues of request "+string(id), err)
}

// FirstFailure returns the message of a stage's first failed job; empty if there is none.
// Replaced jobs do not count.
func (s *Store) FirstFailure(ctx context.Context, id bench.RequestID, stage bench.Stage) (string, error) {
	message, err := value[string](ctx, s.pool, `
		select message from (
			select j.id, j.message from request_job rj join job_queue j on j.id = rj.job_id
			where rj.request_id = $1 and ($2 = '' or rj.stage = $2) and j.status = 'failure' and not rj.superseded
			union all
			select n.id, n.name || ': ' || n.message from service_node n
			where n.request_id = $1 and $2 in ('', 'own') and n.status = 'failure' and not n.superseded
		) as failed order by id limit 1`, id, string(stage))
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return message, wrap("reading the first failure of request "+string(id), err)
}

// FirstStart returns when the first of a request's jobs began; nil: none has.
func (s *Store) FirstStart(ctx context.Context, id bench.RequestID) (*time.Time, error) {
	at, err := value[*time.Time](ctx, s.pool, `
		select case when r.deferred and r.reopened_at is null then (select min(j.started_at) from job_queue j where j.submitted_with = r.id and j.started_at is not null)
			else (select min(j.started_at) from request_job rj join job_queue j on j.id = rj.job_id where rj.request_id = r.id) end
		from benchmark_request r where r.id = $1`, id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil //nolint:nilnil // no start is an answer
	}
	return at, wrap("reading the start of request "+string(id), err)
}

// InFlightOf reports whether any job of a request is in Temporal.
func (s *Store) InFlightOf(ctx context.Context, id bench.RequestID) (bool, error) {
	there, err := value[bool](ctx, s.pool, `
		select case when r.deferred and r.reopened_at is null
			then exists (select from job_queue j where j.submitted_with = r.id and j.status in ('handed_out', 'in_progress'))
			else exists (select from request_job rj join job_queue j on j.id = rj.job_id where rj.request_id = r.id and j.status in ('handed_out', 'in_progress')) end
		from benchmark_request r where r.id = $1`, id)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return there, wrap("looking for jobs of request "+string(id)+" in Temporal", err)
}

// RunsOf lists the runs of jobs, job by job.
func (s *Store) RunsOf(ctx context.Context, jobs []int64) ([]bench.Run, error) {
	rs, err := all[bench.Run](ctx, s.pool, `select `+runColumns+fromRuns+`where j.id = any($1) order by j.id, n.number`, jobs)
	return rs, wrap("listing the runs of jobs", err)
}

// maxErrors bounds the listed errors.
const maxErrors = 100

// ErrorsOf lists the errors that keep the given jobs of a request from being done: the
// last error of each test case without a result, and the error of the last run of each
// such job. Errors resolved by a later run and those of replaced jobs are left out. At
// most 100 are listed, the oldest first.
func (s *Store) ErrorsOf(ctx context.Context, id bench.RequestID, jobs []int64) ([]bench.RunError, error) {
	current, err := column[int64](ctx, s.pool, `
		select a.id from unnest($2::bigint[]) as a (id) cross join lateral ( -- by the key, however many jobs the request has
			select superseded from request_job where request_id = $1 and job_id = a.id offset 0) rj
		where not rj.superseded`, id, jobs)
	if err != nil {
		return nil, wrap("listing the errors of request "+string(id), err)
	}
	errs, err := all[bench.RunError](ctx, s.pool, lastingErrors+` order by e.created_at, e.id limit $2`, current, maxErrors)
	return errs, wrap("listing the errors of request "+string(id), err)
}

// StageTimes sums up a stage of a request: its jobs without those that were replaced.
type StageTimes struct {
	Stage bench.Stage
	// Jobs counts them, Open those that have not ended, Running those on a collector,
	// Failed those that ended without their results.
	Jobs, Open, Running, Failed int
	// WrittenAt is when the first was written. StartedAt is when the first began, EndedAt
	// when the last ended so far; nil: none has.
	WrittenAt          time.Time
	StartedAt, EndedAt *time.Time
}

// StagesOf sums up the stages of a request that have jobs.
func (s *Store) StagesOf(ctx context.Context, id bench.RequestID) ([]StageTimes, error) {
	alone, err := s.alone(ctx, id)
	if err != nil {
		return nil, err
	}
	sums := `
		select rj.stage, count(*) as jobs, count(*) filter (where j.completed_at is null) as open,
			count(*) filter (where j.status = 'in_progress') as running, count(*) filter (where j.status = 'failure') as failed,
			min(j.created_at) as written_at, min(j.started_at) as started_at, max(j.completed_at) as ended_at
		from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and not rj.superseded group by rj.stage`
	if alone { // counts and times are those of an index each; all its jobs were written at once
		sums = `
		select 'own' as stage, sum(c.jobs)::int as jobs, coalesce(sum(c.jobs) filter (where c.status in ('queued', 'handed_out', 'in_progress')), 0)::int as open,
			coalesce(sum(c.jobs) filter (where c.status = 'in_progress'), 0)::int as running, coalesce(sum(c.jobs) filter (where c.status = 'failure'), 0)::int as failed,
			(select j.created_at from job_queue j where j.submitted_with = $1 order by j.submitted_with, j.status, j.completed_at, j.id limit 1) as written_at,
			(select min(j.started_at) from job_queue j where j.submitted_with = $1 and j.started_at is not null) as started_at, max(c.ended_at) as ended_at
		from ` + jobsAlone + ` c
		having count(*) > 0`
	}
	stages, err := all[StageTimes](ctx, s.pool, sums, id)
	return stages, wrap("reading the stages of request "+string(id), err)
}
