package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// WatchProject creates or updates the Schedule that looks at a project's commits, with
// this pause. A new or changed Schedule looks immediately; one that an operator has paused
// stays paused.
func (s *Starter) WatchProject(ctx context.Context, project string, every time.Duration) error {
	id := bench.WatchWorkflowID(project)
	_, err := s.client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:   id,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}},
		// A look that takes longer than the pause skips the next one.
		Overlap:               enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow:         time.Minute,
		TriggerImmediately:    true,
		Note:                  "looks at the commits of project " + project,
		TypedSearchAttributes: temporal.NewSearchAttributes(protocol.AttrProject.ValueSet(project)),
		Action: &client.ScheduleWorkflowAction{
			ID:                    id,
			Workflow:              protocol.WatchWorkflow,
			Args:                  []any{protocol.WatchInput{Project: project}},
			TaskQueue:             protocol.OrchestratorTaskQueue,
			StaticSummary:         "commits of " + project,
			TypedSearchAttributes: temporal.NewSearchAttributes(protocol.AttrProject.ValueSet(project)),
		},
	})
	if err == nil {
		return nil
	}
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("creating the schedule %s: %w", id, err)
	}
	changed, err := s.setInterval(ctx, id, every)
	if err == nil && changed {
		return s.SyncProject(ctx, project)
	}
	return err
}

// setInterval changes the interval of a Schedule, unless it has it already; one that an
// operator has paused stays paused.
func (s *Starter) setInterval(ctx context.Context, id string, every time.Duration) (changed bool, err error) {
	err = s.client.ScheduleClient().GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			there := in.Description.Schedule
			if changed = !hasInterval(there, every); !changed {
				return nil, temporal.ErrSkipScheduleUpdate
			}
			there.Spec = &client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
			return &client.ScheduleUpdate{Schedule: &there}, nil
		},
	})
	if err != nil {
		return false, fmt.Errorf("changing the schedule %s: %w", id, err)
	}
	return changed, nil
}

func hasInterval(there client.Schedule, every time.Duration) bool {
	return there.Spec != nil && len(there.Spec.Intervals) == 1 && there.Spec.Intervals[0].Every == every
}

// UnwatchProject removes a project's Schedule, if there is one.
func (s *Starter) UnwatchProject(ctx context.Context, project string) error {
	id := bench.WatchWorkflowID(project)
	if err := s.client.ScheduleClient().GetHandle(ctx, id).Delete(ctx); err != nil && !gone(err) {
		return fmt.Errorf("removing the schedule %s: %w", id, err)
	}
	return nil
}

// SyncProject looks at a project's commits now, or again after a look that is under
// way.
func (s *Starter) SyncProject(ctx context.Context, project string) error {
	id := bench.WatchWorkflowID(project)
	err := s.client.ScheduleClient().GetHandle(ctx, id).Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE})
	if err != nil {
		return fmt.Errorf("triggering the schedule %s: %w", id, err)
	}
	return nil
}
