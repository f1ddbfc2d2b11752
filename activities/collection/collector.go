// Package collection implements the only activity of a collector: RunJob, one
// attempt at one job.
//
// It asks the API's fence for permission, fetches suite and artifacts, measures
// with package jobrun, spools each finished block on disk and uploads it immediately.
// The package must not know the database, workflow code, or the order of
// dispatch; the API decides whether a run may start and records its outcome.
package collection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/protocol"
)

// API is the part of the HTTP API that a run uses; *apiclient.Client implements
// it. Runs and the delivery of the spool call it under no lock, and retry calls
// that fail with a transient error. It must not be nil.
type API interface {
	StartRun(ctx context.Context, run bench.RunID, start apiclient.RunStart) (apiclient.RunPlan, error)
	UploadBlock(ctx context.Context, run bench.RunID, number int, block apiclient.Block) (apiclient.BlockReceipt, error)
	AppendLog(ctx context.Context, run bench.RunID, offset int64, data []byte) (next int64, err error)
	FinishRun(ctx context.Context, run bench.RunID, finish apiclient.RunFinish) error
	// SendProfile is called beside the others; it is not retried here.
	SendProfile(ctx context.Context, run bench.RunID, u profiler.Upload) error
	SuiteArchive(ctx context.Context, hash string) ([]byte, error)
	BuildsAPI
	CodeProfilesAPI
	RunFilesAPI
}

// Artifacts fetches artifacts; *artifact.Cache implements it. A run calls it
// under no lock, one artifact at a time. It must not be nil.
type Artifacts interface {
	Acquire(ctx context.Context, request artifact.Request, progress artifact.ProgressFunc) (*artifact.Handle, error)
}

// Current describes the collector's current work, for its heartbeats to the
// API.
type Current struct {
	Run      bench.RunID
	Progress apiclient.RunProgress
}

// Collector runs jobs, one at a time.
type Collector struct {
	Name      string
	API       API
	Artifacts Artifacts
	Suites    *SuiteCache
	Spool     *Spool
	// Revisions exports the revisions of build jobs.
	Revisions jobrun.Revisions
	// Machine measures jobs. Cache directory, log and points are set per job.
	Machine jobrun.Machine
	// CacheDir contains a directory per project and suite for files that outlive jobs: <project>/<suite>.
	CacheDir string
	// CacheLimit bounds these directories together; a field of 0 sets no bound.
	CacheLimit diskspace.Usage
	// Facts returns the machine's current facts as JSON; if nil, the facts of its
	// registration apply.
	Facts func() (json.RawMessage, error)
	// Epoch returns the epoch of the collector's registration.
	Epoch func() int64
	// Fenced is called when a newer registration of the collector exists.
	Fenced func()
	// Unwanted is called when the collector takes no further jobs, for a reason that the API
	// knows more about or does not know yet: the fence refused a job of a draining or outdated
	// collector, or the collector is stuck.
	Unwanted func()
	// Begin limits how often and how long an unreachable API is retried before a run
	// begins, and Upload during a run, which should not end for that reason.
	Begin, Upload apiclient.RetryPolicy
	// Profiling equips the agents that accompany runs; nil: none does.
	Profiling *Profiling
	// DiskPatience is the time for which a run waits for space on a full disk before it
	// ends; 0: it does not wait.
	DiskPatience time.Duration
	Points       failpoint.Points
	Log          *slog.Logger

	// Later calls do after a delay; nil means [time.AfterFunc].
	Later func(after time.Duration, do func())

	// spareUntil is the time until which no block is uploaded between two blocks; only
	// used by the run.
	spareUntil time.Time
	// hindered counts the consecutive jobs that the collector could not start.
	hindered atomic.Int32
	current  atomic.Pointer[Current]
	underWay atomic.Pointer[stoppable]
	draining atomic.Bool
	// stuck is the reason why nothing can be measured any more, or nil.
	stuck atomic.Pointer[string]
	// using is read-locked by each job, and write-locked to take a directory away.
	using sync.RWMutex
	// caches holds the sizes of the directories in CacheDir.
	caches cacheSizes
}

// stoppable ends the run in progress.
type stoppable struct {
	run  bench.RunID
	stop context.CancelCauseFunc
}

// closedError ends a run that has ended in the record.
type closedError struct{ how string }

func (e *closedError) Error() string { return "the run was closed: " + e.how }

// End ends a run that has ended in the record; how says why: its job was cancelled, or
// another run of the job has begun. Temporal may not know that. Other runs go on.
func (c *Collector) End(run bench.RunID, how string) {
	if now := c.underWay.Load(); now != nil && now.run == run {
		now.stop(&closedError{how})
	}
}

// beatEvery is the interval of heartbeats to Temporal: a fifth of their timeout. The first
// comes after firstBeat: each costs Temporal as much as a step of the workflow, and runs
// that end soon need none.
const (
	beatEvery = 3 * time.Second
	firstBeat = time.Second
)

// Registry accepts activities; a Temporal worker implements it. It is called before
// the worker starts.
type Registry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Admit reserves the machine for a task that arrives; false means that the task
// must be returned. release is called when the task has ended.
type Admit func() (release func(), ok bool)

// Register registers RunJob under its fixed name; a nil admit admits every
// task.
func (c *Collector) Register(r Registry, admit Admit) {
	if admit == nil {
		admit = func() (func(), bool) { return func() {}, true }
	}
	run := func(ctx context.Context, in protocol.RunJobInput) (protocol.RunJobResult, error) {
		release, ok := admit()
		if !ok {
			return protocol.RunJobResult{}, busy()
		}
		defer func() { c.letGo(ctx, release) }()
		defer c.tidy(ctx) // before the next job begins
		c.using.RLock()
		defer c.using.RUnlock()
		return c.RunJob(ctx, in)
	}
	r.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: protocol.RunJob})
}

// letGo releases the machine for the next job. If the collector could not start
// the last job, it probably cannot start the next. It then pauses for increasing
// times, so as not to take every job from collectors that can run it.
func (c *Collector) letGo(ctx context.Context, release func()) {
	n := c.hindered.Load()
	if n == 0 {
		release()
		return
	}
	rest := min(time.Second<<min(n-1, 5), 30*time.Second)
	c.Log.WarnContext(ctx, "paused after a job could not be started", "pause", rest)
	if c.Later != nil {
		c.Later(rest, release)
		return
	}
	time.AfterFunc(rest, release)
}

// Current returns the collector's current work; the zero value if it is idle.
func (c *Collector) Current() Current {
	if now := c.current.Load(); now != nil {
		return *now
	}
	return Current{}
}

var (
	errShutdown = errors.New("the collector is shutting down")
	errNotTaken = errors.New("not taken: the collector takes no further job")
	errBusy     = errors.New("not taken: the machine has taken another job meanwhile, or has no room for one")
	errUnfit    = errors.New("not taken: the job is not for this collector")
	errStuck    = errors.New("processes of an earlier job cannot be killed")
	errStale    = errors.New("not taken: the job has another dispatch, or a run")
)

// busy returns a task that was in transit when the machine took another one.
func busy() error { return givenBack(errBusy, protocol.ErrTypeNotTaken) }

// givenBack returns an expected error, which this worker does not log.
func givenBack(why error, errorType string) error {
	return temporal.NewApplicationErrorWithOptions(why.Error(), errorType,
		temporal.ApplicationErrorOptions{NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign})
}

// RunJob makes one attempt at a job. Its errors carry their kind as application
// error types; blocks measured before an error are safe in the spool.
func (c *Collector) RunJob(ctx context.Context, in protocol.RunJobInput) (protocol.RunJobResult, error) {
	info := activity.GetInfo(ctx)
	run := bench.NewRunID(in.Key, info.WorkflowExecution.RunID, info.ActivityID, info.Attempt)
	if info.Attempt > 1 {
		in.Reason = bench.Retry
	}
	// Show the run before asking: either the task is refused here, or Drain sees
	// the run and waits.
	c.show(Current{Run: run})
	defer c.current.Store(nil)
	if c.draining.Load() {
		return protocol.RunJobResult{}, asApplicationError(ctx, infrastructure(errNotTaken))
	}
	if c.Stuck() != "" {
		return protocol.RunJobResult{}, asApplicationError(ctx, infrastructure(fmt.Errorf("%w: %w", errNotTaken, errStuck)))
	}
	log := c.Log.With("project", in.Project, "job", in.Key, "run", run)

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.underWay.Store(&stoppable{run, stop})
	defer c.underWay.Store(nil)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		c.beat(ctx, stop)
	}()
	defer func() { stop(nil); <-beats }()

	log.InfoContext(ctx, "run started")
	outcome, err := c.run(ctx, run, in, info.TaskQueue)
	log.InfoContext(ctx, "run ended", "outcome", outcome, "error", err)
	c.lookStuck(ctx, log)
	return protocol.RunJobResult{Run: run, Outcome: outcome}, asApplicationError(ctx, err)
}

// Stuck says why the collector can measure nothing until it is restarted; empty: it can.
func (c *Collector) Stuck() string {
	if why := c.stuck.Load(); why != nil {
		return *why
	}
	return ""
}

// longestReason bounds the reason sent to the API, in bytes.
const longestReason = 500

// lookStuck takes no further jobs if the slot can run nothing more, to leave them to collectors
// that can run them.
func (c *Collector) lookStuck(ctx context.Context, log *slog.Logger) {
	err := c.Machine.Sandbox.Stuck()
	if err == nil {
		return
	}
	why := "its slot can run nothing more: " + err.Error() // which may list thousands of processes
	if len(why) > longestReason {
		why = strings.ToValidUTF8(why[:longestReason], "") + "…"
	}
	c.stuck.Store(&why)
	log.ErrorContext(ctx, "takes no jobs until it is started anew", "reason", err)
	c.Unwanted() // tells the API immediately
}

// beat sends heartbeats, which report cancellation, and ends the run when the
// worker stops.
func (c *Collector) beat(ctx context.Context, stop context.CancelCauseFunc) {
	due := time.NewTimer(firstBeat)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-activity.GetWorkerStopChannel(ctx):
			stop(errShutdown)
			return
		case <-due.C:
			due.Reset(beatEvery)
		}
		now := c.Current()
		activity.RecordHeartbeat(ctx, protocol.RunCheckpoint{
			Run: now.Run, Phase: now.Progress.Phase, TestCase: now.Progress.TestCase,
			Iteration: now.Progress.Iteration, Iterations: now.Progress.Iterations, Done: now.Progress.Done, Total: now.Progress.Total,
		})
	}
}

func (c *Collector) show(now Current) { c.current.Store(&now) }

// phase shows and reports a phase outside package jobrun.
func (c *Collector) phase(ctx context.Context, run bench.RunID, name string) {
	p := c.Current().Progress
	p.Phase = name
	c.show(Current{Run: run, Progress: p})
	c.Points.Reach(ctx, name)
}

// kindError is an error with its kind of failure.
type kindError struct {
	kind bench.FailureKind
	err  error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

func infrastructure(err error) error { return &kindError{bench.FailInfrastructure, err} }
func permanent(err error) error      { return &kindError{bench.FailPermanent, err} }

// asApplicationError gives an error the type by which the workflow decides. A
// cancelled run stays the context's error, so that the activity ends as
// cancelled; a shutdown is infrastructure, and so is a run that the record closed.
func asApplicationError(ctx context.Context, err error) error {
	var kind *kindError
	var closed *closedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &closed), errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &closed):
		// Its workflow was cancelled, or no longer waits for it.
		return givenBack(closed, protocol.ErrTypeInfrastructure)
	case errors.Is(context.Cause(ctx), errShutdown):
		return temporal.NewApplicationErrorWithOptions(errShutdown.Error(), protocol.ErrTypeInfrastructure, temporal.ApplicationErrorOptions{NonRetryable: true})
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, apiclient.ErrJobClosed), errors.Is(err, apiclient.ErrNobodyWaits):
		return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypeJobClosed, nil)
	case errors.Is(err, apiclient.ErrUnderWay):
		return givenBack(err, protocol.ErrTypeUnderWay)
	case errors.Is(err, errStale):
		// A run that goes on is adopted; otherwise another dispatch follows immediately.
		return givenBack(err, protocol.ErrTypeUnderWay)
	case errors.Is(err, errUnfit):
		// The task may come back until it waits elsewhere: pause as after a run
		// that did not start.
		return givenBack(err, protocol.ErrTypeInfrastructure)
	case errors.Is(err, errNotTaken):
		return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypeNotTaken, nil)
	case errors.As(err, &kind):
		switch kind.kind {
		case bench.FailPermanent:
			return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypePermanent, nil)
		case bench.FailTooSmall, bench.FailTimeout, bench.FailOutOfMemory:
			return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypeTooSmall, nil)
		case bench.FailJob:
			// Expected: it is recorded, but this worker need not log it.
			return temporal.NewApplicationErrorWithOptions(err.Error(), protocol.ErrTypeJobFailure, temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
		}
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), protocol.ErrTypeInfrastructure, nil)
}

// Resume takes jobs again after [Collector.Drain].
func (c *Collector) Resume() { c.draining.Store(false) }

// Drain stops taking jobs and waits until no run is in progress or the context
// ends.
func (c *Collector) Drain(ctx context.Context) {
	c.draining.Store(true)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for c.current.Load() != nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
