package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// HistoryArtifact is an artifact in the history of a project.
type HistoryArtifact struct {
	ID  int64
	Tag string
	// At is the date of the commit or release; if Dated is not set none is known, and it is
	// the time of the request.
	At    time.Time
	Dated bool
}

// HistoryArtifacts lists the artifacts of a type of request whose jobs have ended, at most
// most, the oldest first. Of an artifact with several requests, the newest counts.
func (s *Store) HistoryArtifacts(ctx context.Context, project string, of bench.RequestType, most int) ([]HistoryArtifact, error) {
	list, err := all[HistoryArtifact](ctx, s.reports, `
		select id, tag, at, dated from (
			select distinct on (a.id) a.id, a.tag, coalesce(q.commit_date, q.created_at) as at, q.commit_date is not null as dated, q.created_at
			from benchmark_request q join artifact a on a.project = q.project and a.tag = q.tag
			where q.project = $1 and q.type = $2 and q.jobs_done_at is not null and coalesce(q.outcome, '') not in ('cancelled', 'expired')
			order by a.id, q.created_at desc
		) known
		order by at desc, created_at desc, id desc limit $3`, project, of, most)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, wrap("listing the artifacts in the history of project "+project, err)
}

// HistoryDetail describes an artifact besides its values.
type HistoryDetail struct {
	Tag     string
	Request bench.RequestID
	Type    bench.RequestType
	PR      int
	// Baseline is what it was compared with by its own request; Subject and Author are those
	// of its commit. They may be empty.
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

// HistoryReleases lists the releases of a project between two times, as its repository and
// the requests name them, by time.
func (s *Store) HistoryReleases(ctx context.Context, project string, from, to time.Time) ([]HistoryRelease, error) {
	list, err := all[HistoryRelease](ctx, s.reports, `
		select tag, max(commit) as commit, min(at) as at from (
			select tag, sha as commit, tagged_at as at from release_tag where project = $1
			union all
			select tag, '', coalesce(commit_date, created_at) from benchmark_request where project = $1 and type = 'release' and tag is not null
		) known
		group by tag having min(at) between $2 and $3 or max(commit) <> '' order by at, tag`, project, from, to)
	return list, wrap("listing the releases of project "+project, err)
}

// HistorySeries is a series of a project.
type HistorySeries struct {
	ID, TestCaseID int64
	bench.TestCase
	Metric bench.Metric
}

// HistorySeriesOf lists the series of a project, by test case and metric, without those of
// commands.
func (s *Store) HistorySeriesOf(ctx context.Context, project string) ([]HistorySeries, error) {
	list, err := all[HistorySeries](ctx, s.reports, `
		select se.id, tc.id as test_case_id, tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, se.metric
		from test_case tc join pstat_series se on se.test_case_id = tc.id
		where tc.project = $1 and tc.benchmark <> $2
		order by tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, se.metric`, project, bench.CommandBenchmark)
	return list, wrap("listing the series of project "+project, err)
}

// HistoryPoint sums up the values that a series has of one artifact.
type HistoryPoint struct {
	SeriesID, ArtifactID int64
	bench.Surrounding
	Run bench.RunID
	N   int
	Min, Max, Mean,
	Low, Middle, High float64 // the quartiles
}

// HistoryPoints reads the points of series on artifacts, in any order: of each artifact and
// test case the latest result, in the surrounding that comparisons prefer, without what was
// measured in turns. One statement reads them all, in a time linear in their values.
func (s *Store) HistoryPoints(ctx context.Context, artifacts, series []int64) ([]HistoryPoint, error) {
	list, err := all[HistoryPoint](ctx, s.reports, `
		with asked as materialized (
			select id, test_case_id from pstat_series where id = any(@series::bigint[])
		), result as materialized (
			-- The order is that of bench.Surrounding.Before.
			select distinct on (r.artifact_id, r.test_case_id) r.id, r.artifact_id, r.run_id, r.size_class, r.hardware_id, r.co_located
			from latest_result r
			where r.artifact_id = any(@artifacts::bigint[]) and r.status = 'ok' and r.test_case_id = any(array(select test_case_id from asked))
			order by r.artifact_id, r.test_case_id, r.co_located, r.size_class desc, r.hardware_id
		), point as (
			select c.result_id, p.series_id, count(*)::int as n, min(p.value) as min, max(p.value) as max, avg(p.value) as mean,
				percentile_cont(array[0.25, 0.5, 0.75]) within group (order by p.value) as quartiles
			from result r join collection c on c.result_id = r.id
			join `+statistics+` p on p.collection_id = c.id
			where p.series_id = any(@series::bigint[]) and p.value > '-infinity' and p.value < 'infinity'
			group by c.result_id, p.series_id
		)
		select p.series_id, r.artifact_id, r.size_class, r.hardware_id, r.co_located, r.run_id as run, p.n, p.min, p.max, p.mean,
			p.quartiles[1] as low, p.quartiles[2] as middle, p.quartiles[3] as high
		from point p join result r on r.id = p.result_id`, pgx.NamedArgs{"artifacts": artifacts, "series": series})
	return list, wrap("reading the points of a history", err)
}

// HistoryRun tells under which settings and with which suite a run measured.
type HistoryRun struct {
	Run     bench.RunID
	Segment bench.Segment
	// Suite is the content hash of the suite; empty: it had none.
	Suite string
}

// HistoryRuns describes runs, in any order.
func (s *Store) HistoryRuns(ctx context.Context, runs []bench.RunID) ([]HistoryRun, error) {
	list, err := all[HistoryRun](ctx, s.reports, `
		select n.id as run, n.segment, coalesce(j.suite_hash, '') as suite
		from job_run n join job_queue j on j.id = n.job_id where n.id = any($1)`, runs)
	return list, wrap("reading where a history was measured", err)
}

// HistoryFailure says why an artifact has no result of a test case.
type HistoryFailure struct {
	ArtifactID, TestCaseID int64
	Reason                 string
}

// HistoryFailures lists the test cases, of those named, that failed on artifacts and have no
// result, at most most.
func (s *Store) HistoryFailures(ctx context.Context, artifacts, testCases []int64, most int) ([]HistoryFailure, error) {
	list, err := all[HistoryFailure](ctx, s.reports, `
		select distinct on (t.artifact_id, t.test_case_id) t.artifact_id, t.test_case_id, coalesce(
			(select e.message from job_run n join error e on e.run_id = n.id
			where n.job_id = j.id and e.test_case_id = t.test_case_id order by n.number desc limit 1), j.message) as reason
		from job_test_case_state t join job_queue j on j.id = t.job_id
		where t.artifact_id = any(@artifacts::bigint[]) and t.test_case_id = any(@cases::bigint[]) and not t.done and j.status = 'failure'
			and (j.artifact_id = t.artifact_id or j.versus_artifact_id = t.artifact_id)
			and not exists (select from request_job rj where rj.job_id = j.id and rj.dropped)
			and not exists (select from test_result r where r.artifact_id = t.artifact_id and r.test_case_id = t.test_case_id and `+countingResult+`)
		order by t.artifact_id, t.test_case_id, j.completed_at desc, j.id desc limit @most`,
		pgx.NamedArgs{"artifacts": artifacts, "cases": testCases, "most": most})
	return list, wrap("listing the failures of a history", err)
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

// HistoryChanges lists the changes that were confirmed for artifacts, as their verdicts are
// stored. Canaries tell of collectors and not of artifacts.
func (s *Store) HistoryChanges(ctx context.Context, artifacts []int64) ([]HistoryChange, error) {
	list, err := all[HistoryChange](ctx, s.reports, `
		select distinct on (c.artifact_id, v.test_case_id, v.metric) c.artifact_id, v.test_case_id, v.metric, g.tag as against, v.change
		from comparison c join comparison_verdict v on v.comparison_id = c.id and v.verdict = 'changed'
		join artifact g on g.id = coalesce(v.against_id, c.baseline_id)
		where c.artifact_id = any($1) and c.superseded_at is null and not exists (select from canary k where k.request_id = c.request_id)
		order by c.artifact_id, v.test_case_id, v.metric, c.id desc`, artifacts)
	return list, wrap("reading the changes of a history", err)
}
