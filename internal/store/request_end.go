package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// ErrEnded reports that the request has ended with another outcome.
var ErrEnded = errors.New("the request has ended")

// EndOptions says how EndRequest ends a request.
type EndOptions struct {
	// Outcome is [bench.Cancelled], or [bench.Expired] for a request that has waited too
	// long.
	Outcome bench.Outcome
	// Force allows a request in progress to expire.
	Force bool
}

// EndRequest ends an open request, together with its jobs for which no other open request
// waits. It returns the cancelled jobs that were handed out, whose workflows the caller
// cancels; a repetition returns them again.
//
// A request that has ended with the same outcome does not change, which is no error; with
// another outcome the error is ErrEnded. ErrConflict reports that a request in progress
// may expire only with Force.
func (s *Store) EndRequest(ctx context.Context, id bench.RequestID, options EndOptions, act Act) (Operation, []bench.JobRef, error) {
	what, err := s.onRequest(ctx, map[bench.Outcome]string{bench.Cancelled: "request cancel", bench.Expired: "request expire"}[options.Outcome], id)
	if err != nil {
		return Operation{}, nil, err
	}
	if options.Force {
		what.Detail = detail(map[string]bool{"force": true})
	}
	done, err := s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		return endRequest(ctx, tx, id, options, act)
	})
	if err != nil {
		return Operation{}, nil, err
	}
	var jobs []bench.JobRef
	err = s.inTx(ctx, "listing the cancelled jobs of request "+string(id), func(tx pgx.Tx) error {
		jobs, err = cancelledJobs(ctx, tx, id)
		return err
	})
	return done, jobs, err
}

// onRequest returns an operation on a request.
func (s *Store) onRequest(ctx context.Context, action string, id bench.RequestID) (Operation, error) {
	r, err := s.Request(ctx, id)
	return Operation{Action: action, Project: r.Project, Subject: string(id)}, err
}

func endRequest(ctx context.Context, tx pgx.Tx, id bench.RequestID, options EndOptions, act Act) (OperationResult, error) {
	r, err := lockRequest(ctx, tx, id)
	about := OperationResult{Requests: []bench.RequestID{id}}
	switch {
	case err != nil:
		return about, err
	case r.Status == bench.Completed && r.Outcome == options.Outcome:
		about.Message = "it had ended before: " + r.Message
		return about, nil
	case r.Status == bench.Completed:
		return about, fmt.Errorf("%w as %s: %s", ErrEnded, r.Outcome, r.Message)
	case options.Outcome == bench.Expired && r.Status == bench.InProgress && !options.Force:
		return about, fmt.Errorf("%w: it is in progress, so it waits no longer; use --force to end it all the same, or cancel it", ErrConflict)
	}
	if err := endOpen(ctx, tx, id, options.Outcome, endMessage(options.Outcome, act.Who, act.Reason)); err != nil {
		return about, err
	}
	about.Changed, about.Message = true, "it was "+strings.ReplaceAll(string(r.Status), "_", " ")
	about.Jobs, err = value[int](ctx, tx, `
		select count(*) from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and j.status = 'cancelled' and j.completed_at = now()`, id)
	return about, err
}
