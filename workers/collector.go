package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// Collector holds the dependencies of a collector process.
type Collector struct {
	// Dial connects to Temporal once the collector may run; withToken asks for calls with
	// the collector's own token.
	Dial         func(ctx context.Context, withToken bool) (client.Client, error)
	API          *apiclient.Client
	Registration apiclient.Registration
	// Jobs runs the jobs; Run sets its epoch.
	Jobs *collection.Collector
	Log  *slog.Logger
	// Gate is the machine's gate, with a slot of the collector's name; nil if
	// the collector has the machine for itself.
	Gate *Gate
	// ExitWhenIdle ends the collector without an error as soon as no job waits
	// for it.
	ExitWhenIdle bool
	// CacheRoot is the parent of its cache directories; if empty, it reports
	// none.
	CacheRoot string
	// KeepCaches is the time for which caches of suites that no job uses are kept;
	// [bench.Forever]: nothing is removed.
	KeepCaches time.Duration
	// OnReady is called once the collector is registered and takes jobs.
	OnReady func()
}

// RefusedError ends a collector that the API refuses. Restarting it is useless
// until a person has fixed the reason.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// OutdatedError ends a collector whose pool requires another version.
type OutdatedError struct{ Version, Wanted string }

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("this collector is version %s, but version %s is wanted; install that and start it again", e.Version, e.Wanted)
}

// errFenced ends a collector when a newer registration of its name exists.
var errFenced = &RefusedError{errors.New("this collector was registered again by a newer process, or removed; exiting")}

// errIdle ends a collector with ExitWhenIdle.
var errIdle = errors.New("no job waits")

// shutdownGrace is the time for a job to notice that its collector is stopping.
// Without it, a stop that races with a dispatch loses the task.
const shutdownGrace = 5 * time.Second

// Run registers the collector, delivers blocks that an earlier process left in
// the spool, then takes jobs one at a time until the context ends. Its error is
// a [*RefusedError] or an [*OutdatedError] if that ended it; in the latter case
// it has finished its job.
func (c Collector) Run(ctx context.Context) error {
	registered, err := c.register(ctx)
	if err != nil {
		return err
	}
	log := c.Log.With("collector", c.Registration.Name, "epoch", registered.Collector.Epoch)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if c.Gate == nil {
		if c.Gate, err = ownMachine(c.Registration.Name); err != nil {
			return err
		}
	}
	c.keepRoom(ctx, log)
	wanted := newDesiredState(c.Registration.Version, registered.TaskQueues)
	wanted.set(registered.Collector.State != bench.CollectorInactive && registered.Collector.State != bench.CollectorDraining,
		registered.Collector.WantedVersion)
	c.Jobs.Epoch = func() int64 { return registered.Collector.Epoch }
	c.Jobs.Fenced = func() { stop(errFenced) }
	c.Jobs.Unwanted = wanted.ask
	log.InfoContext(ctx, "registered", "task_queues", registered.TaskQueues, "version", c.Registration.Version)

	beats := make(chan struct{})
	go func() {
		defer close(beats)
		c.beat(ctx, log, registered, wanted, stop)
	}()
	defer func() { stop(nil); <-beats }()
	cleaned := make(chan struct{})
	go func() {
		defer close(cleaned)
		c.keepClean(ctx, log)
	}()
	defer func() { stop(nil); <-cleaned }()

	if err := c.Jobs.FlushSpool(ctx); err != nil {
		return ended(ctx, fmt.Errorf("delivering what an earlier process left in the spool: %w", err))
	}
	if _, leave := wanted.now(); leave != nil {
		return left(leave)
	}
	temporal, err := c.Dial(ctx, registered.TemporalToken)
	if err != nil {
		return ended(ctx, err)
	}
	defer temporal.Close()
	for ctx.Err() == nil {
		active, leave := wanted.now()
		if leave != nil {
			return left(leave)
		}
		if !active {
			log.InfoContext(ctx, "inactive: takes no jobs until it is activated")
			c.OnReady()
			select {
			case <-ctx.Done():
			case <-wanted.changed:
			}
			continue
		}
		c.work(ctx, log, temporal, wanted)
	}
	return ended(ctx, nil)
}

// keepRoom keeps the collector from taking jobs while its disk is short, and for good when
// its slot is stuck.
func (c Collector) keepRoom(ctx context.Context, log *slog.Logger) {
	disk := c.Jobs.Machine.Disk
	dir := c.Jobs.Machine.Sandbox.WorkDir()
	var lacked atomic.Bool
	c.Gate.keepRoom(c.Registration.Name, func() bool {
		if c.Jobs.Stuck() != "" {
			return false
		}
		if disk == nil {
			return true
		}
		short := disk.Short(dir)
		switch {
		case lacked.Swap(short != nil) == (short != nil):
		case short != nil:
			log.WarnContext(ctx, "takes no jobs until there is room for them", "reason", short)
		default:
			log.InfoContext(ctx, "there is room again: takes jobs")
		}
		return short == nil
	})
}

// register registers the collector, retrying until the API is reachable.
func (c Collector) register(ctx context.Context) (apiclient.Registered, error) {
	var registered apiclient.Registered
	err := apiclient.Retry(ctx, c.Jobs.Upload.Forever(), func(ctx context.Context) (err error) {
		registered, err = c.API.RegisterCollector(ctx, c.Registration)
		return err
	})
	if err == nil {
		return registered, nil
	}
	problem, _ := errors.AsType[*apiclient.Problem](err)
	err = fmt.Errorf("registering collector %s: %w", c.Registration.Name, err)
	if problem != nil && problem.FromAPI() {
		err = &RefusedError{err}
	}
	return registered, err
}

// ended returns the error of a collector whose context may have ended: a
// refusal is an error, being stopped is not.
func ended(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*RefusedError](context.Cause(ctx)); ok {
		return refused
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped
	}
	return err
}

// left returns the error of a collector that has finished its job and exits.
func left(why error) error {
	if errors.Is(why, errIdle) {
		return nil
	}
	return why
}

// work takes jobs from the task queues until the collector must stop, or is
// idle and must not take more.
func (c Collector) work(ctx context.Context, log *slog.Logger, temporal client.Client, wanted *desiredState) {
	c.Jobs.Resume()
	polled := openLanes(c.Registration.Name, c.Gate, temporal, c.Jobs, log)
	polled.serve(wanted.taskQueues())
	defer polled.close()
	c.OnReady()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wanted.requeued:
			queues := wanted.taskQueues()
			log.InfoContext(ctx, "serves other task queues", "task_queues", queues)
			polled.serve(queues)
		case <-wanted.changed:
			if active, leave := wanted.now(); !active || leave != nil {
				log.InfoContext(ctx, endsWork(leave))
				c.Jobs.Drain(ctx)
				return
			}
		}
	}
}

// endsWork returns the log message about why no further job is taken.
func endsWork(leave error) string {
	switch {
	case leave == nil:
		return "draining: takes no further job"
	case errors.Is(leave, errIdle):
		return "no job waits: exits"
	}
	return "out of date: exits when its job has ended"
}

// maxSkew is the clock difference between machine and API above which a warning
// is logged. The clock affects only the times of collections.
const maxSkew = 10 * time.Second

// beat sends heartbeats to the API and receives the collector's desired state.
func (c Collector) beat(ctx context.Context, log *slog.Logger, registered apiclient.Registered, wanted *desiredState, stop context.CancelCauseFunc) {
	tick := time.NewTicker(time.Duration(max(1, registered.HeartbeatSeconds)) * time.Second)
	defer tick.Stop()
	reachable, skewed := true, false
	caches := cacheReport{root: c.CacheRoot, reported: registered.Collector.CacheDirs}
	idle := idleReport{readings: c.Jobs.Machine.Readings}
	for {
		now := c.Jobs.Current()
		var dirs *[]string
		if now.Run == "" { // looking would disturb the measurement
			dirs = caches.changed()
		}
		answer, err := c.API.Heartbeat(ctx, c.Registration.Name, apiclient.Heartbeat{
			Epoch: registered.Collector.Epoch, Run: now.Run, Progress: now.Progress, CountWaiting: c.ExitWhenIdle, AskWaits: c.Gate.shared(), CacheDirs: dirs,
			Disturbed: idle.next(now.Run == ""), Stuck: c.Jobs.Stuck(),
		})
		switch {
		case err == nil:
			caches.delivered(dirs)
			if answer.RunClosed != "" {
				c.Jobs.End(now.Run, answer.RunClosed)
			}
			idle.asked = answer.SetAside
			wanted.set(answer.Active, answer.WantedVersion)
			wanted.serve(answer.TaskQueues)
			c.Gate.report(c.Registration.Name, answer.Waits)
			if c.ExitWhenIdle && now == (collection.Current{}) && answer.Waiting != nil && (*answer.Waiting == 0 || !answer.Active) {
				wanted.goIdle()
			}
			if !reachable {
				log.InfoContext(ctx, "the API is reachable again")
			}
			reachable = true
			if skew := time.Until(answer.Now); skew.Abs() > maxSkew != skewed {
				skewed = !skewed
				if skewed {
					log.WarnContext(ctx, "this machine's clock differs from the API's: set it, collections carry its time", "difference", -skew.Round(time.Second))
				}
			}
		case errors.Is(err, apiclient.ErrFenced):
			stop(errFenced)
			return
		case shutOut(err):
			stop(&RefusedError{fmt.Errorf("the API lets collector %s in no longer: %w", c.Registration.Name, err)})
			return
		case ctx.Err() == nil && reachable:
			reachable = false
			log.WarnContext(ctx, "heartbeat not delivered; going on", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-wanted.asked:
		}
	}
}

// shutOut reports whether the API says that the collector's token is no longer
// valid.
func shutOut(err error) bool {
	return errors.Is(err, apiclient.ErrUnauthorized) || errors.Is(err, apiclient.ErrForbidden)
}
