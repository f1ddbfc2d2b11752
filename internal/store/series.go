package store

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// SeriesClasses returns the size class on which the series of each test case continues,
// as seen from the artifact of a tag, such as a request's parent. It is the class where
// that artifact was measured: for merged commits and releases if there is such a result,
// and the largest if there are several. Test cases that the artifact lacks continue where
// the newest commit or release was measured, by its own date rather than that of its
// results; try builds come last. Results of ad-hoc requests, of probes and those measured in turns never count. Test
// cases without any result are absent. tag may be empty.
func (s *Store) SeriesClasses(ctx context.Context, project string, target bench.Target, tag string) (map[bench.TestCase]bench.SizeClass, error) {
	type row struct {
		bench.TestCase
		SizeClass bench.SizeClass
	}
	// Only the newest rows of a long series are read: they include late results, and the
	// newer ones that take precedence.
	rows, err := all[row](ctx, s.pool, `
		select tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, coalesce(near.size_class, newest.size_class) as size_class
		from test_case tc
		left join lateral (
			select r.size_class from artifact a join test_result r on r.artifact_id = a.id and r.test_case_id = tc.id
			cross join lateral (
				select bool_or(q.type <> 'try') as merged from job_run n
				join request_job w on w.job_id = n.job_id join benchmark_request q on q.id = w.request_id
				where n.id = r.run_id and q.type <> 'adhoc') waits
			where a.project = tc.project and a.tag = $3 and `+countingResult+` and waits.merged is not null
			order by waits.merged desc, r.size_class desc limit 1) near on true
		left join lateral (
			select late.size_class from (
				select r.size_class, r.artifact_id from test_result r join job_run n on n.id = r.run_id
				where r.test_case_id = tc.id and `+countingResult+`
					and exists (select from request_job w join benchmark_request q on q.id = w.request_id where w.job_id = n.job_id and q.type <> 'adhoc')
				order by r.id desc limit 64) late
			join artifact a on a.id = late.artifact_id
			left join benchmark_request q on q.project = a.project and q.tag = a.tag and q.type <> 'adhoc'
			order by (q.id is null), (q.type = 'try'), coalesce(q.commit_date, q.created_at) desc, late.size_class desc limit 1
		) newest on near.size_class is null
		where tc.project = $1 and tc.target = $2 and coalesce(near.size_class, newest.size_class) is not null`, project, target, tag)
	classes := make(map[bench.TestCase]bench.SizeClass, len(rows))
	for _, r := range rows {
		classes[r.TestCase] = r.SizeClass
	}
	return classes, wrap("reading where the series of project "+project+" live", err)
}

// countingResult matches a result r that represents its artifact.
const countingResult = `r.status = 'ok' and r.invalid_at is null and not r.probe and not r.in_turns`
