// Package refit keeps waiting jobs with constraints, and commands, where exactly
// those wait for them who can run them: it places them anew when collectors come, change or go,
// and lets what stands in Temporal follow.
//
// It runs wherever the fleet has changed, and every few seconds for what was
// missed. Doing it twice, or in several processes at once, does no harm. It must
// not decide where a job belongs: package placement does.
package refit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// followed bounds how many jobs in Temporal one pass moves: what is left comes with
// the next one.
const followed = 2000

// Record is what is known of waiting jobs and of collectors.
type Record interface {
	WaitingAlike(ctx context.Context) ([]store.AlikeJobs, error)
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
	Replace(ctx context.Context, g store.AlikeJobs, to bench.Place) (int, error)
	MovedWaiting(ctx context.Context, limit int) ([]store.WaitingJob, error)
}

// Workflows reaches jobs that stand in Temporal.
type Workflows interface {
	// MoveJob lets a job that was handed out wait in another task queue. One that
	// a collector has taken is left alone.
	MoveJob(ctx context.Context, project string, key bench.JobKey, to protocol.Moved) error
}

// Refit places waiting jobs anew.
type Refit struct {
	Record    Record
	Workflows Workflows
	// OfflineAfter is how long a collector may be silent before it counts as
	// offline.
	OfflineAfter time.Duration
	Log          *slog.Logger
}

// PlaceAnew places waiting jobs with constraints, and commands, again where other
// collectors may run them now than when they were placed: some were registered, have changed or were
// removed, or a job has waited for caches for long enough. It gives the task queues
// to which some have moved; of those, what stands in Temporal is moved by
// [Refit.FollowMoves].
func (r Refit) PlaceAnew(ctx context.Context) (movedTo []string, err error) {
	groups, err := r.Record.WaitingAlike(ctx)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	fleet, err := r.Record.Fleet(ctx, r.OfflineAfter)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, g := range groups {
		place := placement.Anew(fleet, g.Requirements(), g.TaskQueue, g.Set)
		if place == nil {
			continue
		}
		forgotten := len(place.Set) > 0 && len(g.Set) == 0 // then nobody takes jobs from there
		if place.TaskQueue() == g.TaskQueue && !g.Over && !forgotten {
			continue
		}
		n, err := r.Record.Replace(ctx, g, *place)
		errs = append(errs, err)
		if n > 0 && place.TaskQueue() != g.TaskQueue {
			movedTo = append(movedTo, place.TaskQueue())
			r.Log.InfoContext(ctx, "placed waiting jobs anew: other collectors may run them now",
				"from", g.TaskQueue, "to", place.TaskQueue(), "jobs", n, "waited_for_caches", g.Over, "nobody_meets_them", place.Nobody())
		}
	}
	slices.Sort(movedTo)
	return slices.Compact(movedTo), errors.Join(errs...)
}

// FollowMoves lets what stands in Temporal go where the rows have it. It asks the
// record, not what was moved just now: an earlier pass may have failed in between,
// or a job's workflow was only about to start.
func (r Refit) FollowMoves(ctx context.Context) error {
	moved, err := r.Record.MovedWaiting(ctx, followed)
	if err != nil {
		return err
	}
	for _, j := range moved {
		to := protocol.Moved{TaskQueue: j.TaskQueue, SizeClass: j.SizeClass}
		if err := r.Workflows.MoveJob(ctx, j.Project, j.Key, to); err != nil {
			return err
		}
	}
	return nil
}
