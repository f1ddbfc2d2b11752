package collection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/suite"
)

// logShipEvery is the interval at which a run's output is sent to the API.
const logShipEvery = 2 * time.Second

// run makes one attempt, from the fence to its recorded end.
func (c *Collector) run(ctx context.Context, run bench.RunID, in protocol.RunJobInput, taskQueue string) (bench.RunOutcome, error) {
	// Deliver blocks of earlier runs of this process before the fence tells
	// which results are missing.
	if err := c.FlushSpool(ctx); err != nil {
		if ctx.Err() == nil {
			c.hindered.Add(1)
		}
		return bench.RunLost, infrastructure(err)
	}
	c.hindered.Store(0)
	start := apiclient.RunStart{Reason: in.Reason, Collector: c.Name, Dispatch: in.Dispatch, TaskQueue: taskQueue}
	if c.Facts != nil {
		facts, err := c.Facts()
		if err != nil {
			return bench.RunLost, infrastructure(err)
		}
		start.Facts = facts
	}
	var plan apiclient.RunPlan
	err := apiclient.Retry(ctx, c.Begin, func(ctx context.Context) (err error) {
		start.Epoch = c.Epoch()
		plan, err = c.API.StartRun(ctx, run, start)
		return err
	})
	if errors.Is(err, apiclient.ErrFenced) {
		c.Fenced()
	}
	if errors.Is(err, apiclient.ErrDraining) || errors.Is(err, apiclient.ErrOutdated) {
		c.Unwanted()
		return bench.RunLost, infrastructure(fmt.Errorf("%w: %w", errNotTaken, err))
	}
	if errors.Is(err, apiclient.ErrUnfit) || errors.Is(err, apiclient.ErrElsewhere) {
		return bench.RunLost, infrastructure(fmt.Errorf("%w: %w", errUnfit, err))
	}
	if errors.Is(err, apiclient.ErrStaleDispatch) {
		return bench.RunLost, infrastructure(fmt.Errorf("%w: %w", errStale, err))
	}
	if err != nil {
		return bench.RunLost, err
	}
	out := newLog(c.API, run)
	shipping, endShipping := context.WithCancel(ctx)
	shipped := make(chan struct{})
	go func() { defer close(shipped); out.ship(shipping, logShipEvery) }()
	s := &sink{
		collector: c, run: run, inTurns: plan.Job.Versus != "", single: plan.Command != nil, used: usage{now: c.Machine.Now}, delivered: make(map[bench.TestCase]bool),
	}
	s.profile = c.profile(ctx, plan, c.Log.With("run", run))

	err = c.measure(ctx, plan, s, out)
	if s.rest == nil && (err == nil || overran(err)) {
		began := time.Now()
		if flushed := c.flush(ctx, run); flushed != nil {
			err = flushed
		}
		s.profile.timed(jobrun.Uploading, began)
	}
	endShipping()
	<-shipped
	if s.cleaned != nil { // while the end is reported
		defer s.cleaned()
	}
	return c.finish(ctx, run, s, out, err)
}

// clean starts to clean the slot and returns a function that waits for that. A slot that cannot
// be cleaned does not affect the results of its last job: the next job tries again.
func (c *Collector) clean(ctx context.Context, s *sink) (wait func()) {
	cleaned := make(chan struct{})
	go func() {
		defer close(cleaned)
		if err := c.Machine.Sandbox.Clean(context.WithoutCancel(ctx)); err != nil {
			c.Log.WarnContext(ctx, "the slot could not be cleaned after a job; the next one tries again", "run", s.run, "error", err)
		}
	}()
	return func() { <-cleaned }
}

// measure runs the job; its blocks are in the spool or uploaded when it
// returns.
func (c *Collector) measure(ctx context.Context, plan apiclient.RunPlan, s *sink, out *runLog) error {
	if plan.Build != nil {
		return c.build(ctx, plan, s, out)
	}
	if len(plan.Missing) == 0 {
		fmt.Fprintln(out, "== every test case has a result already")
		return nil
	}
	m := c.Machine
	m.Log = out
	m.Points = func(point string) { c.Points.Reach(ctx, point) }
	m.Sampled = s.used.add
	if s.profile != nil {
		m.Watcher = s.profile
	}
	job := jobrun.Job{Kind: plan.Job.Kind, TestCases: plan.Missing, Iterations: plan.Iterations, Norms: make(map[bench.TestCase]machine.Norms)}
	for _, n := range plan.Norms {
		job.Norms[n.TestCase] = n.Norms
	}
	if plan.Command != nil {
		c.phase(ctx, plan.Run.ID, string(jobrun.Fetching))
		m.Leave = func() { s.cleaned = c.clean(ctx, s) } // a command has no artifacts, which must be hidden before their release
		job.Command = &jobrun.Command{Argv: plan.Command.Argv, Env: environment(plan.Command.Env), Timeout: time.Duration(plan.Command.TimeoutSeconds) * time.Second, Script: plan.Script, Revisions: c.Revisions, Keep: s.keepFiles}
		return c.within(ctx, plan, s, func(ctx context.Context) error { return c.job(ctx, m, job, s, out) })
	}
	c.phase(ctx, plan.Run.ID, string(jobrun.Fetching))
	began := time.Now()
	var fetched FetchedSuite
	err := c.onFullDisk(ctx, out, func() (_ bool, err error) {
		fetched, err = c.Suites.Get(ctx, c.API, plan.SuiteHash, c.Upload)
		return false, err
	})
	if err != nil {
		return err
	}
	for _, tag := range subjects(plan.Job) {
		of := tag
		if plan.Job.Canary {
			of = plan.Job.Tag // on both sides
		}
		handle, err := c.acquire(ctx, plan, fetched.Suite.Artifact(), of, out)
		if err != nil {
			return err
		}
		defer func() {
			if err := handle.Release(); err != nil {
				c.Log.Warn("artifact not released", "artifact", tag, "error", err)
			}
		}()
		job.Subjects = append(job.Subjects, jobrun.Subject{Tag: tag, Artifact: handle.Dir()})
	}
	var closeCache func()
	if m.CacheDir, closeCache, err = c.openCache(plan.Job.Project, fetched.Suite.Name()); err != nil {
		return infrastructure(err)
	}
	defer closeCache()
	use(fetched.Dir)
	use(m.CacheDir)
	s.profile.timed(jobrun.Fetching, began)
	job.Suite, job.SuiteDir = fetched.Suite, fetched.Dir
	if plan.Job.Kind == bench.KindProfile {
		job.Profile = s.profiling(plan.Job.Profiler, fetched.Suite)
	}
	return c.within(ctx, plan, s, func(ctx context.Context) error { return c.job(ctx, m, job, s, out) })
}

// subjects returns the tags that a job measures, the baseline first, as in a
// local run.
func subjects(j apiclient.Job) []string {
	if j.Versus != "" {
		return []string{j.Versus, j.Tag}
	}
	return []string{j.Tag}
}

// acquire acquires one of the job's artifacts.
func (c *Collector) acquire(ctx context.Context, plan apiclient.RunPlan, source suite.Artifact, tag string, out *runLog) (*artifact.Handle, error) {
	provider, parameters := plan.Artifacts.For(tag, source.Provider, source.Parameters)
	request, err := artifactRequest(plan, tag, provider, parameters)
	if err != nil {
		return nil, err
	}
	var handle *artifact.Handle
	err = c.onFullDisk(ctx, out, func() (_ bool, err error) {
		handle, err = c.Artifacts.Acquire(ctx, request, func(p artifact.Progress) {
			fmt.Fprintf(out, "== fetching: %s, %d of %d bytes\n", p.Step, p.Done, p.Total)
		})
		return false, err
	})
	switch {
	case err == nil:
		return handle, nil
	case artifact.KindOf(err).Permanent():
		return nil, permanent(err)
	}
	return nil, infrastructure(err)
}

// failed classifies an error of package jobrun.
func (c *Collector) failed(err error) error {
	var failure *jobrun.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return &kindError{failure.Kind, failure}
	}
	return infrastructure(err)
}

// finish records the end of the run, with the error that ended it or else
// the outcome of its test cases. A small rest of the run goes in the same request: most
// commands need no other one after the fence.
func (c *Collector) finish(ctx context.Context, run bench.RunID, s *sink, out *runLog, err error) (bench.RunOutcome, error) {
	if err == nil {
		err = s.verdict()
	}
	if err != nil {
		fmt.Fprintln(out, "== run ended:", err)
	}
	telling, stop := telling(ctx)
	defer stop()
	if ctx.Err() != nil {
		c.flushHeld(telling)
	}
	profile := s.profile.end(ctx)
	rest := apiclient.RunRest{Block: s.rest, Output: out.rest(), Profile: profile.rest()}
	told := c.tell(telling, out, run, s.end(ctx, out, err), &rest)
	profile.close(told == nil)
	if apiclient.IsRefusal(told) {
		// Send each part separately, as an older API demands, and so that a refused part does
		// not hold back the others.
		if flushed := c.flush(telling, run); flushed != nil && err == nil {
			err = flushed
		}
		told = c.tell(telling, out, run, s.end(ctx, out, err), nil)
	} else if told == nil && s.rest != nil {
		if err := c.Spool.Remove(run, s.restNumber); err != nil {
			c.Log.WarnContext(ctx, "a delivered block stays in the spool and is sent again", "run", run, "block", s.restNumber, "error", err)
		}
	}
	if told != nil && err == nil {
		return bench.RunLost, infrastructure(fmt.Errorf("closing the run: %w", told))
	}
	return outcomeOf(ctx, err), err
}

// tell closes the run.
func (c *Collector) tell(ctx context.Context, out *runLog, run bench.RunID, end apiclient.RunFinish, rest *apiclient.RunRest) error {
	end.Rest = rest
	return apiclient.Retry(ctx, c.Upload, func(ctx context.Context) error {
		if rest == nil || rest.Output == nil {
			out.flush(ctx)
		}
		return c.API.FinishRun(ctx, run, end)
	})
}

// end describes the end of the run.
func (s *sink) end(ctx context.Context, out *runLog, err error) apiclient.RunFinish {
	end := apiclient.RunFinish{
		Outcome: outcomeOf(ctx, err), OutputTail: out.tail(),
		Seconds: s.used.measured.Seconds(), PeakMemory: s.used.peakMemory, CPUSeconds: s.used.cpu.Seconds(),
	}
	if err != nil {
		end.Message = err.Error()
	}
	return end
}

// tellFor bounds the report of a run's end once the run was cancelled or the collector
// is stopping.
const tellFor = 2 * time.Second

// telling returns the context for reporting a run's end: the run's cancellation must
// not prevent that, only bound it.
func telling(ctx context.Context) (context.Context, context.CancelFunc) {
	out, stop := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, func() { time.AfterFunc(tellFor, stop) })
	return out, func() { detach(); stop() }
}

func outcomeOf(ctx context.Context, err error) bench.RunOutcome {
	var kind *kindError
	var closed *closedError
	switch {
	case err == nil:
		return bench.RunSuccess
	case errors.Is(context.Cause(ctx), errShutdown), errors.As(context.Cause(ctx), &closed):
		return bench.RunLost
	case ctx.Err() != nil:
		return bench.RunCancelled
	case errors.As(err, &kind):
		switch kind.kind {
		case bench.FailJob:
			return bench.RunFailure
		case bench.FailTooSmall:
			return bench.RunTooSmall
		case bench.FailTimeout:
			return bench.RunTimeout
		case bench.FailOutOfMemory:
			return bench.RunOutOfMemory
		case bench.FailPermanent:
			return bench.RunPermanent
		}
	}
	return bench.RunLost
}

func environment(values map[string]string) []string {
	env := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, name+"="+values[name])
	}
	return env
}

// sink receives the blocks of a run: each goes to the spool, then to the API.
type sink struct {
	collector *Collector
	run       bench.RunID
	// inTurns is set if results name the artifact they belong to.
	inTurns  bool
	failures []jobrun.Result
	results  int
	used     usage
	// single: the run has one block, which is handed in with its end; rest is that block.
	single     bool
	rest       *apiclient.Block
	restNumber int
	// cleaned waits until the slot is clean after the job has left it; nil: it has not.
	cleaned func()
	// base is added to the numbers of blocks; blocks is the last block's number.
	base, blocks int
	delivered    map[bench.TestCase]bool
	// clock runs while the machine does the job's work.
	clock *stopwatch
	// profile is nil for a run without one.
	profile *profile
}

func (s *sink) Progress(p jobrun.Progress) {
	s.collector.show(Current{Run: s.run, Progress: apiclient.RunProgress{
		Phase: string(p.Phase), TestCase: p.TestCase.String(), Iteration: p.Iteration, Iterations: p.Iterations, Done: p.Done, Total: p.Total,
	}})
}

func (s *sink) Block(ctx context.Context, b jobrun.Block) error {
	s.clock.stop()
	defer s.clock.start()
	began := time.Now()
	defer func() { s.profile.timed(jobrun.Uploading, began) }()
	var block apiclient.Block
	for _, r := range b.Results {
		s.delivered[r.TestCase] = true
		if r.Failure != nil {
			tc := r.TestCase
			block.Errors = append(block.Errors, apiclient.BlockError{TestCase: &tc, Kind: r.Failure.Kind, Message: r.Failure.Message, OutputTail: r.Failure.Output})
			s.failures = append(s.failures, r)
			continue
		}
		s.results++
		result, err := testCaseResult(r)
		if err != nil {
			return err
		}
		if s.inTurns {
			result.Tag = r.Subject
		}
		block.Results = append(block.Results, result)
	}
	s.blocks = s.base + b.Number
	if s.single && s.rest == nil && isLittle(block) {
		return s.keepForEnd(ctx, block)
	}
	return s.collector.keep(ctx, s.run, s.blocks, block)
}

// isLittle reports whether a block may be sent with the end of a run, together with everything
// else in one request that no proxy should find too large.
func isLittle(block apiclient.Block) bool {
	values, text := 0, 0
	for _, r := range block.Results {
		for _, c := range r.Collections {
			values, text = values+len(c.Values), text+len(c.Facts)
		}
	}
	for _, e := range block.Errors {
		text += len(e.Message) + len(e.OutputTail)
	}
	return values <= maxRestValues && text <= maxRest
}

// keepForEnd spools a block that is handed in with the run's end. If the disk does not take the
// block, it is uploaded immediately.
func (s *sink) keepForEnd(ctx context.Context, block apiclient.Block) error {
	if err := s.collector.Spool.Put(ctx, s.run, s.blocks, block); err != nil {
		return s.collector.keep(ctx, s.run, s.blocks, block)
	}
	s.collector.phase(ctx, s.run, string(jobrun.Uploading))
	s.rest, s.restNumber = &block, s.blocks
	return ctx.Err()
}

// lacking returns the test cases that were not delivered yet.
func (s *sink) lacking(all []bench.TestCase) []bench.TestCase {
	return slices.DeleteFunc(slices.Clone(all), func(tc bench.TestCase) bool { return s.delivered[tc] })
}

func testCaseResult(r jobrun.Result) (apiclient.TestCaseResult, error) {
	out := apiclient.TestCaseResult{TestCase: r.TestCase, Skipped: r.Skipped}
	for _, c := range r.Collections {
		facts, err := json.Marshal(collectionFacts{DurationSeconds: c.Duration.Seconds(), Machine: c.Machine, LeftBehind: c.LeftBehind, Unenforced: c.Unenforced})
		if err != nil {
			return out, fmt.Errorf("encoding the facts of a collection: %w", err)
		}
		out.Collections = append(out.Collections, apiclient.Collection{Iteration: c.Iteration, CollectedAt: c.StartedAt, Values: c.Metrics, Disturbed: machine.Text(c.Disturbed), Facts: facts})
	}
	return out, nil
}

// verdict returns the error of a run in which test cases failed, of the most
// consequential kind: the job's own failure, which is retried, before a machine
// that was too small, before permanent failures.
func (s *sink) verdict() error {
	if len(s.failures) == 0 {
		return nil
	}
	first := s.failures[0]
	for _, kind := range []bench.FailureKind{bench.FailJob, bench.FailOutOfMemory, bench.FailTimeout, bench.FailTooSmall, bench.FailPermanent} {
		if at := slices.IndexFunc(s.failures, func(r jobrun.Result) bool { return r.Failure.Kind == kind }); at >= 0 {
			first = s.failures[at]
			break
		}
	}
	text := fmt.Sprintf("%s: %s", first.TestCase, first.Failure.Message)
	if n := len(s.failures); n > 1 {
		text = fmt.Sprintf("%d of %d test cases failed, such as %s", n, n+s.results, text)
	}
	return &kindError{first.Failure.Kind, errors.New(text)}
}
