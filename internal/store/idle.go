package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// waitsLong matches a job j, linked by rj, that Benchloom itself has put into the queue
// idle (a look, or a canary) and that has not begun for $2 seconds.
const waitsLong = `j.queue = $1 and j.status in ('queued', 'handed_out') and j.created_at < now() - make_interval(secs => $2)
	and (rj.stage = 'verify' or coalesce((j.constraints ->> 'canary')::boolean, false))`

// LongIdle lists the open requests whose looks or canaries wait in the queue idle for
// longer than the given time, the oldest first.
func (s *Store) LongIdle(ctx context.Context, than time.Duration) ([]bench.Request, error) {
	rs, err := all[bench.Request](ctx, s.pool, `
		select `+requestColumns+` from benchmark_request r where r.status <> 'completed'
			and (select coalesce(sum(jobs), 0) from job_tally where queue = $1 and status <> 'in_progress') > 0 -- once, before any job is read
			and exists (
			select from request_job rj join job_queue j on j.id = rj.job_id where rj.request_id = r.id and `+waitsLong+`)
		order by r.created_at, r.id`, fairshare.Idle, than.Seconds())
	return rs, wrap("listing the requests whose looks wait for long", err)
}

// AdvanceIdle moves a request's jobs that wait in idle for that long to another queue,
// unless that queue goes as late. A request that is gone is no error.
func (s *Store) AdvanceIdle(ctx context.Context, id bench.RequestID, queue string, than time.Duration) error {
	return s.inTx(ctx, "moving the looks of request "+string(id)+" to queue "+queue, func(tx pgx.Tx) error {
		r, err := lockRequest(ctx, tx, id)
		if errors.Is(err, ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		ids, err := column[int64](ctx, tx, `
			select j.id from request_job rj join job_queue j on j.id = rj.job_id
			where rj.request_id = $3 and `+waitsLong+` order by j.id for update of j`, fairshare.Idle, than.Seconds(), id)
		if err != nil {
			return err
		}
		return advance(ctx, tx, r, queue, ids)
	})
}
