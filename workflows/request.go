package workflows

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// Phases of a Request workflow, as its status query and its State search
// attribute show them.
const (
	PhaseStarting   = "starting"
	PhaseAdmission  = "waiting_for_admission"
	PhaseExpanding  = "expanding"
	PhaseRunning    = "in_progress"
	PhaseCompleting = "completing"
	PhaseCompleted  = "completed"
	PhaseCancelled  = "cancelled"
)

// Request carries one benchmark request from its row to its outcome: it waits
// for its turn, writes its jobs, starts those that are handed out to it, counts
// their ends and completes.
//
// What it knows is read from the record, so any of its runs can begin anywhere:
// a reset or a continue-as-new carries nothing over but the request's ID.
func Request(ctx workflow.Context, in protocol.RequestInput) error {
	r, err := newRequest(ctx, in)
	if err != nil {
		return err
	}
	err = r.run(ctx)
	if temporal.IsCanceledError(err) || (err != nil && ctx.Err() != nil) {
		return r.cancelled(ctx)
	}
	return err
}

type request struct {
	in       protocol.RequestInput
	ref      protocol.RequestRef
	facts    protocol.RequestFacts
	status   protocol.RequestStatus
	result   protocol.CompleteResult
	started  map[bench.JobKey]bool
	admitted workflow.ReceiveChannel
	handOut  workflow.ReceiveChannel
	ended    workflow.ReceiveChannel
	log      log.Logger
}

func newRequest(ctx workflow.Context, in protocol.RequestInput) (*request, error) {
	r := &request{
		in:       in,
		ref:      protocol.RequestRef(in),
		status:   protocol.RequestStatus{Project: in.Project, ID: in.ID, Phase: PhaseStarting},
		started:  make(map[bench.JobKey]bool),
		admitted: workflow.GetSignalChannel(ctx, protocol.SignalAdmitted),
		handOut:  workflow.GetSignalChannel(ctx, protocol.SignalHandOut),
		ended:    workflow.GetSignalChannel(ctx, protocol.SignalJobEnded),
		log:      log.With(workflow.GetLogger(ctx), "project", in.Project, "request", in.ID),
	}
	return r, workflow.SetQueryHandler(ctx, protocol.StatusQuery, func() (protocol.RequestStatus, error) { return r.status, nil })
}

func (r *request) run(ctx workflow.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	switch {
	case r.facts.Status == bench.Completed:
		// The row decides: nothing starts for a request that ended.
		return r.finished(ctx, protocol.CompleteResult{Outcome: r.facts.Outcome})
	case r.facts.JobsDone:
		return r.complete(ctx, "")
	}
	if r.facts.Type.Tracked() && !r.facts.Admitted {
		if err := r.awaitAdmission(ctx); err != nil {
			return err
		}
	}
	failed, err := r.expand(ctx)
	if err != nil {
		return err
	}
	if failed == "" {
		if err := r.awaitJobs(ctx); err != nil {
			return err
		}
	}
	return r.complete(ctx, failed)
}

func (r *request) load(ctx workflow.Context) error {
	if err := call(ctx, recordActivity("read the request's row"), protocol.LoadRequest, r.ref, &r.facts); err != nil {
		return err
	}
	attributes := []temporal.SearchAttributeUpdate{
		protocol.AttrProject.ValueSet(r.in.Project),
		protocol.AttrRequest.ValueSet(string(r.in.ID)),
		protocol.AttrUser.ValueSet(r.facts.User),
		protocol.AttrTarget.ValueSet(targetsText(r.facts.Targets)),
	}
	if r.facts.Tag != "" {
		attributes = append(attributes, protocol.AttrTag.ValueSet(r.facts.Tag))
	}
	if r.facts.PR != 0 {
		attributes = append(attributes, protocol.AttrPR.ValueSet(int64(r.facts.PR)))
	}
	return workflow.UpsertTypedSearchAttributes(ctx, attributes...)
}

// awaitAdmission asks the project's queue for a slot and waits for it.
func (r *request) awaitAdmission(ctx workflow.Context) error {
	if err := r.enter(ctx, PhaseAdmission, "waits for a slot of the queue `"+bench.QueueWorkflowID(r.in.Project)+"`: requests of a project run in order, see that workflow for who is before it"); err != nil {
		return err
	}
	for !r.facts.Admitted {
		if err := call(ctx, recordActivity("ask the project's queue for a slot"), protocol.AskAdmission, r.ref, nil); err != nil {
			return err
		}
		if err := wait(ctx, "ask again if no answer came", admissionRecheck, r.admitted); err != nil {
			return err
		}
		drain(r.admitted)
		if err := call(ctx, recordActivity("read the request's row"), protocol.LoadRequest, r.ref, &r.facts); err != nil {
			return err
		}
		if r.facts.Status == bench.Completed {
			return temporal.NewCanceledError("the request ended while it waited")
		}
	}
	return nil
}

// expand writes the request's jobs. The text that comes back says why there can
// be none.
func (r *request) expand(ctx workflow.Context) (failed string, err error) {
	if err := r.enter(ctx, PhaseExpanding, "its jobs are being written"); err != nil {
		return "", err
	}
	var jobs protocol.ExpandResult
	if err := call(ctx, expandActivity(), protocol.Expand, r.ref, &jobs); err != nil {
		var application *temporal.ApplicationError
		if errors.As(err, &application) && application.Type() == protocol.ErrTypePermanent {
			return application.Message(), nil
		}
		return "", err
	}
	r.status.Progress = jobs.Counts
	if jobs.Failed != "" {
		return jobs.Failed, nil
	}
	if err := r.enter(ctx, PhaseRunning, r.waitsForJobs()); err != nil {
		return "", err
	}
	if len(jobs.TaskQueues) == 0 {
		return "", nil
	}
	var mine protocol.HandOut
	ask := protocol.HandOutInput{TaskQueues: jobs.TaskQueues, For: r.ref}
	if err := call(ctx, recordActivity("hand waiting jobs out to the task queues"), protocol.HandOutJobs, ask, &mine); err != nil {
		return "", err
	}
	return "", r.start(ctx, mine.Jobs)
}

// awaitJobs starts jobs as they are handed out and counts their ends, until
// none is open.
func (r *request) awaitJobs(ctx workflow.Context) error {
	for {
		progress, err := r.count(ctx)
		if err != nil {
			return err
		}
		if progress.Cancelled {
			return temporal.NewCanceledError("the request was cancelled")
		}
		if progress.Counts.Open == 0 {
			return nil
		}
		if err := r.start(ctx, progress.HandedOut); err != nil {
			return err
		}
		for woken := false; !woken; {
			if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
				if _, err := r.startSignalled(ctx); err != nil {
					return err
				}
				drain(r.admitted)
				drain(r.ended)
				return workflow.NewContinueAsNewError(ctx, Request, r.in)
			}
			if err := wait(ctx, "count again if no signal came", progressRecheck, r.handOut, r.ended); err != nil {
				return err
			}
			// Jobs that were handed out are started at once; only an end, or
			// silence, is a reason to count.
			handedOut, err := r.startSignalled(ctx)
			if err != nil {
				return err
			}
			ends := drain(r.ended)
			woken = ends > 0 || handedOut == 0
		}
	}
}

func (r *request) count(ctx workflow.Context) (protocol.ProgressResult, error) {
	var p protocol.ProgressResult
	if err := call(ctx, recordActivity("count the request's jobs"), protocol.Progress, r.ref, &p); err != nil {
		return p, err
	}
	if p.Counts != r.status.Progress {
		r.status.Progress = p.Counts
		r.status.Waits = r.waitsForJobs()
		r.describe(ctx)
	}
	return p, nil
}

// startSignalled starts every job that hand-out signals have named.
func (r *request) startSignalled(ctx workflow.Context) (int, error) {
	n := 0
	var handOut protocol.HandOut
	for r.handOut.ReceiveAsync(&handOut) {
		n += len(handOut.Jobs)
		if err := r.start(ctx, handOut.Jobs); err != nil {
			return n, err
		}
		handOut = protocol.HandOut{}
	}
	return n, nil
}

// start starts the workflows of jobs. "Already started" is success: a job
// belongs to every request that waits for it, and to no run of a workflow.
func (r *request) start(ctx workflow.Context, jobs []protocol.JobInput) error {
	// Cancelling the request must not cancel jobs that others wait for: which
	// ones are cancelled is decided over rows.
	detached, _ := workflow.NewDisconnectedContext(ctx)
	futures := make([]workflow.ChildWorkflowFuture, 0, len(jobs))
	for _, job := range jobs {
		if r.started[job.Key] {
			continue
		}
		r.started[job.Key] = true
		futures = append(futures, workflow.ExecuteChildWorkflow(workflow.WithChildOptions(detached, jobOptions(job)), protocol.JobWorkflow, job))
	}
	for _, f := range futures {
		err := f.GetChildWorkflowExecution().Get(detached, nil)
		var already *temporal.ChildWorkflowExecutionAlreadyStartedError
		if err != nil && !errors.As(err, &already) {
			return err
		}
	}
	return nil
}

func (r *request) complete(ctx workflow.Context, failed string) error {
	if err := r.enter(ctx, PhaseCompleting, "its jobs have ended; the outcome and the comparison are being recorded"); err != nil {
		return err
	}
	if err := call(ctx, recordActivity("free the slot, wake the queue"), protocol.JobsDone, r.ref, nil); err != nil {
		return err
	}
	var result protocol.CompleteResult
	if err := call(ctx, recordActivity("outcome and comparison with the baseline"), protocol.Complete, protocol.CompleteInput{Request: r.ref, Failed: failed}, &result); err != nil {
		return err
	}
	return r.finished(ctx, result)
}

func (r *request) finished(ctx workflow.Context, result protocol.CompleteResult) error {
	r.result = result
	drain(r.admitted)
	drain(r.ended)
	drain(r.handOut)
	phase := PhaseCompleted
	if result.Outcome == bench.Cancelled {
		phase = PhaseCancelled
	}
	return r.enter(ctx, phase, "nothing: it ended with outcome "+string(result.Outcome))
}

// cancelled ends a request whose workflow was cancelled: first the rows, then
// those of its jobs that nobody else waits for.
func (r *request) cancelled(ctx workflow.Context) error {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	cancel := protocol.CancelInput{Request: r.ref, Who: "temporal", Why: "its workflow was cancelled"}
	if err := call(detached, recordActivity("cancel the rows, then the jobs"), protocol.CancelRequest, cancel, nil); err != nil {
		return err
	}
	if err := r.finished(detached, protocol.CompleteResult{Outcome: bench.Cancelled}); err != nil {
		return err
	}
	return temporal.NewCanceledError("the request was cancelled")
}

// enter moves to a phase and shows it.
func (r *request) enter(ctx workflow.Context, phase, waits string) error {
	r.status.Phase, r.status.Waits = phase, waits
	r.describe(ctx)
	r.log.Info("request enters phase", "phase", phase)
	return workflow.UpsertTypedSearchAttributes(ctx, protocol.AttrState.ValueSet(phase))
}

func (r *request) describe(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, requestDetails(r.status, r.facts, r.result))
}

func (r *request) waitsForJobs() string {
	return jobsText(r.status.Progress)
}

func targetsText(targets []bench.Target) string {
	if len(targets) == 0 {
		return "none"
	}
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = string(t)
	}
	return strings.Join(names, ",")
}

// jobOptions are the options of a job's workflow as a child of the request that
// hands it out.
func jobOptions(job protocol.JobInput) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            bench.JobWorkflowID(job.Project, job.Key),
		TaskQueue:             protocol.OrchestratorTaskQueue,
		ParentClosePolicy:     parentClosePolicy,
		WorkflowIDReusePolicy: jobReusePolicy,
		StaticSummary:         job.Summary,
		TypedSearchAttributes: temporal.NewSearchAttributes(jobAttributes(job, PhaseStarting)...),
		// Each run of the workflow is short; only its task may not hang.
		WorkflowTaskTimeout: 10 * time.Second,
	}
}
