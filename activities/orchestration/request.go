package orchestration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// LoadRequest reads the parts of a request's row that its workflow needs.
func (a *Activities) LoadRequest(ctx context.Context, ref protocol.RequestRef) (protocol.RequestFacts, error) {
	r, err := a.Store.Request(ctx, ref.ID)
	if err != nil {
		return protocol.RequestFacts{}, found(err, "reading the request")
	}
	if r.WorkflowStartedAt == nil {
		if err := a.Store.MarkWorkflowStarted(ctx, ref.ID); err != nil {
			return protocol.RequestFacts{}, err
		}
	}
	project, config, err := a.config(ctx, r.Project)
	if err != nil {
		return protocol.RequestFacts{}, err
	}
	targets := r.Selection.Targets
	if len(targets) == 0 {
		targets = config.Targets
	}
	facts := protocol.RequestFacts{
		Type: r.Type, Tag: r.Tag, User: r.Submitter, PR: r.PR, Targets: targets,
		Status:   r.Status,
		Admitted: r.AdmittedAt != nil, JobsDone: r.JobsDoneAt != nil,
		WaitsFor: r.WaitsFor, Versus: r.InTurns(),
	}
	if facts.Stages, err = a.stages(ctx, r, project, config); err != nil {
		return facts, err
	}
	if r.WaitsFor != "" {
		if facts.ParentDone, err = a.Store.ParentDone(ctx, r.ID); err != nil {
			return facts, err
		}
	}
	if r.Status == bench.WaitingForArtifacts {
		left := time.Until(r.WaitsSince().Add(config.Queue.ArtifactsWithin()))
		facts.ArtifactsWithin = max(1, int(left.Seconds())+1)
	}
	if r.ExpandedAt != nil {
		if facts.Shared, err = a.shared(ctx, r); err != nil {
			return facts, err
		}
	}
	if r.Status == bench.Completed {
		end, err := a.ended(ctx, r)
		facts.End = &end
		return facts, err
	}
	return facts, nil
}

// ended describes the end of a completed request.
func (a *Activities) ended(ctx context.Context, r bench.Request) (protocol.CompleteResult, error) {
	out := protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: r.Outcome, Baseline: r.Baseline, Message: r.Message}}
	jobs, err := a.Store.StageProgress(ctx, r.ID, bench.StageOwn, false)
	if err != nil {
		return out, err
	}
	out.Jobs = counts(jobs)
	out.OptionalOpen, err = a.optionalOpen(ctx, r)
	return out, err
}

// shared names the jobs of a request that another request has started. Commands are
// never shared.
func (a *Activities) shared(ctx context.Context, r bench.Request) (protocol.SharedJobs, error) {
	if r.Deferred {
		return protocol.SharedJobs{}, nil
	}
	jobs, total, err := a.Store.SharedJobs(ctx, r.ID, protocol.ShownShared)
	out := protocol.SharedJobs{Total: total}
	for _, j := range jobs {
		out.Workflows = append(out.Workflows, j.WorkflowID())
	}
	return out, err
}

// optionalOpen counts the open optional jobs of a completed request, including its
// parent's: its workflow has to start them.
func (a *Activities) optionalOpen(ctx context.Context, r bench.Request) (int, error) {
	if r.Outcome != bench.Success && r.Outcome != bench.Failure {
		return 0, nil
	}
	p, err := a.Store.StageProgress(ctx, r.ID, "", true)
	return p.Open(), err
}

// ExpireRequest ends a request whose artifacts are overdue.
func (a *Activities) ExpireRequest(ctx context.Context, ref protocol.RequestRef) error {
	_, config, err := a.config(ctx, ref.Project)
	if err != nil {
		return err
	}
	if _, err := a.Store.ExpireArtifacts(ctx, ref.ID, config.Queue.ArtifactsWithin()); err != nil {
		return err
	}
	// The record decides: an earlier attempt may have expired it without notifying anyone.
	r, err := a.Store.Request(ctx, ref.ID)
	if err != nil || r.Outcome != bench.Expired {
		return found(err, "reading the request")
	}
	return a.JobsDone(ctx, ref)
}

// AskAdmission wakes the project's Queue workflow, and starts it unless it runs.
func (a *Activities) AskAdmission(ctx context.Context, ref protocol.RequestRef) error {
	return a.Workflows.QueueChanged(ctx, ref.Project)
}

// shownInQueue bounds the number of waiting requests in a queue's details.
const shownInQueue = 10

// Admit admits the next requests of a project in the order of its policy, and signals
// every admitted request that has not written its jobs yet, in case an earlier signal was
// lost.
func (a *Activities) Admit(ctx context.Context, in protocol.QueueInput) (protocol.QueueState, error) {
	_, config, err := a.config(ctx, in.Project)
	if err != nil {
		return protocol.QueueState{}, err
	}
	state := protocol.QueueState{Slots: config.Slots()}
	_, err = a.Store.Admit(ctx, in.Project, config.Slots(), func(open []bench.Request, done map[string]bool) (store.Admission, error) {
		decision := store.Admission{Policy: string(admission.PolicyOf(config))}
		state.Next = nil
		requests, running := admission.RequestsOf(open), 0
		for _, p := range admission.Order(requests, done, admission.PolicyOf(config)) {
			if p.Request.Status == bench.InProgress {
				running++
				continue
			}
			state.Next = append(state.Next, protocol.QueueEntry{ID: p.Request.ID, Tag: p.Request.Tag, Reason: p.Reason})
			if p.Admissible {
				decision.Next = append(decision.Next, p.Request.ID)
			}
		}
		if running >= state.Slots || len(decision.Next) == 0 {
			return decision, nil // none is admitted: there is nothing to record
		}
		var err error
		decision.State, err = admission.EncodeState(requests, done)
		return decision, err
	})
	if err != nil {
		return state, err
	}
	paused, err := a.paused(ctx, in.Project)
	if err != nil {
		return state, err
	}
	state.Paused = paused.admission
	running, err := a.Store.InProgressTracked(ctx, in.Project)
	if err != nil {
		return state, err
	}
	for _, r := range running {
		if r.ExpandedAt == nil || r.ReopenedAt != nil { // a reopened request has jobs before its admission
			if err := a.Workflows.Admitted(ctx, r.Ref()); err != nil {
				return state, err
			}
		}
		if r.JobsDoneAt == nil {
			state.InProgress = append(state.InProgress, protocol.QueueEntry{ID: r.ID, Tag: r.Tag})
		}
		state.Next = slices.DeleteFunc(state.Next, func(e protocol.QueueEntry) bool { return e.ID == r.ID })
		if r.JobsDoneAt == nil && r.Message != paused.running() {
			if err := a.Store.SetRequestMessage(ctx, r.ID, paused.running()); err != nil {
				return state, err
			}
		}
	}
	state.Waiting = len(state.Next)
	state.Next = state.Next[:min(len(state.Next), shownInQueue)]
	// The message shown with a waiting request.
	for i, e := range state.Next {
		if err := a.Store.SetRequestMessage(ctx, e.ID, paused.waiting()+fmt.Sprintf("number %d of %d waiting in the queue: %s", i+1, state.Waiting, e.Reason)); err != nil {
			return state, err
		}
	}
	return state, nil
}

// Progress counts the jobs of a stage of a request.
func (a *Activities) Progress(ctx context.Context, in protocol.ProgressInput) (protocol.ProgressResult, error) {
	r, err := a.Store.Request(ctx, in.Request.ID)
	if err != nil {
		return protocol.ProgressResult{}, found(err, "reading the request")
	}
	recheck, err := a.walk(ctx, r)
	if err != nil {
		return protocol.ProgressResult{}, err
	}
	p, err := a.Store.StageProgress(ctx, r.ID, in.Stage, in.Optional)
	if err != nil {
		return protocol.ProgressResult{}, err
	}
	if in.Stage == bench.StageBuild && p.Failure > 0 {
		if p.Failure, err = a.ownBuildFailures(ctx, r); err != nil {
			return protocol.ProgressResult{}, err
		}
	}
	out := protocol.ProgressResult{Counts: counts(p), Cancelled: r.Status == bench.Completed, RecheckSeconds: recheck}
	if out.Shared, err = a.shared(ctx, r); err != nil {
		return out, err
	}
	if p.Failure > 0 {
		if out.Failure, err = a.failure(ctx, r.ID, in.Stage); err != nil {
			return out, err
		}
	}
	if in.Stage == bench.StageOwn && !in.Optional && out.Counts.Open == 0 {
		if out.ParentLacks, err = a.parentLacks(ctx, r); err != nil {
			return out, err
		}
	}
	return out, nil
}

// failure returns the message of the first failed job of a stage.
func (a *Activities) failure(ctx context.Context, id bench.RequestID, stage bench.Stage) (string, error) {
	return a.Store.FirstFailure(ctx, id, stage)
}

func counts(p bench.JobProgress) protocol.JobCounts {
	return protocol.JobCounts{Total: p.Total, Open: p.Open(), Success: p.Success, Failure: p.Failure, Cancelled: p.Cancelled}
}

// JobsDone frees a request's slot, and wakes its project's queue and the requests that
// wait for its results. A project whose suite fails request after request is paused before
// the next one is admitted. Then the results are packed for pages.
func (a *Activities) JobsDone(ctx context.Context, ref protocol.RequestRef) error {
	if err := a.Store.FinishJobsOf(ctx, ref.ID); err != nil {
		return found(err, "recording the end of the request's jobs")
	}
	r, err := a.Store.Request(ctx, ref.ID)
	if err != nil {
		return found(err, "reading the request")
	}
	if r.Type.Tracked() {
		if err := a.freed(ctx, r); err != nil {
			return err
		}
	}
	a.packSoon(ctx, r)
	return nil
}

// freed pauses a project whose suite fails, and wakes the waiters for a request's slot or
// results.
func (a *Activities) freed(ctx context.Context, r bench.Request) error {
	pause, err := a.Store.PauseForSuite(ctx, r.ID)
	if err != nil {
		return err
	}
	if pause != nil {
		a.Log.WarnContext(ctx, "the project was paused because of its suite", "project", r.Project, "request", r.ID, "reason", pause.Reason)
	}
	if err := a.Workflows.QueueChanged(ctx, r.Project); err != nil {
		return err
	}
	if r.Tag == "" {
		return nil
	}
	children, err := a.Store.ChildrenOf(ctx, r.Project, r.Tag)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := a.Workflows.ParentCompleted(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// Complete decides a request's outcome from the record, compares it with its
// baseline and completes it.
func (a *Activities) Complete(ctx context.Context, in protocol.CompleteInput) (protocol.CompleteResult, error) {
	r, err := a.Store.Request(ctx, in.Request.ID)
	if err != nil {
		return protocol.CompleteResult{}, found(err, "reading the request")
	}
	if r.Status == bench.Completed {
		return a.ended(ctx, r)
	}
	result, err := a.outcome(ctx, r, in.Failed)
	if err != nil {
		return protocol.CompleteResult{}, err
	}
	a.Points.Reach(ctx, failpoint.Completing)
	var summary json.RawMessage
	if (r.Type.Tracked() || r.InTurns() != "") && in.Failed == "" {
		result.Baseline, summary, err = a.compare(ctx, r)
		if err != nil {
			return protocol.CompleteResult{}, err
		}
	}
	if result.OptionalOpen, err = a.optionalOpen(ctx, bench.Request{ID: r.ID, Standing: bench.Standing{Outcome: result.Outcome}}); err != nil {
		return protocol.CompleteResult{}, err
	}
	err = a.Store.CompleteRequest(ctx, r.ID, result.Outcome, result.Baseline, summary, result.Message)
	if errors.Is(err, store.ErrConflict) {
		// It was ended in between, for example cancelled: the row decides.
		return a.Complete(ctx, in)
	}
	return result, err
}

func (a *Activities) outcome(ctx context.Context, r bench.Request, failed string) (protocol.CompleteResult, error) {
	// The parent's jobs and optional ones do not decide.
	jobs, err := a.Store.StageProgress(ctx, r.ID, bench.StageOwn, false)
	if err != nil {
		return protocol.CompleteResult{}, err
	}
	out := protocol.CompleteResult{RequestResult: protocol.RequestResult{Outcome: bench.Success, Jobs: counts(jobs)}}
	switch {
	case failed != "":
		out.Outcome, out.Message = bench.Failure, failed
	case jobs.Failure > 0:
		why, err := a.failure(ctx, r.ID, bench.StageOwn)
		out.Outcome, out.Message = bench.Failure, fmt.Sprintf("%d of %d jobs failed: %s; 'benchloom status %s' has the rest", jobs.Failure, jobs.Total, why, r.ID)
		return out, err
	case jobs.Total == 0:
		out.Message = "everything was measured before"
	case jobs.Cancelled == jobs.Total:
		out.Outcome, out.Message = bench.Cancelled, "all of its jobs were cancelled"
	case r.Template != nil:
		out.Message = fmt.Sprintf("%d of %d nodes succeeded", jobs.Success, jobs.Total)
		if jobs.Cancelled > 0 {
			out.Message += fmt.Sprintf("; %d were skipped or cancelled", jobs.Cancelled)
		}
	case r.Profiler != "":
		out.Message = fmt.Sprintf("%d of %d profiles were made", jobs.Success, jobs.Total)
	default:
		total, done, err := a.Store.StageTestCases(ctx, r.ID, bench.StageOwn)
		out.Message = fmt.Sprintf("%d of %d test cases have results", done, total)
		return out, err
	}
	return out, nil
}

// compare finds a request's baseline and summarises the differences.
func (a *Activities) compare(ctx context.Context, r bench.Request) (baseline string, summary json.RawMessage, err error) {
	decided, err := a.Store.ComparisonOf(ctx, r.ID)
	switch {
	case err == nil:
		baseline = decided.Baseline // whatever was measured since
	case errors.Is(err, store.ErrNotFound):
		if baseline, err = a.baseline(ctx, r); err != nil || baseline == "" {
			return "", nil, err
		}
	default:
		return "", nil, err
	}
	compared, err := results.Compare(ctx, a.Store, a.Suites, results.Pair{Project: r.Project, A: baseline, B: r.Tag})
	if err != nil {
		return "", nil, err
	}
	summary, err = json.Marshal(compared.Summary())
	return baseline, summary, err
}

// baseline returns the artifact to compare with: the one measured in turns with it; its
// parent, if that has any result; for a release the next lower measured version. Empty:
// none.
func (a *Activities) baseline(ctx context.Context, r bench.Request) (string, error) {
	if r.Versus != "" {
		samples, _, err := a.Store.SamplesInTurns(ctx, r.Project, r.Versus, r.Tag)
		if err != nil || len(samples) == 0 {
			return "", err
		}
		return r.Versus, nil
	}
	if r.Type.HasParent() {
		samples, err := a.Store.SamplesOf(ctx, r.Project, r.Parent)
		if err != nil || len(samples) == 0 {
			return "", err
		}
		return r.Parent, nil
	}
	tags, err := a.Store.MeasuredTags(ctx, r.Project, bench.Release)
	if err != nil {
		return "", err
	}
	baseline := ""
	for _, tag := range tags {
		lower := admission.CompareVersions(tag, r.Tag) < 0
		if lower && (baseline == "" || admission.CompareVersions(tag, baseline) > 0) {
			baseline = tag
		}
	}
	return baseline, nil
}

// CancelRequest cancels a request: first its rows, then the workflows of the jobs that no
// other request waits for, then it frees its slot.
func (a *Activities) CancelRequest(ctx context.Context, in protocol.CancelInput) (protocol.RequestResult, error) {
	jobs, err := a.Store.CancelRequest(ctx, in.Request.ID, in.Who, in.Why)
	if err != nil {
		return protocol.RequestResult{}, found(err, "cancelling the request")
	}
	for _, j := range jobs {
		if err := a.Workflows.CancelJob(ctx, j); err != nil {
			return protocol.RequestResult{}, err
		}
	}
	if err := a.JobsDone(ctx, in.Request); err != nil {
		return protocol.RequestResult{}, err
	}
	r, err := a.Store.Request(ctx, in.Request.ID)
	if err != nil {
		return protocol.RequestResult{}, found(err, "reading the request")
	}
	end, err := a.ended(ctx, r)
	return end.RequestResult, err
}
