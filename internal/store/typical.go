package store

import "context"

// comparedJobs bounds how many of a project's latest successful jobs are compared with those
// whose duration is asked for.
const comparedJobs = 200

// TypicalSeconds returns how long jobs are expected to take, by their row IDs: the median
// duration of the latest successful jobs like them, whatever their artifact, on the same size
// class and in the same pool. The given jobs do not count. A job without any like it is absent.
func (s *Store) TypicalSeconds(ctx context.Context, jobs []int64) (map[int64]float64, error) {
	type typical struct {
		ID      int64
		Seconds float64
	}
	list, err := all[typical](ctx, s.pool, `
		with asked as (
			select j.id, j.project, j.kind, j.target, j.backend, j.profile, j.cases_digest, j.size_class, j.pool
			from job_queue j where j.id = any($1)
		), past as (
			select l.project, l.kind, l.target, l.backend, l.profile, l.cases_digest, l.size_class, l.pool,
				percentile_cont(0.5) within group (order by l.seconds) as seconds
			from (select distinct project from asked) a
			cross join lateral (
				select j.id, j.project, j.kind, j.target, j.backend, j.profile, j.cases_digest, j.size_class, j.pool,
					extract(epoch from j.completed_at - j.started_at)::float8 as seconds
				from job_queue j where j.project = a.project and j.status = 'success'
				order by j.completed_at desc limit $2
			) l
			where l.seconds is not null and l.id <> all($1)
			group by l.project, l.kind, l.target, l.backend, l.profile, l.cases_digest, l.size_class, l.pool
		)
		select asked.id, past.seconds
		from asked join past using (project, kind, target, backend, profile, cases_digest, size_class, pool)`, jobs, comparedJobs)
	out := make(map[int64]float64, len(list))
	for _, t := range list {
		out[t.ID] = t.Seconds
	}
	return out, wrap("reading how long jobs are expected to take", err)
}
