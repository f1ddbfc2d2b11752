package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Registry registers workflows: a worker, a test environment or a replayer. [Register] calls
// it before anything runs.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register registers every workflow under its fixed name.
func Register(r Registry) {
	r.RegisterWorkflowWithOptions(Request, workflow.RegisterOptions{Name: protocol.RequestWorkflow})
	r.RegisterWorkflowWithOptions(Job, workflow.RegisterOptions{Name: protocol.JobWorkflow})
	r.RegisterWorkflowWithOptions(Queue, workflow.RegisterOptions{Name: protocol.QueueWorkflow})
	r.RegisterWorkflowWithOptions(Reconcile, workflow.RegisterOptions{Name: protocol.ReconcileWorkflow})
	r.RegisterWorkflowWithOptions(Watch, workflow.RegisterOptions{Name: protocol.WatchWorkflow})
	r.RegisterWorkflowWithOptions(Retain, workflow.RegisterOptions{Name: protocol.RetainWorkflow})
}

// Phases lists, by workflow type, every phase that the State search attribute can
// show. Each must have a recorded history that replays.
func Phases() map[string][]string {
	return map[string][]string{
		protocol.RequestWorkflow: names(
			protocol.RequestStarting, protocol.RequestWaitsForArtifacts, protocol.RequestWaitsForParent, protocol.RequestWaitsForAdmission,
			protocol.RequestExpanding, protocol.RequestBuilding, protocol.RequestBackfilling, protocol.RequestInProgress,
			protocol.RequestVerifying, protocol.RequestCompleting, protocol.RequestOptionalJobs, protocol.RequestCompleted, protocol.RequestCancelled,
		),
		protocol.JobWorkflow: names(
			protocol.JobWaitsForCollector, protocol.JobBenchmarking, protocol.JobPausing, protocol.JobRecording,
			protocol.JobSucceeded, protocol.JobFailed, protocol.JobCancelled,
		),
		protocol.QueueWorkflow:     names(protocol.QueueIdle, protocol.QueueAdmitting, protocol.QueueFull, protocol.QueuePaused),
		protocol.ReconcileWorkflow: names(protocol.ReconcileInProgress, protocol.ReconcileCompleted),
		protocol.RetainWorkflow:    names(protocol.RetainInProgress, protocol.RetainCompleted),
		protocol.WatchWorkflow:     names(protocol.WatchInProgress, protocol.WatchCompleted, protocol.WatchFailing),
	}
}

func names[P ~string](phases ...P) []string {
	out := make([]string, len(phases))
	for i, p := range phases {
		out[i] = string(p)
	}
	return out
}
