package api

import (
	"context"
	"time"
)

// reachBound bounds a call to Temporal while a client waits for its answer.
const reachBound = 2 * time.Second

// reach calls Temporal once. The record is already written, so a failure is only logged:
// the reconciliation repeats the call.
func (s *base) reach(ctx context.Context, what, workflow string, f func(ctx context.Context) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), reachBound)
	defer stop()
	if err := f(ctx); err != nil {
		s.Log.WarnContext(ctx, "could not "+what+" at once; it is repeated", "workflow", workflow, "error", err, "request_id", requestID(ctx))
	}
}
