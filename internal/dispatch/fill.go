package dispatch

import (
	"context"
	"errors"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// Backlog hands out waiting jobs. Each call uses its own transactions.
type Backlog interface {
	// HandOut hands out the next jobs of a task queue, under its lock. With
	// [store.ErrMore] it returns the jobs chosen so far; call it again to go on.
	HandOut(ctx context.Context, taskQueue string, opts store.HandOutOptions) ([]bench.HandOut, error)
	// HandedOutTo lists the jobs that were handed out to a request and have not begun.
	HandedOutTo(ctx context.Context, request bench.RequestID) ([]bench.HandOut, error)
	// WaitingTaskQueues lists the task queues with jobs that may be handed out.
	WaitingTaskQueues(ctx context.Context) ([]string, error)
	// ReleaseLimited releases jobs of an account that are held by its limit, after one
	// of its jobs has ended. It lists the task queues in which the account has jobs; none
	// for an account without a limit.
	ReleaseLimited(ctx context.Context, account string) ([]string, error)
	// ReleaseDependents releases the jobs that waited for the end of a job, and lists the
	// task queues in which they wait.
	ReleaseDependents(ctx context.Context, job bench.JobKey) ([]string, error)
	// ReleaseHeld releases held jobs that may go now and that no event has released.
	ReleaseHeld(ctx context.Context) error
}

// Fill hands out jobs and starts them until the task queue has enough waiting in
// Temporal. A job that cannot be started does not stop the others; the errors are
// joined. With [Dispatcher.Fills], another call may make the fill, if the fill begins after this call.
func (d *Dispatcher) Fill(ctx context.Context, taskQueue string) error {
	return d.share(ctx, taskQueue, filling{opts: enough})
}

// share makes a fill, or waits for one of another call.
func (d *Dispatcher) share(ctx context.Context, taskQueue string, f filling) error {
	fill := func(ctx context.Context) error { return d.fillAll(ctx, taskQueue, f) }
	if d.Fills == nil {
		return fill(ctx)
	}
	return d.Fills.one(ctx, taskQueue, fill)
}

// FillFor is Fill on behalf of a request that starts its own children afterwards; see
// [Dispatcher.HandedOutTo].
func (d *Dispatcher) FillFor(ctx context.Context, taskQueue string, asks bench.RequestID) error {
	return d.fillAll(ctx, taskQueue, filling{opts: enough, asks: asks})
}

// enough bounds how many jobs wait in Temporal after a hand-out.
var enough = store.HandOutOptions{Depth: fairshare.Depth, Strict: fairshare.StrictDepth}

// fillAll fills a task queue, and those to which the selection of size classes moves jobs of it.
func (d *Dispatcher) fillAll(ctx context.Context, taskQueue string, f filling) error {
	view, err := d.view(ctx)
	if err != nil {
		return err
	}
	taskQueues := []string{taskQueue}
	// If there is a choice, only jobs with a selected size class are handed out. The
	// selection moves some of them to other task queues.
	f.view, f.opts.Sized = view, view.Several()
	if f.opts.Sized {
		live := view.Live(taskQueue)
		elsewhere, err := view.Select(ctx, taskQueue, f.opts.Depth(live), f.opts.Strict(live))
		if err != nil {
			return err
		}
		taskQueues = append(taskQueues, elsewhere...)
	}
	var errs []error
	for _, q := range taskQueues {
		errs = append(errs, d.fill(ctx, f, q))
	}
	return errors.Join(errs...)
}

// filling is one fill.
type filling struct {
	view sizing.View
	opts store.HandOutOptions
	asks bench.RequestID // request that starts its own children; empty: none
}

// fill hands out jobs and starts them in parts, so that the first do not wait for the
// rest of a long hand-out.
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

// AfterEnd fills the task queues that profit from a job's end: first the one whose
// collector became free, unless enough waits for it in Temporal, then those with jobs that the
// account's limit held or that waited for its end.
func (d *Dispatcher) AfterEnd(ctx context.Context, job bench.JobKey, end bench.JobEnd) error {
	var taskQueues []string
	var errs []error
	if !end.Unlimited {
		released, err := d.Record.ReleaseLimited(ctx, end.Submitter)
		taskQueues, errs = append(taskQueues, released...), append(errs, err)
	}
	if end.Needed {
		of, err := d.Record.ReleaseDependents(ctx, job)
		taskQueues, errs = append(taskQueues, of...), append(errs, err)
	}
	slices.Sort(taskQueues)
	// Waiting jobs may belong to another size class, and are not looked at before they are next.
	if filled := end.Filled && end.OneClass && len(taskQueues) == 0; !filled {
		f := filling{opts: enough}
		if end.Brief {
			f.opts.Spare = fairshare.Spare
		}
		errs = append(errs, d.share(ctx, end.TaskQueue, f))
	}
	for _, q := range slices.Compact(taskQueues) {
		if q != end.TaskQueue {
			errs = append(errs, d.Fill(ctx, q))
		}
	}
	return errors.Join(errs...)
}

// Sweep fills every task queue that has waiting jobs, to catch missed events and new
// collectors. It also updates the levels of jobs that wait in Temporal.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	errs := []error{d.relevel(ctx), d.Record.ReleaseHeld(ctx)}
	taskQueues, err := d.Record.WaitingTaskQueues(ctx)
	errs = append(errs, err)
	for _, q := range taskQueues {
		errs = append(errs, d.Fill(ctx, q))
	}
	return errors.Join(errs...)
}
