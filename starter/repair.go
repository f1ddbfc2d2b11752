package starter

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// RestartRequest starts the workflow of a request whose row is open although its
// workflow has ended or was lost. A running workflow is left alone.
func (s *Starter) RestartRequest(ctx context.Context, request bench.RequestRef) error {
	options := requestOptions(request)
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	options.WorkflowExecutionErrorWhenAlreadyStarted = false
	if _, err := s.client.ExecuteWorkflow(ctx, options, protocol.RequestWorkflow, protocol.RequestInput{Project: request.Project, ID: request.ID}); err != nil {
		return fmt.Errorf("starting the workflow of request %s again: %w", request.ID, err)
	}
	return nil
}

// HandOutAgain gives a request jobs to start as its children, and starts its workflow
// unless it runs: the row decides what else it does.
func (s *Starter) HandOutAgain(ctx context.Context, request bench.RequestRef, jobs protocol.HandOut) error {
	options := requestOptions(request)
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	_, err := s.client.SignalWithStartWorkflow(ctx, options.ID, protocol.SignalHandOut, jobs, options, protocol.RequestWorkflow, protocol.RequestInput{Project: request.Project, ID: request.ID})
	if err != nil {
		return fmt.Errorf("giving request %s jobs to start again: %w", request.ID, err)
	}
	return nil
}

// RestartJob starts the workflow of a job whose row is open although its workflow
// has ended or was lost. A running workflow is left alone.
func (s *Starter) RestartJob(ctx context.Context, in protocol.JobInput) error {
	options := jobOptions(in, "started again: the record had it open and no workflow ran; waits for an orchestrator to take it up")
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	if _, err := s.client.ExecuteWorkflow(ctx, options, protocol.JobWorkflow, in); err != nil {
		return fmt.Errorf("starting the workflow of job %s again: %w", in.Key, err)
	}
	return nil
}

// CancelWorkflow cancels a workflow whose row has ended or is gone. It changes nothing
// else.
func (s *Starter) CancelWorkflow(ctx context.Context, workflowID string) error {
	return s.cancel(ctx, workflowID)
}

// runningQuery lists the workflows that the record can be compared with.
const runningQuery = `ExecutionStatus = "Running" AND WorkflowType IN ("` + protocol.RequestWorkflow + `", "` + protocol.JobWorkflow + `", "` + protocol.QueueWorkflow + `")`

// listPage is the number of workflows listed per call; Temporal allows 1000.
const listPage = 1000

// Running lists the IDs of running Request, Job and Queue workflows, as far as
// Temporal's lists know: they may lack workflows that have just started and contain
// some that have just ended. Ask [Starter.Look] before acting on one.
func (s *Starter) Running(ctx context.Context) ([]string, error) {
	var ids []string
	var page []byte
	for {
		list, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: runningQuery, PageSize: listPage, NextPageToken: page})
		if err != nil {
			return nil, fmt.Errorf("listing the workflows that run: %w", err)
		}
		for _, e := range list.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return ids, nil
		}
	}
}

// Look describes the newest run of a workflow and its pending work. Unlike Temporal's
// lists it does not lag.
func (s *Starter) Look(ctx context.Context, workflowID string) (protocol.WorkflowState, error) {
	state := protocol.WorkflowState{ID: workflowID, Status: protocol.WorkflowMissing}
	d, err := s.client.DescribeWorkflowExecution(ctx, workflowID, "")
	if gone(err) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("describing %s: %w", workflowID, err)
	}
	info := d.GetWorkflowExecutionInfo()
	state.Run, state.Status = info.GetExecution().GetRunId(), statusOf(info.GetStatus())
	if at := info.GetStartTime(); at != nil {
		state.Started = at.AsTime()
	}
	if at := info.GetCloseTime(); at != nil {
		state.Closed = at.AsTime()
	}
	state.TaskAttempt = int(d.GetPendingWorkflowTask().GetAttempt())
	for _, a := range d.GetPendingActivities() {
		state.Activities = append(state.Activities, pendingActivity(a))
	}
	return state, nil
}

// Explain is [Starter.Look] with the reasons that only the history has: how a retried
// workflow task failed, and why a closed workflow ended.
func (s *Starter) Explain(ctx context.Context, workflowID string) (protocol.WorkflowState, error) {
	state, err := s.Look(ctx, workflowID)
	if err != nil || state.Status == protocol.WorkflowMissing || (state.Status.Alive() && state.TaskAttempt <= 1) {
		return state, err
	}
	last, err := s.client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: s.namespace, Execution: execution(workflowID, state.Run), MaximumPageSize: 50,
	})
	if gone(err) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("reading the end of the history of %s: %w", workflowID, err)
	}
	events := last.GetHistory().GetEvents()
	if !state.Status.Alive() && len(events) > 0 {
		state.Ended = ended(events[0])
	}
	for _, e := range events {
		if failed := e.GetWorkflowTaskFailedEventAttributes(); failed != nil && state.Status.Alive() {
			state.TaskFailure = failed.GetCause().String() + ": " + failed.GetFailure().GetMessage()
			break
		}
	}
	return state, nil
}

// ErrNothingToReset reports that the workflow has not completed a workflow task yet,
// so there is nothing to reset to.
var ErrNothingToReset = errors.New("the workflow has not decided anything yet, there is nothing to go back to; terminate it, it is started again within a minute")

// ResetToStart resets a workflow to its first decision. The record holds everything
// that workflows carry, so each can continue from its beginning, whatever part of
// its history cannot be replayed.
func (s *Starter) ResetToStart(ctx context.Context, workflowID, reason string) error {
	state, err := s.Look(ctx, workflowID)
	if err != nil {
		return err
	}
	events := s.client.GetWorkflowHistory(ctx, workflowID, state.Run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return fmt.Errorf("reading the history of %s: %w", workflowID, err)
		}
		// A failed task is as good a point as a completed one.
		if e.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED && e.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED {
			continue
		}
		_, err = s.client.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: s.namespace, WorkflowExecution: execution(workflowID, state.Run), Reason: reason,
			WorkflowTaskFinishEventId: e.GetEventId(), RequestId: workflowID + "@" + state.Run,
		})
		if err != nil {
			return fmt.Errorf("resetting %s: %w", workflowID, err)
		}
		return nil
	}
	return ErrNothingToReset
}

func execution(workflowID, run string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: run}
}

func statusOf(s enumspb.WorkflowExecutionStatus) protocol.WorkflowStatus {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return protocol.WorkflowCompleted
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return protocol.WorkflowFailed
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return protocol.WorkflowCanceled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return protocol.WorkflowTerminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return protocol.WorkflowTimedOut
	case enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return protocol.WorkflowPaused
	}
	return protocol.WorkflowRunning // also while continuing as new
}

func pendingActivity(a *workflowpb.PendingActivityInfo) protocol.PendingActivity {
	out := protocol.PendingActivity{
		Name: a.GetActivityType().GetName(), Attempt: int(a.GetAttempt()), Failure: words(a.GetLastFailure()),
		Started: a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED,
	}
	since := a.GetScheduledTime()
	if out.Started {
		since = a.GetLastStartedTime()
	}
	if since != nil {
		out.Since = since.AsTime()
	}
	return out
}

// words returns the messages of a failure and its causes.
func words(f *failurepb.Failure) string {
	if f == nil {
		return ""
	}
	if cause := words(f.GetCause()); cause != "" {
		return f.GetMessage() + ": " + cause
	}
	return f.GetMessage()
}

// ended describes the end of a workflow by its last event.
func ended(e *historypb.HistoryEvent) string {
	if a := e.GetWorkflowExecutionTerminatedEventAttributes(); a != nil {
		return "terminated by " + a.GetIdentity() + reasonText(a.GetReason())
	}
	if a := e.GetWorkflowExecutionFailedEventAttributes(); a != nil {
		return words(a.GetFailure())
	}
	return ""
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// gone reports that a workflow has ended or never existed.
func gone(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}
