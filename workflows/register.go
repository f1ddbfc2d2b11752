package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/bench"
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
	r.RegisterWorkflowWithOptions(Watch, workflow.RegisterOptions{Name: protocol.WatchWorkflow})
}

// States lists every value that the State search attribute of a workflow takes, by
// the workflow's type. Each must have a recorded history that replays.
func States() map[string][]string {
	return map[string][]string{
		protocol.RequestWorkflow: {
			PhaseStarting, PhaseArtifacts, PhaseParent, PhaseAdmission, PhaseExpanding, PhaseBuilding, PhaseBackfill,
			PhaseRunning, PhaseCompleting, PhaseOptional, PhaseCompleted, PhaseCancelled,
		},
		protocol.JobWorkflow: {
			PhaseWaiting, PhaseBenchmark, PhasePausing, PhaseRecording,
			string(bench.JobSuccess), string(bench.JobFailure), string(bench.JobCancelled),
		},
		protocol.QueueWorkflow:     {PhaseIdle, PhaseAdmitting, PhaseFull},
		protocol.ReconcileWorkflow: {PhaseRunning, PhaseCompleted},
		protocol.WatchWorkflow:     {PhaseRunning, PhaseCompleted, PhaseFailing},
	}
}
