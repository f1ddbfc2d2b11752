package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// HistoryArtifact is an artifact in the history of a project.
type HistoryArtifact struct {
	ID  int64
	Tag string
	// At is the date of the commit or release; if Dated is not set, no date is known, and At
	// is the time of the request.
	At    time.Time
	Dated bool
}

// HistoryDetail describes an artifact besides its values.
type HistoryDetail struct {
	Tag     string
	Request bench.RequestID
	Type    bench.RequestType
	PR      int
	// Baseline of the comparison of its own request; Subject and Author of its commit. They
	// may be empty.
	Baseline, Subject, Author string
}

// HistoryDetails describes artifacts, in any order.
func (s *Store) HistoryDetails(ctx context.Context, project string, of bench.RequestType, tags []string) ([]HistoryDetail, error) {
	list, err := all[HistoryDetail](ctx, s.reports, `
		select distinct on (q.tag) q.tag, q.id as request, q.type, coalesce(q.pr, 0) as pr, coalesce(q.baseline, '') as baseline,
			coalesce(c.subject, '') as subject, coalesce(c.author, '') as author
		from benchmark_request q left join commit c on c.project = q.project and c.sha = q.tag
		where q.project = $1 and q.type = $2 and q.tag = any($3) and q.jobs_done_at is not null
		order by q.tag, q.created_at desc`, project, of, tags)
	return list, wrap("describing the artifacts in the history of project "+project, err)
}

// HistoryRelease is a release as a mark in the history of commits.
type HistoryRelease struct {
	Tag string
	// Commit is the hash of what was released; empty: not known.
	Commit string
	At     time.Time
}

// HistoryReleases lists the releases of a project between two times and those made from
// some commits, as its repository and the requests name them: at most most, the newest
// first, and how many are left out.
func (s *Store) HistoryReleases(ctx context.Context, project string, from, to time.Time, commits []string, most int) (list []HistoryRelease, left int, err error) {
	seen := func() (string, error) { return s.seen(ctx) }
	known, err := s.lists.releases.get(project, seen, func() (string, error) {
		return value[string](ctx, s.reports, `
			select concat_ws(' ',
				(select concat_ws(' ', count(*), sum(hashtextextended(t.tag, t.xmin::text::bigint))) from release_tag t where t.project = $1),
				(select concat_ws(' ', count(*), sum(hashtextextended(q.id, q.xmin::text::bigint))) from benchmark_request q where q.project = $1 and q.type = 'release'))`, project)
	}, func() ([]HistoryRelease, error) {
		return all[HistoryRelease](ctx, s.reports, `
			select tag, max(commit) as commit, min(at) as at from (
				select tag, sha as commit, tagged_at as at from release_tag where project = $1
				union all
				select tag, '', coalesce(commit_date, created_at) from benchmark_request where project = $1 and type = 'release' and tag is not null
			) known
			group by tag order by min(at) desc, tag`, project)
	})
	if err != nil {
		return nil, 0, wrap("listing the releases of project "+project, err)
	}
	of := make(map[string]bool, len(commits))
	for _, sha := range commits {
		of[sha] = true
	}
	for _, r := range known {
		switch within := !r.At.Before(from) && !r.At.After(to); {
		case !within && (r.Commit == "" || !of[r.Commit]):
		case len(list) < most:
			list = append(list, r)
		default:
			left++
		}
	}
	return list, left, nil
}

// HistoryRun names the run that measured a series for an artifact.
type HistoryRun struct {
	SeriesID, ArtifactID int64
	bench.Surrounding
	Run bench.RunID
}

// HistoryRuns names the runs behind the points of histories, in any order.
func (s *Store) HistoryRuns(ctx context.Context, artifacts, series []int64) ([]HistoryRun, error) {
	list, err := all[HistoryRun](ctx, s.reports, `
		select se.id as series_id, r.artifact_id, r.size_class, r.hardware_id, r.co_located, r.run_id as run
		from latest_result r join pstat_series se on se.test_case_id = r.test_case_id and se.id = any(@series::bigint[])
		where r.artifact_id = any(@artifacts::bigint[]) and r.status = 'ok'
			and r.test_case_id = any(array(select test_case_id from pstat_series where id = any(@series::bigint[])))`,
		pgx.NamedArgs{"artifacts": artifacts, "series": series})
	return list, wrap("reading which runs measured a history", err)
}

// HistoryFailure says why an artifact has no result of a test case.
type HistoryFailure struct {
	ArtifactID, TestCaseID int64
	Reason                 string
}

// HistoryFailures lists the test cases, of those named, that failed on artifacts and have no
// result: at most most, those of the newest artifacts, and how many are left out.
func (s *Store) HistoryFailures(ctx context.Context, artifacts, testCases []int64, most int) (list []HistoryFailure, left int, err error) {
	if len(artifacts) == 0 {
		return nil, 0, nil
	}
	// Failed jobs are few, and each has few of the test cases: they come first.
	list, left, err = bounded[HistoryFailure](ctx, s.reports, `
		select distinct on (t.artifact_id, t.test_case_id) t.artifact_id, t.test_case_id, coalesce(
			(select e.message from job_run n join error e on e.run_id = n.id
			where n.job_id = j.id and e.test_case_id = t.test_case_id order by n.number desc limit 1), j.message) as reason
		from (
			select id, artifact_id from job_queue where status = 'failure' and artifact_id between @first and @last
			union all
			select id, versus_artifact_id from job_queue where status = 'failure' and versus_artifact_id between @first and @last
			offset 0
		) f cross join lateral (
			select jt.job_id, jt.artifact_id, jt.test_case_id from job_test_case jt
			where jt.job_id = f.id and jt.artifact_id = f.artifact_id and jt.test_case_id = any(@cases::bigint[])
				and not exists (select from test_result r where r.artifact_id = jt.artifact_id and r.test_case_id = jt.test_case_id and `+countingResult+`)
			offset 0
		) failed join job_queue j on j.id = f.id
		join job_test_case_state t on (t.job_id, t.artifact_id, t.test_case_id) = (failed.job_id, failed.artifact_id, failed.test_case_id)
		where `+hashedArtifacts("f.artifact_id")+` and not t.done
			and not exists (select from request_job rj where rj.job_id = j.id and rj.dropped)
		order by t.artifact_id, t.test_case_id, j.completed_at desc, j.id desc`, `artifact_id desc, test_case_id`, most,
		pgx.NamedArgs{"artifacts": artifacts, "cases": testCases, "first": slices.Min(artifacts), "last": slices.Max(artifacts)})
	return list, left, wrap("listing the failures of a history", err)
}

// amongArtifacts is the condition that a column is one of the artifacts. Where the
// artifacts mostly follow each other, the whole range is read, which takes a quarter of
// the time of looking each up; @first and @last are its ends.
func amongArtifacts(column string, artifacts []int64) string {
	const apart = 4 // artifacts of others between two of them, on average
	if span := slices.Max(artifacts) - slices.Min(artifacts); span > apart*int64(len(artifacts)) {
		return column + ` = any(@artifacts::bigint[])`
	}
	return column + ` between @first and @last and ` + hashedArtifacts(column)
}

// hashedArtifacts is the same condition, checked by a hash table: a plan that is kept would
// compare each value with all of an array.
func hashedArtifacts(column string) string {
	return `(` + column + ` in (select unnest(@artifacts::bigint[]))) is true`
}

// plannedAnew has each statement planned for its arguments, which takes longer than planning
// once per connection.
type plannedAnew struct{ querier }

func (q plannedAnew) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return q.querier.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

func (q plannedAnew) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return q.querier.QueryRow(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

// bounded runs a statement that lists what a history has, in an order: at most most rows,
// and how many are left out.
func bounded[T any](ctx context.Context, q querier, statement, order string, most int, args pgx.NamedArgs) (list []T, left int, err error) {
	args["most"] = most
	list, err = all[T](ctx, q, `select * from (`+statement+`) listed order by `+order+` limit @most`, args)
	if err == nil && len(list) == most {
		var known int
		known, err = value[int](ctx, q, `select count(*) from (`+statement+`) listed`, args)
		left = max(0, known-most)
	}
	return list, left, err
}

// HistoryChange is a confirmed change of a series.
type HistoryChange struct {
	ArtifactID int64
	TestCaseID int64
	Metric     bench.Metric
	// Against is the artifact that it was compared with, Change the relative change.
	Against string
	Change  float64
}

// HistoryChanges lists the changes of metrics that were confirmed for artifacts, as their
// verdicts are stored: at most most, those of the newest artifacts, and how many are left out.
// Canaries tell of collectors and not of artifacts.
func (s *Store) HistoryChanges(ctx context.Context, artifacts []int64, metrics []bench.Metric, most int) (list []HistoryChange, left int, err error) {
	if len(artifacts) == 0 || len(metrics) == 0 {
		return nil, 0, nil
	}
	const few = 1000
	var q querier = s.reports // looks up the comparisons of each artifact
	if len(artifacts) > few {
		q = plannedAnew{q} // looks through the confirmed changes
	}
	list, left, err = bounded[HistoryChange](ctx, q, `
		select distinct on (c.artifact_id, v.test_case_id, v.metric) c.artifact_id, v.test_case_id, v.metric, v.change,
			(select g.tag from artifact g where g.id = coalesce(v.against_id, c.baseline_id)) as against
		from comparison c join comparison_verdict v on v.comparison_id = c.id and v.verdict = 'changed' and v.metric = any(@metrics)
		where `+amongArtifacts("c.artifact_id", artifacts)+` and c.superseded_at is null and not exists (select from canary k where k.request_id = c.request_id)
		order by c.artifact_id, v.test_case_id, v.metric, c.id desc`, `artifact_id desc, test_case_id, metric`, most,
		pgx.NamedArgs{"artifacts": artifacts, "metrics": metrics, "first": slices.Min(artifacts), "last": slices.Max(artifacts)})
	return list, left, wrap("reading the changes of a history", err)
}
