package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

// Chunks: parts of a divided job. Each part is a job; which test cases it measures is decided
// when a machine begins its first run. From then on they are its own, even if the run is
// lost.

// unformed matches a chunk j that has not begun.
const unformed = `j.chunk_set is not null and j.started_at is null and j.rerun = 0 and j.status in ('queued', 'handed_out')`

// chunksLock locks chunk $1 that has not begun, together with the others of its job that have
// not, in the order of their IDs, as everywhere. A job that is no such chunk is not locked.
var chunksLock = `
	select j.id from job_queue j where ` + unformed + ` and j.chunk_set = (select c.chunk_set from job_queue c where c.key = $1) order by j.id for update`

// chunkCase is a test case of a chunk that has not begun.
type chunkCase struct {
	Job        int64
	TestCaseID int64
	bench.TestCase
	// Seconds it took last; 0: it was never measured.
	Seconds float64
}

// formChunk gives a locked chunk the test cases that its machine measures, and divides the
// others among the chunks that have not begun. Chunks for which none are left end. The
// caller holds the lock of [chunksLock]. A job that is no chunk, or has begun before, stays
// as it is.
func formChunk(ctx context.Context, tx pgx.Tx, job bench.Job) error {
	if job.Chunk == 0 {
		return nil
	}
	type row struct {
		Set          *string
		Most, Least  int
		Began, Idle  int
		StillToBegin bool
	}
	of, err := one[row](ctx, tx, `
		select j.chunk_set as set, j.chunk_of as most, j.chunk_min as least, `+unformed+` as still_to_begin,
			(select count(*) from job_queue b where b.chunk_set = j.chunk_set and (b.started_at is not null or b.rerun > 0)) as began,
			(select count(*) from collector_config c where c.active and c.current_run is null and c.`+heardOf("$2")+` and `+serves("j.task_queue")+`) as idle
		from job_queue j where j.id = $1`, job.ID, liveWithin.Seconds())
	if err != nil || !of.StillToBegin {
		return err
	}
	left, err := all[chunkCase](ctx, tx, `
		select j.id as job, tc.id as test_case_id, tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, coalesce((
			select sum((c.facts ->> 'duration_seconds')::float8) from collection c where c.result_id = (
				select r.id from test_result r where r.test_case_id = tc.id and r.status = 'ok' and r.invalid_at is null and not r.probe order by r.id desc limit 1)), 0) as seconds
		from job_queue j join job_test_case t on t.job_id = j.id and t.artifact_id = j.artifact_id join test_case tc on tc.id = t.test_case_id
		where `+unformed+` and j.chunk_set = $1 and j.task_queue = $2 order by j.chunk, t.place`, *of.Set, job.TaskQueue)
	if err != nil {
		return err
	}
	blocks := blocksOf(left)
	seconds := make([]float64, len(blocks))
	for i, b := range blocks {
		for _, c := range b {
			seconds[i] += c.Seconds
		}
	}
	taken := plan.ChunkSize(plan.ChunkAsk{Seconds: seconds, Formed: of.Began, Min: of.Least, Max: of.Most, Idle: max(1, of.Idle)})
	var others []int64
	for _, c := range left {
		if c.Job != job.ID && !slices.Contains(others, c.Job) {
			others = append(others, c.Job)
		}
	}
	given := map[int64][]chunkCase{job.ID: slices.Concat(blocks[:taken]...)}
	rest := blocks[taken:]
	for i, other := range others { // as many as there are blocks
		n := min(len(others), len(rest))
		given[other] = nil
		if i < n {
			given[other] = slices.Concat(rest[i*len(rest)/n : (i+1)*len(rest)/n]...)
		}
	}
	return giveCases(ctx, tx, given)
}

// blocksOf groups test cases by the blocks that a machine measures together.
func blocksOf(cases []chunkCase) [][]chunkCase {
	var out [][]chunkCase
	for i, c := range cases {
		if i == 0 || plan.Block(c.TestCase) != plan.Block(cases[i-1].TestCase) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

// giveCases gives chunks that have not begun their test cases, in their order, and ends those
// that get none.
func giveCases(ctx context.Context, tx pgx.Tx, given map[int64][]chunkCase) error {
	var jobs, empty, of, cases []int64
	for job, list := range given {
		jobs = append(jobs, job)
		if len(list) == 0 {
			empty = append(empty, job)
		}
		for _, c := range list {
			of, cases = append(of, job), append(cases, c.TestCaseID)
		}
	}
	slices.SortFunc(jobs, cmp.Compare[int64])
	for _, change := range []struct {
		sql  string
		args []any
	}{
		{`delete from job_test_case where job_id = any($1)`, []any{jobs}},
		{`insert into job_test_case (job_id, artifact_id, test_case_id, place)
			select j.id, side.id, t.test_case, row_number() over (partition by j.id, side.id order by t.place)
			from unnest($1::bigint[], $2::bigint[]) with ordinality as t (job, test_case, place) join job_queue j on j.id = t.job
			cross join unnest(array_remove(array[j.artifact_id, j.versus_artifact_id], null)) as side (id)`, []any{of, cases}},
		{`update job_queue j set test_cases = coalesce((
				select jsonb_agg(` + testCaseDocument + ` order by t.place) from job_test_case t join test_case tc on tc.id = t.test_case_id
				where t.job_id = j.id and t.artifact_id = j.artifact_id), '[]')
			where j.id = any($1)`, []any{jobs}},
		{`update job_queue set status = 'success', completed_at = now(), held = '', message = 'other chunks measure what it would have' where id = any($1)`, []any{empty}},
	} {
		if _, err := tx.Exec(ctx, change.sql, change.args...); err != nil {
			return err
		}
	}
	return nil
}
