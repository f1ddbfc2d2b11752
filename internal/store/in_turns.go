package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// openTurns returns the two artifacts of a job that measures in turns, and a generation
// above all that either has: both are measured again, and the new results become the
// latest of both. The caller holds the lock on expansions.
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

// sidesOf maps the tags in a job's results to the IDs of the artifacts that it measures.
// Results of its own artifact have no tag, or its tag.
func sidesOf(ctx context.Context, tx pgx.Tx, job bench.Job) (map[string]int64, error) {
	type row struct{ Own, Versus int64 }
	ids, err := one[row](ctx, tx, `
		select artifact_id as own, coalesce(versus_artifact_id, 0) as versus from job_queue where id = $1`, job.ID)
	sides := map[string]int64{"": ids.Own, job.Tag: ids.Own}
	if job.Versus != "" {
		sides[job.Versus] = ids.Versus
	}
	return sides, err
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

// inTurns selects the results of artifacts $1 and $2 from the newest run that measured
// both in turns, per test case and surrounding; none if both have later results.
const inTurns = `(
	select r.* from (
		select distinct on (x.test_case_id, x.size_class, x.hardware_id, x.co_located) x.id as x, y.id as y
		from test_result x join test_result y on y.run_id = x.run_id and y.test_case_id = x.test_case_id
		where x.artifact_id = $1 and y.artifact_id = $2 and x.status = 'ok' and y.status = 'ok' and not x.probe and not y.probe and x.invalid_at is null and y.invalid_at is null
			and not (exists (` + measuredSince + ` and since.artifact_id = $1) and exists (` + measuredSince + ` and since.artifact_id = $2))
		order by x.test_case_id, x.size_class, x.hardware_id, x.co_located, x.generation desc
	) newest join test_result r on r.id in (newest.x, newest.y))`

// measuredSince selects results of a later generation than x, with its artifact, test
// case and surrounding.
const measuredSince = `
	select from test_result since where since.test_case_id = x.test_case_id and since.size_class = x.size_class
		and since.hardware_id = x.hardware_id and since.co_located = x.co_located and since.status = 'ok' and since.invalid_at is null and not since.probe
		and since.generation > x.generation`

// SamplesInTurns reads the values of two artifacts that were measured in turns with each
// other; none if there are none.
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
		if *samples, err = all[bench.Samples](ctx, s.pool, `select true as in_turns, `+samplesFrom(inTurns)+`
			where r.artifact_id = $3 `+samplesEnd, ids[0], ids[1], ids[i]); err != nil {
			return nil, nil, wrap("reading the results of "+a+" and "+b+" measured in turns", err)
		}
	}
	return ofA, ofB, nil
}
