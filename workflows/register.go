package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Registry is what workflows are registered with: a worker, a test environment
// or a replayer.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register makes every workflow known under its fixed name.
func Register(r Registry) {
	r.RegisterWorkflowWithOptions(Request, workflow.RegisterOptions{Name: protocol.RequestWorkflow})
	r.RegisterWorkflowWithOptions(Job, workflow.RegisterOptions{Name: protocol.JobWorkflow})
	r.RegisterWorkflowWithOptions(Queue, workflow.RegisterOptions{Name: protocol.QueueWorkflow})
	r.RegisterWorkflowWithOptions(Reconcile, workflow.RegisterOptions{Name: protocol.ReconcileWorkflow})
}
