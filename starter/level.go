package starter

import (
	"context"
	"fmt"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// SetLevel gives a job that waits for a collector another priority level: Temporal
// writes its task again, in its new place. One that a collector has taken keeps
// what it has. done is false when there is no task yet, so that it is tried again.
func (s *Starter) SetLevel(ctx context.Context, project string, key bench.JobKey, level int) (done bool, err error) {
	id := bench.JobWorkflowID(project, key)
	seen, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	if gone(err) {
		return false, nil // its start is on its way, or it has ended
	}
	if err != nil {
		return false, fmt.Errorf("looking where %s waits: %w", id, err)
	}
	for _, a := range seen.GetPendingActivities() {
		if a.GetActivityType().GetName() != protocol.RunJob {
			continue
		}
		if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED || int(a.GetPriority().GetPriorityKey()) == level {
			return true, nil
		}
		_, err := s.client.WorkflowService().UpdateActivityOptions(ctx, &workflowservice.UpdateActivityOptionsRequest{
			Namespace: s.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: seen.GetWorkflowExecutionInfo().GetExecution().GetRunId()},
			Activity:        &workflowservice.UpdateActivityOptionsRequest_Id{Id: a.GetActivityId()},
			ActivityOptions: &activitypb.ActivityOptions{Priority: &commonpb.Priority{PriorityKey: int32(level)}},
			UpdateMask:      &fieldmaskpb.FieldMask{Paths: []string{"priority.priority_key"}},
		})
		if gone(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("giving %s level %d: %w", id, level, err)
		}
		return true, nil
	}
	return false, nil
}
