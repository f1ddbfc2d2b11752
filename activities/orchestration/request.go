package orchestration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/queueorder"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// LoadRequest reads what a request's workflow needs to know of its row.
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
	_, config, err := a.config(ctx, r.Project)
	if err != nil {
		return protocol.RequestFacts{}, err
	}
	targets := r.Selection.Targets
	if len(targets) == 0 {
		targets = config.Targets
	}
	return protocol.RequestFacts{
		Type: r.Type, Tag: r.Tag, User: r.Submitter, PR: r.PR, Targets: targets,
		Status: r.Status, Outcome: r.Outcome,
		Admitted: r.AdmittedAt != nil, JobsDone: r.JobsDoneAt != nil,
	}, nil
}

// AskAdmission wakes the project's queue, which is started when it is not
// running.
func (a *Activities) AskAdmission(ctx context.Context, ref protocol.RequestRef) error {
	return a.Workflows.QueueChanged(ctx, ref.Project)
}

// shownInQueue bounds how many waiting requests a queue's details name.
const shownInQueue = 10

// Admit admits the next requests of a project in the order of its policy, and
// tells every admitted request that has not written its jobs yet: a message that
// was lost is repeated.
func (a *Activities) Admit(ctx context.Context, in protocol.QueueInput) (protocol.QueueState, error) {
	_, config, err := a.config(ctx, in.Project)
	if err != nil {
		return protocol.QueueState{}, err
	}
	state := protocol.QueueState{Slots: config.Slots()}
	_, err = a.Store.Admit(ctx, in.Project, config.Slots(), func(open []store.Request, completed map[string]bool) []bench.RequestID {
		var admissible []bench.RequestID
		state.Next = nil
		for _, p := range queueorder.Order(queueRequests(open), completed, queuePolicy(config)) {
			if p.Request.Status == queueorder.InProgress {
				continue
			}
			state.Next = append(state.Next, protocol.QueueEntry{ID: bench.RequestID(p.Request.ID), Tag: p.Request.Tag, Reason: p.Reason})
			if p.Admissible {
				admissible = append(admissible, bench.RequestID(p.Request.ID))
			}
		}
		return admissible
	})
	if err != nil {
		return state, err
	}
	running, err := a.Store.InProgressTracked(ctx, in.Project)
	if err != nil {
		return state, err
	}
	for _, r := range running {
		if r.ExpandedAt == nil {
			if err := a.Workflows.Admitted(ctx, r.Project, r.ID); err != nil {
				return state, err
			}
		}
		if r.JobsDoneAt == nil {
			state.InProgress = append(state.InProgress, protocol.QueueEntry{ID: r.ID, Tag: r.Tag})
		}
		state.Next = slices.DeleteFunc(state.Next, func(e protocol.QueueEntry) bool { return e.ID == r.ID })
		if r.Message != "" {
			if err := a.Store.SetRequestMessage(ctx, r.ID, ""); err != nil {
				return state, err
			}
		}
	}
	state.Waiting = len(state.Next)
	state.Next = state.Next[:min(len(state.Next), shownInQueue)]
	// What a person reads of a request that waits.
	for i, e := range state.Next {
		if err := a.Store.SetRequestMessage(ctx, e.ID, fmt.Sprintf("number %d of %d waiting in the queue: %s", i+1, state.Waiting, e.Reason)); err != nil {
			return state, err
		}
	}
	return state, nil
}

func queuePolicy(c bench.ProjectConfig) queueorder.Policy {
	if c.Queue.Policy == "upstream" {
		return queueorder.Upstream
	}
	return queueorder.Spec
}

func queueRequests(open []store.Request) []queueorder.Request {
	out := make([]queueorder.Request, len(open))
	for i, r := range open {
		out[i] = queueorder.Request{
			ID: string(r.ID), Tag: r.Tag, Type: queueorder.Type(r.Type), ParentTag: r.Parent, PR: r.PR,
			CreatedAt: r.CreatedAt, Status: queueorder.Status(r.Status),
		}
		if r.CommitDate != nil {
			out[i].CommitDate = *r.CommitDate
		}
	}
	return out
}

// Progress counts a request's jobs and names those handed out to it whose
// workflow may be missing.
func (a *Activities) Progress(ctx context.Context, ref protocol.RequestRef) (protocol.ProgressResult, error) {
	r, err := a.Store.Request(ctx, ref.ID)
	if err != nil {
		return protocol.ProgressResult{}, found(err, "reading the request")
	}
	counts, err := a.counts(ctx, ref.ID)
	if err != nil {
		return protocol.ProgressResult{}, err
	}
	handedOut, err := a.Store.HandedOutTo(ctx, ref.ID)
	if err != nil {
		return protocol.ProgressResult{}, err
	}
	inputs, err := a.jobInputs(ctx, handedOut)
	if err != nil {
		return protocol.ProgressResult{}, err
	}
	return protocol.ProgressResult{Counts: counts, HandedOut: inputs, Cancelled: r.Status == bench.Completed}, nil
}

func (a *Activities) counts(ctx context.Context, id bench.RequestID) (protocol.JobCounts, error) {
	p, err := a.Store.JobProgress(ctx, id)
	if err != nil {
		return protocol.JobCounts{}, err
	}
	return protocol.JobCounts{Total: p.Total, Open: p.Open(), Success: p.Success, Failure: p.Failure, Cancelled: p.Cancelled}, nil
}

// JobsDone frees a request's slot and wakes its project's queue.
func (a *Activities) JobsDone(ctx context.Context, ref protocol.RequestRef) error {
	if err := a.Store.FinishJobsOf(ctx, ref.ID); err != nil {
		return found(err, "recording the end of the request's jobs")
	}
	r, err := a.Store.Request(ctx, ref.ID)
	if err != nil {
		return found(err, "reading the request")
	}
	if !r.Type.Tracked() {
		return nil
	}
	return a.Workflows.QueueChanged(ctx, ref.Project)
}

// Complete decides a request's outcome from the record, compares it with its
// baseline and completes it.
func (a *Activities) Complete(ctx context.Context, in protocol.CompleteInput) (protocol.CompleteResult, error) {
	r, err := a.Store.Request(ctx, in.Request.ID)
	if err != nil {
		return protocol.CompleteResult{}, found(err, "reading the request")
	}
	if r.Status == bench.Completed {
		return protocol.CompleteResult{Outcome: r.Outcome, Baseline: r.Baseline, Message: r.Message}, nil
	}
	result, err := a.outcome(ctx, r, in.Failed)
	if err != nil {
		return protocol.CompleteResult{}, err
	}
	a.Points.Reach(ctx, failpoint.Completing)
	var summary json.RawMessage
	if r.Type == bench.Release && in.Failed == "" {
		result.Baseline, summary, err = a.compare(ctx, r)
		if err != nil {
			return protocol.CompleteResult{}, err
		}
	}
	err = a.Store.CompleteRequest(ctx, r.ID, result.Outcome, result.Baseline, summary, result.Message)
	if errors.Is(err, store.ErrConflict) {
		// Somebody ended it in between, for example by cancelling: the row decides.
		return a.Complete(ctx, in)
	}
	return result, err
}

func (a *Activities) outcome(ctx context.Context, r store.Request, failed string) (protocol.CompleteResult, error) {
	if failed != "" {
		return protocol.CompleteResult{Outcome: bench.Failure, Message: failed}, nil
	}
	jobs, err := a.Store.JobProgress(ctx, r.ID)
	if err != nil {
		return protocol.CompleteResult{}, err
	}
	switch {
	case jobs.Failure > 0:
		return protocol.CompleteResult{Outcome: bench.Failure, Message: fmt.Sprintf("%d of %d jobs failed; 'benchloom status %s' names what failed and why", jobs.Failure, jobs.Total, r.ID)}, nil
	case jobs.Total > 0 && jobs.Cancelled == jobs.Total:
		return protocol.CompleteResult{Outcome: bench.Cancelled, Message: "all of its jobs were cancelled"}, nil
	}
	return protocol.CompleteResult{Outcome: bench.Success, Message: fmt.Sprintf("%d of %d test cases have results", jobs.TestCasesDone, jobs.TestCases)}, nil
}

// compare finds a release's baseline, the next lower measured version, and sums
// the differences up.
func (a *Activities) compare(ctx context.Context, r store.Request) (baseline string, summary json.RawMessage, err error) {
	tags, err := a.Store.MeasuredTags(ctx, r.Project, bench.Release)
	if err != nil {
		return "", nil, err
	}
	for _, tag := range tags {
		lower := queueorder.CompareVersions(tag, r.Tag) < 0
		if lower && (baseline == "" || queueorder.CompareVersions(tag, baseline) > 0) {
			baseline = tag
		}
	}
	if baseline == "" {
		return "", nil, nil
	}
	report, err := results.Compare(ctx, a.Store, a.Suites, results.Pair{Project: r.Project, A: baseline, B: r.Tag})
	if err != nil {
		return "", nil, err
	}
	summary, err = json.Marshal(report.Summary)
	return baseline, summary, err
}

// CancelRequest cancels a request: first its rows, then the workflows of those
// of its jobs for which nobody else waits, then its slot is free.
func (a *Activities) CancelRequest(ctx context.Context, in protocol.CancelInput) error {
	jobs, err := a.Store.CancelRequest(ctx, in.Request.ID, in.Who, in.Why)
	if err != nil {
		return found(err, "cancelling the request")
	}
	for _, j := range jobs {
		if err := a.Workflows.CancelJob(ctx, j.Project, j.Key); err != nil {
			return err
		}
	}
	return a.JobsDone(ctx, in.Request)
}
