package store

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
)

// tallyBatch bounds the groups that one call of CompactTally sums up.
const tallyBatch = 10_000

// CompactTally replaces rows that count the same open jobs by their sum, so that reading
// counts stays quick. The sums stay the same, and concurrent calls do no harm.
func (s *Store) CompactTally(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		with several as (
			select task_queue, queue, submitter, branch, batch, status from job_tally
			group by 1, 2, 3, 4, 5, 6 having count(*) > 1 limit $1
		), gone as (
			delete from job_tally t using several s
			where (t.task_queue, t.queue, t.submitter, t.branch, t.batch, t.status) = (s.task_queue, s.queue, s.submitter, s.branch, s.batch, s.status)
			returning t.*
		)
		insert into job_tally
		select task_queue, queue, submitter, branch, batch, status, sum(jobs) from gone
		group by 1, 2, 3, 4, 5, 6 having sum(jobs) <> 0`, tallyBatch)
	return wrap("summing up the counts of open jobs", err)
}

// jobsAlone counts the jobs that were written with request $1 by their status, with the
// time at which the last of them ended: open ones by the tally, others by an index.
const jobsAlone = `(
	select status, sum(jobs) as jobs, null::timestamptz as ended_at from job_tally where batch = $1 group by status having sum(jobs) > 0
	union all
	select status, count(*), max(completed_at) from job_queue
	where submitted_with = $1 and status in ('success', 'failure', 'cancelled') group by status
)`

// allOpen counts the open jobs of all projects.
func allOpen(ctx context.Context, q querier) (int, error) {
	return value[int](ctx, q, `select coalesce(sum(jobs), 0)::int from job_tally`)
}

// jobsWrittenWith counts the jobs that were written with a request.
func jobsWrittenWith(ctx context.Context, q querier, id bench.RequestID) (int, error) {
	return value[int](ctx, q, `select coalesce(sum(c.jobs), 0)::int from `+jobsAlone+` c`, id)
}
