package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// maxRunLog bounds the stored output of a run, in bytes.
const maxRunLog = 4 << 20

// RunRecord stores runs, their results and their output. Each method returns
// store.ErrNotFound for an unknown run or job.
type RunRecord interface {
	Job(ctx context.Context, key bench.JobKey) (bench.Job, error)
	// StartRun is the fence: its errors say why the run may not begin.
	StartRun(ctx context.Context, start store.RunStart) (store.RunPlan, error)
	StoreBlock(ctx context.Context, run bench.RunID, results []bench.TestCaseResult, errs []bench.RunError) (bench.BlockReceipt, error)
	// AppendLog keeps at most limit bytes of a run's output; next is the stored size.
	AppendLog(ctx context.Context, run bench.RunID, offset int64, data []byte, limit int64) (next int64, err error)
	// FinishRunWith closes a run after storing the rest of it, or does neither.
	FinishRunWith(ctx context.Context, run bench.RunID, end bench.RunEnd, rest store.RunRest) (store.RunClosed, error)
	profileStore
	// JudgeCollector sets a run's collector aside if its last runs are disturbed, and
	// reports whether it did.
	JudgeCollector(ctx context.Context, run bench.RunID, offlineAfter time.Duration) (bench.Collector, bool, error)
	// BuildOf returns store.ErrNotFound for an artifact without a build.
	BuildOf(ctx context.Context, project, tag string, target bench.Target, recipe string) (bench.BuildKey, error)
}

// RunWorkflows calls the workflows of running jobs, after the record was written. A
// failure only delays what they show or do.
type RunWorkflows interface {
	// RunStarted tells a job's workflow of its run.
	RunStarted(ctx context.Context, job bench.JobRef, run protocol.RunStarted) error
	// GoFirst lets a job whose run has failed go first within its queue when it is
	// retried.
	GoFirst(ctx context.Context, job bench.JobRef) error
}

type runHandlers struct {
	*base
	record    RunRecord
	workflows RunWorkflows
	announcer *announcer
}

func (s *runHandlers) register() {
	handle(s.base, operation{id: "start-run", method: http.MethodPost, path: "/runs/{run}/start", need: toCollect, owns: []ownership{ownRun, ownBody}, tag: "collectors", maxBody: factsBody,
		summary: "Start a run, if the fence allows it", description: "Answers 409 with the type urn:benchloom:job-closed, nobody-waits, fenced, draining, outdated, unfit, elsewhere, stale-dispatch or under-way when the run may not begin. A repeated call gives the same answer."}, s.startRun)
	handle(s.base, operation{id: "upload-block", method: http.MethodPost, path: "/runs/{run}/blocks/{number}", need: toCollect, owns: []ownership{ownRun}, tag: "collectors", maxBody: s.MaxBlock, gzip: true, slots: blockSlots,
		summary: "Upload a finished block", description: "A block has all collections of its test cases. A repeated upload changes nothing."}, s.uploadBlock)
	handle(s.base, operation{id: "append-run-log", method: http.MethodPost, path: "/runs/{run}/log", need: toCollect, owns: []ownership{ownRun}, tag: "collectors", maxBody: min(outputBody, s.MaxBody), slots: outputSlots,
		summary: "Upload output of a run", description: "The first 4 MB of a run are kept; the rest is counted and dropped."}, s.appendLog)
	handle(s.base, operation{id: "finish-run", method: http.MethodPost, path: "/runs/{run}/finish", need: toCollect, owns: []ownership{ownRun}, tag: "collectors", status: http.StatusNoContent, maxBody: s.MaxBody, slots: largeSlots,
		summary: "Close a run", description: "A short run hands in the rest of it at once: its last block, output and samples. A repeated call changes nothing."}, s.finishRun)
}

func unknownRun(id bench.RunID, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problemf(http.StatusNotFound, "unknown-run", "there is no run %s; it begins at its fence, POST /api/v1/runs/%s/start", id, id)
	}
	return err
}

type startRun struct {
	Run  string `path:"run" doc:"ID of the run."`
	Body apiclient.RunStart
}

func (in *startRun) work() work { return work{collector: in.Body.Collector} }

func (s *runHandlers) startRun(ctx context.Context, in *startRun) (*body[apiclient.RunPlan], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	plan, err := s.record.StartRun(ctx, store.RunStart{
		Run: id, Reason: in.Body.Reason, Collector: in.Body.Collector, Epoch: in.Body.Epoch,
		Dispatch: in.Body.Dispatch, TaskQueue: in.Body.TaskQueue, Facts: in.Body.Facts,
	})
	if errors.Is(err, store.ErrUnfit) {
		// Refit before the collector gives the job back, and its workflow asks where it waits.
		s.refit(ctx, s.dispatcher.Refit)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, problemf(http.StatusNotFound, "unknown-job", "run %s cannot begin: there is no job %s", id, id.Job())
	}
	if err != nil {
		return nil, err
	}
	s.waited(plan.Wait)
	config, err := bench.ReadProjectConfig(plan.Config)
	if err != nil {
		return nil, fmt.Errorf("project %s: %w; apply a corrected configuration", plan.Job.Project, err)
	}
	s.announcer.begun(ctx, plan.Run, plan.Job.Ref())
	run, err := runOf(plan.Run)
	if err != nil {
		return nil, err
	}
	out := apiclient.RunPlan{
		Run: run, Job: jobOf(plan.Job), Project: plan.Job.Project, Missing: notNil(plan.Missing), Iterations: plan.Job.Iterations,
		TimeoutSeconds: plan.Run.TimeoutSeconds,
		SuiteHash:      plan.Job.SuiteHash, Command: commandOf(plan.Job.Command), Script: scriptOf(plan.Job.Command), Artifacts: config.Artifacts,
		Profiling: profilingOf(plan.Profiling, config),
	}
	for _, n := range plan.Norms {
		out.Norms = append(out.Norms, apiclient.SeriesNorms{TestCase: n.TestCase, Norms: machine.Norms{
			Interrupts: n.Interrupts, CPUPressure: n.CPUPressure, MemoryPressure: n.MemoryPressure, IOPressure: n.IOPressure, MHz: n.MHz,
		}})
	}
	return answer(out, s.addBuild(ctx, plan.Job, config, &out))
}

type uploadBlock struct {
	Run    string `path:"run" doc:"ID of the run."`
	Number int    `path:"number" minimum:"1" maximum:"1000000" doc:"Counts from 1 within the run."`
	Body   apiclient.Block
}

func (s *runHandlers) uploadBlock(ctx context.Context, in *uploadBlock) (*body[apiclient.BlockReceipt], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	block, err := runBlock(id, in.Body)
	if err != nil {
		return nil, fmt.Errorf("block %d of run %s, %w", in.Number, id, err)
	}
	receipt, err := s.record.StoreBlock(ctx, id, block.Results, block.Errors)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	return answer(apiclient.BlockReceipt{Accepted: receipt.Accepted, Superseded: receipt.Superseded}, nil)
}

// runBlock checks a block. Its error begins with the place in it.
func runBlock(run bench.RunID, b apiclient.Block) (bench.RunBlock, error) {
	out := bench.RunBlock{Results: make([]bench.TestCaseResult, 0, len(b.Results)), Errors: make([]bench.RunError, 0, len(b.Errors))}
	for i, r := range b.Results {
		result, err := testCaseResult(r)
		if err != nil {
			return out, fmt.Errorf("result %d: %w", i+1, err)
		}
		out.Results = append(out.Results, result)
	}
	for i, e := range b.Errors {
		failure, err := runError(run, e)
		if err != nil {
			return out, fmt.Errorf("error %d: %w", i+1, err)
		}
		out.Errors = append(out.Errors, failure)
	}
	return out, nil
}

func testCaseResult(r apiclient.TestCaseResult) (bench.TestCaseResult, error) {
	tc, err := bench.NewTestCase(r.TestCase)
	if err != nil {
		return bench.TestCaseResult{}, err
	}
	if (r.Skipped == "") == (len(r.Collections) == 0) {
		return bench.TestCaseResult{}, invalid("%s has to have either collections or a reason why it was left out", tc)
	}
	out := bench.TestCaseResult{TestCase: tc, Tag: r.Tag, Skipped: r.Skipped}
	seen := make(map[int]bool)
	for _, c := range r.Collections {
		if seen[c.Iteration] {
			return out, invalid("%s has iteration %d twice", tc, c.Iteration)
		}
		seen[c.Iteration] = true
		if c.Iteration > bench.MaxIterations {
			return out, invalid("%s has an iteration %d; no test case has more than %d", tc, c.Iteration, bench.MaxIterations)
		}
		if len(c.Values) > bench.MaxValues {
			return out, invalid("%s, iteration %d: %d metrics are more than the %d that a program may print", tc, c.Iteration, len(c.Values), bench.MaxValues)
		}
		if len(c.Values) == 0 || c.CollectedAt.IsZero() {
			return out, invalid("%s, iteration %d: a collection has values and a time", tc, c.Iteration)
		}
		for metric := range c.Values {
			if err := bench.CheckMetric(string(metric)); err != nil {
				return out, fmt.Errorf("%s, iteration %d: %w", tc, c.Iteration, err)
			}
		}
		out.Collections = append(out.Collections, bench.Collection{Iteration: c.Iteration, CollectedAt: c.CollectedAt, Values: c.Values, Disturbed: c.Disturbed, Facts: c.Facts})
	}
	return out, nil
}

var failureKinds = []bench.FailureKind{
	bench.FailInfrastructure, bench.FailTooSmall, bench.FailTimeout, bench.FailOutOfMemory, bench.FailJob, bench.FailPermanent, bench.FailCancelled,
}

func runError(run bench.RunID, e apiclient.BlockError) (bench.RunError, error) {
	if !slices.Contains(failureKinds, e.Kind) {
		return bench.RunError{}, invalid("unknown kind of failure %.40q; use one of %v", e.Kind, failureKinds)
	}
	out := bench.RunError{Run: run, Kind: e.Kind, Message: e.Message, OutputTail: e.OutputTail}
	if e.TestCase != nil {
		tc, err := bench.NewTestCase(*e.TestCase)
		if err != nil {
			return out, err
		}
		out.TestCase = &tc
	}
	return out, nil
}

type appendLog struct {
	Run     string `path:"run" doc:"ID of the run."`
	Offset  int64  `query:"offset" required:"true" minimum:"0" doc:"Offset of this output in bytes."`
	RawBody []byte `contentType:"application/octet-stream"`
}

func (s *runHandlers) appendLog(ctx context.Context, in *appendLog) (*body[apiclient.LogReceipt], error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	next, err := s.record.AppendLog(ctx, id, in.Offset, in.RawBody, maxRunLog)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	return answer(apiclient.LogReceipt{NextOffset: next}, nil)
}

type finishRun struct {
	Run  string `path:"run" doc:"ID of the run."`
	Body apiclient.RunFinish
}

func (s *runHandlers) finishRun(ctx context.Context, in *finishRun) (*none, error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	end := bench.RunEnd{
		Outcome: in.Body.Outcome, Message: in.Body.Message, OutputTail: in.Body.OutputTail, MeasuredSeconds: in.Body.Seconds, PeakMemory: in.Body.PeakMemory, CPUSeconds: in.Body.CPUSeconds,
	}
	rest, err := runRest(id, in.Body.Rest)
	if err != nil {
		return nil, err
	}
	closed, err := s.record.FinishRunWith(ctx, id, end, rest)
	if err != nil {
		return nil, unknownRun(id, err)
	}
	if closed.Block.Superseded > 0 {
		s.Log.InfoContext(ctx, "results were superseded", "run", id, "superseded", closed.Block.Superseded, "accepted", closed.Block.Accepted)
	}
	s.announcer.ended(id)
	if in.Body.Rest != nil && in.Body.Rest.Profile != nil && !closed.Profiled { // or tell why not
		if _, err := storeProfile(ctx, s.record, id, *in.Body.Rest.Profile); err != nil {
			s.Log.WarnContext(ctx, "samples of a run are lost", "run", id, "error", err)
		}
	}
	if closed.Kind != bench.KindCommand { // commands do not count
		c, setAside, err := s.record.JudgeCollector(ctx, id, s.OfflineAfter)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // it may have been removed
			return nil, err
		}
		if setAside {
			s.Log.WarnContext(ctx, "collector set aside until its machine is quiet", "collector", c.Name, "reason", c.DisturbedBy)
		}
	}
	if end.Outcome == bench.RunFailure { // Temporal retries it on its own
		if err := s.goFirst(ctx, id); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// runRest checks what is sent with a run's end, and leaves out samples that are wrong.
func runRest(run bench.RunID, rest *apiclient.RunRest) (out store.RunRest, err error) {
	if rest == nil {
		return out, nil
	}
	if rest.Block != nil {
		block, err := runBlock(run, *rest.Block)
		if err != nil {
			return out, fmt.Errorf("last block of run %s, %w", run, err)
		}
		out.Block = &block
	}
	if rest.Output != nil {
		out.Output = &bench.RunOutput{Offset: rest.Output.Offset, Data: rest.Output.Data, Limit: maxRunLog}
	}
	if rest.Profile != nil && len(rest.Profile.Check()) == 0 {
		out.Profile = rest.Profile
	}
	return out, nil
}

// goFirst lets the job of a failed run go first within its queue. Temporal waits a second
// before it retries, so the collector need not wait for this.
func (s *runHandlers) goFirst(ctx context.Context, id bench.RunID) error {
	job, err := s.record.Job(ctx, id.Job())
	if err != nil {
		return unknownRun(id, err)
	}
	s.afterwards.Go(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), reachBound)
		defer stop()
		if err := s.workflows.GoFirst(ctx, job.Ref()); err != nil {
			s.Log.WarnContext(ctx, "a failed job goes behind its queue when it is retried", "project", job.Project, "job", job.Key, "error", err)
		}
	})
	return nil
}

// progressText returns a run's progress as text.
func progressText(p apiclient.RunProgress) (json.RawMessage, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding a run's progress: %w", err)
	}
	return text, nil
}
