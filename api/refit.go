package api

import (
	"context"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/refit"
)

// refitBound is how long a collector waits at most for jobs to be placed anew: tens
// of thousands move within it.
const refitBound = 10 * time.Second

// refit places waiting jobs anew when a collector was not among those before, or is
// not as it was: what waits in its pool's task queue may not be for it.
func (s *server) refit(ctx context.Context, before plan.Fleet, name string) error {
	fleet, err := s.Store.Fleet(ctx, s.OfflineAfter)
	if err != nil {
		return err
	}
	now := slices.IndexFunc(fleet, func(c placement.Collector) bool { return c.Name == name })
	if now < 0 {
		return nil // removed meanwhile
	}
	if !slices.ContainsFunc(before, func(c placement.Collector) bool { return placement.Alike(c, fleet[now]) }) {
		s.placeAnew(ctx)
	}
	return nil
}

// placeAnew places waiting jobs with constraints where they belong now. What it
// could not do, the orchestrator does within seconds; meanwhile the fence keeps jobs
// from those who cannot run them.
func (s *server) placeAnew(ctx context.Context) {
	jobs := refit.Refit{Record: s.Store, Workflows: s.Starter, OfflineAfter: s.OfflineAfter, Log: s.Log}
	bound, stop := context.WithTimeout(context.WithoutCancel(ctx), refitBound)
	defer stop()
	queues, err := jobs.PlaceAnew(bound)
	if err != nil {
		s.Log.WarnContext(ctx, "could not place all waiting jobs anew at once; it is repeated", "error", err, "request_id", requestID(ctx))
	}
	if len(queues) == 0 {
		return
	}
	moved := make(map[string]bool)
	for _, q := range queues {
		moved[q] = true
	}
	s.fill(ctx, moved)
	s.afterwards.Go(func() {
		bound, stop := context.WithTimeout(context.WithoutCancel(ctx), fillBound)
		defer stop()
		if err := jobs.FollowMoves(bound); err != nil {
			s.Log.WarnContext(ctx, "could not move all jobs in Temporal at once; it is repeated", "error", err, "request_id", requestID(ctx))
		}
	})
}
