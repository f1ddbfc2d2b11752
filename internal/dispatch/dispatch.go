// Package dispatch keeps task queues filled: it hands waiting jobs out and starts
// their workflows, and with its first job the workflow of a request that needed none
// before.
//
// It runs wherever something has changed that a waiting job may go for: at a
// submission, at a job's end, at a change of the queues; and every few seconds, for
// what was missed. Doing it twice, or in several processes at once, does no harm:
// each task queue is filled under a lock. It must not decide which job goes next:
// the record does.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// Record is what is known of jobs that wait.
type Record interface {
	HandOut(ctx context.Context, taskQueue string, how store.Filling) ([]bench.HandOut, error)
	WaitingTaskQueues(ctx context.Context) ([]string, error)
	Room(ctx context.Context, account string) ([]string, error)
	TakeBack(ctx context.Context) error
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	Project(ctx context.Context, name string) (store.Project, error)
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
	Relevel(ctx context.Context) ([]store.Relevelled, error)
	SetLevel(ctx context.Context, key bench.JobKey, level int) error
}

// Workflows reaches workflows in Temporal.
type Workflows interface {
	Starts
	// SetLevel gives a job that waits in Temporal another level. done is false when
	// its workflow has not got that far: it is to be tried again.
	SetLevel(ctx context.Context, project string, key bench.JobKey, level int) (done bool, err error)
}

// A Dispatcher hands jobs out. It keeps no state of its own: any number of them, in
// any number of processes, may work on one record.
type Dispatcher struct {
	Record    Record
	Workflows Workflows
	// Sizes selects the size classes of jobs that are next; nil: they run where they
	// wait.
	Sizes *sizing.Sizes
}

// inTemporal is how many jobs of one queue wait in Temporal for a task queue with
// this many live collectors. Those that run do not count: by fair shares one queue
// may get several turns in a row, and must not be out of jobs at any of them; with
// fewer than four, shares of short jobs are not exact. The rest waits as rows, where
// weights, levels and cancellations still reach it.
func inTemporal(liveCollectors int) int { return 2*liveCollectors + 2 }

// strictInTemporal is the same for a strict queue, which gets every turn while it has
// work: more of it must be there, for nothing of a later level is to start in between.
func strictInTemporal(liveCollectors int) int { return 4 * inTemporal(liveCollectors) }

// Fill hands out what a task queue has room for, and starts it.
func (d *Dispatcher) Fill(ctx context.Context, taskQueue string) error {
	view, err := d.view(ctx)
	if err != nil {
		return err
	}
	queues := []string{taskQueue}
	// Where there is anything to select, only those jobs are handed out that have a
	// size class. Some of them wait in other task queues afterwards.
	sized := view.Several()
	if sized {
		live := view.Live(taskQueue)
		elsewhere, err := view.Select(ctx, taskQueue, inTemporal(live), strictInTemporal(live))
		if err != nil {
			return err
		}
		queues = append(queues, elsewhere...)
	}
	var errs []error
	for _, q := range queues {
		errs = append(errs, d.fill(ctx, view, store.Filling{Depth: inTemporal, Strict: strictInTemporal, Sized: sized}, q))
	}
	return errors.Join(errs...)
}

// view is what is known of sizes now; nothing where they are not selected.
func (d *Dispatcher) view(ctx context.Context) (sizing.View, error) {
	if d.Sizes == nil {
		return sizing.View{}, nil
	}
	return d.Sizes.View(ctx)
}

// fill hands out and starts: what was handed out does not wait for what is still to
// be looked at.
func (d *Dispatcher) fill(ctx context.Context, view sizing.View, how store.Filling, taskQueue string) error {
	var errs []error
	for more := true; more; {
		handed, err := d.Record.HandOut(ctx, taskQueue, how)
		if more = errors.Is(err, store.ErrMore); err != nil && !more {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, d.startAll(ctx, view, handed))
	}
	return errors.Join(errs...)
}

// startAll starts what was handed out. Of one queue the jobs start in their order; the
// queues start beside each other, for Temporal decides between them.
func (d *Dispatcher) startAll(ctx context.Context, view sizing.View, handed []bench.HandOut) error {
	byQueue := make(map[string][]bench.HandOut)
	var queues []string
	for _, h := range handed {
		if byQueue[h.Queue] == nil {
			queues = append(queues, h.Queue)
		}
		byQueue[h.Queue] = append(byQueue[h.Queue], h)
	}
	return each(queues, func(queue string) error {
		return wrap("starting what was handed out of queue "+queue, d.start(ctx, view, byQueue[queue]))
	})
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// AfterEnd hands out what a job's end makes room for: first where a collector waits
// for the next one, then wherever its account was at its limit.
func (d *Dispatcher) AfterEnd(ctx context.Context, end bench.JobEnd) error {
	queues, err := d.Record.Room(ctx, end.Submitter)
	if err != nil {
		return errors.Join(d.Fill(ctx, end.TaskQueue), err)
	}
	errs := []error{d.Fill(ctx, end.TaskQueue)}
	for _, q := range queues {
		if q != end.TaskQueue {
			errs = append(errs, d.Fill(ctx, q))
		}
	}
	return errors.Join(errs...)
}

// Sweep fills every task queue with waiting jobs: what events have missed, and what a
// new collector has room for. What waits in Temporal gets the level that it has now.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	errs := []error{d.relevel(ctx), d.Record.TakeBack(ctx)}
	queues, err := d.Record.WaitingTaskQueues(ctx)
	errs = append(errs, err)
	for _, q := range queues {
		errs = append(errs, d.Fill(ctx, q))
	}
	return errors.Join(errs...)
}

// relevel gives what waits in Temporal the level that its queue and its account's
// limits say now. A new weight is no such thing: it would send what waits there
// behind everybody, so it reaches what is handed out from now on.
func (d *Dispatcher) relevel(ctx context.Context) error {
	jobs, err := d.Record.Relevel(ctx)
	if err != nil {
		return err
	}
	return each(jobs, func(j store.Relevelled) error {
		done, err := d.Workflows.SetLevel(ctx, j.Project, j.Job, j.Level)
		if err != nil || !done {
			return err
		}
		return d.Record.SetLevel(ctx, j.Job, j.Level)
	})
}

// atOnce bounds how much is started at a time.
const atOnce = 8

// each does something for all, a few at a time. One that fails keeps no other from
// being done.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var workers sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, v := range all {
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(v)
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}
