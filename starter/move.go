package starter

import (
	"context"
	"fmt"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// MoveJob moves a waiting job to another task queue: Temporal moves the activity,
// unless a collector has taken it meanwhile, and the workflow is told. Called again it
// does nothing.
//
// A schedule-to-start timeout would also do it, but to every job that waits long at a
// busy pool: each timeout sends the job behind all others of its queue.
func (s *Starter) MoveJob(ctx context.Context, job bench.JobRef, to protocol.Moved) error {
	id := job.WorkflowID()
	seen, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	if gone(err) {
		return nil // its start is on its way, or it has ended
	}
	if err != nil {
		return fmt.Errorf("looking where %s waits: %w", id, err)
	}
	for _, a := range seen.GetPendingActivities() {
		if a.GetActivityType().GetName() != protocol.RunJob || a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED ||
			a.GetActivityOptions().GetTaskQueue().GetName() == to.TaskQueue {
			continue
		}
		_, err := s.client.WorkflowService().UpdateActivityOptions(ctx, &workflowservice.UpdateActivityOptionsRequest{
			Namespace: s.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: seen.GetWorkflowExecutionInfo().GetExecution().GetRunId()},
			Activity:        &workflowservice.UpdateActivityOptionsRequest_Id{Id: a.GetActivityId()},
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: to.TaskQueue}},
			UpdateMask:      &fieldmaskpb.FieldMask{Paths: []string{"task_queue.name"}},
		})
		if gone(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("moving %s to task queue %s: %w", id, to.TaskQueue, err)
		}
		return s.signal(ctx, id, protocol.SignalMoved, to)
	}
	return nil
}
