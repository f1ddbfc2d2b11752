package dispatch

import (
	"context"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// Levels compares the levels of jobs in Temporal with those that are in force.
type Levels interface {
	// Relevel lists the jobs that wait in Temporal at another level than their own.
	Relevel(ctx context.Context) ([]store.Relevelled, error)
	// SetLevel records the level that an open job has in Temporal.
	SetLevel(ctx context.Context, key bench.JobKey, level int) error
}

// relevel gives what waits in Temporal the level that its queue and its account's
// limits demand now. New weights reach only what is handed out from now on: in
// Temporal, a new weight would send a job behind all others.
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
