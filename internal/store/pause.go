package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pause describes the pause of a project's admission: nothing is admitted or handed out,
// and jobs handed out before go on.
type Pause struct {
	Project string
	By      string
	At      time.Time
	Reason  string
}

// String returns the pause as a sentence.
func (p Pause) String() string { return "the queue is " + p.since() }

func (p Pause) since() string {
	return fmt.Sprintf("paused by %s since %s: %s", p.By, p.At.UTC().Format("2006-01-02 15:04:05 MST"), p.Reason)
}

// unpaused matches a job j of a project whose admission is not paused.
const unpaused = `not exists (select from queue_pause qp where qp.project = j.project)`

const pauseColumns = `project, paused_by as by, paused_at as at, reason`

// queuePaused reports whether a project's admission is paused.
func queuePaused(ctx context.Context, q querier, project string) (bool, error) {
	return value[bool](ctx, q, `select exists (select from queue_pause where project = $1)`, project)
}

// QueuePause reads the pause of a project's admission; nil if it is not paused.
func (s *Store) QueuePause(ctx context.Context, project string) (*Pause, error) {
	p, err := one[Pause](ctx, s.pool, `select `+pauseColumns+` from queue_pause where project = $1`, project)
	if errors.Is(err, ErrNotFound) {
		return nil, nil //nolint:nilnil // no pause is an answer
	} else if err != nil {
		return nil, wrap("reading the pause of queue "+project, err)
	}
	return &p, nil
}

// PauseQueue stops a project from admitting requests and handing out jobs. Pausing again
// changes nothing and is no error. ErrNotFound reports an unknown project.
func (s *Store) PauseQueue(ctx context.Context, project string, act Act) (Operation, error) {
	return s.audited(ctx, Operation{Action: "queue pause", Project: project, Subject: project}, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		// Under the lock of admission: after the answer nothing is admitted.
		if err := lock(ctx, tx, "admission "+project); err != nil {
			return OperationResult{}, err
		}
		tag, err := tx.Exec(ctx, `
			insert into queue_pause (project, paused_by, reason) values ($1, $2, $3) on conflict (project) do nothing`,
			project, act.Who, cleanText(act.Reason))
		if err != nil {
			return OperationResult{}, unknownReference(err)
		}
		p, err := one[Pause](ctx, tx, `select `+pauseColumns+` from queue_pause where project = $1`, project)
		return OperationResult{Changed: tag.RowsAffected() > 0, Message: p.String()}, err
	})
}

// ResumeQueue ends a pause. Resuming a project that is not paused changes nothing and is
// no error. ErrNotFound reports an unknown project.
func (s *Store) ResumeQueue(ctx context.Context, project string, act Act) (Operation, error) {
	return s.audited(ctx, Operation{Action: "queue resume", Project: project, Subject: project}, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		if err := affected(tx.Exec(ctx, `select from project where name = $1`, project)); err != nil {
			return OperationResult{}, err
		}
		p, err := one[Pause](ctx, tx, `delete from queue_pause where project = $1 returning `+pauseColumns, project)
		if errors.Is(err, ErrNotFound) {
			return OperationResult{Message: "the queue was not paused"}, nil
		} else if err != nil {
			return OperationResult{}, err
		}
		if err := releaseHeld(ctx, tx, `j.held = 'pause' and j.project = $1`, project); err != nil {
			return OperationResult{}, err
		}
		return OperationResult{Changed: true, Message: "it was " + p.since()}, nil
	})
}
