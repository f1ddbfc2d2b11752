// Package workers builds and runs the worker processes: the orchestrator, which
// runs workflows and the activities around them, and the collector, which runs
// jobs.
//
// It wires components together and owns their life cycle: connections,
// registration, slots, shutdown. It must not decide anything about requests or
// jobs.
package workers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/uber-go/tally/v4"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/activities/orchestration"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/commits"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suitecache"
	"github.com/benchloom/benchloom/starter"
	"github.com/benchloom/benchloom/workflows"
)

// Orchestrator holds the dependencies of the orchestrator process.
type Orchestrator struct {
	Temporal client.Client
	// Namespace is the Temporal namespace.
	Namespace string
	Store     *store.Store
	// Version of the program, as for [Identify].
	Version string
	Log     *slog.Logger
	Points  failpoint.Points
	// Commits opens the repositories of projects.
	Commits commits.Opener
	// Revisions and BuildBudget are those of [orchestration.Activities].
	Revisions   orchestration.Revisions
	BuildBudget int64
	// Canaries lets each collector measure an artifact in turns with itself once a day.
	Canaries bool
	// Keep says how long each kind of data is kept; see [orchestration.Activities].
	Keep bench.Retention
	// Scope receives counts of repairs, canaries and removals by the orchestrator.
	Scope tally.Scope
	// OnReady is called once the orchestrator works.
	OnReady func()
}

// OfflineAfter is the time without a heartbeat after which a collector counts
// as offline.
const OfflineAfter = 30 * time.Second

// Identify names the program in histories: operators can reset workflows to the points at
// which a version began to work on them, and workflows go on like the revision of their code
// that began them. It must be called before workers start; without it, every process
// reads and hashes its own file first.
func Identify(version string) { worker.SetBinaryChecksum(workflows.Identity(version)) }

// Run runs the orchestrator until the context ends.
func (o Orchestrator) Run(ctx context.Context) error {
	start := starter.New(o.Temporal, o.Namespace).WorksAs(workflows.Identity(o.Version))
	if err := untilDone(ctx, o.Log, "creating the reconciliation schedule", func(ctx context.Context) error {
		_, err := start.EnsureReconcile(ctx)
		return err
	}); err != nil {
		return err
	}
	fatal := make(chan error, 1)
	w := worker.New(o.Temporal, protocol.OrchestratorTaskQueue, worker.Options{
		// The orchestrator shares a machine with benchmarks in small
		// installations: few pollers, few sticky workflows.
		MaxConcurrentActivityExecutionSize:     32,
		MaxConcurrentWorkflowTaskExecutionSize: 32,
		MaxConcurrentWorkflowTaskPollers:       4,
		MaxConcurrentActivityTaskPollers:       4,
		WorkerStopTimeout:                      5 * time.Second,
		DisableRegistrationAliasing:            true,
		OnFatalError:                           func(err error) { fatal <- err },
	})
	workflows.Register(w)
	activities := &orchestration.Activities{
		Store: o.Store, Sizes: *newSizes(o.Store, o.Log), Workflows: start, Repairs: start, Suites: suitecache.New(o.Store), Log: o.Log,
		OfflineAfter: OfflineAfter, Points: o.Points, Scope: o.Scope, Revisions: o.Revisions, BuildBudget: o.BuildBudget, Canaries: o.Canaries, Keep: o.Keep,
		Watching: orchestration.Watching{Sources: o.Commits, Random: rand.Reader, Now: time.Now},
	}
	activities.Register(w)
	if err := w.Start(); err != nil {
		return fmt.Errorf("starting the orchestrator's worker: %w", err)
	}
	defer w.Stop()
	var kept sync.WaitGroup
	keeping, stop := context.WithCancel(ctx)
	defer func() { stop(); kept.Wait() }()
	kept.Go(func() {
		keepScheduled(keeping, o.Log, start.EnsureReconcile, func(ctx context.Context) error {
			return errors.Join(start.EnsureRetain(ctx), activities.EnsureWatches(ctx, true))
		})
	})
	kept.Go(func() {
		keepReconciled(keeping, o.Log, start.ReconcilePaused, func(ctx context.Context) error {
			_, err := activities.Reconcile(ctx)
			return err
		})
	})
	kept.Go(func() {
		dispatcher := NewDispatcher(o.Store, start, o.Log)
		keepFilled(keeping, o.Log, func(ctx context.Context) error {
			return errors.Join(dispatcher.FollowFleet(ctx), dispatcher.Sweep(ctx))
		})
	})
	o.OnReady()
	o.Log.InfoContext(ctx, "orchestrator started", "task_queue", protocol.OrchestratorTaskQueue)
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return fmt.Errorf("the orchestrator's worker failed: %w", err)
	}
}

// NewDispatcher returns a dispatcher for a process of the service.
func NewDispatcher(record *store.Store, start *starter.Starter, log *slog.Logger) *dispatch.Dispatcher {
	return &dispatch.Dispatcher{Record: record, Workflows: start, Sizes: newSizes(record, log), OfflineAfter: OfflineAfter, Fills: new(dispatch.Fills), Log: log}
}

func newSizes(record *store.Store, log *slog.Logger) *sizing.Sizes {
	return &sizing.Sizes{Record: record, OfflineAfter: OfflineAfter, Now: time.Now, Random: mathrand.Float64, Log: log}
}

// ensureEvery is the interval at which an orchestrator checks that the
// reconciliation is scheduled: its Schedule is lost with Temporal's database, and
// an operator may delete it.
const ensureEvery = 20 * time.Second

// keepScheduled ensures until the context ends that the reconciliation's
// Schedule exists. It ensures all others at the start and whenever that Schedule
// had to be recreated: then Temporal's database may be a new one.
func keepScheduled(ctx context.Context, log *slog.Logger, reconcile func(context.Context) (made bool, err error), others func(context.Context) error) {
	tick := time.NewTicker(ensureEvery)
	defer tick.Stop()
	for lost := true; ; {
		made, err := reconcile(ctx)
		if lost = lost || made; lost && err == nil {
			if err = others(ctx); err == nil {
				lost = false
			}
		}
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot ensure all Schedules, retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

const (
	// reconcileEvery is the interval of an orchestrator's passes of the reconciliation.
	reconcileEvery = 30 * time.Second
	// reconcileWithin bounds a pass: after the loss of Temporal's database it starts
	// thousands of workflows, and the next one goes on.
	reconcileWithin = 5 * time.Minute
)

// keepReconciled makes a pass of the reconciliation immediately, to find work that was lost
// while no orchestrator ran, and others until the context ends. As workflows, passes would be
// most of what an idle service writes (docs/decisions/0021-passes-without-workflows.md).
func keepReconciled(ctx context.Context, log *slog.Logger, paused func(context.Context) (bool, error), pass func(context.Context) error) {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, reconcileWithin)
		off, err := paused(bounded)
		if err == nil && !off {
			err = pass(bounded)
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot reconcile everything, retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweepEvery is the interval at which all task queues are filled in case an
// event was missed.
const sweepEvery = 10 * time.Second

// keepFilled sweeps until the context ends.
func keepFilled(ctx context.Context, log *slog.Logger, sweep func(context.Context) error) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := sweep(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot dispatch all waiting jobs, retrying", "error", err)
		}
	}
}

// untilDone retries do until it succeeds or the context ends.
func untilDone(ctx context.Context, log *slog.Logger, what string, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(err, context.Cause(ctx)))
		}
		log.WarnContext(ctx, what+" failed, trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
