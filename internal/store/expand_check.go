package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

// GenerationFor returns the generation in which a request gets a missing job: the job's
// own, unless a job with that key has ended and is of no use to the request. A job that
// was cancelled for other requests, whose results are gone, or that the request has
// dropped does not run again; the next generation does. A job that was cancelled while the
// request waited for it stays cancelled for that request, and a failed job stays failed.
func (s *Store) GenerationFor(ctx context.Context, request bench.RequestID, j bench.Job) (int, error) {
	used, err := usedUp(ctx, s.pool, request, j.Key)
	if err != nil || !used {
		return j.Generation, wrap("reading job "+string(j.Key), err)
	}
	next, err := laterGeneration(ctx, s.pool, j.Key)
	return next, wrap("reading the generations of job "+string(j.Key), err)
}

// laterGeneration returns a generation above that of every job that has measured the
// artifact, alone or in turns with another.
func laterGeneration(ctx context.Context, q querier, former bench.JobKey) (int, error) {
	return value[int](ctx, q, `
		select max(j.generation) + 1 from job_queue j join job_queue former on former.key = $1
			and former.artifact_id in (j.artifact_id, j.versus_artifact_id)`, former)
}

// usedUp reports whether a job with this key exists that is of no use to a request.
func usedUp(ctx context.Context, q querier, request bench.RequestID, key bench.JobKey) (bool, error) {
	return value[bool](ctx, q, `
		select exists (select from job_queue j where j.key = $1 and (
			(j.status = 'cancelled' and not exists (select from request_job w where w.job_id = j.id and w.request_id = $2))
			or (j.status in ('success', 'failure', 'cancelled') and exists (select from request_job w where w.job_id = j.id and w.request_id = $2 and w.dropped))
			or (j.status = 'success' and exists (select from job_test_case_state t where t.job_id = j.id and not t.done))))`, key, request)
}

// checkFresh refuses jobs planned from data that has changed since. The lock on the
// project's expansions keeps others from writing jobs meanwhile.
func checkFresh(ctx context.Context, tx pgx.Tx, request bench.RequestID, e Expansion) error {
	for _, j := range e.Jobs {
		used, err := usedUp(ctx, tx, request, j.Key)
		if err != nil {
			return err
		}
		if used {
			return fmt.Errorf("%w: job %s has ended", ErrStale, j.Key)
		}
		if err := checkUncovered(ctx, tx, j.Job); err != nil {
			return err
		}
	}
	return nil
}

// checkUncovered refuses a new job for test cases that by now have a result or belong to
// another job.
func checkUncovered(ctx context.Context, tx pgx.Tx, j bench.Job) error {
	_, err := value[int64](ctx, tx, `select id from job_queue where key = $1`, j.Key)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	c, err := coverageOf(ctx, tx, j.Project, plan.QueryOf(j))
	if err != nil {
		return err
	}
	for _, tc := range j.TestCases {
		if key, open := c.Running[tc]; open {
			return fmt.Errorf("%w: %s is part of job %s", ErrStale, tc, key)
		}
		if c.Stored[tc] {
			return fmt.Errorf("%w: %s has a result", ErrStale, tc)
		}
	}
	return nil
}
