package starter

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
)

// SettleRequest makes sure that a request that has ended in the record has no running
// workflow: it cancels one that still runs, and waits for its end as long as the
// context lasts.
func (s *Starter) SettleRequest(ctx context.Context, request bench.RequestRef) error {
	workflow := request.WorkflowID()
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
