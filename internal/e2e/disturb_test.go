package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
)

// situation describes a workflow in one of its phases and how to bring it there.
type situation struct {
	workflow bench.WorkflowKind
	phase    string
	// hold is the failure point that stops the first request; empty: none.
	hold string
	// requests are submitted in order; the last one reaches the phase. TAG and
	// PARENT stand for new tags. Default: a release.
	requests []apiclient.NewRequest
	// besides is the number of further artifacts that are measured.
	besides int
	// busy holds an ad-hoc command there on the only collector.
	busy bool
	// finished says that only the end is missing, which the reconciliation records
	// itself instead of restarting the workflow.
	finished bool
}

func (a situation) String() string { return string(a.workflow) + " in " + a.phase }

// situations lists everything that the tests below disturb. A new phase needs a line here.
var situations = []situation{
	{workflow: bench.RequestWorkflow, phase: string(protocol.RequestWaitsForArtifacts), requests: []apiclient.NewRequest{{Type: bench.Try, PR: 1, Parent: parentTag}}, besides: 1},
	{workflow: bench.RequestWorkflow, phase: string(protocol.RequestWaitsForParent), hold: failpoint.Measuring, requests: []apiclient.NewRequest{
		{Type: bench.Master, Tag: parentTag}, {Type: bench.Master, Tag: ownTag, Parent: parentTag},
	}},
	{workflow: bench.RequestWorkflow, phase: string(protocol.RequestWaitsForAdmission), hold: failpoint.Measuring, requests: twoReleases},
	{workflow: bench.RequestWorkflow, phase: string(protocol.RequestBackfilling), hold: failpoint.Measuring, requests: []apiclient.NewRequest{
		{Type: bench.Try, PR: 2, Tag: ownTag, Parent: parentTag, ArtifactsReady: true},
	}, besides: 1},
	{workflow: bench.RequestWorkflow, phase: string(protocol.RequestExpanding), hold: failpoint.Expanding},
	{workflow: bench.RequestWorkflow, phase: string(protocol.RequestInProgress), hold: failpoint.Measuring},
	{workflow: bench.RequestWorkflow, phase: string(protocol.RequestCompleting), hold: failpoint.Completing},
	{workflow: bench.JobWorkflow, phase: string(protocol.JobWaitsForCollector), hold: failpoint.Measuring, busy: true},
	{workflow: bench.JobWorkflow, phase: string(protocol.JobBenchmarking), hold: failpoint.Measuring},
	{workflow: bench.JobWorkflow, phase: string(protocol.JobRecording), hold: failpoint.Recording, finished: true},
	{workflow: bench.QueueWorkflow, phase: string(protocol.QueueAdmitting), hold: failpoint.Measuring},
	{workflow: bench.QueueWorkflow, phase: string(protocol.QueueFull), hold: failpoint.Measuring, requests: twoReleases},
}

// Placeholders for tags that a situation makes up.
const (
	parentTag = "PARENT"
	ownTag    = "TAG"
)

var twoReleases = []apiclient.NewRequest{{Type: bench.Release, Tag: parentTag}, {Type: bench.Release, Tag: ownTag}}

// arranged is a situation that a stack is in.
type arranged struct {
	requests []bench.RequestID
	others   []bench.RequestID // they wait for these
	workflow string            // ID of the workflow to disturb
	proceed  func()
}

// arrange submits requests with new tags and brings them into the situation.
func (s *stack) arrange(t *testing.T, c client.Client, shell shellSuite, a situation, number int) arranged {
	t.Helper()
	out := arranged{proceed: func() {}}
	if a.hold != "" {
		out.proceed = s.hold(t, a.hold)
	}
	if a.busy {
		command := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"true"}}})
		out.others = append(out.others, command.ID)
		s.reached(t, a.hold)
	}
	tags := map[string]string{parentTag: fmt.Sprintf("%d.0.0", number), ownTag: fmt.Sprintf("%d.1.0", number)}
	for _, tag := range tags {
		shell.artifact(t, tag, 1000)
	}
	requests := a.requests
	if len(requests) == 0 {
		requests = []apiclient.NewRequest{{Type: bench.Release, Tag: ownTag}}
	}
	for i, r := range requests {
		r.Project, r.Tag, r.Parent = "shell", tags[r.Tag], tags[r.Parent]
		id := s.submit(t, r).ID
		out.requests = append(out.requests, id)
		if i == 0 && a.hold != "" && !a.busy {
			s.reached(t, a.hold)
		}
		if r.Tag == "" {
			out.proceed = func() {
				_, code := s.run(t, "request", "artifacts-ready", string(id), "--tag", tags[ownTag], "--parent", tags[parentTag])
				require.Zero(t, code)
			}
		}
	}
	last := out.requests[len(out.requests)-1]
	switch a.workflow {
	case bench.RequestWorkflow:
		out.workflow = s.requestWorkflow(t, last)
	case bench.JobWorkflow:
		out.workflow = s.jobWorkflow(t, s.firstJob(t, last))
	case bench.QueueWorkflow:
		out.workflow = bench.QueueWorkflowID("shell")
	}
	s.awaitPhase(t, c, out.workflow, a.phase)
	return out
}

func (s *stack) firstJob(t *testing.T, id bench.RequestID) bench.JobKey {
	t.Helper()
	var key bench.JobKey
	require.Eventually(t, func() bool {
		d, err := s.api.Request(t.Context(), string(id))
		if err != nil || len(d.Jobs) == 0 {
			return false
		}
		key = d.Jobs[0].Key
		return true
	}, patience, 20*time.Millisecond, "request %s has no job", id)
	return key
}

// requestWorkflow and jobWorkflow return the IDs of workflows as people find them.
func (s *stack) requestWorkflow(t *testing.T, id bench.RequestID) string {
	t.Helper()
	d, err := s.api.Request(t.Context(), string(id))
	require.NoError(t, err)
	return d.WorkflowID
}

func (s *stack) jobWorkflow(t *testing.T, key bench.JobKey) string {
	t.Helper()
	d, err := s.api.Job(t.Context(), key)
	require.NoError(t, err)
	return d.WorkflowID
}

// awaitPhase waits until the running workflow of an ID shows a state.
func (s *stack) awaitPhase(t *testing.T, c client.Client, workflowID, state string) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("%s is in %s, not in %s", workflowID, last, state)
		}
	}()
	require.Eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), workflowID, "")
		if err != nil {
			last = err.Error()
			return false
		}
		info := d.GetWorkflowExecutionInfo()
		last = info.GetStatus().String()
		if payload := info.GetSearchAttributes().GetIndexedFields()[protocol.AttrState.GetName()]; payload != nil {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &last))
		}
		return last == state && info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, patience, 20*time.Millisecond, "%s does not get to %s", workflowID, state)
}

// decisions returns the events that a workflow's newest run can be reset to. It waits
// until there is one.
func decisions(t *testing.T, c client.Client, workflowID string) (run string, events []int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), workflowID, "")
		require.NoError(t, err)
		run, events = d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), nil
		history := c.GetWorkflowHistory(t.Context(), workflowID, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			e, err := history.Next()
			require.NoError(t, err)
			if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				events = append(events, e.GetEventId())
			}
		}
		return len(events) > 0
	}, patience, 10*time.Millisecond, "%s decides nothing", workflowID)
	return run, events
}

// reset resets a workflow, like the button in the Web UI.
func reset(t *testing.T, c client.Client, workflowID, run string, event int64) {
	t.Helper()
	_, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "benchloom", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: run},
		Reason: "a test", WorkflowTaskFinishEventId: event, RequestId: fmt.Sprintf("%s %d", run, event),
	})
	require.NoError(t, err, "resetting %s to event %d", workflowID, event)
}

// triggerReconcile triggers the reconciliation's Schedule.
func triggerReconcile(t *testing.T, c client.Client) {
	t.Helper()
	require.NoError(t, c.ScheduleClient().GetHandle(t.Context(), protocol.ReconcileScheduleID).
		Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE}))
}

// executed counts all executions of a tag.
func (s shellSuite) executed(t *testing.T) int {
	t.Helper()
	total := 0
	for _, n := range s.executions(t) {
		total += n
	}
	return total
}

const smallIterations = 3 // of newShellSuite

// Every workflow is reset in every phase, to its first, a middle and its last
// workflow task, and terminated there. All requests succeed, and no stored result is
// measured again.
func TestLongWorkflowsSurviveResetAndTerminationInEveryPhase(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 1)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	for i, a := range situations {
		before := shell.executed(t)
		now := s.arrange(t, c, shell, a, i+1)
		for _, part := range []int{0, 1, 2} {
			run, events := decisions(t, c, now.workflow)
			require.NotEmpty(t, events, a)
			reset(t, c, now.workflow, run, events[part*(len(events)-1)/2])
			s.awaitPhase(t, c, now.workflow, a.phase)
		}
		require.NoError(t, c.TerminateWorkflow(t.Context(), now.workflow, "", "a test"))
		s.ripen(t)
		triggerReconcile(t, c)
		if !a.finished {
			s.awaitPhase(t, c, now.workflow, a.phase)
		}
		now.proceed()
		for _, id := range append(now.others, now.requests...) {
			d := s.await(t, id, ended)
			requireSuccess(t, d.Outcome, d)
			require.Empty(t, d.Errors, "%s", a)
		}
		planned := (len(now.requests) + a.besides) * smallIterations
		again := shell.executed(t) - before - planned
		require.GreaterOrEqual(t, again, 0, "%s", a)
		// Only unfinished blocks are repeated: one for each of the three resets and
		// the termination.
		require.LessOrEqual(t, again, 4*smallIterations, "%s", a)
	}
	s.requireCollections(t, "shell", smallIterations)
}

// ripen makes all hand-outs a minute older.
func (s *stack) ripen(t *testing.T) {
	t.Helper()
	conn := s.database(t)
	_, err := conn.Exec(t.Context(), `update job_queue set handed_out_at = handed_out_at - interval '1 minute' where handed_out_at is not null`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// A closed workflow that is reset to any of its workflow tasks closes again as before,
// without measuring anything or changing the record.
func TestResettingClosedWorkflowsChangesNothing(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 2)
	shell.artifact(t, "1.0.0", 1000)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	id := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.0.0"}).ID
	before := s.await(t, id, ended)
	requireSuccess(t, before.Outcome, before)
	executions := shell.executions(t)

	for _, workflowID := range []string{before.WorkflowID, before.Jobs[0].WorkflowID} {
		require.Eventually(t, func() bool { return ends(t, c, workflowID) }, patience, 20*time.Millisecond)
		run, events := decisions(t, c, workflowID)
		require.GreaterOrEqual(t, len(events), 2, "its beginning and its end at least")
		for _, event := range events {
			reset(t, c, workflowID, run, event)
			require.Eventually(t, func() bool { return ends(t, c, workflowID) }, patience, 20*time.Millisecond, "%s, reset to %d", workflowID, event)
			require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, statusOf(t, c, workflowID), "%s, reset to %d", workflowID, event)
		}
	}
	// The Queue workflow never closes; after any reset it admits the next request.
	_, events := decisions(t, c, bench.QueueWorkflowID("shell"))
	for i := range events {
		run, now := decisions(t, c, bench.QueueWorkflowID("shell"))
		reset(t, c, bench.QueueWorkflowID("shell"), run, now[min(i, len(now)-1)])
	}
	after, err := s.api.Request(t.Context(), string(id))
	require.NoError(t, err)
	require.Equal(t, before.Request, after.Request)
	require.Equal(t, before.Jobs, after.Jobs)
	require.Equal(t, before.Runs, after.Runs)
	require.Equal(t, executions, shell.executions(t))

	shell.artifact(t, "1.1.0", 1000)
	next := s.await(t, s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.1.0"}).ID, ended)
	requireSuccess(t, next.Outcome, next)
	s.requireCollections(t, "shell", smallIterations)
}

func statusOf(t *testing.T, c client.Client, workflowID string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	d, err := c.DescribeWorkflowExecution(t.Context(), workflowID, "")
	require.NoError(t, err)
	return d.GetWorkflowExecutionInfo().GetStatus()
}

func ends(t *testing.T, c client.Client, workflowID string) bool {
	t.Helper()
	return statusOf(t, c, workflowID) != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// Terminated workflows, and even a deleted reconciliation Schedule, come back without
// anyone triggering it.
func TestLongTerminatedWorkflowsAreRestarted(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 1)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	a := situation{workflow: bench.JobWorkflow, phase: string(protocol.JobBenchmarking), hold: failpoint.Measuring}
	now := s.arrange(t, c, shell, a, 1)
	require.NoError(t, c.ScheduleClient().GetHandle(t.Context(), protocol.ReconcileScheduleID).Delete(t.Context()))
	all := []string{now.workflow, bench.QueueWorkflowID("shell"), s.requestWorkflow(t, now.requests[0])}
	for _, id := range all {
		require.NoError(t, c.TerminateWorkflow(t.Context(), id, "", "a test"))
	}
	for _, id := range all {
		require.Eventually(t, func() bool { return !ends(t, c, id) }, patience, 50*time.Millisecond, "%s was not restarted", id)
	}
	now.proceed()
	d := s.await(t, now.requests[0], ended)
	requireSuccess(t, d.Outcome, d)
	s.requireCollections(t, "shell", smallIterations)
}

// 'request unstick' explains why a request makes no progress, and repairs it.
func TestUnstick(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 1)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	now := s.arrange(t, c, shell, situation{workflow: bench.JobWorkflow, phase: string(protocol.JobBenchmarking), hold: failpoint.Measuring}, 1)
	id := now.requests[0]
	request := s.requestWorkflow(t, id)

	out, code := s.run(t, "request", "unstick", string(id), "--dry-run")
	require.Zero(t, code)
	require.Contains(t, out, "RunJob runs")
	require.NotContains(t, out, "stuck")

	// The Schedule is paused, so that only unstick can find the fault.
	require.NoError(t, c.ScheduleClient().GetHandle(t.Context(), protocol.ReconcileScheduleID).Pause(t.Context(), client.SchedulePauseOptions{}))
	require.NoError(t, c.TerminateWorkflow(t.Context(), request, "", "a mistake"))
	require.NoError(t, c.TerminateWorkflow(t.Context(), now.workflow, "", "a mistake"))
	s.ripen(t)
	out, code = s.run(t, "request", "unstick", string(id), "--dry-run")
	require.Zero(t, code)
	require.Contains(t, out, "the request's workflow is terminated: terminated by")
	require.Contains(t, out, "the job's workflow is terminated")
	require.Contains(t, out, "a mistake")
	require.True(t, ends(t, c, request))
	out, code = s.run(t, "request", "unstick", string(id))
	require.Zero(t, code)
	require.Contains(t, out, "done: restart-request")
	require.Contains(t, out, "done: reconcile")
	s.awaitPhase(t, c, now.workflow, string(protocol.JobBenchmarking))
	now.proceed()
	d := s.await(t, id, ended)
	requireSuccess(t, d.Outcome, d)
	s.requireCollections(t, "shell", smallIterations)
}
