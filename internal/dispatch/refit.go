package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Moves reads where waiting jobs and collectors are, and moves jobs.
type Moves interface {
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
	// WaitingGroups groups the waiting jobs that may belong elsewhere.
	WaitingGroups(ctx context.Context) ([]store.JobGroup, error)
	// Replace moves a group to another task queue of its size class. It returns how
	// many have moved: those that have begun or moved meanwhile stay.
	Replace(ctx context.Context, g store.JobGroup, to bench.Place) (int, error)
	// StrandedJobs lists waiting jobs whose task queue has no live collector; with
	// keys only those among them.
	StrandedJobs(ctx context.Context, keys ...bench.JobKey) ([]store.WaitingJob, error)
	// MoveJob moves a job; moved is false when it has begun or moved meanwhile.
	MoveJob(ctx context.Context, key bench.JobKey, from string, to bench.Place) (moved bool, err error)
	// MovedWaiting lists at most limit jobs that have moved and wait in Temporal.
	MovedWaiting(ctx context.Context, limit int) ([]store.WaitingJob, error)
}

// maxMoves bounds how many jobs one pass moves one by one: what is left is for the
// next pass.
const maxMoves = 2000

// Refit moves the rows of waiting jobs with constraints, and of commands, whose
// collectors are no longer those for which they were placed: some were registered,
// have changed or were removed, or a job has waited for caches for long enough. It
// returns the task queues to which jobs have moved, sorted. What waits in Temporal
// follows by [Dispatcher.FollowMoves].
func (d *Dispatcher) Refit(ctx context.Context) (taskQueues []string, err error) {
	groups, err := d.Record.WaitingGroups(ctx)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	fleet, err := d.Record.Fleet(ctx, d.OfflineAfter)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, g := range groups {
		to := placement.Anew(fleet, g.Requirements(), g.TaskQueue, g.Set)
		if to == nil {
			continue
		}
		forgotten := len(to.Set) > 0 && len(g.Set) == 0 // then nobody takes jobs from there
		if to.TaskQueue() == g.TaskQueue && !g.Over && !forgotten {
			continue
		}
		n, err := d.Record.Replace(ctx, g, *to)
		errs = append(errs, err)
		if n > 0 && to.TaskQueue() != g.TaskQueue {
			taskQueues = append(taskQueues, to.TaskQueue())
			d.Log.InfoContext(ctx, "moved waiting jobs: other collectors can run them now",
				"from", g.TaskQueue, "to", to.TaskQueue(), "jobs", n, "waited_for_caches", g.Over, "nobody_meets_them", to.Nobody())
		}
	}
	slices.Sort(taskQueues)
	return slices.Compact(taskQueues), errors.Join(errs...)
}

// RefitFor is [Dispatcher.Refit] for a collector that was registered: it does nothing
// when the constraints of jobs see the same in it as before. before is nil for one that
// was not registered then.
func (d *Dispatcher) RefitFor(ctx context.Context, before *bench.Collector, now bench.Collector) (taskQueues []string, err error) {
	if before != nil && placement.Alike(placement.Of(*before), placement.Of(now)) {
		return nil, nil
	}
	return d.Refit(ctx)
}

// FollowMoves moves what waits in Temporal to the task queues of the rows. It asks the
// record, not what was moved just now: an earlier pass may have failed in between,
// or a job's workflow was only about to start.
func (d *Dispatcher) FollowMoves(ctx context.Context) error {
	moved, err := d.Record.MovedWaiting(ctx, maxMoves)
	if err != nil {
		return err
	}
	for _, j := range moved {
		to := protocol.Moved{TaskQueue: j.TaskQueue, SizeClass: j.SizeClass}
		if err := d.Workflows.MoveJob(ctx, j.JobRef, to); err != nil {
			return err
		}
	}
	return nil
}

// FollowFleet is [Dispatcher.Refit] with [Dispatcher.FollowMoves] where anything has
// moved. It runs between two reconciliations: neither a job that waits for caches nor
// a new collector is to wait for the next one.
func (d *Dispatcher) FollowFleet(ctx context.Context) error {
	moved, err := d.Refit(ctx)
	if len(moved) > 0 {
		err = errors.Join(err, d.FollowMoves(ctx))
	}
	return err
}
