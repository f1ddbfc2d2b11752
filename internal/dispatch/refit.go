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

// Moves reads the waiting jobs and the fleet, and moves jobs.
type Moves interface {
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
	// WaitingGroups groups the waiting jobs that may belong elsewhere.
	WaitingGroups(ctx context.Context) ([]store.JobGroup, error)
	// Replace moves a group to another task queue of its size class and returns the
	// number of moved jobs. Jobs that have begun or moved meanwhile stay.
	Replace(ctx context.Context, g store.JobGroup, to bench.Place) (int, error)
	// StrandedJobs lists waiting jobs whose task queue has no live collector; if keys
	// are given, only those.
	StrandedJobs(ctx context.Context, keys ...bench.JobKey) ([]store.WaitingJob, error)
	// MoveJob moves a job; moved is false if it has begun or moved meanwhile.
	MoveJob(ctx context.Context, key bench.JobKey, from string, to bench.Place) (moved bool, err error)
	// MovedWaiting lists at most limit jobs that have moved and wait in Temporal.
	MovedWaiting(ctx context.Context, limit int) ([]store.WaitingJob, error)
}

// maxMoves bounds the number of jobs that one pass moves one by one; the next pass
// moves the rest.
const maxMoves = 2000

// Refit places waiting commands and jobs with constraints again after collectors were
// registered, changed or removed, or after a job's wait for caches has ended. It moves
// rows only; [Dispatcher.FollowMoves] moves the jobs that wait in Temporal. It returns
// the task queues to which jobs have moved, sorted.
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
		forgotten := len(to.Set) > 0 && len(g.Set) == 0 // then no collector polls its task queue
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

// RefitFor is [Dispatcher.Refit] after the registration of a collector. It does nothing
// if no constraint can tell the collector from its earlier registration, before, which
// is nil for a new collector.
func (d *Dispatcher) RefitFor(ctx context.Context, before *bench.Collector, now bench.Collector) (taskQueues []string, err error) {
	if before != nil && placement.Alike(placement.Of(*before), placement.Of(now)) {
		return nil, nil
	}
	return d.Refit(ctx)
}

// FollowMoves moves jobs that wait in Temporal to the task queues of their rows. It
// reads all moved jobs from the record, not just the latest: an earlier pass may have
// failed halfway, or a job's workflow was only about to start.
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

// FollowFleet is [Dispatcher.Refit] followed, if anything has moved, by
// [Dispatcher.FollowMoves]. It runs between two reconciliations so that jobs waiting for
// caches and new collectors do not have to wait for the next one.
func (d *Dispatcher) FollowFleet(ctx context.Context) error {
	moved, err := d.Refit(ctx)
	if len(moved) > 0 {
		err = errors.Join(err, d.FollowMoves(ctx))
	}
	return err
}
