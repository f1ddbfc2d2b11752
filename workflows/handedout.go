package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// A hand-out starts the workflows of jobs by itself. Requests that began before it did
// were told by signals and by results of activities which jobs to start as children:
// what follows lets their histories replay, and starts what they were told last. No
// new history leads here, so it can go with the last of those requests.

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

// jobOptions are the options of a job's workflow as a child of the request that
// hands it out.
func jobOptions(job protocol.JobInput) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            bench.JobWorkflowID(job.Project, job.Key),
		TaskQueue:             protocol.OrchestratorTaskQueue,
		ParentClosePolicy:     parentClosePolicy,
		WorkflowIDReusePolicy: jobReusePolicy,
		StaticSummary:         job.Summary,
		StaticDetails:         "handed out by `" + bench.RequestWorkflowID(job.Project, job.Request) + "`; waits for an orchestrator to take it up",
		TypedSearchAttributes: temporal.NewSearchAttributes(protocol.JobAttributes(job)...),
		// Each run of the workflow is short; only its task may not hang.
		WorkflowTaskTimeout: 10 * time.Second,
	}
}
