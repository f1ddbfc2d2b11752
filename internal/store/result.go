package store

import (
	"context"
	"errors"

	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
)

// statistics selects the statistics of jobs of all kinds.
const statistics = `(select series_id, collection_id, value from pstat
	union all select series_id, collection_id, value from pstat_runtime)`

// artifactName names an artifact.
type artifactName struct{ project, tag string }

// keptArtifacts bounds the artifacts whose ID a process keeps: a page asks for some several times.
const keptArtifacts = 1000

func newKeptArtifacts() *ttlcache.Cache[artifactName, int64] {
	return ttlcache.New(ttlcache.WithCapacity[artifactName, int64](keptArtifacts))
}

// artifact returns an artifact's ID, which stays the same: no artifact whose tag could be used
// again is ever removed. Queries pass it as a constant: only then does the planner restrict
// latest_result to this artifact.
func (s *Store) artifact(ctx context.Context, project, tag string) (int64, error) {
	name := artifactName{project, tag}
	if kept := s.artifacts.Get(name); kept != nil {
		return kept.Value(), nil
	}
	id, err := value[int64](ctx, s.pool, `select id from artifact where project = $1 and tag = $2`, project, tag)
	if err == nil {
		s.artifacts.Set(name, id, ttlcache.NoTTL)
	}
	return id, err
}

// SamplesOf reads all values of an artifact: those of the latest generation of each test
// case, metric and surrounding, by iteration, with the marks of disturbed iterations, and
// without those measured in turns with another artifact. An empty list is no error. Sheets
// hold the same values, and are read if they agree with the results. Callers share the
// samples and must not change them.
func (s *Store) SamplesOf(ctx context.Context, project, tag string) ([]bench.Samples, error) {
	artifact, err := s.artifact(ctx, project, tag)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, wrap("looking up artifact "+tag, err)
	}
	if samples, known, err := s.packedSamples(ctx, artifact); known || err != nil {
		return samples, wrap("reading the results of "+tag, err)
	}
	samples, err := s.rawSamples(ctx, artifact)
	return samples, wrap("reading the results of "+tag, err)
}

// samplesFrom selects all values of the results r in a table or view, in an order of their
// collections c; grouping follows, then [samplesOrder].
func samplesFrom(results, order string) string {
	return testCaseDocument + ` as test_case, max(se.id) as series, se.metric, j.kind, r.size_class, r.hardware_id, r.co_located, max(n.segment) as segment,
		array_agg(p.value order by ` + order + `) as values, array_agg(c.iteration order by ` + order + `) as iterations,
		array_agg(` + disturbed("c") + ` order by ` + order + `) as disturbed,
		coalesce(mode() within group (order by nullif(split_part(c.disturbed, ':', 1), '')), '') as disturbed_by
	from ` + results + ` r
	join job_run n on n.id = r.run_id
	join job_queue j on j.id = n.job_id
	join test_case tc on tc.id = r.test_case_id
	join collection c on c.result_id = r.id
	join ` + statistics + ` p on p.collection_id = c.id
	join pstat_series se on se.id = p.series_id`
}

const samplesOrder = `
	order by tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, r.size_class, r.hardware_id, r.co_located, se.metric`

// MissingResults lists the test cases of an artifact that have no result and will get none
// from the jobs so far, each with the reason: left out, failed, cancelled or invalid. A
// test case with a result in any surrounding, or in an open job, is not listed.
func (s *Store) MissingResults(ctx context.Context, project, tag string) ([]bench.MissingResult, error) {
	artifact, err := s.artifact(ctx, project, tag)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, wrap("looking up artifact "+tag, err)
	}
	missing, err := all[bench.MissingResult](ctx, s.reports, `
		with invalid as (
			select distinct on (r.test_case_id) r.test_case_id, 'its result is invalid: ' || r.invalid_reason as reason
			from test_result r
			where r.artifact_id = $1 and r.invalid_at is not null order by r.test_case_id, r.id desc
		), skipped as (
			select distinct on (r.test_case_id) r.test_case_id, 'left out: ' || r.message as reason
			from latest_result r
			where r.artifact_id = $1 and r.status = 'skipped' order by r.test_case_id, r.id desc
		), failed as (
			select distinct on (t.test_case_id) t.test_case_id,
				coalesce(
					(select 'failed: ' || e.message from job_run n join error e on e.run_id = n.id
					where n.job_id = j.id and e.test_case_id = t.test_case_id order by n.number desc limit 1),
					case j.status when 'cancelled' then '' else 'failed: ' end || j.message) as reason
			from job_queue j
			join job_test_case_state t on t.job_id = j.id and not t.done
			where t.artifact_id = $1 and (j.artifact_id = $1 or j.versus_artifact_id = $1) and j.status in ('failure', 'cancelled')
				and not exists (select from request_job rj where rj.job_id = j.id and rj.dropped)
			order by t.test_case_id, j.completed_at desc, j.id desc
		), reasons as (
			select test_case_id, reason from skipped
			union all
			select test_case_id, reason from failed where test_case_id not in (select test_case_id from skipped)
			union all
			select test_case_id, reason from invalid
			where test_case_id not in (select test_case_id from skipped union all select test_case_id from failed)
		)
		select `+testCaseDocument+` as test_case, x.reason, starts_with(x.reason, 'failed: ') as failed
		from reasons x join test_case tc on tc.id = x.test_case_id
		where not exists (select from latest_result r
				where r.artifact_id = $1 and r.test_case_id = x.test_case_id and r.status = 'ok')
			and not exists (select from job_test_case jt join job_queue j on j.id = jt.job_id
				where jt.artifact_id = $1 and (j.artifact_id = $1 or j.versus_artifact_id = $1)
					and jt.test_case_id = x.test_case_id and j.status in ('queued', 'handed_out', 'in_progress'))
		order by tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target`, artifact)
	return missing, wrap("listing the missing results of "+tag, err)
}

// MeasuredTags lists the artifacts with at least one result of their own that have a
// request of a type whose jobs have ended, whatever happened afterwards, the newest
// request first.
func (s *Store) MeasuredTags(ctx context.Context, project string, requestType bench.RequestType) ([]string, error) {
	tags, err := column[string](ctx, s.pool, `
		select r.tag from benchmark_request r join artifact a on a.project = r.project and a.tag = r.tag
		where r.project = $1 and r.type = $2 and r.jobs_done_at is not null
			and (r.outcome is null or r.outcome in ('success', 'failure') or r.jobs_done_at < r.completed_at)
			and exists (select from test_result t where t.artifact_id = a.id and t.status = 'ok' and t.invalid_at is null and not t.probe and not t.in_turns)
		group by r.tag order by max(r.created_at) desc, r.tag`, project, requestType)
	return tags, wrap("listing the measured artifacts of project "+project, err)
}
