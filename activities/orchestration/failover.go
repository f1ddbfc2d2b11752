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
	// Asked of the record, not of what was moved above: an earlier pass may have
	// failed in between, or the job's workflow was only about to start.
	moved, err := a.Store.MovedWaiting(ctx, reconcileBatch)
	if err != nil {
		return err
	}
	for _, j := range moved {
		to := protocol.Moved{TaskQueue: j.At().TaskQueue(), SizeClass: j.SizeClass}
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
	e, err := a.expansion(ctx, r)
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
	counts, err := a.Store.LivePools(ctx, a.OfflineAfter)
	if err != nil {
		return err
	}
	pools := placementPools(counts)
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
		plan := placement.PlanFailover(pools, placement.Waiting{Pool: j.At(), Pinned: j.Pinned || config.Size.Class != 0, After: config.Failover()})
		if !plan.Due() {
			continue
		}
		moved, err := a.Store.MoveJob(ctx, j.Key, j.At(), *plan.To)
		if err != nil {
			return fmt.Errorf("moving what waits at pool %s: %w", j.At().TaskQueue(), err)
		}
		if !moved {
			continue
		}
		a.Log.InfoContext(ctx, "moved a waiting job: its pool has had no live collector for too long",
			"project", j.Project, "job", j.Key, "from", j.At().TaskQueue(), "to", plan.To.TaskQueue(), "away", plan.Away)
		if moves++; moves == reconcileBatch {
			return nil
		}
	}
	return nil
}
