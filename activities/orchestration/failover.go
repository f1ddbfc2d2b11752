package orchestration

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/refit"
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
	return a.refit().FollowMoves(ctx)
}

// refit is how waiting jobs follow the fleet.
func (a *Activities) refit() refit.Refit {
	return refit.Refit{Record: a.Store, Workflows: a.Workflows, OfflineAfter: a.OfflineAfter, Log: a.Log}
}

// parentLacks tells whether a request's parent has something to measure where the
// request's own jobs ran: they may have moved, or have found their parent's pool
// without a collector.
func (a *Activities) parentLacks(ctx context.Context, r bench.Request) (bool, error) {
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
			At: j.At(), Pinned: j.Pinned || config.Size.Pin() != 0, After: config.Failover(), Requirements: j.Requirements(),
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
	moved, err := a.refit().PlaceAnew(ctx)
	if len(moved) > 0 {
		err = errors.Join(err, a.refit().FollowMoves(ctx))
	}
	return err
}
