// Package starter is the client side of every workflow: it starts, signals, cancels
// and queries. The API, the orchestrator's activities and the command line use it;
// nothing else talks to Temporal as a client.
//
// It must not know the database: callers write the record first.
package starter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// Starter reaches workflows through a Temporal client.
type Starter struct {
	client    client.Client
	namespace string
	worker    string
	// unnamed reports that the server lets only itself name workers.
	unnamed atomic.Bool
}

// New returns a starter for a connected client and its namespace. The caller closes
// the client.
func New(c client.Client, namespace string) *Starter {
	return &Starter{client: c, namespace: namespace}
}

// WorksAs returns a starter for the process whose worker, under this name, works on the jobs
// that it starts: see [protocol.WorkedOnBy].
func (s *Starter) WorksAs(worker string) *Starter {
	return &Starter{client: s.client, namespace: s.namespace, worker: worker}
}

// StartRequest starts a request's workflow. A workflow that runs or has run counts as
// success: the row decides what it does.
func (s *Starter) StartRequest(ctx context.Context, request bench.RequestRef) error {
	_, err := s.client.ExecuteWorkflow(ctx, requestOptions(request), protocol.RequestWorkflow, protocol.RequestInput{Project: request.Project, ID: request.ID})
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &already) {
		return fmt.Errorf("starting the workflow of request %s: %w", request.ID, err)
	}
	return nil
}

func requestOptions(request bench.RequestRef) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                                       request.WorkflowID(),
		TaskQueue:                                protocol.OrchestratorTaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("request %s of %s", request.ID, request.Project),
		StaticDetails:                            "waits for an orchestrator to take it up",
		TypedSearchAttributes: temporal.NewSearchAttributes(
			protocol.AttrProject.ValueSet(request.Project),
			protocol.AttrRequest.ValueSet(string(request.ID)),
			protocol.AttrState.ValueSet(string(protocol.RequestStarting)),
		),
	}
}

// QueueChanged makes a project's Queue workflow read the record again, and starts it
// unless it runs.
func (s *Starter) QueueChanged(ctx context.Context, project string) error {
	_, err := s.client.SignalWithStartWorkflow(ctx, bench.QueueWorkflowID(project), protocol.SignalQueueChanged, nil, client.StartWorkflowOptions{
		TaskQueue:             protocol.OrchestratorTaskQueue,
		StaticSummary:         "queue of " + project + ": admits its requests in order",
		TypedSearchAttributes: temporal.NewSearchAttributes(protocol.AttrProject.ValueSet(project)),
	}, protocol.QueueWorkflow, protocol.QueueInput{Project: project})
	if err != nil {
		return fmt.Errorf("signalling the queue of %s: %w", project, err)
	}
	return nil
}

// Admitted tells a request that it may start its jobs.
func (s *Starter) Admitted(ctx context.Context, request bench.RequestRef) error {
	return s.signal(ctx, request.WorkflowID(), protocol.SignalAdmitted, nil)
}

// HandOut gives a request jobs to start as its children. If its workflow does not run,
// nothing happens: the reconciliation restarts it if its row is open.
func (s *Starter) HandOut(ctx context.Context, request bench.RequestRef, jobs protocol.HandOut) error {
	return s.signal(ctx, request.WorkflowID(), protocol.SignalHandOut, jobs)
}

// StartJob starts the workflow of a job without a parent workflow, see
// [bench.JobKind.ChildOfRequest]. A workflow that runs or has run counts as success: a
// job that ended starts again only in a later generation, with another key.
func (s *Starter) StartJob(ctx context.Context, in protocol.JobInput) error {
	options := jobOptions(in, "handed out for `"+in.RequestWorkflow+"`; waits for an orchestrator to take it up")
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	named := options
	if s.worker != "" && !s.unnamed.Load() {
		named.TypedSearchAttributes = temporal.NewSearchAttributes(options.TypedSearchAttributes.Copy(), protocol.WorkedOnBy(s.worker))
	}
	_, err := s.client.ExecuteWorkflow(ctx, named, protocol.JobWorkflow, in)
	if _, refused := errors.AsType[*serviceerror.InvalidArgument](err); refused && named.TypedSearchAttributes.Size() > options.TypedSearchAttributes.Size() {
		_, err = s.client.ExecuteWorkflow(ctx, options, protocol.JobWorkflow, in)
		s.unnamed.Store(err == nil)
	}
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &already) {
		return fmt.Errorf("starting the workflow of job %s: %w", in.Key, err)
	}
	return nil
}

func jobOptions(in protocol.JobInput, details string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                       in.Workflow,
		TaskQueue:                protocol.OrchestratorTaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		// An orchestrator that starts a job gets its first workflow task with the answer.
		EnableEagerStart:      true,
		StaticSummary:         in.Summary,
		StaticDetails:         details,
		TypedSearchAttributes: temporal.NewSearchAttributes(protocol.JobAttributes(in)...),
	}
}

// JobEnded tells a request that one of the jobs it waits for has ended.
func (s *Starter) JobEnded(ctx context.Context, request bench.RequestRef, job protocol.JobEnded) error {
	return s.signal(ctx, request.WorkflowID(), protocol.SignalJobEnded, job)
}

// ParentCompleted tells a request that the jobs of its parent are done.
func (s *Starter) ParentCompleted(ctx context.Context, request bench.RequestRef) error {
	return s.signal(ctx, request.WorkflowID(), protocol.SignalParentCompleted, nil)
}

// ArtifactsReady tells a request that its artifacts are ready, and starts its
// workflow if the row's creation did not get that far. If the workflow has ended,
// nothing happens: the row decided before this call.
func (s *Starter) ArtifactsReady(ctx context.Context, request bench.RequestRef, artifact protocol.ArtifactsReady) error {
	options := requestOptions(request)
	options.WorkflowExecutionErrorWhenAlreadyStarted = false
	handle, err := s.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: s.client.NewWithStartWorkflowOperation(options, protocol.RequestWorkflow, protocol.RequestInput{Project: request.Project, ID: request.ID}),
		UpdateOptions: client.UpdateWorkflowOptions{
			// A repeated delivery is the same update.
			UpdateID:     artifact.Tag + "/" + artifact.Parent,
			UpdateName:   protocol.UpdateArtifactsReady,
			Args:         []any{artifact},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	if err != nil && !alreadyEnded(err) {
		return fmt.Errorf("telling request %s that its artifacts are ready: %w", request.ID, err)
	}
	return nil
}

// alreadyEnded reports that a workflow has ended, so it was not started.
func alreadyEnded(err error) bool {
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	return errors.As(err, &already) || gone(err)
}

// RunStarted tells a job that a collector has begun.
func (s *Starter) RunStarted(ctx context.Context, job bench.JobRef, run protocol.RunStarted) error {
	return s.signal(ctx, job.WorkflowID(), protocol.SignalRunStarted, run)
}

// CancelJob cancels a job's workflow; its benchmark is killed.
func (s *Starter) CancelJob(ctx context.Context, job bench.JobRef) error {
	return s.cancel(ctx, job.WorkflowID())
}

// CancelRequest cancels the workflows of a request and of jobs. Their rows were
// cancelled before, so a workflow that this does not reach finds out by itself.
func (s *Starter) CancelRequest(ctx context.Context, request bench.RequestRef, jobs []bench.JobRef) error {
	errs := []error{s.cancel(ctx, request.WorkflowID())}
	for _, j := range jobs {
		errs = append(errs, s.CancelJob(ctx, j))
	}
	return errors.Join(errs...)
}

// reconcileEvery is the interval of the reconciliation's Schedule. Orchestrators make a pass
// every 30 s themselves: a workflow's pass writes some 2 MB to an embedded Temporal.
const reconcileEvery = 6 * time.Hour

// EnsureReconcile creates the Schedule of the reconciliation unless it exists, and runs
// the first pass immediately. It reports whether it created the Schedule.
func (s *Starter) EnsureReconcile(ctx context.Context) (made bool, err error) {
	// Asking writes nothing, while an attempt to create what exists does.
	there, err := s.client.ScheduleClient().GetHandle(ctx, protocol.ReconcileScheduleID).Describe(ctx)
	switch {
	case err == nil && hasInterval(there.Schedule, reconcileEvery):
		return false, nil
	case err == nil:
		_, err = s.setInterval(ctx, protocol.ReconcileScheduleID, reconcileEvery)
		return false, err
	case !gone(err):
		return false, fmt.Errorf("asking for the reconciliation's schedule: %w", err)
	}
	_, err = s.client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:            protocol.ReconcileScheduleID,
		Spec:          client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: reconcileEvery}}},
		Overlap:       enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: time.Minute,
		// Without a Schedule, Temporal's database may have been lost.
		TriggerImmediately: true,
		Note:               "compares the record with what is in flight and mends the difference",
		Action: &client.ScheduleWorkflowAction{
			ID:            protocol.ReconcileWorkflowID,
			Workflow:      protocol.ReconcileWorkflow,
			TaskQueue:     protocol.OrchestratorTaskQueue,
			StaticSummary: "record against what is in flight",
		},
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating the reconciliation's schedule: %w", err)
	}
	return true, nil
}

// ReconcilePaused reports whether an operator has paused the Schedule of the
// reconciliation, and with it all passes that nobody asks for.
func (s *Starter) ReconcilePaused(ctx context.Context) (bool, error) {
	there, err := s.client.ScheduleClient().GetHandle(ctx, protocol.ReconcileScheduleID).Describe(ctx)
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the reconciliation's schedule: %w", err)
	}
	return there.Schedule.State != nil && there.Schedule.State.Paused, nil
}

// retainEvery is the interval of removing what was kept long enough.
const retainEvery = time.Hour

// EnsureRetain creates the Schedule that removes what was kept long enough, unless it
// exists.
func (s *Starter) EnsureRetain(ctx context.Context) error {
	_, err := s.client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:   protocol.RetainScheduleID,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: retainEvery}}},
		// A pass that takes longer than the pause skips the next one.
		Overlap:       enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: time.Minute,
		Note:          "removes what was kept long enough",
		Action: &client.ScheduleWorkflowAction{
			ID:            protocol.RetainWorkflowID,
			Workflow:      protocol.RetainWorkflow,
			TaskQueue:     protocol.OrchestratorTaskQueue,
			StaticSummary: "what was kept long enough",
		},
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("creating the schedule %s: %w", protocol.RetainScheduleID, err)
	}
	return nil
}

// TriggerRetain removes what was kept long enough now, or again after a pass that is under
// way.
func (s *Starter) TriggerRetain(ctx context.Context) error {
	err := s.client.ScheduleClient().GetHandle(ctx, protocol.RetainScheduleID).Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE})
	if err != nil {
		return fmt.Errorf("triggering the schedule %s: %w", protocol.RetainScheduleID, err)
	}
	return nil
}

// TriggerReconcile runs the reconciliation now.
func (s *Starter) TriggerReconcile(ctx context.Context) error {
	return s.client.ScheduleClient().GetHandle(ctx, protocol.ReconcileScheduleID).Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP})
}

// Healthy returns an error unless Temporal answers.
func (s *Starter) Healthy(ctx context.Context) error {
	_, err := s.client.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err
}

func (s *Starter) signal(ctx context.Context, workflowID, name string, payload any) error {
	if err := s.client.SignalWorkflow(ctx, workflowID, "", name, payload); err != nil && !gone(err) {
		return fmt.Errorf("signalling %s to %s: %w", name, workflowID, err)
	}
	return nil
}

func (s *Starter) cancel(ctx context.Context, workflowID string) error {
	if err := s.client.CancelWorkflow(ctx, workflowID, ""); err != nil && !gone(err) {
		return fmt.Errorf("cancelling %s: %w", workflowID, err)
	}
	return nil
}
