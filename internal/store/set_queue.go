package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// turnIn is the turn of job j among those of queue $2 at its task queue, see
// [handOut.backlogs].
var turnIn = `coalesce((
	select max(t.turn) from job_queue t where t.task_queue = j.task_queue and t.queue = $2 and t.status = 'handed_out'), ` + wasted("j.task_queue", "$2") + `)`

// SetQueue puts the jobs of an open request that have not begun, or some of them, into
// another queue, which changes their level and share. If none is named, later jobs of the
// request wait there, too. The queue of a job for which other requests wait changes only
// if its level becomes earlier. The level of jobs that wait in Temporal follows, see
// [Store.Relevel]; running jobs stay.
//
// It returns ErrConflict if the request or a named job has ended; ErrNotFound if a named
// job does not belong to the request; a [fairshare.TooEarly] if the requesting account's limits
// allow no such level on the branch. The limits of the jobs' submitters apply in any queue.
func (s *Store) SetQueue(ctx context.Context, id bench.RequestID, queue string, jobs []bench.JobKey, act Act) (Operation, error) {
	what, err := s.onRequest(ctx, "request set-queue", id)
	if err != nil {
		return Operation{}, err
	}
	arguments := map[string]any{"queue": queue}
	if len(jobs) > 0 {
		arguments["jobs"] = jobs
	}
	what.Detail = detail(arguments)
	return s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		r, err := lockRequest(ctx, tx, id)
		switch {
		case err != nil:
			return OperationResult{}, err
		case r.Status == bench.Completed:
			return OperationResult{}, fmt.Errorf("%w: request %s has ended, and no job of it waits", ErrConflict, id)
		}
		return queueChange{tx, r, queue, jobs}.run(ctx, act)
	})
}

// queueChange changes the queue of a locked open request's jobs.
type queueChange struct {
	tx      pgx.Tx
	request bench.Request
	queue   string
	jobs    []bench.JobKey // the jobs to put there; empty: all
}

// queueable is a job whose queue may change.
type queueable struct {
	ID int64
	fairshare.Job
	Open bool
	// Waits reports that no run of it is under way, Shared that other requests wait for it.
	Waits, Shared bool
}

func (q queueChange) run(ctx context.Context, act Act) (OperationResult, error) {
	out := OperationResult{Requests: []bench.RequestID{q.request.ID}}
	found, err := q.candidates(ctx)
	if err != nil {
		return out, err
	}
	asked := make(map[fairshare.Job]bool)
	if len(q.jobs) == 0 {
		asked[fairshare.Job{Queue: q.queue, Submitter: q.request.Submitter, Branch: q.request.Branch}] = true
	}
	var own, shared []int64
	for _, j := range found {
		if !j.Open && len(q.jobs) > 0 {
			return out, fmt.Errorf("%w: a job that was named has ended; 'benchloom request jobs %s' lists those that wait", ErrConflict, q.request.ID)
		}
		switch {
		case !j.Open || !j.Waits || j.Queue == q.queue:
			continue
		case j.Shared:
			shared = append(shared, j.ID)
		default:
			own = append(own, j.ID)
		}
		asked[fairshare.Job{Queue: q.queue, Submitter: j.Submitter, Branch: j.Branch}] = true
	}
	wanted := make([]fairshare.Job, 0, len(asked))
	for j := range asked {
		wanted = append(wanted, j)
	}
	if err := mayAskFor(ctx, q.tx, act.Who, wanted); err != nil {
		return out, err
	}
	put, err := q.put(ctx, own, shared)
	if err != nil {
		return out, err
	}
	changed := int64(0)
	if len(q.jobs) == 0 {
		tag, err := q.tx.Exec(ctx, `update benchmark_request set queue = $2 where id = $1 and queue <> $2`, q.request.ID, q.queue)
		if err != nil {
			return out, err
		}
		changed = tag.RowsAffected()
	}
	out.Jobs, out.Changed = put, put > 0 || changed > 0
	switch out.Message = fmt.Sprintf("%s put into queue %s", count(put, "job"), q.queue); {
	case changed > 0:
		out.Message += ", where its later jobs will wait, too"
	case len(shared) > 0:
		out.Message += "; jobs for which other requests wait change only to an earlier level"
	}
	return out, nil
}

// candidates locks the request's jobs, or those that were named.
func (q queueChange) candidates(ctx context.Context) ([]queueable, error) {
	keys := make([]string, len(q.jobs))
	for i, key := range q.jobs {
		keys[i] = string(key)
	}
	ids, err := column[int64](ctx, q.tx, `
		select j.id from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and not rj.superseded and (cardinality($2::text[]) = 0 or j.key = any($2)) order by j.id for update of j`, q.request.ID, keys)
	if err != nil {
		return nil, err
	}
	found, err := all[queueable](ctx, q.tx, `
		select j.id, j.queue, j.submitter, j.branch, j.status in ('queued', 'handed_out', 'in_progress') as open, `+unattended+` as waits,
			exists (select from request_job w join benchmark_request wr on wr.id = w.request_id where w.job_id = j.id and wr.id <> $2 and `+stillWaits+`) as shared
		from job_queue j where j.id = any($1) order by j.id`, ids, q.request.ID)
	if err == nil && len(q.jobs) > 0 {
		known := make(map[bench.JobKey]bool)
		for _, key := range q.jobs {
			known[key] = true
		}
		if len(found) < len(known) {
			return nil, fmt.Errorf("%w: a job that was named does not belong to request %s, or was replaced; 'benchloom request jobs %s' lists its jobs", ErrNotFound, q.request.ID, q.request.ID)
		}
	}
	return found, err
}

// put changes the queue of locked jobs, and returns how many it has changed.
func (q queueChange) put(ctx context.Context, own, shared []int64) (int, error) {
	// Jobs held by a limit are released: another queue may have another place for them.
	tag, err := q.tx.Exec(ctx, `
		update job_queue j set queue = $2, held = case when j.held = 'cap' then '' else j.held end, turn = `+turnIn+`
		where j.id = any($1)`, own, q.queue)
	if err != nil {
		return 0, err
	}
	if err := advance(ctx, q.tx, q.request, q.queue, shared); err != nil {
		return 0, err
	}
	advanced, err := value[int](ctx, q.tx, `select count(*) from job_queue where id = any($1) and queue = $2`, shared, q.queue)
	return int(tag.RowsAffected()) + advanced, err
}
