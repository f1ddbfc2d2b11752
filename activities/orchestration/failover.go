package orchestration

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// failOver moves jobs that wait at a pool which has had no live collector for too
// long: the rows first, then those that stand in Temporal. What has begun stays
// where it is, and so does what has moved when its pool comes back.
func (a *Activities) failOver(ctx context.Context) error {
	jobs, err := a.Store.StrandedJobs(ctx)
	if err != nil {
		return err
	}
	if len(jobs) > 0 {
		if err := a.moveRows(ctx, jobs); err != nil {
			return err
		}
	}
	return a.followMoves(ctx)
}

// followMoves lets what stands in Temporal go where the rows have it. It asks the
// record, not what was moved just now: an earlier pass may have failed in between,
// or a job's workflow was only about to start.
func (a *Activities) followMoves(ctx context.Context) error {
	moved, err := a.Store.MovedWaiting(ctx, reconcileBatch)
	if err != nil {
		return err
	}
	for _, j := range moved {
		to := protocol.Moved{TaskQueue: j.TaskQueue, SizeClass: j.SizeClass}
		if err := a.Workflows.MoveJob(ctx, j.Project, j.Key, to); err != nil {
			return err
		}
	}
	return nil
}

// parentLacks tells whether a request's parent has something to measure where the
// request's own jobs ran: they may have moved, or have found their parent's pool
// without a collector.
func (a *Activities) parentLacks(ctx context.Context, r store.Request) (bool, error) {
	if !r.Type.HasParent() || r.Parent == "" {
		return false, nil
	}
	e, err := a.expansion(ctx, r, bench.StageParent)
	var broken *temporal.ApplicationError
	if errors.As(err, &broken) && broken.NonRetryable() {
		a.Log.WarnContext(ctx, "the parent is not measured where its child was", "project", r.Project, "request", r.ID, "error", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	wanted, err := a.parentJobs(ctx, e)
	return len(wanted.Jobs)+len(wanted.Shared) > 0, err
}

func (a *Activities) moveRows(ctx context.Context, jobs []store.WaitingJob) error {
	fleet, err := a.Store.Fleet(ctx, a.OfflineAfter)
	if err != nil {
		return err
	}
	configs := make(map[string]bench.ProjectConfig)
	moves := 0
	for _, j := range jobs {
		config, known := configs[j.Project]
		if !known {
			if _, config, err = a.config(ctx, j.Project); err != nil {
				return err
			}
			configs[j.Project] = config
		}
		plan := placement.PlanFailover(fleet, placement.Waiting{
			At: j.At(), Pinned: j.Pinned || config.Size.Pin() != 0, After: config.Failover(), Wish: j.Wish(),
		})
		if !plan.Due() {
			continue
		}
		moved, err := a.Store.MoveJob(ctx, j.Key, j.TaskQueue, *plan.To)
		if err != nil {
			return fmt.Errorf("moving what waits in task queue %s: %w", j.TaskQueue, err)
		}
		if !moved {
			continue
		}
		a.Log.InfoContext(ctx, "moved a waiting job: its pool has had no live collector for too long",
			"project", j.Project, "job", j.Key, "from", j.TaskQueue, "to", plan.To.TaskQueue(), "away", plan.Away)
		if moves++; moves == reconcileBatch {
			return nil
		}
	}
	return nil
}

// FollowFleet places jobs with constraints anew between two reconciliations: who
// waits for caches is not to wait half a minute longer than was said, nor a new
// collector for the jobs that it can run.
func (a *Activities) FollowFleet(ctx context.Context) error {
	moved, err := a.placeAnew(ctx)
	if moved {
		err = errors.Join(err, a.followMoves(ctx))
	}
	return err
}

// placeAnew places waiting jobs with constraints again where other collectors meet
// them now than when they were placed: some were registered, have changed or were
// removed, or a job has waited for caches for long enough. Those that stand in
// Temporal are moved by [Activities.followMoves]; it tells whether there may be any.
func (a *Activities) placeAnew(ctx context.Context) (moved bool, err error) {
	groups, err := a.Store.ConstrainedWaiting(ctx)
	if err != nil || len(groups) == 0 {
		return false, err
	}
	fleet, err := a.Store.Fleet(ctx, a.OfflineAfter)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, g := range groups {
		place, err := placement.Choose(fleet, g.Wish())
		if err != nil || place.TaskQueue() == g.TaskQueue && !g.Over {
			continue // nobody meets them any more: they stay until somebody does, or fail over
		}
		n, err := a.Store.Replace(ctx, g, place.Place)
		errs = append(errs, err)
		if n > 0 && place.TaskQueue() != g.TaskQueue {
			moved = true
			a.Log.InfoContext(ctx, "placed waiting jobs anew: other collectors meet their constraints now",
				"from", g.TaskQueue, "to", place.TaskQueue(), "jobs", n, "waited_for_caches", g.Over)
		}
	}
	return moved, errors.Join(errs...)
}
