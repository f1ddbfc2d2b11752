package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/store"
)

// OperationRecord stores the operations of operators with their audit. An operation that
// is repeated with its key changes nothing and returns the first one.
type OperationRecord interface {
	// EndRequest returns store.ErrEnded for a request that has ended in another way.
	EndRequest(ctx context.Context, id bench.RequestID, ending store.EndOptions, act store.Act) (store.Operation, []bench.JobRef, error)
	// Reopen returns store.ErrNothingToMeasure when there is nothing to measure.
	Reopen(ctx context.Context, id bench.RequestID, again store.ReopenOptions, act store.Act) (store.Operation, error)
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	CountGraphs(ctx context.Context, id bench.RequestID) (int, error)
	// SetQueue puts jobs of an open request, all of them if none is named, into another queue.
	// store.ErrNotFound reports a job of another request.
	SetQueue(ctx context.Context, id bench.RequestID, queue string, jobs []bench.JobKey, act store.Act) (store.Operation, error)
	// JobRequest returns store.ErrNotFound for a job without a request.
	JobRequest(ctx context.Context, key bench.JobKey) (bench.Request, error)
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
	InvalidateResults(ctx context.Context, f store.ResultFilter, act store.Act) (store.Operation, error)
	// PurgeArtifact returns store.ErrNotFound for an unknown artifact, and
	// store.ErrInUse while a request for it is open.
	PurgeArtifact(ctx context.Context, project, tag string, act store.Act) (store.Operation, error)
	PauseQueue(ctx context.Context, project string, act store.Act) (store.Operation, error)
	ResumeQueue(ctx context.Context, project string, act store.Act) (store.Operation, error)
	Audit(ctx context.Context, f store.AuditFilter) ([]store.Operation, error)
}

// OperationWorkflows calls the workflows that an operation concerns, after it was
// recorded. Except for SettleRequest, the reconciliation repeats failed calls.
type OperationWorkflows interface {
	CancelRequest(ctx context.Context, request bench.RequestRef, jobs []bench.JobRef) error
	// SettleRequest waits until an ended request has no running workflow.
	SettleRequest(ctx context.Context, request bench.RequestRef) error
	// RestartRequest starts the workflow of a reopened request.
	RestartRequest(ctx context.Context, request bench.RequestRef) error
	// QueueChanged makes a project's Queue workflow read the record again.
	QueueChanged(ctx context.Context, project string) error
	// TriggerReconcile hands out waiting jobs now.
	TriggerReconcile(ctx context.Context) error
}

// operatorHandlers serve operations on requests, jobs, results and queues.
type operatorHandlers struct {
	*base
	queueAccess
	record    OperationRecord
	workflows OperationWorkflows
}

func (s *operatorHandlers) register() {
	onRequest := func(name, summary, description string) operation {
		return operation{id: name + "-request", method: http.MethodPost, path: "/requests/{request}/" + name, need: toWrite, scope: ofProject, tag: "operators", maxBody: namesBody,
			summary: summary, description: description}
	}
	handle(s.base, onRequest("cancel", "End a request", "Its jobs for which no other request waits are stopped. What was measured stays. Cancelling twice is no error."), s.cancelRequest)
	handle(s.base, onRequest("expire", "End a request that has waited too long", "One in progress only with force."), s.expireRequest)
	former := func(op operation) operation {
		op.deprecated, op.description = true, op.description+"\n\nPOST /graphs/{graph}/retrigger does this, too."
		return op
	}
	handle(s.base, former(onRequest("retry", "Open a request that has ended again, for what lacks a result", "Test cases without a valid result are measured by jobs of the next generation, when it is the request's turn again. The rest stays.")), s.retryRequest)
	handle(s.base, former(onRequest("remeasure", "Open a request that has ended again, for what has results too", "The former results stay in the record; the newest generation counts.")), s.remeasureRequest)
	handle(s.base, onRequest("set-queue", "Put an open request's jobs into another queue", "Level and share of jobs that have not begun change. The limits of their submitter, and of whoever asks, hold in every queue."), s.setQueue)
	handle(s.base, former(operation{id: "retry-job", method: http.MethodPost, path: "/jobs/{job}/retry", need: toWrite, scope: ofProject, tag: "operators",
		summary: "Retry a job that has ended", description: "A job of the next generation replaces it, with the test cases that lack a result. Its request is reopened if it has ended."}), s.retryJob)
	handle(s.base, operation{id: "retrigger", method: http.MethodPost, path: "/graphs/{graph}/retrigger", need: toWrite, scope: ofProject, tag: "graphs", maxBody: namesBody,
		summary: "Run jobs of a graph, or of a request's graphs, again", description: "Jobs of the next generation replace them, in a new graph of the same set, with all their test cases, or only those that lack a result. A job starts after those of the graph that it needs. The request is reopened if it has ended."}, s.retrigger)
	handle(s.base, operation{id: "rerun", method: http.MethodPost, path: "/graphs/{graph}/rerun", need: toWrite, scope: ofProject, tag: "graphs", maxBody: namesBody,
		summary: "Run jobs of a graph, or of a request's graphs, again as themselves", description: "The jobs keep their keys and get another run, with all their test cases; results of a later generation count. A job starts after those of the graph that it needs. What was skipped needs a new job: retrigger it. The request is reopened if it has ended."}, s.rerun)
	handle(s.base, operation{id: "invalidate-results", method: http.MethodPost, path: "/results/invalidate", need: toAdmin, tag: "operators",
		summary: "Invalidate results", description: "They stay in the record, but are left out of comparisons and exports. A retry measures their test cases again."}, s.invalidateResults)
	handle(s.base, operation{id: "purge-artifact", method: http.MethodPost, path: "/artifacts/purge", need: toAdmin, scope: ofProject, tag: "operators",
		summary: "Remove an artifact with its results, requests and jobs", description: "Refused while a request for it is open or a job of it runs. This cannot be undone."}, s.purgeArtifact)
	handle(s.base, operation{id: "pause-queue", method: http.MethodPost, path: "/projects/{project}/queue/pause", need: toAdmin, scope: ofProject, tag: "operators",
		summary: "Pause a project", description: "No request of the project is admitted and none of its jobs is handed out. Jobs handed out before continue."}, s.pauseQueue)
	handle(s.base, operation{id: "resume-queue", method: http.MethodPost, path: "/projects/{project}/queue/resume", need: toAdmin, scope: ofProject, tag: "operators",
		summary: "Resume a project"}, s.resumeQueue)
	handle(s.base, operation{id: "list-audit", method: http.MethodGet, path: "/audit", need: toRead, tag: "operators",
		summary: "List operations, newest first"}, s.listAudit)
}

// act returns the caller and the reason of an operation.
func act(ctx context.Context, in apiclient.Act) (store.Act, error) {
	if strings.ContainsRune(in.IdempotencyKey, 0) {
		return store.Act{}, invalid("the idempotency key holds a zero byte; use letters and digits")
	}
	return store.Act{Who: caller(ctx).Owner, Reason: in.Reason, Key: in.IdempotencyKey}, nil
}

// reasoned is [act] with a required reason, for what affects others.
func reasoned(ctx context.Context, in apiclient.Act) (store.Act, error) {
	if strings.TrimSpace(in.Reason) == "" {
		return store.Act{}, problemf(http.StatusUnprocessableEntity, "no-reason", "this needs a reason, for those who wonder later; add one")
	}
	return act(ctx, in)
}

func operationOf(o store.Operation) apiclient.Operation {
	return apiclient.Operation{
		Preview: previewOf(o.Result.Preview),
		ID:      o.ID, At: o.At, Who: o.Who, Action: o.Action, Project: o.Project, Subject: o.Subject, Reason: o.Reason,
		IdempotencyKey: o.IdempotencyKey, Detail: o.Detail, Changed: o.Result.Changed, Message: o.Result.Message, Requests: o.Result.Requests,
		Jobs: o.Result.Jobs, TestCases: o.Result.TestCases, Runs: o.Result.Runs, Graph: o.Result.Graph, Results: o.Result.Results,
		Repeated: o.Repeated, DryRun: o.ID == 0,
	}
}

func previewOf(p *store.Preview) *apiclient.Preview {
	if p == nil {
		return nil
	}
	out := &apiclient.Preview{Jobs: make([]apiclient.PreviewedJob, len(p.Jobs)), MachineSeconds: p.MachineSeconds, Unknown: p.Unknown}
	for i, j := range p.Jobs {
		out.Jobs[i] = apiclient.PreviewedJob{
			Job: j.Job.Key, Name: j.Job.Name, Kind: j.Job.Kind, Target: j.Job.Target, SizeClass: j.Job.SizeClass, TestCases: j.TestCases, Seconds: j.Seconds,
		}
	}
	return out
}

// operated answers with an operation on a request and the request's present state.
func (s *operatorHandlers) operated(ctx context.Context, id bench.RequestID, o store.Operation) (*body[apiclient.RequestOperation], error) {
	r, err := s.record.Request(ctx, id)
	return answer(apiclient.RequestOperation{Request: requestOf(r), Operation: operationOf(o)}, err)
}

type actOnRequest[T any] struct {
	Request string `path:"request" doc:"ID of the request, or project:tag of its artifact." example:"go:1.26.0"`
	Body    T
}

func (s *operatorHandlers) cancelRequest(ctx context.Context, in *actOnRequest[apiclient.Act]) (*body[apiclient.RequestOperation], error) {
	return s.endRequest(ctx, in.Request, store.EndOptions{Outcome: bench.Cancelled}, in.Body)
}

func (s *operatorHandlers) expireRequest(ctx context.Context, in *actOnRequest[apiclient.Expiry]) (*body[apiclient.RequestOperation], error) {
	return s.endRequest(ctx, in.Request, store.EndOptions{Outcome: bench.Expired, Force: in.Body.Force}, in.Body.Act)
}

func (s *operatorHandlers) endRequest(ctx context.Context, ref string, ending store.EndOptions, why apiclient.Act) (*body[apiclient.RequestOperation], error) {
	who, err := act(ctx, why)
	if err != nil {
		return nil, err
	}
	r, err := s.request(ctx, ref)
	if err != nil {
		return nil, err
	}
	done, jobs, err := s.record.EndRequest(ctx, r.ID, ending, who)
	if errors.Is(err, store.ErrEnded) {
		return nil, problemf(http.StatusConflict, "completed", "request %s has ended with %s; there is nothing left to %s", r.ID, r.Outcome, map[bench.Outcome]string{bench.Cancelled: "cancel", bench.Expired: "expire"}[ending.Outcome])
	}
	if err != nil {
		return nil, err
	}
	// Also when nothing has changed: the workflows may not know yet. But not when the
	// request was reopened since.
	if r, err = s.record.Request(ctx, r.ID); err == nil && r.Status == bench.Completed {
		s.reach(ctx, "cancel the workflows of a request", r.Ref().WorkflowID(), func(ctx context.Context) error {
			return s.workflows.CancelRequest(ctx, r.Ref(), jobs)
		})
	}
	return s.operated(ctx, r.ID, done)
}

func (s *operatorHandlers) retryRequest(ctx context.Context, in *actOnRequest[apiclient.Act]) (*body[apiclient.RequestOperation], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	return s.reopen(ctx, r, store.ReopenOptions{}, in.Body)
}

type remeasureRequest struct {
	Request string `path:"request" doc:"ID of the request, or project:tag of its artifact." example:"go:1.26.0"`
	DryRun  bool   `query:"dry_run" doc:"Only tell what would be measured, and how much machine time that took last."`
	Body    apiclient.Remeasurement
}

func (s *operatorHandlers) remeasureRequest(ctx context.Context, in *remeasureRequest) (*body[apiclient.RequestOperation], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	again := store.ReopenOptions{Remeasure: true, Benchmarks: in.Body.Benchmarks}
	if in.DryRun {
		return s.previewed(ctx, r, again, in.Body.Act)
	}
	return s.reopen(ctx, r, again, in.Body.Act)
}

// previewed tells what reopening a request would do.
func (s *operatorHandlers) previewed(ctx context.Context, r bench.Request, again store.ReopenOptions, why apiclient.Act) (*body[apiclient.RequestOperation], error) {
	who, err := act(ctx, why)
	if err != nil {
		return nil, err
	}
	if err := s.asOfNow(ctx, r, &again); err != nil {
		return nil, err
	}
	who.DryRun = true
	done, err := s.record.Reopen(ctx, r.ID, again, who)
	if err != nil {
		return nil, refusedAgain(r, again, err)
	}
	return s.operated(ctx, r.ID, done)
}

func (s *operatorHandlers) setQueue(ctx context.Context, in *actOnRequest[apiclient.QueueChange]) (*body[apiclient.RequestOperation], error) {
	who, err := act(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	if err := s.mayUse(ctx, in.Body.Queue, r.Branch); err != nil {
		return nil, err
	}
	done, err := s.record.SetQueue(ctx, r.ID, in.Body.Queue, in.Body.Jobs, who)
	if err != nil {
		return nil, err
	}
	s.reach(ctx, "hand out what waits", r.Ref().WorkflowID(), s.workflows.TriggerReconcile)
	return s.operated(ctx, r.ID, done)
}

type actOnJob struct {
	Job  string `path:"job" doc:"Key of the job."`
	Body apiclient.Act
}

func (s *operatorHandlers) retryJob(ctx context.Context, in *actOnJob) (*body[apiclient.RequestOperation], error) {
	j, err := s.job(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	r, err := s.record.JobRequest(ctx, j.Key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problemf(http.StatusConflict, "replaced", "job %s was replaced by one of a later generation, or no request has it any more; 'benchloom status REQUEST' lists a request's jobs", j.Key)
	}
	if err != nil {
		return nil, err
	}
	return s.reopen(ctx, r, store.ReopenOptions{Job: j.Key}, in.Body)
}

func (s *operatorHandlers) reopen(ctx context.Context, r bench.Request, again store.ReopenOptions, why apiclient.Act) (*body[apiclient.RequestOperation], error) {
	who, err := act(ctx, why)
	if err != nil {
		return nil, err
	}
	if err := s.asOfNow(ctx, r, &again); err != nil {
		return nil, err
	}
	if r.Status == bench.Completed {
		// Leave the workflow alone when there is nothing to do.
		try := who
		try.DryRun = true
		if _, err := s.record.Reopen(ctx, r.ID, again, try); err == nil {
			if err := s.settle(ctx, r); err != nil {
				return nil, err
			}
		}
	}
	done, err := s.record.Reopen(ctx, r.ID, again, who)
	if err != nil {
		return nil, refusedAgain(r, again, err)
	}
	if r, err = s.record.Request(ctx, r.ID); err != nil {
		return nil, err
	}
	switch {
	case r.Status != bench.Completed && r.WorkflowStartedAt == nil:
		s.reach(ctx, "start the workflow of a request again", r.Ref().WorkflowID(), func(ctx context.Context) error {
			if err := s.workflows.RestartRequest(ctx, r.Ref()); err != nil {
				return err
			}
			return s.record.MarkWorkflowStarted(ctx, r.ID)
		})
	case r.Status == bench.InProgress:
		s.reach(ctx, "hand out what waits", r.Ref().WorkflowID(), s.workflows.TriggerReconcile)
	}
	return s.operated(ctx, r.ID, done)
}

// settleBound bounds the wait for the workflow of an ended request, while a client waits
// for the answer.
const settleBound = 5 * time.Second

// settle waits until the workflow of an ended request is gone, because a reopened request gets
// another one with the same ID.
func (s *operatorHandlers) settle(ctx context.Context, r bench.Request) error {
	bounded, stop := context.WithTimeout(ctx, settleBound)
	defer stop()
	err := s.workflows.SettleRequest(bounded, r.Ref())
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	s.Log.WarnContext(ctx, "the workflow of an ended request does not end", "workflow", r.Ref().WorkflowID(), "error", err, "request_id", requestID(ctx))
	return unavailable(fmt.Sprintf("the workflow of request %s is still ending, or Temporal does not answer; try again in a moment, and look at %s in the Temporal Web UI if it stays so", r.ID, r.Ref().WorkflowID()))
}

type retriggerGraph struct {
	Graph  string `path:"graph" doc:"ID of the graph; or ID of a request, or project:tag of its artifact: all of its graphs." example:"r7k2m4q9xt2-1"`
	DryRun bool   `query:"dry_run" doc:"Only tell what would run again, and how much machine time that took last."`
	Body   apiclient.Retrigger
}

func (s *operatorHandlers) retrigger(ctx context.Context, in *retriggerGraph) (*body[apiclient.RequestOperation], error) {
	return s.again(ctx, in, false)
}

func (s *operatorHandlers) rerun(ctx context.Context, in *retriggerGraph) (*body[apiclient.RequestOperation], error) {
	return s.again(ctx, in, true)
}

func (s *operatorHandlers) again(ctx context.Context, in *retriggerGraph, rerun bool) (*body[apiclient.RequestOperation], error) {
	ref, number := graphRef(in.Graph)
	r, err := s.request(ctx, ref)
	if err != nil {
		return nil, err
	}
	choice := graphset.Choice{Number: number, Jobs: in.Body.Jobs, Rerun: rerun}
	if choice.Select, err = graphset.ParseSelector(in.Body.Select); err != nil {
		return nil, err
	}
	if choice.Downstream, err = graphset.ParseDownstream(in.Body.Downstream); err != nil {
		return nil, err
	}
	again := store.ReopenOptions{Retrigger: &choice, Times: in.Body.Times, Budget: time.Duration(in.Body.Budget * float64(time.Second))}
	if in.Body.Lacking {
		if again, err = lacking(again); err != nil {
			return nil, err
		}
	} else if choice.Whole() && !rerun && again.Times <= 1 && again.Budget == 0 {
		graphs, err := s.record.CountGraphs(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if graphs == 0 { // commands, or a request from before there were graphs
			again = store.ReopenOptions{Remeasure: true, Benchmarks: choice.Select.Benchmarks}
		}
	}
	if in.DryRun {
		return s.previewed(ctx, r, again, in.Body.Act)
	}
	return s.reopen(ctx, r, again, in.Body.Act)
}

// lacking asks for what has no result, instead of for whole jobs.
func lacking(again store.ReopenOptions) (store.ReopenOptions, error) {
	choice := again.Retrigger
	if choice.Rerun || choice.Number > 0 || len(choice.Jobs) > 1 || !choice.Select.Empty() ||
		cmp.Or(choice.Downstream, graphset.DownstreamNone) != graphset.DownstreamNone || again.Times > 1 || again.Budget > 0 {
		return again, problemf(http.StatusUnprocessableEntity, "lacking",
			"what lacks a result is measured by new jobs, of a whole request or of one named job; name no graph, no further jobs and no selection, and neither times nor a budget")
	}
	out := store.ReopenOptions{}
	if len(choice.Jobs) == 1 {
		out.Job = choice.Jobs[0]
	}
	return out, nil
}

// refusedAgain words why a request is not reopened.
func refusedAgain(r bench.Request, again store.ReopenOptions, err error) error {
	var choice *graphset.ChoiceError
	var nothing *graphset.NothingChosenError
	var downstream *graphset.DownstreamError
	var budget *store.BudgetError
	switch show := fmt.Sprintf("'benchloom graph show %s' shows them", r.ID); {
	case errors.As(err, &choice) && choice.TooLate:
		return problemf(http.StatusConflict, "too-late", "job %s %s: '%s'", choice.Job, choice.Why, strings.Join(retriggerFor(r, *again.Retrigger), " "))
	case errors.As(err, &choice):
		return problemf(http.StatusConflict, "cannot-run-again", "job %s %s; %s", choice.Job, choice.Why, show)
	case errors.As(err, &budget):
		return problemf(http.StatusConflict, "budget", "request %s: %s; choose less, or allow more", r.ID, budget)
	case errors.As(err, &nothing):
		return problemf(http.StatusUnprocessableEntity, "nothing-to-measure", "request %s: %s; %s", r.ID, nothing, show)
	case errors.As(err, &downstream):
		return problemf(http.StatusUnprocessableEntity, "downstream", "%s", downstream)
	case again.Retrigger != nil && errors.Is(err, store.ErrNotFound):
		return noGraph(r, again.Retrigger.Number)
	case errors.Is(err, store.ErrNothingToMeasure):
		return nothingLacks(r, again)
	}
	return err
}

// retriggerFor returns the command that repeats a choice by new jobs.
func retriggerFor(r bench.Request, c graphset.Choice) []string {
	ref := string(r.ID)
	if c.Number > 0 {
		ref = bench.GraphID{Request: r.ID, Number: c.Number}.String()
	}
	command := []string{"benchloom", "retrigger", ref}
	for _, job := range c.Jobs {
		command = append(command, string(job))
	}
	if !c.Select.Empty() {
		command = append(command, "--select", c.Select.String())
	}
	return append(command, "--downstream", string(cmp.Or(c.Downstream, graphset.DownstreamNone)))
}

func nothingLacks(r bench.Request, again store.ReopenOptions) error {
	if again.Retrigger != nil {
		return problemf(http.StatusConflict, "nothing-to-measure", "later jobs of request %s have all of their test cases; 'benchloom graph show %s' shows these", r.ID, r.ID)
	}
	if again.Remeasure {
		of := "test cases that were to be measured; measure what it lacks instead, with --lacking"
		if len(again.Benchmarks) > 0 {
			of = "test cases of " + strings.Join(again.Benchmarks, ", ")
		}
		return problemf(http.StatusUnprocessableEntity, "nothing-to-measure", "request %s has no %s; 'benchloom status %s' shows its jobs", r.ID, of, r.ID)
	}
	return problemf(http.StatusConflict, "nothing-lacks", "every test case of it has a result; 'benchloom retrigger %s --select stage=own' measures it again anyway", r.ID)
}

// asOfNow adds the parts of the project's current configuration that apply to repeated
// jobs: their queue, their suite, and how their artifacts are built.
func (s *operatorHandlers) asOfNow(ctx context.Context, r bench.Request, again *store.ReopenOptions) error {
	p, err := s.project(ctx, r.Project, http.StatusNotFound)
	if err != nil {
		return err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return fmt.Errorf("project %s: %w; apply a corrected configuration with 'benchloom project apply'", p.Name, err)
	}
	again.Queue = queueOf(r, config)
	if p.SuiteHash == "" {
		return nil
	}
	current, err := s.suites.Suite(ctx, p.SuiteHash)
	if err != nil {
		return fmt.Errorf("reading the suite of project %s: %w", p.Name, err)
	}
	again.Present = &store.Present{SuiteHash: p.SuiteHash, Has: current.Has, Builds: func(j bench.Job) bool {
		source := current.Artifact()
		provider, parameters := config.Artifacts.For(j.Tag, source.Provider, source.Parameters)
		if provider != bench.BuildProvider {
			return false
		}
		recipe, err := bench.ParseBuildRecipe(parameters, j.Tag, j.Target)
		return err == nil && recipe.Hash(j.Target) == j.Build.Hash(j.Target)
	}}
	return nil
}

type invalidateResults struct{ Body apiclient.Invalidation }

func (s *operatorHandlers) invalidateResults(ctx context.Context, in *invalidateResults) (*body[apiclient.Operation], error) {
	who, err := reasoned(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	if in.Body.Project != "" {
		if _, err := s.project(ctx, in.Body.Project, http.StatusNotFound); err != nil {
			return nil, err
		}
		if err := s.tags(ctx, in.Body.Project, &in.Body.Tag); err != nil {
			return nil, err
		}
	}
	who.DryRun = in.Body.DryRun
	done, err := s.record.InvalidateResults(ctx, store.ResultFilter{
		Project: in.Body.Project, Tag: in.Body.Tag, Collector: in.Body.Collector, Since: in.Body.Since, Until: in.Body.Until,
	}, who)
	return answer(operationOf(done), err)
}

type purgeArtifact struct{ Body apiclient.Purge }

func (s *operatorHandlers) purgeArtifact(ctx context.Context, in *purgeArtifact) (*body[apiclient.Operation], error) {
	who, err := reasoned(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	if _, err := s.project(ctx, in.Body.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	if err := s.tags(ctx, in.Body.Project, &in.Body.Tag); err != nil {
		return nil, err
	}
	who.DryRun = in.Body.DryRun
	done, err := s.record.PurgeArtifact(ctx, in.Body.Project, in.Body.Tag, who)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problemf(http.StatusNotFound, "unknown-artifact", "project %s has no artifact %q; 'benchloom status --project %s' shows what it has", in.Body.Project, in.Body.Tag, in.Body.Project)
	case errors.Is(err, store.ErrInUse):
		return nil, problemf(http.StatusConflict, "in-use", "%s", err)
	}
	return answer(operationOf(done), err)
}

type actOnProject struct {
	Project string `path:"project" doc:"Name of the project." example:"go"`
	Body    apiclient.Act
}

func (s *operatorHandlers) pauseQueue(ctx context.Context, in *actOnProject) (*body[apiclient.Operation], error) {
	who, err := reasoned(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return s.onQueue(ctx, in.Project, func() (store.Operation, error) { return s.record.PauseQueue(ctx, in.Project, who) })
}

func (s *operatorHandlers) resumeQueue(ctx context.Context, in *actOnProject) (*body[apiclient.Operation], error) {
	who, err := act(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return s.onQueue(ctx, in.Project, func() (store.Operation, error) { return s.record.ResumeQueue(ctx, in.Project, who) })
}

// onQueue pauses or resumes a queue, and wakes its workflow.
func (s *operatorHandlers) onQueue(ctx context.Context, project string, do func() (store.Operation, error)) (*body[apiclient.Operation], error) {
	if _, err := s.project(ctx, project, http.StatusNotFound); err != nil {
		return nil, err
	}
	done, err := do()
	if err != nil {
		return nil, err
	}
	s.wakeQueue(ctx, s.workflows, project)
	return answer(operationOf(done), nil)
}

// wakeQueue tells a project's Queue workflow that it was paused or resumed.
func (s *base) wakeQueue(ctx context.Context, workflows OperationWorkflows, project string) {
	s.reach(ctx, "tell a queue", bench.QueueWorkflowID(project), func(ctx context.Context) error {
		return errors.Join(workflows.QueueChanged(ctx, project), workflows.TriggerReconcile(ctx))
	})
}

type listAudit struct {
	Project string `query:"project" doc:"Only operations on this project."`
	Who     string `query:"who" doc:"Only operations of this user."`
	Subject string `query:"subject" doc:"Only operations on this: a request's ID, a job's key, an artifact's tag. By a request's ID also those that affected it, such as the retry of one of its jobs."`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor  string `query:"cursor" doc:"The value of next from the page before."`
}

func (s *operatorHandlers) listAudit(ctx context.Context, in *listAudit) (*body[apiclient.AuditList], error) {
	filter := store.AuditFilter{Project: in.Project, Who: in.Who, Subject: in.Subject, Limit: in.Limit}
	if in.Cursor != "" {
		var err error
		if filter.Before, err = strconv.ParseInt(in.Cursor, 10, 64); err != nil || filter.Before < 1 {
			return nil, invalid("the cursor %.80q is invalid: use the value of next from the page before, or none for the first page", in.Cursor)
		}
	}
	entries, err := s.record.Audit(ctx, filter)
	if err != nil {
		return nil, err
	}
	list := apiclient.AuditList{Operations: make([]apiclient.Operation, 0, len(entries))}
	for _, e := range entries {
		list.Operations = append(list.Operations, operationOf(e))
	}
	if len(entries) == in.Limit {
		list.Next = strconv.FormatInt(entries[len(entries)-1].ID, 10)
	}
	return answer(list, nil)
}
