package diagnose

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/protocol"
)

// absent reports a workflow that should run but does not.
func absent(w protocol.WorkflowState) bool { return w.ID != "" && !w.Status.Alive() }

// workflow lists what keeps a workflow that should run from continuing; whose is "the
// request's" or similar.
func workflow(w protocol.WorkflowState, restart Repair, whose string) []Finding {
	switch {
	case w.ID == "":
		return nil
	case w.Status == protocol.WorkflowPaused:
		return []Finding{{Subject: w.ID, What: whose + " workflow is paused", Stuck: true, Remedy: "temporal workflow unpause --workflow-id " + w.ID}}
	case w.Status == protocol.WorkflowMissing:
		return []Finding{{Subject: w.ID, What: whose + " workflow does not exist: Temporal's database was lost, or its start failed", Stuck: true, Repair: restart}}
	case !w.Status.Alive():
		what := whose + " workflow is " + string(w.Status)
		if w.Ended != "" {
			what += ": " + w.Ended
		}
		return []Finding{{Subject: w.ID, What: what, Since: w.Closed, Stuck: true, Repair: restart}}
	case w.TaskAttempt > 1:
		what := fmt.Sprintf("%s workflow cannot decide: its workflow task is at attempt %d", whose, w.TaskAttempt)
		if w.TaskFailure != "" {
			what += ": " + w.TaskFailure
		}
		return []Finding{{
			Subject: w.ID, What: what, Stuck: true, Repair: Reset,
			Remedy: "run an orchestrator of the version that it began with; or set it back to its beginning with --force",
		}}
	}
	var out []Finding
	for _, a := range w.Activities {
		out = append(out, activity(w, a))
	}
	return out
}

func activity(w protocol.WorkflowState, a protocol.PendingActivity) Finding {
	f := Finding{Subject: w.ID, Since: a.Since}
	if a.Name == protocol.AwaitRun { // it is repeated until the run ends
		f.What = "the job waits for the end of a run that Temporal had lost sight of"
		if a.Failure != "" {
			f.What += ": " + a.Failure
		}
		return f
	}
	switch {
	case a.Started:
		f.What = a.Name + " runs"
	case a.Attempt > 1:
		f.What = a.Name + " failed and waits for its next attempt"
	case a.Name == protocol.RunJob:
		f.What = "the job waits for an idle collector"
	default:
		f.What = a.Name + " waits for an orchestrator"
		f.Remedy = "see that one runs: the process 'orchestrator' of 'benchloom up', or 'benchloom orchestrator'"
	}
	if a.Attempt > 1 {
		f.What = fmt.Sprintf("%s, attempt %d", f.What, a.Attempt)
	}
	if a.Failure != "" {
		f.What += "; the last attempt failed: " + a.Failure
		f.Remedy = "mend what the error names; it is tried again by itself"
	}
	return f
}
