package starter

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// SettleRequest sees to it that no workflow of a request runs that has ended in
// the record: one that still does is cancelled, and its end is waited for as long
// as the context lasts.
func (s *Starter) SettleRequest(ctx context.Context, project string, id bench.RequestID) error {
	workflow := bench.RequestWorkflowID(project, id)
	if err := s.cancel(ctx, workflow); err != nil {
		return err
	}
	err := s.client.GetWorkflow(ctx, workflow, "").Get(ctx, nil)
	var ended *temporal.WorkflowExecutionError
	if err == nil || gone(err) || errors.As(err, &ended) {
		return nil
	}
	return fmt.Errorf("waiting for the end of %s: %w", workflow, err)
}

// RestartRequest starts the workflow of a request that was opened again, or lost
// its workflow. One that runs is success.
func (s *Starter) RestartRequest(ctx context.Context, project string, id bench.RequestID) error {
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       bench.RequestWorkflowID(project, id),
		TaskQueue:                protocol.OrchestratorTaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            fmt.Sprintf("request %s of %s", id, project),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			protocol.AttrProject.ValueSet(project),
			protocol.AttrRequest.ValueSet(string(id)),
		),
	}, protocol.RequestWorkflow, protocol.RequestInput{Project: project, ID: id})
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &already) {
		return fmt.Errorf("starting the workflow of request %s again: %w", id, err)
	}
	return nil
}
