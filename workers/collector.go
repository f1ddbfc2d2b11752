package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/apiclient"
)

// Collector is what a collector process needs.
type Collector struct {
	Temporal     client.Client
	API          *apiclient.Client
	Registration apiclient.Registration
	// Jobs carries out what it takes; its epoch is set from here.
	Jobs *collection.Collector
	Log  *slog.Logger
	// OnReady is called when it has registered and takes jobs.
	OnReady func()
}

// ErrFenced ends a collector when a newer registration of its name exists.
var ErrFenced = errors.New("this collector was registered again by a newer process; exiting")

// shutdownGrace is how long a job may take to notice that its collector stops.
// A stop that races with a dispatch loses the task without it.
const shutdownGrace = 5 * time.Second

// Run registers, delivers what an earlier process left in the spool, then takes
// jobs one at a time until the context ends.
func (c Collector) Run(ctx context.Context) error {
	var registered apiclient.Registered
	err := apiclient.Retry(ctx, c.Jobs.Upload.Forever(), func(ctx context.Context) (err error) {
		registered, err = c.API.RegisterCollector(ctx, c.Registration)
		return err
	})
	if err != nil {
		return fmt.Errorf("registering collector %s: %w", c.Registration.Name, err)
	}
	log := c.Log.With("collector", c.Registration.Name, "epoch", registered.Collector.Epoch)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.Jobs.Epoch = func() int64 { return registered.Collector.Epoch }
	c.Jobs.Fenced = func() { stop(ErrFenced) }
	log.InfoContext(ctx, "registered", "task_queue", registered.TaskQueue)

	wanted := &wish{changed: make(chan struct{}, 1)}
	wanted.active.Store(registered.Collector.State != "inactive" && registered.Collector.State != "draining")
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		c.beat(ctx, log, registered, wanted, stop)
	}()
	defer func() { stop(nil); <-beats }()

	if err := c.Jobs.FlushSpool(ctx); err != nil {
		return c.ended(ctx, fmt.Errorf("delivering what an earlier process left in the spool: %w", err))
	}
	for ctx.Err() == nil {
		if !wanted.active.Load() {
			log.InfoContext(ctx, "inactive: takes no jobs until it is activated")
			c.OnReady()
			select {
			case <-ctx.Done():
			case <-wanted.changed:
			}
			continue
		}
		if err := c.work(ctx, registered.TaskQueue, wanted); err != nil {
			return c.ended(ctx, err)
		}
	}
	return c.ended(ctx, nil)
}

// ended is the error of a collector whose context may have ended: being fenced
// is one, being told to stop is none.
func (c Collector) ended(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrFenced) {
		return ErrFenced
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // what was under way ended because it was told to
	}
	return err
}

// wish is what the API wants of the collector.
type wish struct {
	active  atomic.Bool
	changed chan struct{}
}

func (w *wish) set(active bool) {
	if w.active.Swap(active) != active {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// work takes jobs from the task queue until the collector is to stop, or is idle
// and shall take no more.
func (c Collector) work(ctx context.Context, taskQueue string, wanted *wish) error {
	fatal := make(chan error, 1)
	w := worker.New(c.Temporal, taskQueue, worker.Options{
		Identity: c.Registration.Name,
		// One slot, reserved before polling: a busy machine holds no task.
		MaxConcurrentActivityExecutionSize: 1,
		MaxConcurrentActivityTaskPollers:   1,
		DisableWorkflowWorker:              true,
		WorkerStopTimeout:                  shutdownGrace,
		// Cancellation travels with heartbeats: they must not be held back.
		MaxHeartbeatThrottleInterval:     2 * time.Second,
		DefaultHeartbeatThrottleInterval: 2 * time.Second,
		DisableRegistrationAliasing:      true,
		OnFatalError:                     func(err error) { fatal <- err },
	})
	c.Jobs.Register(w)
	c.Jobs.Resume()
	if err := w.Start(); err != nil {
		return fmt.Errorf("starting the collector's worker: %w", err)
	}
	defer w.Stop()
	c.OnReady()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-fatal:
			return fmt.Errorf("the collector's worker failed: %w", err)
		case <-wanted.changed:
			if !wanted.active.Load() {
				c.Jobs.Drain(ctx)
				return nil
			}
		}
	}
}

// beat tells the API that the collector lives, and learns what is wanted of it.
func (c Collector) beat(ctx context.Context, log *slog.Logger, registered apiclient.Registered, wanted *wish, stop context.CancelCauseFunc) {
	tick := time.NewTicker(time.Duration(max(1, registered.HeartbeatSeconds)) * time.Second)
	defer tick.Stop()
	reachable := true
	for {
		now := c.Jobs.Current()
		answer, err := c.API.Heartbeat(ctx, c.Registration.Name, apiclient.Heartbeat{Epoch: registered.Collector.Epoch, Run: now.Run, Progress: now.Progress})
		switch {
		case err == nil:
			wanted.set(answer.Active)
			if !reachable {
				log.InfoContext(ctx, "the API is reachable again")
			}
			reachable = true
		case errors.Is(err, apiclient.ErrFenced):
			stop(ErrFenced)
			return
		case ctx.Err() == nil && reachable:
			reachable = false
			log.WarnContext(ctx, "heartbeat not delivered; going on", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
