package diagnose_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/protocol"
)

const pool = "bench/x86_64/2/main"

var (
	then    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	running = protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning}
)

func active(states ...bench.CollectorState) map[string][]diagnose.Poller {
	out := make(map[string][]diagnose.Poller)
	for _, s := range states {
		out[pool] = append(out[pool], diagnose.Poller{Name: "c1", State: s})
	}
	return out
}

func TestEveryReasonIsFoundWithItsRemedy(t *testing.T) {
	t.Parallel()
	job := func(status bench.JobStatus, w protocol.WorkflowState) []diagnose.RequestJob {
		w.ID = "job/go/k"
		return []diagnose.RequestJob{{Key: "k", Status: status, TaskQueue: pool, Created: then, Workflow: w}}
	}
	handedOut := func(status protocol.WorkflowStatus) []diagnose.RequestJob {
		jobs := job(bench.JobHandedOut, protocol.WorkflowState{Status: status})
		jobs[0].HandedOut = then
		return jobs
	}
	measured := protocol.WorkflowState{Status: protocol.WorkflowRunning, Activities: []protocol.PendingActivity{{Name: protocol.RunJob, Attempt: 1, Started: true, Since: then}}}
	for name, c := range map[string]struct {
		in     diagnose.RequestCase
		later  time.Duration // after the hand-out
		what   string
		stuck  bool
		remedy string
		repair diagnose.Repair
	}{
		"ended": {
			in:   diagnose.RequestCase{ID: "r1", Status: bench.Completed, Outcome: bench.Success},
			what: "it has ended with outcome success",
		},
		"no workflow": {
			in:   diagnose.RequestCase{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowMissing}},
			what: "the request's workflow does not exist", stuck: true, repair: diagnose.RestartRequest,
		},
		"terminated": {
			in:   diagnose.RequestCase{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowTerminated, Ended: "terminated by ada: a mistake"}},
			what: "the request's workflow is terminated: terminated by ada: a mistake", stuck: true, repair: diagnose.RestartRequest,
		},
		"paused": {
			in:   diagnose.RequestCase{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowPaused}},
			what: "the request's workflow is paused", stuck: true, remedy: "temporal workflow unpause --workflow-id request/go/r1",
		},
		"paused queue": {
			in: diagnose.RequestCase{
				Project: "go", Status: bench.ArtifactsReady, Type: bench.Release, Workflow: running, Queue: running,
				Pause: &diagnose.Pause{Who: "ada", Why: "new machines", Since: then},
			},
			what: "the project was paused by ada: new machines", stuck: true, remedy: "benchloom queue resume go",
		},
		"cannot decide": {
			in:   diagnose.RequestCase{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning, TaskAttempt: 3, TaskFailure: "nondeterminism"}},
			what: "its workflow task is at attempt 3: nondeterminism", stuck: true, remedy: "--force", repair: diagnose.Reset,
		},
		"failing activity": {
			in: diagnose.RequestCase{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning, Activities: []protocol.PendingActivity{
				{Name: "Expand", Attempt: 9, Failure: "no database"},
			}}},
			what: "Expand failed and waits for its next attempt, attempt 9; the last attempt failed: no database", remedy: "mend what the error names",
		},
		"adopted run": {
			in: diagnose.RequestCase{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning, Activities: []protocol.PendingActivity{
				{Name: protocol.AwaitRun, Attempt: 9, Failure: "run 1 goes on at collector one"},
			}}},
			what: "waits for the end of a run that Temporal had lost sight of: run 1 goes on at collector one",
		},
		"nobody takes activities": {
			in: diagnose.RequestCase{Status: bench.InProgress, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowRunning, Activities: []protocol.PendingActivity{
				{Name: "Expand", Attempt: 1},
			}}},
			what: "Expand waits for an orchestrator", remedy: "see that one runs",
		},
		"artifacts": {
			in:   diagnose.RequestCase{ID: "r1", Status: bench.WaitingForArtifacts, Workflow: running},
			what: "it waits for a notification that its artifacts are ready", remedy: "benchloom request artifacts-ready r1 --tag TAG",
		},
		"parent": {
			in:   diagnose.RequestCase{Project: "go", Status: bench.ArtifactsReady, Type: bench.Try, WaitsFor: "abc", Workflow: running},
			what: "it waits for the jobs of abc", remedy: "benchloom request unstick go:abc",
		},
		"turn": {
			in:   diagnose.RequestCase{Project: "go", Status: bench.ArtifactsReady, Type: bench.Release, Message: "number 2 of 3", Workflow: running},
			what: "it waits for its turn: number 2 of 3", remedy: "benchloom status --project go",
		},
		"no queue": {
			in: diagnose.RequestCase{
				Project: "go", Status: bench.ArtifactsReady, Type: bench.Release, Workflow: running,
				Queue: protocol.WorkflowState{ID: "queue/go", Status: protocol.WorkflowTerminated},
			},
			what: "the project's Queue workflow is terminated", stuck: true, repair: diagnose.StartQueue,
		},
		"job without a workflow": {
			in: diagnose.RequestCase{
				Status: bench.InProgress, Workflow: running, Pollers: active(bench.CollectorBenchmarking),
				Jobs: job(bench.JobInProgress, protocol.WorkflowState{Status: protocol.WorkflowMissing}),
			},
			what: "the job's workflow does not exist", stuck: true, repair: diagnose.Reconcile,
		},
		"job whose workflow is being started": {
			later: 14 * time.Second,
			in: diagnose.RequestCase{
				Status: bench.InProgress, Workflow: running, Pollers: active(bench.CollectorBenchmarking),
				Jobs: handedOut(protocol.WorkflowMissing),
			},
			what: "the job's workflow is being started",
		},
		"job whose workflow is being started again": {
			later: 14 * time.Second,
			in: diagnose.RequestCase{
				Status: bench.InProgress, Workflow: running, Pollers: active(bench.CollectorBenchmarking),
				Jobs: handedOut(protocol.WorkflowCompleted),
			},
			what: "the job's workflow is being started",
		},
		"request whose workflow is being started": {
			later: time.Second,
			in: diagnose.RequestCase{
				Status: bench.InProgress, Deferred: true, Workflow: protocol.WorkflowState{ID: "request/go/r1", Status: protocol.WorkflowMissing},
				Pollers: active(bench.CollectorBenchmarking), Jobs: handedOut(protocol.WorkflowRunning),
			},
			what: "the request's workflow is being started, with its first job",
		},
		"job whose start failed": {
			later: 15 * time.Second,
			in: diagnose.RequestCase{
				Status: bench.InProgress, Workflow: running, Pollers: active(bench.CollectorBenchmarking),
				Jobs: handedOut(protocol.WorkflowMissing),
			},
			what: "the job's workflow does not exist", stuck: true, repair: diagnose.Reconcile,
		},
		"job that waits for its turn": {
			in:   diagnose.RequestCase{Status: bench.InProgress, Workflow: running, Pollers: active(bench.CollectorBenchmarking), Jobs: job(bench.JobQueued, protocol.WorkflowState{})},
			what: "the job waits to be handed out", repair: diagnose.Reconcile,
		},
		"job that is measured": {
			in:   diagnose.RequestCase{Status: bench.InProgress, Workflow: running, Pollers: active(bench.CollectorBenchmarking), Jobs: job(bench.JobInProgress, measured)},
			what: "RunJob runs",
		},
		"no collector": {
			in:   diagnose.RequestCase{Status: bench.InProgress, Workflow: running, Jobs: job(bench.JobInProgress, measured)},
			what: "no collector takes jobs from this task queue: none is registered", stuck: true, remedy: "start a collector with 'benchloom collector'",
		},
		"no collector of its name": {
			in: diagnose.RequestCase{Status: bench.InProgress, Workflow: running, Jobs: []diagnose.RequestJob{
				{Key: "k", Status: bench.JobQueued, TaskQueue: "bench/set/x", Machines: []string{"vmx", "vmy"}},
			}},
			what: "none is registered", stuck: true, remedy: "start one named vmx or vmy, which alone can run it, with 'benchloom collector --name vmx'",
		},
		"collectors that take nothing": {
			in: diagnose.RequestCase{
				Status: bench.InProgress, Workflow: running, Jobs: job(bench.JobInProgress, measured),
				Pollers: active(bench.CollectorOffline, bench.CollectorDraining),
			},
			what: "c1 is offline, c1 is draining", stuck: true, remedy: "benchloom collector activate",
		},
		"outcome": {
			in:   diagnose.RequestCase{ID: "r1", Status: bench.InProgress, Workflow: running},
			what: "none of its jobs is open", remedy: "benchloom status r1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := diagnose.Request(c.in, then.Add(c.later))[0]
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
