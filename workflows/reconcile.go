package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Reconcile compares the record with Temporal and repairs the difference: one
// pass, started by its Schedule.
func Reconcile(ctx workflow.Context) (protocol.ReconcileResult, error) {
	status := protocol.ReconcileStatus{Phase: protocol.ReconcileInProgress}
	if err := workflow.SetQueryHandler(ctx, protocol.StatusQuery, func() (protocol.ReconcileStatus, error) { return status, nil }); err != nil {
		return status.Result, err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(string(status.Phase))); err != nil {
		return status.Result, err
	}
	if err := call(ctx, reconcileActivity(), protocol.Reconcile, nil, &status.Result); err != nil {
		return status.Result, err
	}
	status.Phase = protocol.ReconcileCompleted
	return status.Result, workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(string(status.Phase)))
}
