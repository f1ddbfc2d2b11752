package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// lockRequest reads a request and locks it until the transaction ends. Rows that only
// refer to it are not blocked: a hand-out that has locked jobs must not wait for a
// cancellation that is about to lock them.
func lockRequest(ctx context.Context, tx pgx.Tx, id bench.RequestID) (bench.Request, error) {
	return one[bench.Request](ctx, tx, `select `+requestColumns+` from benchmark_request r where r.id = $1 for no key update`, id)
}

// lockRequests allows a transaction to lock several requests in any order: it excludes
// others that do so.
func lockRequests(ctx context.Context, tx pgx.Tx) error { return lock(ctx, tx, "several requests") }

// Admission is a decision about the next requests to admit.
type Admission struct {
	// Next lists the requests that may be admitted, in order.
	Next []bench.RequestID
	// Policy and State are recorded with the admission: the rule, and the state on which
	// it was based.
	Policy string
	State  json.RawMessage
}

// Admit sets the next requests of a project to in_progress, so that at most maxInProgress
// tracked ones have unfinished jobs, and returns those admitted now.
//
// decide receives all tracked requests with unfinished jobs, and which of the tags that
// they wait for are done. It is called again after each admission, so that every
// admission is recorded with the state it was based on. Requests that are not
// artifacts_ready are skipped. decide runs in a transaction that holds the project's
// lock, so that concurrent calls never admit too many; it must not call the store.
// Together with an error, Admit returns the requests admitted before it.
func (s *Store) Admit(ctx context.Context, project string, maxInProgress int,
	decide func(open []bench.Request, done map[string]bool) (Admission, error),
) ([]bench.RequestID, error) {
	var admitted []bench.RequestID
	for {
		var id bench.RequestID
		// One transaction each: none locks a second request after jobs of the first.
		err := s.inTx(ctx, "admitting requests of project "+project, func(tx pgx.Tx) (err error) {
			if err := lock(ctx, tx, "admission "+project); err != nil {
				return err
			}
			id, err = admitNext(ctx, tx, project, maxInProgress, decide)
			return err
		})
		if err != nil || id == "" {
			return admitted, err
		}
		admitted = append(admitted, id)
	}
}

// undone selects the request that a request r waits for, while its jobs are unfinished. A
// removed request keeps none waiting.
const undone = `
	select from benchmark_request p
	where p.project = r.project and p.tag = r.waits_for and p.type <> 'adhoc' and p.jobs_done_at is null`

// admitNext admits one request; none if no slot is free or no request may start.
func admitNext(ctx context.Context, tx pgx.Tx, project string, maxInProgress int,
	decide func(open []bench.Request, done map[string]bool) (Admission, error),
) (bench.RequestID, error) {
	open, done, err := queueState(ctx, tx, project)
	if err != nil {
		return "", err
	}
	decision, err := decide(open, done)
	if err != nil {
		return "", err
	}
	free := maxInProgress
	ready := make(map[bench.RequestID]bool)
	for _, r := range open {
		if r.Status == bench.InProgress {
			free--
		}
		ready[r.ID] = r.Status == bench.ArtifactsReady
	}
	next := slices.IndexFunc(decision.Next, func(id bench.RequestID) bool { return ready[id] })
	if free <= 0 || next < 0 {
		return "", nil
	}
	if paused, err := queuePaused(ctx, tx, project); err != nil || paused {
		return "", err
	}
	id := decision.Next[next]
	// A request cancelled meanwhile stays cancelled: nothing is changed, and decide is
	// called again without it.
	tag, err := tx.Exec(ctx, `
		update benchmark_request set status = 'in_progress', admitted_at = now() where id = $1 and status = 'artifacts_ready'`, id)
	if err != nil || tag.RowsAffected() == 0 {
		return "", err
	}
	if err := releaseJobsOf(ctx, tx, id); err != nil {
		return "", err
	}
	return id, recordAdmission(ctx, tx, project, id, decision)
}

// InProgressTracked lists a project's tracked requests in progress, including those whose
// jobs have ended, in order of admission.
func (s *Store) InProgressTracked(ctx context.Context, project string) ([]bench.Request, error) {
	rs, err := all[bench.Request](ctx, s.pool, `
		select `+requestColumns+` from benchmark_request r
		where r.project = $1 and r.type <> 'adhoc' and r.status = 'in_progress'
		order by r.admitted_at, r.created_at, r.id`, project)
	return rs, wrap("listing the requests in progress of project "+project, err)
}

// StartAdHoc sets an ad-hoc request, which needs no admission, to in_progress. It returns
// ErrConflict if the request is completed, has no artifacts yet, or is not ad hoc.
func (s *Store) StartAdHoc(ctx context.Context, id bench.RequestID) error {
	return s.inTx(ctx, "starting request "+string(id), func(tx pgx.Tx) error {
		r, err := lockRequest(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case r.Type.Tracked():
			return fmt.Errorf("%w: a %s request is admitted, not started", ErrConflict, r.Type)
		case r.Status == bench.InProgress:
			return nil
		case r.Status != bench.ArtifactsReady:
			return fmt.Errorf("%w: it is %s", ErrConflict, r.Status)
		}
		if _, err = tx.Exec(ctx, `update benchmark_request set status = 'in_progress' where id = $1`, id); err != nil {
			return err
		}
		return releaseJobsOf(ctx, tx, id)
	})
}

// FinishJobsOf records that a request's last job has ended, which frees its slot.
func (s *Store) FinishJobsOf(ctx context.Context, id bench.RequestID) error {
	err := affected(s.pool.Exec(ctx, `update benchmark_request set jobs_done_at = coalesce(jobs_done_at, now()) where id = $1`, id))
	return wrap("recording the end of the jobs of request "+string(id), err)
}

// CompleteRequest ends a request. The first completion counts: ErrConflict reports an
// earlier one with another outcome.
func (s *Store) CompleteRequest(ctx context.Context, id bench.RequestID, outcome bench.Outcome,
	baseline string, summary json.RawMessage, message string,
) error {
	return s.inTx(ctx, "completing request "+string(id), func(tx pgx.Tx) error {
		r, err := lockRequest(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case r.Status == bench.Completed && r.Outcome != outcome:
			return fmt.Errorf("%w: it has ended as %s", ErrConflict, r.Outcome)
		case r.Status == bench.Completed:
			return nil
		}
		if err := abandonComparison(ctx, tx, id, "the request ended before it was decided"); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			update benchmark_request set status = 'completed', outcome = @outcome, completed_at = now(),
				jobs_done_at = coalesce(jobs_done_at, now()), baseline = nullif(@baseline, ''),
				summary = nullif(@summary, '')::jsonb, message = @message
			where id = @id`,
			pgx.NamedArgs{
				"id": id, "outcome": string(outcome), "baseline": baseline, "summary": document(summary, ""), "message": cleanText(message),
			})
		return err
	})
}

// CancelRequest cancels a request, together with its jobs for which no other open request
// waits. It returns the cancelled jobs that were handed out, whose workflows the caller
// cancels; a repetition returns them again. A request that has ended otherwise does not
// change.
func (s *Store) CancelRequest(ctx context.Context, id bench.RequestID, who, why string) ([]bench.JobRef, error) {
	var cancelled []bench.JobRef
	err := s.inTx(ctx, "cancelling request "+string(id), func(tx pgx.Tx) error {
		r, err := lockRequest(ctx, tx, id)
		if err != nil {
			return err
		}
		if r.Status == bench.Completed && r.Outcome != bench.Cancelled {
			return nil
		}
		if r.Status != bench.Completed {
			if err := endOpen(ctx, tx, id, bench.Cancelled, endMessage(bench.Cancelled, who, why)); err != nil {
				return err
			}
		}
		cancelled, err = cancelledJobs(ctx, tx, id)
		return err
	})
	return cancelled, err
}

// cancelledJobs lists the cancelled jobs of a request that were handed out.
func cancelledJobs(ctx context.Context, tx pgx.Tx, id bench.RequestID) ([]bench.JobRef, error) {
	return all[bench.JobRef](ctx, tx, `
		select `+jobRefColumns+` from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and j.status = 'cancelled' and j.handed_out_at is not null
		order by j.id`, id)
}

// endMessage says who ended a request, and why.
func endMessage(outcome bench.Outcome, who, why string) string {
	text := string(outcome) + " by " + who
	if why != "" {
		text += ": " + why
	}
	return cleanText(text)
}

// endOpen ends a locked open request before its jobs have ended, and cancels those for
// which no other request waits.
func endOpen(ctx context.Context, tx pgx.Tx, id bench.RequestID, outcome bench.Outcome, message string) error {
	if _, err := tx.Exec(ctx, `
		update benchmark_request set status = 'completed', outcome = $2, completed_at = now(),
			jobs_done_at = coalesce(jobs_done_at, now()), message = $3
		where id = $1`, id, string(outcome), message); err != nil {
		return err
	}
	if err := abandonComparison(ctx, tx, id, "the request was "+message); err != nil {
		return err
	}
	// Locked first, by a separate statement: the next one then sees every waiter that was
	// linked before.
	jobs, err := column[int64](ctx, tx, `
		select j.id from job_queue j join request_job rj on rj.job_id = j.id
		where rj.request_id = $1 and j.status in ('queued', 'handed_out', 'in_progress')
		order by j.id for update of j`, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update job_queue j set status = 'cancelled', completed_at = now(), message = $2
		where j.id = any($1) and not exists (`+openWaiter+`)`, jobs, message); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update service_node set status = 'cancelled', ended_at = now(), message = $2 where request_id = $1 and status = 'waiting'`, id, message)
	return err
}

// stillWaits matches a request wr that waits for a job by the link w: until the request
// is completed, or also afterwards if the job is optional.
const stillWaits = `(wr.status <> 'completed' or (w.optional and wr.outcome in ('success', 'failure')))`

// openWaiter selects the requests that wait for job j.
const openWaiter = `
	select from request_job w join benchmark_request wr on wr.id = w.request_id
	where w.job_id = j.id and ` + stillWaits
