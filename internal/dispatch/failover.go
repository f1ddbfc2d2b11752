package dispatch

import (
	"context"
	"fmt"

	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/store"
)

// Failover moves waiting jobs away from pools that have had no live collector for too
// long: their rows first, then the jobs that wait in Temporal. Jobs that have begun stay,
// and moved jobs do not return when their pool does. The error wraps [bench.ErrInvalid]
// if a project's configuration cannot be read.
func (d *Dispatcher) Failover(ctx context.Context) error {
	stranded, err := d.Record.StrandedJobs(ctx)
	if err != nil {
		return err
	}
	if len(stranded) > 0 {
		if err := d.moveStranded(ctx, stranded); err != nil {
			return err
		}
	}
	return d.FollowMoves(ctx)
}

// moveStranded moves the rows of the jobs that are due, at most [maxMoves].
func (d *Dispatcher) moveStranded(ctx context.Context, jobs []store.WaitingJob) error {
	fleet, err := d.Record.Fleet(ctx, d.OfflineAfter)
	if err != nil {
		return err
	}
	configs := newConfigs(d.Record)
	moves := 0
	for _, j := range jobs {
		config, err := configs.of(ctx, j.Project)
		if err != nil {
			return err
		}
		plan := placement.PlanFailover(fleet, placement.Waiting{
			At: j.At(), Pinned: j.Pinned || config.Size.Pin() != 0, After: config.Failover(), Requirements: j.Requirements(),
		})
		if !plan.Due() {
			continue
		}
		moved, err := d.Record.MoveJob(ctx, j.Key, j.TaskQueue, *plan.To)
		if err != nil {
			return fmt.Errorf("moving a waiting job from task queue %s: %w", j.TaskQueue, err)
		}
		if !moved {
			continue
		}
		d.Log.InfoContext(ctx, "moved a waiting job: its pool has had no live collector for too long",
			"project", j.Project, "job", j.Key, "from", j.TaskQueue, "to", plan.To.TaskQueue(), "away", plan.Away)
		if moves++; moves == maxMoves {
			return nil
		}
	}
	return nil
}
