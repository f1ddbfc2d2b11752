// Package orchestration holds the orchestrator's activities: they read and write the
// record for workflows, and signal workflows.
//
// Each activity is idempotent: done twice, it changes nothing the second time.
// The package must not know how collectors measure, and decides nothing that a
// pure package (admission, placement, plan, stats) can decide.
package orchestration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/uber-go/tally/v4"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// Workflows signals, starts and cancels workflows; a *starter.Starter is one. Activities call
// it after the record was written, under no lock, many at once; it is never nil. An ended
// workflow is not an error.
type Workflows interface {
	// QueueChanged wakes the project's Queue workflow, and starts it unless it runs.
	QueueChanged(ctx context.Context, project string) error
	Admitted(ctx context.Context, request bench.RequestRef) error
	dispatch.Workflows
	JobEnded(ctx context.Context, request bench.RequestRef, job protocol.JobEnded) error
	ParentCompleted(ctx context.Context, request bench.RequestRef) error
	CancelJob(ctx context.Context, job bench.JobRef) error
	Watches
}

// Suites loads suites by their content hash; a *suitecache.Cache is one. Activities call it
// under no lock, many at once, and must not change a suite, which others use as well. It is
// never nil.
type Suites interface {
	Suite(ctx context.Context, hash string) (*suite.Suite, error)
}

// Activities implements the orchestrator's activities.
type Activities struct {
	Store     *store.Store
	Workflows Workflows
	Repairs   Repairs
	Suites    Suites
	Sizes     sizing.Sizes
	Log       *slog.Logger
	// OfflineAfter is the silence after which a collector counts as offline.
	OfflineAfter time.Duration
	Points       failpoint.Points
	// Watching holds the dependencies of looking at commits.
	Watching Watching
	// Revisions finds the revisions that artifacts of the provider build are built from.
	Revisions Revisions
	// BuildBudget bounds the total size of stored builds in bytes; 0: unlimited.
	BuildBudget int64
	// Canaries lets each collector have a canary a day.
	Canaries bool
	// Keep says how long each kind of data is kept, unless a project says otherwise; omitted
	// kinds are kept forever.
	Keep bench.Retention
	// Scope counts repairs, canaries and what was removed; nil: they are not counted.
	Scope tally.Scope

	notices notices
	fills   dispatch.Fills
}

// Registry registers activities; a worker is one. [Activities.Register] calls it before the
// worker starts.
type Registry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Register registers every activity under its fixed name.
func (a *Activities) Register(r Registry) {
	for name, f := range map[string]any{
		protocol.LoadRequest:   a.LoadRequest,
		protocol.AskAdmission:  a.AskAdmission,
		protocol.Admit:         a.Admit,
		protocol.Expand:        a.Expand,
		protocol.Progress:      a.Progress,
		protocol.JobsDone:      a.JobsDone,
		protocol.NextLook:      a.NextLook,
		protocol.Complete:      a.Complete,
		protocol.CancelRequest: a.CancelRequest,
		protocol.ExpireRequest: a.ExpireRequest,
		protocol.AssessJob:     a.AssessJob,
		protocol.AwaitRun:      a.AwaitRun,
		protocol.RecordJobEnd:  a.RecordJobEnd,
		protocol.Reconcile:     a.Reconcile,
		protocol.WatchCommits:  a.WatchCommits,
		protocol.Retain:        a.Retain,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// permanent returns an error that is not retried.
func permanent(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypePermanent, err)
}

// found makes an unknown row a permanent error: rows are written before
// workflows start, so it will not appear later.
func found(err error, what string) error {
	if errors.Is(err, store.ErrNotFound) {
		return notInRecord(what, err)
	}
	return err
}

// config returns a project's configuration.
func (a *Activities) config(ctx context.Context, name string) (store.Project, bench.ProjectConfig, error) {
	p, err := a.Store.Project(ctx, name)
	if err != nil {
		return p, bench.ProjectConfig{}, found(err, "reading project "+name)
	}
	c, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return p, c, permanent(fmt.Errorf("project %s: %w; apply a corrected configuration with 'benchloom project apply'", name, err))
	}
	return p, c, nil
}
