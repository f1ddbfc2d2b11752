package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/lately"
)

const shapeColumns = `j.project, j.kind, j.target, j.backend, j.profile, j.cases_digest, j.case_count, j.size_class, j.pool, j.task_queue`

const (
	// manyKept is the least number of jobs whose reading is kept for some seconds; see
	// package lately.
	manyKept = 1000
	// pastJobs bounds how many finished jobs are read for each project.
	pastJobs = 2000
	// recentExamples bounds how many recent requests are searched for examples.
	recentExamples = 20
)

// AdmissionSnapshot reads the state from which a project's admission is explained and
// estimated. A collector counts as live if its last heartbeat is at most offlineAfter
// old.
//
// Its requests are as they are now. Where a thousand jobs or more are open, or have ended,
// these may be as old as [lately.Usable]: only estimates are based on them.
func (s *Store) AdmissionSnapshot(ctx context.Context, project string, offlineAfter time.Duration) (admission.Snapshot, error) {
	doing := "reading the admission of project " + project
	// Before the transaction: reading again takes a connection of its own.
	foreseen, err := s.foreseen.Get(ctx, allProjects)
	if err != nil {
		return admission.Snapshot{}, wrap(doing, err)
	}
	q := admission.Snapshot{Jobs: foreseen.jobs, LeftOut: foreseen.more}
	if q.Past, err = s.past.Get(ctx, strings.Join(projectsOfOpen(project, q.Jobs), betweenProjects)); err != nil {
		return q, wrap(doing, err)
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		if q.Open, q.Done, err = queueState(ctx, tx, project); err != nil {
			return err
		}
		if q.Examples, err = examplesOf(ctx, tx, project); err != nil {
			return err
		}
		q.Pools, err = livePools(ctx, tx, offlineAfter)
		return err
	})
	return q, wrap(doing, err)
}

// OpenJobCount counts the open jobs of all projects.
func (s *Store) OpenJobCount(ctx context.Context) (int, error) {
	open, err := allOpen(ctx, s.pool)
	return open, wrap("counting the open jobs", err)
}

// AnyAdmission reports whether a project has tracked requests with unfinished jobs.
func (s *Store) AnyAdmission(ctx context.Context, project string) (bool, error) {
	there, err := value[bool](ctx, s.pool, `
		select exists (select from benchmark_request r where r.project = $1 and r.type <> 'adhoc' and r.status <> 'completed' and r.jobs_done_at is null)`, project)
	return there, wrap("looking for requests of project "+project, err)
}

// foreseen are the open jobs that estimates consider, and the number of the others.
type foreseen struct {
	jobs []admission.OpenJob
	more int
}

const (
	// allProjects is the key of open jobs: collectors serve all projects.
	allProjects = ""
	// betweenProjects separates their names, in which it does not occur.
	betweenProjects = "\n"
)

// keepEstimates keeps the jobs on which estimates are based where these are many.
func (s *Store) keepEstimates() {
	s.foreseen = lately.New(time.Now, func(ctx context.Context, _ string) (f foreseen, err error) {
		f.jobs, f.more, err = openJobs(ctx, s.pool)
		return f, err
	}, func(f foreseen) bool { return len(f.jobs) >= manyKept })
	s.past = lately.New(time.Now, func(ctx context.Context, projects string) ([]admission.PastJob, error) {
		return pastJobsOf(ctx, s.pool, strings.Split(projects, betweenProjects))
	}, func(jobs []admission.PastJob) bool { return len(jobs) >= manyKept })
}

// queueState reads the tracked requests with unfinished jobs, and which of the tags that
// they wait for are done.
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

// openJobs lists the first open jobs and counts the rest.
func openJobs(ctx context.Context, q querier) (jobs []admission.OpenJob, more int, err error) {
	jobs, err = all[admission.OpenJob](ctx, q, `
		select `+shapeColumns+`, j.status,
			case when j.started_at is null then 0 else coalesce((select extract(epoch from sum(coalesce(r.finished_at, now()) - r.started_at)) from job_run r
				where r.job_id = j.id), 0) end::float8 as seconds,
			array(select w.request_id from request_job w where w.job_id = j.id and not w.optional order by w.request_id) as waiters
		from job_queue j where j.status in ('queued', 'handed_out', 'in_progress')
		order by j.request_created, j.id limit $1`, admission.MaxForeseen)
	if err == nil && len(jobs) == admission.MaxForeseen {
		more, err = allOpen(ctx, q)
		more = max(0, more-admission.MaxForeseen)
	}
	return jobs, more, wrap("listing the open jobs", err)
}

func projectsOfOpen(project string, jobs []admission.OpenJob) []string {
	names := []string{project}
	for _, j := range jobs {
		names = append(names, j.Project)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pastJobsOf reads what the last jobs of projects took. A profiler slows its job, so those say nothing of others.
func pastJobsOf(ctx context.Context, q querier, projects []string) ([]admission.PastJob, error) {
	jobs, err := all[admission.PastJob](ctx, q, `
		select `+shapeColumns+`, j.completed_at,
			(select extract(epoch from sum(r.finished_at - r.started_at)) from job_run r where r.job_id = j.id)::float8 as seconds
		from unnest($1::text[]) as p (name)
		cross join lateral (
			select j.id, `+shapeColumns+`, j.completed_at from job_queue j
			where j.project = p.name and j.status = 'success' and j.kind <> 'profile' order by j.completed_at desc limit $2
		) j
		where exists (select from job_run r where r.job_id = j.id and r.finished_at is not null)`, projects, pastJobs)
	return jobs, wrap("reading the durations of jobs", err)
}

func examplesOf(ctx context.Context, q querier, project string) ([]admission.Example, error) {
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
		from chosen order by expanded_at desc, id`, project, recentExamples)
	if err != nil {
		return nil, fmt.Errorf("reading the last requests: %w", err)
	}
	type member struct {
		admission.JobShape
		Request bench.RequestID
	}
	examples, at := make([]admission.Example, len(heads)), make(map[bench.RequestID]int, len(heads))
	ids := make([]bench.RequestID, len(heads))
	for i, h := range heads {
		examples[i] = admission.Example{Request: h.Request, Type: h.Type, Tag: h.Tag, Selection: h.Selection, Seconds: h.Seconds}
		ids[i], at[h.Request] = h.Request, i
	}
	members, err := all[member](ctx, q, `
		select `+shapeColumns+`, w.request_id as request
		from request_job w join job_queue j on j.id = w.job_id join benchmark_request r on r.id = w.request_id
		where w.request_id = any($1) and j.tag = r.tag and not w.optional order by j.id`, ids)
	for _, m := range members {
		examples[at[m.Request]].Jobs = append(examples[at[m.Request]].Jobs, m.JobShape)
	}
	return examples, wrap("reading the jobs of the last requests", err)
}
