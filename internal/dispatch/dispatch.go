// Package dispatch keeps task queues filled and waiting jobs where they can run: it
// hands jobs out, starts the workflows of commands and hands the jobs of suites to the
// workflows of their requests, places jobs anew when the fleet changes,
// and moves what waits at a pool that has had no live collector for too long.
//
// It runs wherever something has changed that a waiting job may go for: at a
// submission, at a job's end, at a change of queues or collectors; and every few
// seconds, for what was missed. Doing it twice, or in several processes at once, does
// no harm: each task queue is filled under a lock of the record. The package must not
// know which job goes next (the record and package fairshare decide) nor where a job
// belongs (package placement does).
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// Record reads and writes the rows of waiting jobs; a *store.Store is one. It takes
// its locks itself: a [Dispatcher] holds none when it calls, and may be cut off
// between any two calls.
type Record interface {
	Backlog
	Levels
	Moves
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	Project(ctx context.Context, name string) (store.Project, error)
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
}

// Workflows reaches workflows in Temporal. It is called after the record was written,
// without any lock; a call that fails is repeated by the next pass.
type Workflows interface {
	Starts
	// SetLevel gives a job that waits in Temporal another level. done is false when
	// its workflow has not got that far: it is to be tried again.
	SetLevel(ctx context.Context, job bench.JobRef, level int) (done bool, err error)
	// MoveJob lets a job that was handed out wait in another task queue. One that
	// a collector has taken stays where it is.
	MoveJob(ctx context.Context, job bench.JobRef, to protocol.Moved) error
}

// A Dispatcher hands jobs out and places them anew. It keeps no state of its own: any
// number of them, in any number of processes, may work on one record.
type Dispatcher struct {
	Record    Record
	Workflows Workflows
	// Sizes selects the size classes of jobs that are next; nil: jobs run on the class
	// where they wait.
	Sizes *sizing.Sizes
	// OfflineAfter bounds the silence of a collector that counts as live.
	OfflineAfter time.Duration
	Log          *slog.Logger
}

// Presume lets the new jobs of a request wait where jobs of their shape went last, and
// returns the task queues to which some have moved. A failure is harmless: as they
// are, the jobs wait where any job would.
func (d *Dispatcher) Presume(ctx context.Context, id bench.RequestID) (taskQueues []string, err error) {
	if d.Sizes == nil {
		return nil, nil
	}
	return d.Sizes.Presume(ctx, id)
}

// view reads the fleet for the selection of sizes; the zero view where none are
// selected.
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

// concurrency bounds the calls to Temporal that are under way at a time.
const concurrency = 8

// each calls do for all items, a few at a time, and joins the errors. It does not stop
// at the first one, as an errgroup with a context would: an item that fails must not
// keep the others from their turn.
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
