package orchestration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/store"
)

// rebuiltWithin bounds how long ago a build may have succeeded for which a request is
// opened again: an orchestrator may be away for days.
const rebuiltWithin = 7 * 24 * time.Hour

// rebuilt opens requests again that failed with a build that has succeeded since, like a
// retrigger of what they lack.
func (p *pass) rebuilt(ctx context.Context) error {
	requests, err := p.Store.Rebuilt(ctx, rebuiltWithin, reconcileBatch)
	if err != nil {
		return err
	}
	return each(ctx, requests, p.openRebuilt)
}

func (p *pass) openRebuilt(ctx context.Context, r bench.Request) error {
	// A request opened again gets another workflow with the same ID.
	state, err := p.Repairs.Look(ctx, r.Ref().WorkflowID())
	if err != nil || state.Status.Alive() {
		return err
	}
	_, err = p.Store.Reopen(ctx, r.ID, store.ReopenOptions{}, store.Act{Who: bench.BuildWatch, Reason: "its build has succeeded"})
	var many *fairshare.TooManyWaiting
	var early *fairshare.TooEarly
	switch {
	case errors.Is(err, store.ErrNothingToMeasure), errors.Is(err, store.ErrConflict): // somebody was faster
		return nil
	case errors.As(err, &many), errors.As(err, &early): // it waits for its submitter's other jobs
		p.Log.DebugContext(ctx, "a request whose build has succeeded is not opened yet", "project", r.Project, "request", r.ID, "why", err)
		return nil
	case err != nil:
		return err
	}
	if err := p.Repairs.RestartRequest(ctx, r.Ref()); err != nil {
		return fmt.Errorf("starting the workflow of request %s, whose build has succeeded: %w", r.ID, err)
	}
	return p.Store.MarkWorkflowStarted(ctx, r.ID)
}
