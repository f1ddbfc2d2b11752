package starter

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
)

// scheduledBy is Temporal's search attribute with the ID of the Schedule that has started
// a workflow.
const scheduledBy = "TemporalScheduledById"

// Closed workflows that Schedules have started, and closed runs of Schedules themselves,
// each of which is a workflow in a division of the namespace that must be named.
const (
	closedPasses    = `ExecutionStatus != "Running" AND ` + scheduledBy + ` IS NOT NULL`
	closedSchedules = `ExecutionStatus != "Running" AND TemporalNamespaceDivision = "TemporalScheduler"`
)

// ForgetPasses deletes closed workflows that Schedules have started, up to most of them,
// and as many closed runs of the Schedules themselves. It keeps the newest of each Schedule.
// Others would stay for the namespace's retention, also those of earlier versions, which
// made each pass a workflow: 86,400 of them in 30 days.
// It returns the number deleted, also with an error.
//
// It relies on Temporal's lists, which may lag: another call deletes the rest.
func (s *Starter) ForgetPasses(ctx context.Context, most int) (deleted int, err error) {
	passes, err := s.closed(ctx, closedPasses)
	if err != nil {
		return 0, err
	}
	schedules, err := s.closed(ctx, closedSchedules)
	if err != nil {
		return 0, err
	}
	old := append(olderPasses(passes, most), schedules[:min(len(schedules), most)]...)
	for _, e := range old {
		_, err := s.client.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: s.namespace, WorkflowExecution: e.GetExecution(),
		})
		if err != nil && !gone(err) {
			return deleted, fmt.Errorf("deleting the closed workflow %s: %w", e.GetExecution().GetWorkflowId(), err)
		}
		deleted++
	}
	return deleted, nil
}

// closed lists closed workflows, one page of them.
func (s *Starter) closed(ctx context.Context, query string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	list, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: listPage})
	if err != nil {
		return nil, fmt.Errorf("listing what Schedules have left: %w", err)
	}
	var closed []*workflowpb.WorkflowExecutionInfo
	for _, e := range list.GetExecutions() {
		if e.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			closed = append(closed, e)
		}
	}
	return closed, nil
}

// olderPasses returns at most most of the workflows, without the newest of each Schedule.
func olderPasses(passes []*workflowpb.WorkflowExecutionInfo, most int) []*workflowpb.WorkflowExecutionInfo {
	newest := make(map[string]time.Time)
	schedule := func(e *workflowpb.WorkflowExecutionInfo) (id string) {
		err := converter.GetDefaultDataConverter().FromPayload(payload(e, scheduledBy), &id)
		if err != nil {
			return ""
		}
		return id
	}
	for _, e := range passes {
		id, at := schedule(e), e.GetCloseTime().AsTime()
		if at.After(newest[id]) {
			newest[id] = at
		}
	}
	var old []*workflowpb.WorkflowExecutionInfo
	for _, e := range passes {
		id := schedule(e)
		if id != "" && e.GetCloseTime().AsTime().Before(newest[id]) && len(old) < most {
			old = append(old, e)
		}
	}
	return old
}

func payload(e *workflowpb.WorkflowExecutionInfo, attribute string) *commonpb.Payload {
	return e.GetSearchAttributes().GetIndexedFields()[attribute]
}
