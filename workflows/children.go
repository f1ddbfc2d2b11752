package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// The jobs of suites are children of the request that they were handed out to; see
// [bench.JobKind.ChildOfRequest] for which jobs that are. A request starts what
// hand-out signals and the result of Expand name, and never waits for the end of a
// child: it counts rows, so a child that was started before a reset or by an earlier
// run, and a job that another request has started, are nothing special.

// jobParentClose lets a job outlive the request that has started it: others may wait
// for it too.
const jobParentClose = enumspb.PARENT_CLOSE_POLICY_ABANDON

// jobReuse lets a job's workflow ID be used once: a job that ended starts again only as
// another generation, with another key.
const jobReuse = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE

// maxChildren is after how many children a run of a Request workflow continues as new.
// Temporal bounds the open children of one run by 2,000; a new run has none of the
// earlier ones.
const maxChildren = 500

// startSignalled starts every job that hand-out signals have named, and tells how many
// there were.
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

// startChildren starts the workflows of jobs and waits until they have started. One
// that was started before is success.
func (r *request) startChildren(ctx workflow.Context, jobs []protocol.JobInput) error {
	// Cancelling the request must not cancel jobs that others wait for: which ones are
	// cancelled is decided over rows.
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
		// Each of its workflow tasks is short, so a lost one is soon tried again.
		WorkflowTaskTimeout: 10 * time.Second,
	}
}
