package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// JobShape is what a job is and where it runs, whatever artifact it measures.
type JobShape struct {
	Project string
	Kind    bench.JobKind
	Target  bench.Target
	Backend string
	Profile string
	// CasesDigest is equal for jobs with the same test cases, iterated as often.
	CasesDigest string
	CaseCount   int
	SizeClass   bench.SizeClass
	Pool        string
	TaskQueue   string
}

const shapeColumns = `j.project, j.kind, j.target, j.backend, j.profile, j.cases_digest, j.case_count, j.size_class, j.pool, j.task_queue`

// PastJob is a job that ended with success.
type PastJob struct {
	JobShape
	// Seconds that collectors worked on it, in all its runs.
	Seconds     float64
	CompletedAt time.Time
}

// OpenJob is a job that has not ended.
type OpenJob struct {
	JobShape
	Status bench.JobStatus
	// Seconds that collectors have worked on it so far, by the database's clock.
	Seconds float64
	// Waiters are the requests that do not end before it.
	Waiters []bench.RequestID
}

// Plan is a request that has written its jobs: an example for those that have
// not.
type Plan struct {
	Request   bench.RequestID
	Type      bench.RequestType
	Tag       string
	Selection bench.Selection
	// Seconds from its admission to the end of its last job; 0 before that.
	Seconds float64
	// Jobs measure the request's own artifact, and block it.
	Jobs []JobShape
}

// QueueSnapshot is what a project's queue can be explained and foreseen from, all
// of one moment.
type QueueSnapshot struct {
	// Open are the tracked requests whose jobs are not done, Done those of the
	// tags they wait for that are: what [Store.Admit] decides from.
	Open []bench.Request
	Done map[string]bool
	// Jobs are those of all projects, as they share collectors, in the order in
	// which they are handed out.
	Jobs []OpenJob
	// LeftOut is how many more there are: of very many only the first are read.
	LeftOut int
	// Past are the last jobs of the project, and of others with open jobs.
	Past []PastJob
	// Plans are the last requests of the project that wrote their jobs, one for
	// each selection, the latest first.
	Plans []Plan
	Pools []bench.PoolCount
}

const (
	// foreseenJobs is how many open jobs estimates look at: what comes after so many
	// is too far away to be foreseen.
	foreseenJobs = 5000
	// pastJobs is how far a project's history is read.
	pastJobs = 2000
	// recentPlans is among how many of the last requests plans are looked for.
	recentPlans = 20
)

// QueueSnapshot reads a project's queue with what estimates need. Collectors count
// as live that were heard of within offlineAfter.
func (s *Store) QueueSnapshot(ctx context.Context, project string, offlineAfter time.Duration) (QueueSnapshot, error) {
	var q QueueSnapshot
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		if q.Open, q.Done, err = queueState(ctx, tx, project); err != nil {
			return err
		}
		if q.Jobs, q.LeftOut, err = openJobs(ctx, tx); err != nil {
			return err
		}
		if q.Past, err = pastJobsOf(ctx, tx, projectsOfOpen(project, q.Jobs)); err != nil {
			return err
		}
		if q.Plans, err = plansOf(ctx, tx, project); err != nil {
			return err
		}
		q.Pools, err = livePools(ctx, tx, offlineAfter)
		return err
	})
	return q, wrap("reading the queue of project "+project, err)
}

// queueState reads the tracked requests whose jobs are not done, and which of the
// tags that they wait for are.
func queueState(ctx context.Context, q querier, project string) (open []bench.Request, done map[string]bool, err error) {
	open, err = all[bench.Request](ctx, q, `
		select `+requestColumns+` from benchmark_request r
		where r.project = $1 and r.type <> 'adhoc' and r.status <> 'completed' and r.jobs_done_at is null
		order by r.created_at, r.id`, project)
	if err != nil {
		return nil, nil, err
	}
	tags, err := column[string](ctx, q, `
		select distinct r.waits_for from benchmark_request r
		where r.project = $1 and r.type <> 'adhoc' and r.status <> 'completed' and r.waits_for is not null
			and not exists (`+undone+`)`, project)
	if err != nil {
		return nil, nil, err
	}
	done = make(map[string]bool, len(tags))
	for _, tag := range tags {
		done[tag] = true
	}
	return open, done, nil
}

// openJobs are the first open jobs, and how many more there are.
func openJobs(ctx context.Context, q querier) (jobs []OpenJob, more int, err error) {
	jobs, err = all[OpenJob](ctx, q, `
		select `+shapeColumns+`, j.status,
			coalesce((select extract(epoch from sum(coalesce(r.finished_at, now()) - r.started_at)) from job_run r
				where r.job_id = j.id), 0)::float8 as seconds,
			array(select w.request_id from request_job w where w.job_id = j.id and not w.optional order by w.request_id) as waiters
		from job_queue j where j.status in ('queued', 'handed_out', 'in_progress')
		order by j.request_created, j.id limit $1`, foreseenJobs)
	if err == nil && len(jobs) == foreseenJobs {
		more, err = value[int](ctx, q, `select count(*) - $1::integer from job_queue j where j.status in ('queued', 'handed_out', 'in_progress')`, foreseenJobs)
	}
	return jobs, more, wrap("listing the open jobs", err)
}

func projectsOfOpen(project string, jobs []OpenJob) []string {
	names := []string{project}
	for _, j := range jobs {
		names = append(names, j.Project)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func pastJobsOf(ctx context.Context, q querier, projects []string) ([]PastJob, error) {
	jobs, err := all[PastJob](ctx, q, `
		select `+shapeColumns+`, j.completed_at,
			(select extract(epoch from sum(r.finished_at - r.started_at)) from job_run r where r.job_id = j.id)::float8 as seconds
		from unnest($1::text[]) as p (name)
		cross join lateral (
			select j.id, `+shapeColumns+`, j.completed_at from job_queue j
			where j.project = p.name and j.status = 'success' order by j.completed_at desc limit $2
		) j
		where exists (select from job_run r where r.job_id = j.id and r.finished_at is not null)`, projects, pastJobs)
	return jobs, wrap("reading how long jobs took", err)
}

func plansOf(ctx context.Context, q querier, project string) ([]Plan, error) {
	type head struct {
		Request   bench.RequestID
		Type      bench.RequestType
		Tag       string
		Selection bench.Selection
		Seconds   float64
	}
	heads, err := all[head](ctx, q, `
		with recent as (
			select id, type, tag, selection, expanded_at, jobs_done_at, admitted_at from benchmark_request
			where project = $1 and expanded_at is not null and type <> 'adhoc' order by expanded_at desc limit $2
		), chosen as (
			select distinct on (type, selection) id, type, tag, selection, expanded_at, jobs_done_at, admitted_at
			from recent order by type, selection, expanded_at desc
		)
		select id as request, type, coalesce(tag, '') as tag, selection,
			coalesce(extract(epoch from jobs_done_at - admitted_at), 0)::float8 as seconds
		from chosen order by expanded_at desc, id`, project, recentPlans)
	if err != nil {
		return nil, fmt.Errorf("reading the last requests: %w", err)
	}
	type member struct {
		JobShape
		Request bench.RequestID
	}
	plans, at := make([]Plan, len(heads)), make(map[bench.RequestID]int, len(heads))
	ids := make([]bench.RequestID, len(heads))
	for i, h := range heads {
		plans[i] = Plan{Request: h.Request, Type: h.Type, Tag: h.Tag, Selection: h.Selection, Seconds: h.Seconds}
		ids[i], at[h.Request] = h.Request, i
	}
	members, err := all[member](ctx, q, `
		select `+shapeColumns+`, w.request_id as request
		from request_job w join job_queue j on j.id = w.job_id join benchmark_request r on r.id = w.request_id
		where w.request_id = any($1) and j.tag = r.tag and not w.optional order by j.id`, ids)
	for _, m := range members {
		plans[at[m.Request]].Jobs = append(plans[at[m.Request]].Jobs, m.JobShape)
	}
	return plans, wrap("reading the jobs of the last requests", err)
}
