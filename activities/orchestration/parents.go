package orchestration

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
)

// parentLacks reports whether a request's parent lacks results where the request's own
// jobs ran: these may have moved, or have found their parent's pool without a collector.
func (a *Activities) parentLacks(ctx context.Context, r bench.Request) (bool, error) {
	if !r.Type.HasParent() || r.Parent == "" {
		return false, nil
	}
	f, err := a.facts(ctx, r, bench.StageParent)
	var broken *temporal.ApplicationError
	if errors.As(err, &broken) && broken.NonRetryable() {
		a.Log.WarnContext(ctx, "the parent is not measured where its child was", "project", r.Project, "request", r.ID, "error", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	wanted, err := a.parentJobs(ctx, f)
	return len(wanted.Jobs)+len(wanted.Shared) > 0, err
}
