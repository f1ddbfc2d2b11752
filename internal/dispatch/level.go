package dispatch

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// Levels compares the levels of jobs in Temporal with the levels in force.
type Levels interface {
	// Relevel lists the jobs that wait in Temporal at an outdated level.
	Relevel(ctx context.Context) ([]store.Relevelled, error)
	// SetLevel records the level that an open job has in Temporal.
	SetLevel(ctx context.Context, key bench.JobKey, level int) error
}

// relevel updates the levels of jobs that wait in Temporal after a change of their
// queue or their account's limits. New weights apply only to jobs handed out from now
// on: in Temporal, a new weight would send a job behind all others.
func (d *Dispatcher) relevel(ctx context.Context) error {
	jobs, err := d.Record.Relevel(ctx)
	if err != nil {
		return err
	}
	return each(jobs, func(j store.Relevelled) error {
		done, err := d.Workflows.SetLevel(ctx, j.JobRef, j.Level)
		if err != nil || !done {
			return err
		}
		return d.Record.SetLevel(ctx, j.Key, j.Level)
	})
}
