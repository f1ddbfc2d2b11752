// Package dispatch keeps task queues filled and waiting jobs where they can run. It
// hands out jobs, starts the workflows of commands, hands the jobs of suites to the
// workflows of their requests, places jobs again when the fleet changes, and moves jobs
// away from pools that have had no live collector for too long.
//
// It runs after every change that may let a waiting job go: a submission, the end of a
// job, a change of queues or collectors. It also runs every few seconds to catch missed
// changes. Running it twice, or in several processes at once, does no harm: each task
// queue is filled under a lock of the record. The package must not know which job is
// next (the record and package fairshare decide) or where a job belongs (package
// placement decides).
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// Record reads and writes the rows of waiting jobs; *store.Store implements it. It
// takes its own locks: a [Dispatcher] holds none when it calls, and may be killed
// between any two calls.
type Record interface {
	Backlog
	Levels
	Moves
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	// JobRuns lists the runs of a job by number.
	JobRuns(ctx context.Context, key bench.JobKey) ([]bench.Run, error)
	Project(ctx context.Context, name string) (store.Project, error)
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
}

// Workflows calls workflows in Temporal. It is called after the record was written,
// without any lock. The next pass retries a call that fails.
type Workflows interface {
	Starts
	// SetLevel changes the level of a job that waits in Temporal. done is false if its
	// workflow has not got that far; the call must then be retried.
	SetLevel(ctx context.Context, job bench.JobRef, level int) (done bool, err error)
	// MoveJob moves a job that was handed out to another task queue. A job that a
	// collector has taken stays where it is.
	MoveJob(ctx context.Context, job bench.JobRef, to protocol.Moved) error
}

// A Dispatcher hands out jobs and places them again. Any number of them, in any number of
// processes, may work on one record.
type Dispatcher struct {
	Record    Record
	Workflows Workflows
	// Sizes selects the size classes of the next jobs; nil: jobs run on the class where
	// they wait.
	Sizes *sizing.Sizes
	// OfflineAfter is the time after which a silent collector no longer counts as live.
	OfflineAfter time.Duration
	// Fills joins calls of Fill; nil: each makes its own.
	Fills *Fills
	// RequestDelay is the time from the start of a command to the start of its request's
	// workflow: somebody waits for the command, and both would take the same cores.
	// [Dispatcher.Wait] waits for such starts.
	RequestDelay time.Duration
	Log          *slog.Logger

	later sync.WaitGroup
}

// Wait waits for workflows of requests that are yet to be started. Call it when nothing else
// is called.
func (d *Dispatcher) Wait() { d.later.Wait() }

// Presume moves the new jobs of a request to where jobs of their shape went last, and
// returns the task queues to which some have moved. A failure is harmless: the jobs then
// wait in their default task queues.
func (d *Dispatcher) Presume(ctx context.Context, id bench.RequestID) (taskQueues []string, err error) {
	if d.Sizes == nil {
		return nil, nil
	}
	return d.Sizes.Presume(ctx, id)
}

// view reads the fleet for the selection of sizes; the zero view if none are selected.
func (d *Dispatcher) view(ctx context.Context) (sizing.View, error) {
	if d.Sizes == nil {
		return sizing.View{}, nil
	}
	return d.Sizes.View(ctx)
}

// configs reads the configurations of projects, each once.
type configs struct {
	record Record
	read   map[string]bench.ProjectConfig
}

func newConfigs(record Record) configs {
	return configs{record: record, read: make(map[string]bench.ProjectConfig)}
}

// of returns a project's configuration. The error wraps [bench.ErrInvalid] when it
// cannot be read.
func (c configs) of(ctx context.Context, project string) (bench.ProjectConfig, error) {
	if config, ok := c.read[project]; ok {
		return config, nil
	}
	p, err := c.record.Project(ctx, project)
	if err != nil {
		return bench.ProjectConfig{}, err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return config, fmt.Errorf("project %s: %w; apply a corrected configuration with 'benchloom project apply'", project, err)
	}
	c.read[project] = config
	return config, nil
}

// concurrency bounds the number of concurrent calls to Temporal.
const concurrency = 8

// each calls do for all items, a few at a time, and joins the errors. Unlike an errgroup
// with a context it does not stop at the first error: an item that fails must not delay
// the others.
func each[T any](items []T, do func(T) error) error {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i, item := range items {
		group.Go(func() error {
			errs[i] = do(item)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return errors.Join(errs...)
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
