// Package orchestration holds the activities of the orchestrator: what
// workflows read from the record, write to it, and whom they wake.
//
// Each activity is idempotent: done twice, it changes nothing the second time.
// The package must not know how collectors measure, and decides nothing that a
// pure package (placement, queueorder, stats) can decide.
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

// Workflows is how activities reach workflows. A workflow that has ended is no
// error: there is nobody to tell.
type Workflows interface {
	// QueueChanged starts the project's queue when it is not running.
	QueueChanged(ctx context.Context, project string) error
	Admitted(ctx context.Context, request bench.RequestRef) error
	dispatch.Workflows
	JobEnded(ctx context.Context, request bench.RequestRef, job protocol.JobEnded) error
	ParentCompleted(ctx context.Context, request bench.RequestRef) error
	CancelJob(ctx context.Context, job bench.JobRef) error
	Watches
}

// Suites loads suites by their content hash.
type Suites interface {
	Suite(ctx context.Context, hash string) (*suite.Suite, error)
}

// Activities does what workflows ask for.
type Activities struct {
	Store     *store.Store
	Workflows Workflows
	Repairs   Repairs
	Suites    Suites
	Sizes     sizing.Sizes
	Log       *slog.Logger
	// OfflineAfter is how long a collector may be silent before it counts as
	// offline.
	OfflineAfter time.Duration
	Points       failpoint.Points
	// Watching is what looking at commits needs.
	Watching Watching
	// Revisions finds what artifacts of the provider build are built from.
	Revisions Revisions
	// BuildBudget is how many bytes stored builds may have together; 0: no
	// bound.
	BuildBudget int64
	// Scope counts repairs; nil: they are not counted.
	Scope tally.Scope
}

// Registry is what activities are registered with.
type Registry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Register makes every activity known under its fixed name.
func (a *Activities) Register(r Registry) {
	for name, f := range map[string]any{
		protocol.LoadRequest:   a.LoadRequest,
		protocol.AskAdmission:  a.AskAdmission,
		protocol.Admit:         a.Admit,
		protocol.Expand:        a.Expand,
		protocol.Progress:      a.Progress,
		protocol.JobsDone:      a.JobsDone,
		protocol.Complete:      a.Complete,
		protocol.CancelRequest: a.CancelRequest,
		protocol.ExpireRequest: a.ExpireRequest,
		protocol.AssessJob:     a.AssessJob,
		protocol.RecordJobEnd:  a.RecordJobEnd,
		protocol.Reconcile:     a.Reconcile,
		protocol.WatchCommits:  a.WatchCommits,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// permanent is an error that no repetition can mend.
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

// config is a project's configuration.
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
