package dispatch

import (
	"context"
	"errors"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// Backlog hands out waiting jobs, each call in transactions of its own.
type Backlog interface {
	// HandOut hands out the next jobs of a task queue, under its lock. With
	// [store.ErrMore] come those that were chosen so far; called again, it goes on.
	HandOut(ctx context.Context, taskQueue string, opts store.HandOutOptions) ([]bench.HandOut, error)
	// HandedOutTo lists the jobs that were handed out to a request and have not begun.
	HandedOutTo(ctx context.Context, request bench.RequestID) ([]bench.HandOut, error)
	// WaitingTaskQueues lists the task queues with jobs that may be handed out.
	WaitingTaskQueues(ctx context.Context) ([]string, error)
	// ReleaseLimited releases jobs of an account that its limit holds, after one of its
	// jobs has ended, and lists the task queues in which it has jobs; none for an
	// account without a limit.
	ReleaseLimited(ctx context.Context, account string) ([]string, error)
	// ReleaseHeld releases held jobs that may go by now and that no event has released.
	ReleaseHeld(ctx context.Context) error
}

// Fill hands out the next jobs of a task queue, as many as are to wait in Temporal,
// and starts them. A job that cannot be started keeps no other from it; the errors are
// joined.
func (d *Dispatcher) Fill(ctx context.Context, taskQueue string) error {
	return d.FillFor(ctx, taskQueue, "")
}

// FillFor is Fill by a request that starts its own children afterwards; see
// [Dispatcher.HandedOutTo].
func (d *Dispatcher) FillFor(ctx context.Context, taskQueue string, asks bench.RequestID) error {
	view, err := d.view(ctx)
	if err != nil {
		return err
	}
	taskQueues := []string{taskQueue}
	// Where there is anything to select, only those jobs are handed out that have a
	// size class. Some of them wait in other task queues afterwards.
	sized := view.Several()
	if sized {
		live := view.Live(taskQueue)
		elsewhere, err := view.Select(ctx, taskQueue, fairshare.Depth(live), fairshare.StrictDepth(live))
		if err != nil {
			return err
		}
		taskQueues = append(taskQueues, elsewhere...)
	}
	var errs []error
	for _, q := range taskQueues {
		f := filling{view: view, opts: store.HandOutOptions{Depth: fairshare.Depth, Strict: fairshare.StrictDepth, Sized: sized}, asks: asks}
		errs = append(errs, d.fill(ctx, f, q))
	}
	return errors.Join(errs...)
}

// filling is one call of [Dispatcher.FillFor].
type filling struct {
	view sizing.View
	opts store.HandOutOptions
	asks bench.RequestID // starts its own children; empty: nobody does
}

// fill hands out and starts: what was handed out does not wait for what is still to
// be looked at.
func (d *Dispatcher) fill(ctx context.Context, f filling, taskQueue string) error {
	var errs []error
	for more := true; more; {
		handed, err := d.Record.HandOut(ctx, taskQueue, f.opts)
		if more = errors.Is(err, store.ErrMore); err != nil && !more {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, d.startAll(ctx, f, handed))
	}
	return errors.Join(errs...)
}

// AfterEnd fills the task queues for whose jobs a job's end has freed a collector or
// part of a limit: first the one where a collector waits for the next job, then those
// in which the account has jobs that its limit held.
func (d *Dispatcher) AfterEnd(ctx context.Context, end bench.JobEnd) error {
	taskQueues, err := d.Record.ReleaseLimited(ctx, end.Submitter)
	if err != nil {
		return errors.Join(d.Fill(ctx, end.TaskQueue), err)
	}
	errs := []error{d.Fill(ctx, end.TaskQueue)}
	for _, q := range taskQueues {
		if q != end.TaskQueue {
			errs = append(errs, d.Fill(ctx, q))
		}
	}
	return errors.Join(errs...)
}

// Sweep fills every task queue with waiting jobs: for what events have missed, and for
// new collectors. What waits in Temporal gets its present level.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	errs := []error{d.relevel(ctx), d.Record.ReleaseHeld(ctx)}
	taskQueues, err := d.Record.WaitingTaskQueues(ctx)
	errs = append(errs, err)
	for _, q := range taskQueues {
		errs = append(errs, d.Fill(ctx, q))
	}
	return errors.Join(errs...)
}
