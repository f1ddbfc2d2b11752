package unstick_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/unstick"
)

const queue = "bench/x86_64/2/main"

var (
	then    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	running = protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning}
)

func active(states ...bench.CollectorState) map[string][]unstick.Collector {
	out := make(map[string][]unstick.Collector)
	for _, s := range states {
		out[queue] = append(out[queue], unstick.Collector{Name: "c1", State: s})
	}
	return out
}

func TestEveryReasonIsFoundWithItsRemedy(t *testing.T) {
	t.Parallel()
	job := func(status bench.JobStatus, w protocol.WorkflowState) []unstick.Job {
		w.ID = "job/go/k"
		return []unstick.Job{{Key: "k", Status: status, TaskQueue: queue, Created: then, Workflow: w}}
	}
	handedOut := func(status protocol.WorkflowStatus) []unstick.Job {
		jobs := job(bench.JobHandedOut, protocol.WorkflowState{Status: status})
		jobs[0].HandedOut = then
		return jobs
	}
	measured := protocol.WorkflowState{Status: protocol.WorkflowRunning, Activities: []protocol.PendingActivity{{Name: protocol.RunJob, Attempt: 1, Started: true, Since: then}}}
	for name, c := range map[string]struct {
		in     unstick.Case
		what   string
		stuck  bool
		remedy string
		repair unstick.Repair
	}{
		"ended": {
			in:   unstick.Case{ID: "r1", Status: bench.Completed, Outcome: bench.Success},
			what: "it has ended with outcome success",
		},
		"no workflow": {
			in:   unstick.Case{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowMissing}},
			what: "the request's workflow does not exist", stuck: true, repair: unstick.RestartRequest,
		},
		"terminated": {
			in:   unstick.Case{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowTerminated, Ended: "terminated by ada: a mistake"}},
			what: "the request's workflow is terminated: terminated by ada: a mistake", stuck: true, repair: unstick.RestartRequest,
		},
		"paused": {
			in:   unstick.Case{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowPaused}},
			what: "the request's workflow is paused", stuck: true, remedy: "temporal workflow unpause --workflow-id request/go/r1",
		},
		"paused queue": {
			in: unstick.Case{
				Project: "go", Status: bench.ArtifactsReady, Type: bench.Release, Workflow: running, Queue: running,
				Pause: &unstick.Pause{Who: "ada", Why: "new machines", Since: then},
			},
			what: "the project's queue was paused by ada: new machines", stuck: true, remedy: "benchloom queue resume go",
		},
		"cannot decide": {
			in:   unstick.Case{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning, TaskAttempt: 3, TaskFailure: "nondeterminism"}},
			what: "its workflow task is at attempt 3: nondeterminism", stuck: true, remedy: "--force", repair: unstick.Reset,
		},
		"failing activity": {
			in: unstick.Case{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning, Activities: []protocol.PendingActivity{
				{Name: "Expand", Attempt: 9, Failure: "no database"},
			}}},
			what: "Expand failed and waits for its next attempt, attempt 9; the last attempt failed: no database", remedy: "mend what the error names",
		},
		"nobody takes activities": {
			in: unstick.Case{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning, Activities: []protocol.PendingActivity{
				{Name: "Expand", Attempt: 1},
			}}},
			what: "Expand waits for an orchestrator", remedy: "see that one runs",
		},
		"artifacts": {
			in:   unstick.Case{ID: "r1", Status: bench.WaitingForArtifacts, Workflow: running},
			what: "it waits for a notification that its artifacts are ready", remedy: "benchloom request artifacts-ready r1 --tag TAG",
		},
		"parent": {
			in:   unstick.Case{Project: "go", Status: bench.ArtifactsReady, Type: bench.Try, WaitsFor: "abc", Workflow: running},
			what: "it waits for the jobs of abc", remedy: "benchloom request unstick go:abc",
		},
		"turn": {
			in:   unstick.Case{Project: "go", Status: bench.ArtifactsReady, Type: bench.Release, Message: "number 2 of 3", Workflow: running},
			what: "it waits for its turn: number 2 of 3", remedy: "benchloom status --project go",
		},
		"no queue": {
			in: unstick.Case{
				Project: "go", Status: bench.ArtifactsReady, Type: bench.Release, Workflow: running,
				Queue: protocol.WorkflowState{ID: "queue/go", Status: protocol.WorkflowTerminated},
			},
			what: "the project's queue's workflow is terminated", stuck: true, repair: unstick.StartQueue,
		},
		"job without a workflow": {
			in: unstick.Case{
				Status: bench.InProgress, Workflow: running, Collectors: active(bench.CollectorBenchmarking),
				Jobs: job(bench.JobInProgress, protocol.WorkflowState{Status: protocol.WorkflowMissing}),
			},
			what: "the job's workflow does not exist", stuck: true, repair: unstick.Reconcile,
		},
		"job whose workflow is being started": {
			in: unstick.Case{
				Now: then.Add(14 * time.Second), Status: bench.InProgress, Workflow: running, Collectors: active(bench.CollectorBenchmarking),
				Jobs: handedOut(protocol.WorkflowMissing),
			},
			what: "the job's workflow is being started",
		},
		"job whose workflow is being started again": {
			in: unstick.Case{
				Now: then.Add(14 * time.Second), Status: bench.InProgress, Workflow: running, Collectors: active(bench.CollectorBenchmarking),
				Jobs: handedOut(protocol.WorkflowCompleted),
			},
			what: "the job's workflow is being started",
		},
		"request whose workflow is being started": {
			in: unstick.Case{
				Now: then.Add(time.Second), Status: bench.InProgress, Deferred: true, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowMissing},
				Collectors: active(bench.CollectorBenchmarking), Jobs: handedOut(protocol.WorkflowRunning),
			},
			what: "the request's workflow is being started, with its first job",
		},
		"job whose start failed": {
			in: unstick.Case{
				Now: then.Add(15 * time.Second), Status: bench.InProgress, Workflow: running, Collectors: active(bench.CollectorBenchmarking),
				Jobs: handedOut(protocol.WorkflowMissing),
			},
			what: "the job's workflow does not exist", stuck: true, repair: unstick.Reconcile,
		},
		"job that waits for its turn": {
			in:   unstick.Case{Status: bench.InProgress, Workflow: running, Collectors: active(bench.CollectorBenchmarking), Jobs: job(bench.JobQueued, protocol.WorkflowState{})},
			what: "the job waits to be handed out", repair: unstick.Reconcile,
		},
		"job that is measured": {
			in:   unstick.Case{Status: bench.InProgress, Workflow: running, Collectors: active(bench.CollectorBenchmarking), Jobs: job(bench.JobInProgress, measured)},
			what: "RunJob runs",
		},
		"no collector": {
			in:   unstick.Case{Status: bench.InProgress, Workflow: running, Jobs: job(bench.JobInProgress, measured)},
			what: "no collector takes jobs from this task queue: none is registered", stuck: true, remedy: "start a collector with 'benchloom collector'",
		},
		"no collector of its name": {
			in: unstick.Case{Status: bench.InProgress, Workflow: running, Jobs: []unstick.Job{
				{Key: "k", Status: bench.JobQueued, TaskQueue: "bench/set/x", Machines: []string{"vmx", "vmy"}},
			}},
			what: "none is registered", stuck: true, remedy: "start one named vmx or vmy, which alone can run it, with 'benchloom collector --name vmx'",
		},
		"collectors that take nothing": {
			in: unstick.Case{
				Status: bench.InProgress, Workflow: running, Jobs: job(bench.JobInProgress, measured),
				Collectors: active(bench.CollectorOffline, bench.CollectorDraining),
			},
			what: "c1 is offline, c1 is draining", stuck: true, remedy: "benchloom collector activate",
		},
		"outcome": {
			in:   unstick.Case{ID: "r1", Status: bench.InProgress, Workflow: running},
			what: "none of its jobs is open", remedy: "benchloom status r1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := unstick.Find(c.in)[0]
			require.Contains(t, first.What, c.what)
			require.Equal(t, c.stuck, first.Stuck)
			require.Contains(t, first.Remedy, c.remedy)
			require.Equal(t, c.repair, first.Repair)
			if first.Stuck {
				require.NotEmpty(t, first.Remedy+string(first.Repair), "what is stuck has a remedy")
			}
		})
	}
}
