package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Retain removes what was kept long enough: one pass, started by its Schedule.
func Retain(ctx workflow.Context) (protocol.RetainResult, error) {
	status := protocol.RetainStatus{Phase: protocol.RetainInProgress}
	if err := workflow.SetQueryHandler(ctx, protocol.StatusQuery, func() (protocol.RetainStatus, error) { return status, nil }); err != nil {
		return status.Result, err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(string(status.Phase))); err != nil {
		return status.Result, err
	}
	if err := call(ctx, retainActivity(), protocol.Retain, nil, &status.Result); err != nil {
		return status.Result, err
	}
	status.Phase = protocol.RetainCompleted
	return status.Result, workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(string(status.Phase)))
}
