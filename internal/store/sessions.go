package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Session holds the values of a series that one run has measured of one artifact.
type Session struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	// Surrounding in which it was measured.
	bench.Surrounding
	// Tag names the artifact, Index is its position in the list that was asked for, from 0.
	Tag       string
	Index     int
	Run       bench.RunID
	Collector string
	// Segment describes the kernel and the settings of the machine: only sessions whose
	// segments do not differ form a history.
	Segment bench.Segment
	// At is the start of the session.
	At time.Time
	// Values are by iteration; Disturbed marks those that something else disturbed.
	Values    []float64
	Disturbed []bool
}

// PastSuspicion is a suspicion about a series that was measured again.
type PastSuspicion struct {
	// Tag is the artifact whose comparison raised it.
	Tag      string
	TestCase bench.TestCase
	Metric   bench.Metric
	// Score of the suspicion; Up is set if the values had grown.
	Score float64
	Up    bool
	// Change is the relative change in turns, P the p value of its pairs, and Reason the verdict's reason.
	Change float64
	P      float64
	Reason string
	// Changed reports that the suspicion was confirmed: earlier sessions are no history of later ones.
	Changed bool
}

// PastSuspicions lists the suspicions about the artifacts of these tags that were measured
// again, and all changes: those of exact metrics, and what was found beside a suspicion.
// Canaries tell of collectors and not of artifacts.
func (s *Store) PastSuspicions(ctx context.Context, project string, tags []string) ([]PastSuspicion, error) {
	past, err := all[PastSuspicion](ctx, s.pool, `
		select distinct on (a.id, tc.id, v.metric) a.tag, `+testCaseDocument+` as test_case, v.metric, v.score,
			v.suspected_change > 0 as up, coalesce(v.verdict, '') = 'changed' as changed,
			v.change, v.p, v.reason
		from artifact a join comparison c on c.artifact_id = a.id and c.superseded_at is null
		join comparison_verdict v on v.comparison_id = c.id and (v.suspected and v.measured or v.verdict = 'changed')
		join test_case tc on tc.id = v.test_case_id
		where a.project = $1 and a.tag = any($2) and not exists (select from canary k where k.request_id = c.request_id)
		order by a.id, tc.id, v.metric, c.id desc`, project, tags)
	return past, wrap("reading the earlier suspicions of project "+project, err)
}

// Sessions reads the history of all series of a target on the artifacts of these tags: the
// latest session of each artifact, without what was measured in turns. Only the series and
// surroundings that the last tag has are read, and only metrics that decide. Sessions are
// in the order of series, then of tags; one statement reads them all, in a time linear in
// their number.
func (s *Store) Sessions(ctx context.Context, project string, target bench.Target, tags []string) ([]Session, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	type artifact struct {
		ID    int64
		Index int
	}
	// Passed as constants: only then does the planner restrict latest_result to them.
	line, err := all[artifact](ctx, s.pool, `
		select a.id, (t.index - 1)::int as index from unnest($2::text[]) with ordinality as t (tag, index)
		join artifact a on a.project = $1 and a.tag = t.tag order by t.index`, project, tags)
	if err != nil || len(line) == 0 || line[len(line)-1].Index != len(tags)-1 {
		return nil, wrap("looking up the artifacts of a history", err)
	}
	var ids []int64
	var indexes []int
	for _, a := range line {
		ids, indexes = append(ids, a.ID), append(indexes, a.Index)
	}
	sessions, err := all[Session](ctx, s.pool, `
		with line as (
			select id, index from unnest(@artifacts::bigint[], @indexes::int[]) as t (id, index)
		), result as materialized (
			-- A window rather than a join with its own: that would be quadratic where the planner expects few.
			select id, artifact_id, test_case_id, run_id, size_class, hardware_id, co_located from (
				select r.id, r.artifact_id, r.test_case_id, r.run_id, r.size_class, r.hardware_id, r.co_located,
					bool_or(r.artifact_id = @own) over (partition by r.test_case_id, r.size_class, r.hardware_id, r.co_located) as shared
				from latest_result r
				where r.artifact_id = any(@artifacts::bigint[]) and r.status = 'ok'
			) known where shared
		), session as materialized (
			select c.result_id, p.series_id, min(c.collected_at) as at, array_agg(p.value order by c.iteration) as values,
				array_agg(`+disturbed("c")+` order by c.iteration) as disturbed
			from result r join collection c on c.result_id = r.id
			join `+statistics+` p on p.collection_id = c.id
			join pstat_series se on se.id = p.series_id and se.metric <> all(@explaining::text[])
			group by c.result_id, p.series_id
		)
		select `+testCaseDocument+` as test_case, se.metric, r.size_class, r.hardware_id, r.co_located, a.tag, line.index,
			n.id as run, n.collector, n.segment, v.at, v.values, v.disturbed
		from session v
		join result r on r.id = v.result_id
		join line on line.id = r.artifact_id
		join artifact a on a.id = r.artifact_id
		join job_run n on n.id = r.run_id
		join test_case tc on tc.id = r.test_case_id and tc.target = @target
		join pstat_series se on se.id = v.series_id
		order by tc.id, se.metric, r.size_class, r.hardware_id, r.co_located, line.index`,
		pgx.NamedArgs{
			"artifacts": ids, "indexes": indexes, "own": ids[len(ids)-1], "target": string(target), "explaining": explaining(),
		})
	return sessions, wrap("reading the history of project "+project, err)
}

func explaining() []string {
	var names []string
	for _, m := range bench.ExplainingMetrics() {
		names = append(names, string(m))
	}
	return names
}

// MeasuredTargets lists the targets on which an artifact has results of its own.
func (s *Store) MeasuredTargets(ctx context.Context, project, tag string) ([]bench.Target, error) {
	targets, err := column[bench.Target](ctx, s.pool, `
		select distinct tc.target from artifact a join test_result r on r.artifact_id = a.id join test_case tc on tc.id = r.test_case_id
		where a.project = $1 and a.tag = $2 and `+countingResult+` order by tc.target`, project, tag)
	return targets, wrap("listing the targets of "+tag, err)
}

// Line lists the artifacts whose results are the history of a request's artifact, the
// oldest first and that artifact last: at most most. For a commit these are merged commits
// that are not newer, for a try build those up to its parent, and for a release the
// measured releases before it, in the order given by before.
func (s *Store) Line(ctx context.Context, r bench.Request, most int, before func(tag, own string) int) ([]string, error) {
	var tags []string
	var err error
	if r.Type.HasParent() {
		const (
			row      = `q.tag, coalesce(q.commit_date, q.created_at) as at, q.created_at, q.id`
			measured = `q.project = @project and q.type = 'master' and q.tag <> @tag and q.jobs_done_at is not null
				and coalesce(q.commit_date, q.created_at) <= coalesce((select at from own), @created)`
		)
		tags, err = column[string](ctx, s.pool, `
			with own as (
				select coalesce(q.commit_date, q.created_at) as at from benchmark_request q
				where q.project = @project and q.tag = @from and q.type <> 'adhoc' limit 1
			)
			select tag from (
				(select `+row+` from benchmark_request q where `+measured+` and q.tag <> @parent order by at desc, created_at desc, id limit @most)
				union all
				select `+row+` from benchmark_request q where `+measured+` and q.tag = @parent
			) line
			order by (tag = @parent) desc, at desc, created_at desc, id limit @most`,
			pgx.NamedArgs{"project": r.Project, "from": from(r), "tag": r.Tag, "parent": r.Parent, "created": r.CreatedAt, "most": most - 1})
		slices.Reverse(tags)
	} else {
		if tags, err = s.MeasuredTags(ctx, r.Project, r.Type); err == nil {
			tags = slices.DeleteFunc(tags, func(tag string) bool { return before(tag, r.Tag) >= 0 })
			slices.SortFunc(tags, before)
			tags = tags[max(0, len(tags)-most+1):]
		}
	}
	if err != nil {
		return nil, wrap("listing the artifacts before "+r.Tag, err)
	}
	return append(tags, r.Tag), nil
}

// from returns the tag at which the history of a request with a parent ends: a try build
// is compared with its parent, wherever the branch is by now.
func from(r bench.Request) string {
	if r.Type == bench.Try {
		return r.Parent
	}
	return r.Tag
}

// IterationSeconds returns the machine time that one iteration of each test case of a
// request took: what the collector has counted, else the run's time divided evenly.
func (s *Store) IterationSeconds(ctx context.Context, id bench.RequestID) (map[bench.TestCase]float64, error) {
	type row struct {
		bench.TestCase
		Seconds float64
	}
	rows, err := all[row](ctx, s.pool, `
		with run as (
			select n.id, extract(epoch from coalesce(n.finished_at, now()) - n.started_at) / greatest(count(c.id), 1) as share
			from request_job rj join job_run n on n.job_id = rj.job_id
			join test_result r on r.run_id = n.id join collection c on c.result_id = r.id
			where rj.request_id = $1 and rj.stage = 'own' and not rj.superseded
			group by n.id
		)
		select tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target,
			avg(coalesce((c.facts ->> 'duration_seconds')::float8, run.share))::float8 as seconds
		from run join test_result r on r.run_id = run.id join collection c on c.result_id = r.id
		join test_case tc on tc.id = r.test_case_id
		group by tc.id`, id)
	seconds := make(map[bench.TestCase]float64, len(rows))
	for _, r := range rows {
		seconds[r.TestCase] = r.Seconds
	}
	return seconds, wrap("reading the durations of request "+string(id), err)
}
