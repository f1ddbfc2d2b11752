package store

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Rebuilt lists requests that failed while a build that they need had failed, and whose
// build has succeeded since, no longer than within ago: by a job that ran again, or by one
// of another request. Nothing else would tell them. Graphs of templates are left out: what
// is blocked in them has a limit of its own. At most limit are returned.
func (s *Store) Rebuilt(ctx context.Context, within time.Duration, limit int) ([]bench.Request, error) {
	requests, err := all[bench.Request](ctx, s.pool, `
		select `+requestColumns+` from benchmark_request r
		where r.status = 'completed' and r.outcome = 'failure' and r.template is null and r.id in (
			select rj.request_id from job_queue b
			join job_queue f on f.kind = 'build' and f.build ->> 'key' = b.build ->> 'key' and f.project = b.project
				and (f.id = b.id or f.status = 'failure')
			join request_job rj on rj.job_id = f.id and not rj.superseded and not rj.optional
			join benchmark_request w on w.id = rj.request_id
			where b.kind = 'build' and b.status = 'success' and b.completed_at > now() - $1::interval and b.completed_at > w.completed_at)
		order by r.created_at, r.id limit $2`, within, limit)
	return requests, wrap("looking for requests whose build has succeeded", err)
}
