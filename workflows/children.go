package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Suite jobs (see [bench.JobKind.ChildOfRequest]) are children of the request that
// they were handed out to. A request starts the jobs named by hand-out signals and by
// the result of Expand, and never waits for the end of a child: it counts rows, so
// children from before a reset or from an earlier run, and jobs that another request
// has started, need no special treatment.

// jobParentClose lets a job outlive the request that started it: other requests may
// wait for it too.
const jobParentClose = enumspb.PARENT_CLOSE_POLICY_ABANDON

// jobReuse allows each job's workflow ID once: a job that ended starts again only in
// a later generation, with another key.
const jobReuse = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE

// maxChildren is the number of children after which a Request workflow continues as new.
// Temporal limits the open children of one run to 2,000; a new run has none of the
// earlier ones.
const maxChildren = 500

// startSignalled starts every job that hand-out signals have named, and returns their
// number.
func (r *request) startSignalled(ctx workflow.Context) (int, error) {
	n := 0
	var handOut protocol.HandOut
	for r.handOut.ReceiveAsync(&handOut) {
		n += len(handOut.Jobs)
		if err := r.startChildren(ctx, handOut.Jobs); err != nil {
			return n, err
		}
		handOut = protocol.HandOut{}
	}
	return n, nil
}

// startChildren starts the workflows of jobs and waits until they have started. A
// workflow that was started before counts as success.
func (r *request) startChildren(ctx workflow.Context, jobs []protocol.JobInput) error {
	// Cancelling the request must not cancel jobs that others wait for: the rows decide
	// which jobs are cancelled.
	detached, _ := workflow.NewDisconnectedContext(ctx)
	futures := make([]workflow.ChildWorkflowFuture, len(jobs))
	for i, job := range jobs {
		futures[i] = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(detached, childOptions(job)), protocol.JobWorkflow, job)
	}
	r.children += len(jobs)
	for _, f := range futures {
		err := f.GetChildWorkflowExecution().Get(detached, nil)
		var already *temporal.ChildWorkflowExecutionAlreadyStartedError
		if err != nil && !errors.As(err, &already) {
			return err
		}
	}
	return nil
}

func childOptions(job protocol.JobInput) workflow.ChildWorkflowOptions {
	return workflow.ChildWorkflowOptions{
		WorkflowID:            job.Workflow,
		TaskQueue:             protocol.OrchestratorTaskQueue,
		ParentClosePolicy:     jobParentClose,
		WorkflowIDReusePolicy: jobReuse,
		StaticSummary:         job.Summary,
		StaticDetails:         "handed out to `" + job.RequestWorkflow + "`; waits for an orchestrator to take it up",
		TypedSearchAttributes: temporal.NewSearchAttributes(protocol.JobAttributes(job)...),
		// Its workflow tasks are short, so a lost one is soon retried.
		WorkflowTaskTimeout: 10 * time.Second,
	}
}
