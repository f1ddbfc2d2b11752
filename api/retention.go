package api

import (
	"context"
	"net/http"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// RetentionRecord knows what is kept for how long.
type RetentionRecord interface {
	// Retention lists nothing before the orchestrator's first pass.
	Retention(ctx context.Context) ([]store.RetentionState, error)
	ExpiredNow(ctx context.Context, keep store.Keep) (store.Removed, error)
}

// RetentionWorkflows removes what was kept long enough.
type RetentionWorkflows interface {
	TriggerRetain(ctx context.Context) error
}

type retentionHandlers struct {
	*base
	record    RetentionRecord
	workflows RetentionWorkflows
}

func (s *retentionHandlers) register() {
	handle(s.base, operation{id: "get-retention", method: http.MethodGet, path: "/retention", need: toRead, tag: "service",
		summary: "Show how long everything is kept", description: "With what was removed so far, and what the next pass would remove now."}, s.get)
	handle(s.base, operation{id: "run-retention", method: http.MethodPost, path: "/retention/run", need: toAdmin, audit: "retention run", tag: "service", status: http.StatusNoContent,
		summary: "Remove what was kept long enough now", description: "The orchestrator does so each hour; this begins a pass at once, or after the one that is under way."}, s.run)
}

func (s *retentionHandlers) get(ctx context.Context, _ *none) (*body[apiclient.RetentionList], error) {
	states, err := s.record.Retention(ctx)
	if err != nil {
		return nil, err
	}
	out := apiclient.RetentionList{Kinds: make([]apiclient.Retention, len(states))}
	for i, state := range states {
		due, err := s.record.ExpiredNow(ctx, store.Keep{Kind: state.Kind, For: state.Keep, Projects: state.Projects})
		if err != nil {
			return nil, err
		}
		kind := apiclient.Retention{
			Kind: state.Kind, Keep: bench.KeptText(state.Keep), LastPassAt: state.LastPassAt,
			Removed: apiclient.Amount{Rows: state.Removed, Bytes: state.Bytes}, Due: apiclient.Amount{Rows: due.Rows, Bytes: due.Bytes},
		}
		for project, kept := range state.Projects {
			if kind.Projects == nil {
				kind.Projects = make(map[string]string)
			}
			kind.Projects[project] = bench.KeptText(kept)
		}
		out.Kinds[i] = kind
	}
	return answer(out, nil)
}

// runRetention has no parameters; the audit knows the operation by its type.
type runRetention struct{}

func (s *retentionHandlers) run(ctx context.Context, _ *runRetention) (*none, error) {
	if err := s.workflows.TriggerRetain(ctx); err != nil {
		s.Log.WarnContext(ctx, "beginning a pass of the retention failed", "error", err)
		return nil, problemf(http.StatusServiceUnavailable, "not-ready", "the pass could not be begun: Temporal does not answer, or no orchestrator has run yet; it begins by itself within an hour")
	}
	return nil, nil //nolint:nilnil // an answer without a body
}
