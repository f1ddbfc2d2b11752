package dispatch

import (
	"context"
	"fmt"

	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/store"
)

// Failover moves jobs that wait at a pool which has had no live collector for too
// long: the rows first, then what waits in Temporal. What has begun stays where it is,
// and what has moved does not return when its pool does. The error wraps
// [bench.ErrInvalid] when a project's configuration cannot be read.
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

// moveStranded moves the rows of those jobs whose time has come, at most [maxMoves].
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
			return fmt.Errorf("moving what waits in task queue %s: %w", j.TaskQueue, err)
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
