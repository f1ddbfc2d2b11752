package starter

import (
	"context"
	"fmt"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// SetLevel changes the priority level of a job that waits for a collector: Temporal
// queues its task anew. done is false when there is no task yet, or when a collector has
// taken it but not begun. Such a task may return with its old level, so the caller
// tries again.
func (s *Starter) SetLevel(ctx context.Context, job bench.JobRef, level int) (done bool, err error) {
	id := job.WorkflowID()
	waits, err := s.dispatch(ctx, id)
	switch {
	case err != nil || waits == nil:
		return false, err // its start is on its way, or it has ended
	case waits.level() == level:
		return true, nil
	case waits.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:
		return false, nil
	}
	return waits.prioritise(ctx, s, &commonpb.Priority{PriorityKey: int32(level)}, "priority.priority_key")
}

// GoFirst gives a job whose run has failed the fairness key of jobs dispatched before:
// when Temporal retries it, it goes before the other waiting jobs of its queue. A job
// without a retry is left alone.
func (s *Starter) GoFirst(ctx context.Context, job bench.JobRef) error {
	waits, err := s.dispatch(ctx, job.WorkflowID())
	if err != nil || waits == nil {
		return err
	}
	before := waits.GetPriority().GetFairnessKey()
	first := protocol.FairnessKeyAgain(before)
	if first == before {
		return nil
	}
	_, err = waits.prioritise(ctx, s, &commonpb.Priority{FairnessKey: first}, "priority.fairness_key")
	return err
}

// dispatch describes the pending RunJob activity of a job's workflow.
type dispatch struct {
	*workflowpb.PendingActivityInfo
	execution *commonpb.WorkflowExecution
}

// dispatch returns the activity that waits for a collector or runs on one; nil if there
// is none.
func (s *Starter) dispatch(ctx context.Context, id string) (*dispatch, error) {
	seen, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	if gone(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("looking where %s waits: %w", id, err)
	}
	for _, a := range seen.GetPendingActivities() {
		if a.GetActivityType().GetName() == protocol.RunJob {
			return &dispatch{a, &commonpb.WorkflowExecution{WorkflowId: id, RunId: seen.GetWorkflowExecutionInfo().GetExecution().GetRunId()}}, nil
		}
	}
	return nil, nil //nolint:nilnil // as above
}

func (d *dispatch) level() int { return int(d.GetPriority().GetPriorityKey()) }

// prioritise changes one field of the activity's priority. It returns false when the
// activity has ended meanwhile.
func (d *dispatch) prioritise(ctx context.Context, s *Starter, to *commonpb.Priority, field string) (bool, error) {
	_, err := s.client.WorkflowService().UpdateActivityOptions(ctx, &workflowservice.UpdateActivityOptionsRequest{
		Namespace: s.namespace, Execution: d.execution,
		Activity:        &workflowservice.UpdateActivityOptionsRequest_Id{Id: d.GetActivityId()},
		ActivityOptions: &activitypb.ActivityOptions{Priority: to},
		UpdateMask:      &fieldmaskpb.FieldMask{Paths: []string{field}},
	})
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("changing the %s of %s: %w", field, d.execution.GetWorkflowId(), err)
	}
	return true, nil
}
