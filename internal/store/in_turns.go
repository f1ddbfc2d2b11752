package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// openTurns returns the two artifacts of a job that measures in turns, and a generation
// above all that either has: both are measured again, whatever is stored. The caller holds
// the lock on expansions.
func openTurns(ctx context.Context, tx pgx.Tx, j bench.Job, own int64) (sides []int64, generation int, err error) {
	versus, err := artifactID(ctx, tx, j.Project, j.Versus)
	if err != nil {
		return nil, 0, err
	}
	sides = []int64{own, versus}
	newest, err := value[int](ctx, tx, `
		select coalesce(max(generation), 0) from (
			select generation from test_result where artifact_id = any($1)
			union all select generation from job_queue where artifact_id = any($1) or versus_artifact_id = any($1)
		) known`, sides)
	return sides, max(j.Generation, newest+1), err
}

// jobArtifacts holds the IDs of the artifacts that a job measures. Versus is 0 if it does not
// measure in turns.
type jobArtifacts struct{ Own, Versus int64 }

// artifactsOfJob selects the [jobArtifacts] of job $1.
const artifactsOfJob = `select artifact_id as own, coalesce(versus_artifact_id, 0) as versus from job_queue where key = $1`

// sides maps the tags in the job's results to the artifacts. Results of its own artifact have no
// tag, or its tag.
func (a jobArtifacts) sides(job bench.Job) map[string]int64 {
	sides := map[string]int64{"": a.Own, job.Tag: a.Own}
	if job.Versus != "" {
		sides[job.Versus] = a.Versus
	}
	return sides
}

// whole returns the results that may be accepted. For a job that measures in turns these
// are the test cases with both sides: one side is useless if the other failed or was
// measured in another run.
func (b block) whole(results []bench.TestCaseResult) []bench.TestCaseResult {
	if b.job.Versus == "" {
		return results
	}
	found := make(map[spot]bool)
	for _, r := range results {
		found[b.spot(r)] = true
	}
	var out []bench.TestCaseResult
	for _, r := range results {
		id := b.ids[r.TestCase]
		if found[spot{id, b.sides[b.job.Tag]}] && found[spot{id, b.sides[b.job.Versus]}] {
			out = append(out, r)
		}
	}
	return out
}

// inTurns selects the results of artifacts $1 and $2 that were measured in turns with each
// other: per test case and surrounding those of the newest comparison, all its looks, or
// of the newest job that belongs to none.
const inTurns = `(
	with pair as (
		select x.id as x, y.id as y, x.test_case_id, x.size_class, x.hardware_id, x.co_located, x.generation,
			coalesce((select max(l.comparison_id) from comparison_look l where l.job_id = n.job_id), -n.job_id) as set
		from test_result x join test_result y on y.run_id = x.run_id and y.test_case_id = x.test_case_id
		join job_run n on n.id = x.run_id
		where x.artifact_id = $1 and y.artifact_id = $2 and x.in_turns and y.in_turns and x.status = 'ok' and y.status = 'ok'
			and not x.probe and not y.probe and x.invalid_at is null and y.invalid_at is null
	), newest as (
		select distinct on (test_case_id, size_class, hardware_id, co_located) test_case_id, size_class, hardware_id, co_located, set
		from pair order by test_case_id, size_class, hardware_id, co_located, generation desc
	)
	select r.* from pair join newest using (test_case_id, size_class, hardware_id, co_located, set) join test_result r on r.id in (pair.x, pair.y))`

// SamplesInTurns reads the values of two artifacts that were measured in turns with each
// other; an empty list is no error. Those of one index were measured one after the other
// and are a pair; it is disturbed if either side has the mark.
func (s *Store) SamplesInTurns(ctx context.Context, project, a, b string) (ofA, ofB []bench.Samples, err error) {
	var ids [2]int64
	for i, tag := range []string{a, b} {
		ids[i], err = s.artifact(ctx, project, tag)
		if errors.Is(err, ErrNotFound) {
			return nil, nil, nil
		} else if err != nil {
			return nil, nil, wrap("looking up artifact "+tag, err)
		}
	}
	for i, samples := range []*[]bench.Samples{&ofA, &ofB} {
		if *samples, err = all[bench.Samples](ctx, s.pool, `select true as in_turns, `+samplesFrom(inTurns, `r.generation, c.iteration`)+`
			where r.artifact_id = $3
			group by r.size_class, r.hardware_id, r.co_located, j.kind, tc.id, se.metric`+samplesOrder, ids[0], ids[1], ids[i]); err != nil {
			return nil, nil, wrap("reading the results of "+a+" and "+b+" measured in turns", err)
		}
	}
	return ofA, ofB, nil
}

// RowInTurns is a metric of a test case that a request's own jobs have measured in turns.
type RowInTurns struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	// Surrounding in which both sides were measured.
	bench.Surrounding
}

// RowsInTurns lists what the own jobs of an ad-hoc request have measured in turns, without
// metrics that only explain others.
func (s *Store) RowsInTurns(ctx context.Context, id bench.RequestID) ([]RowInTurns, error) {
	rows, err := all[RowInTurns](ctx, s.pool, `
		with result as materialized (
			select distinct on (r.test_case_id) r.id, r.test_case_id, r.size_class, r.hardware_id, r.co_located
			from request_job rj join job_queue j on j.id = rj.job_id and j.versus is not null join job_run n on n.job_id = j.id
			join test_result r on r.run_id = n.id and r.artifact_id = j.artifact_id and r.status = 'ok' and r.invalid_at is null and not r.probe
			where rj.request_id = $1 and rj.stage = 'own' order by r.test_case_id, r.generation desc, r.id desc
		)
		select distinct `+testCaseDocument+` as test_case, se.metric, r.size_class, r.hardware_id, r.co_located
		from result r join test_case tc on tc.id = r.test_case_id join collection c on c.result_id = r.id
		join `+statistics+` p on p.collection_id = c.id join pstat_series se on se.id = p.series_id and se.metric <> all($2::text[])`, id, explaining())
	return rows, wrap("listing what request "+string(id)+" has measured in turns", err)
}
