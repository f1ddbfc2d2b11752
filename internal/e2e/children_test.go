package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
)

// childrenOf lists the children that Temporal shows for a workflow, over all runs of
// its ID.
func childrenOf(t *testing.T, c client.Client, workflowID string) []string {
	t.Helper()
	list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: `ParentWorkflowId = '` + workflowID + `'`})
	require.NoError(t, err)
	var ids []string
	for _, e := range list.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// requireChildren waits until Temporal lists exactly these children.
func requireChildren(t *testing.T, c client.Client, workflowID string, want ...string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	require.Eventually(t, func() bool {
		got = childrenOf(t, c, workflowID)
		return slices.Equal(want, got)
	}, patience, 50*time.Millisecond, "children of %s: want %v, last %v", workflowID, want, &got)
}

func workflowsOf(d apiclient.RequestDetail) []string {
	ids := make([]string, len(d.Jobs))
	for i, j := range d.Jobs {
		ids[i] = j.WorkflowID
	}
	return ids
}

// The suite jobs that a request starts are its children, even after a reset, a
// termination or a continue-as-new. Commands have no parent.
func TestJobsOfSuitesAreChildrenOfTheirRequests(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 1)
	for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"} {
		shell.artifact(t, tag, 1000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	// disturbed submits a release and disturbs it while its job is measured.
	disturbed := func(tag string, disturb func(workflowID string)) apiclient.RequestDetail {
		t.Helper()
		release := s.hold(t, failpoint.Measuring)
		r := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: tag})
		s.reached(t, failpoint.Measuring)
		disturb(r.WorkflowID)
		s.awaitPhase(t, c, r.WorkflowID, string(protocol.RequestInProgress))
		release()
		d := s.await(t, r.ID, ended)
		requireSuccess(t, d.Outcome, d)
		require.Len(t, d.Jobs, 1)
		requireChildren(t, c, r.WorkflowID, workflowsOf(d)...)
		return d
	}

	d := disturbed("1.0.0", func(string) {})
	var result protocol.RequestResult
	require.NoError(t, c.GetWorkflow(t.Context(), d.WorkflowID, "").Get(t.Context(), &result))
	require.Equal(t, protocol.RequestResult{Outcome: bench.Success, Message: d.Message, Jobs: protocol.JobCounts{Total: 1, Success: 1}}, result)
	require.Equal(t, "request/shell/1.0.0/"+string(d.ID), d.WorkflowID)
	require.Equal(t, "job/shell/1.0.0/count-1/"+string(d.Jobs[0].Key), d.Jobs[0].WorkflowID)

	// After a reset it finds the job that it started before.
	disturbed("1.1.0", func(id string) {
		run, events := decisions(t, c, id)
		reset(t, c, id, run, events[0])
	})

	// A terminated request leaves its job running, and continues once it is restarted.
	disturbed("1.2.0", func(id string) {
		require.NoError(t, c.TerminateWorkflow(t.Context(), id, "", "a test"))
		s.ripen(t)
		triggerReconcile(t, c)
	})

	// A long history continues as new.
	disturbed("1.3.0", func(id string) {
		first, _ := decisions(t, c, id)
		require.Eventually(t, func() bool {
			for range 50 {
				require.NoError(t, c.SignalWorkflow(t.Context(), id, "", protocol.SignalJobEnded, protocol.JobEnded{}))
			}
			d, err := c.DescribeWorkflowExecution(t.Context(), id, "")
			require.NoError(t, err)
			return d.GetWorkflowExecutionInfo().GetExecution().GetRunId() != first
		}, patience, time.Millisecond, "it does not continue as new")
	})

	// A command is started by its hand-out.
	command := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"true"}}})
	requireSuccess(t, s.await(t, command.ID, ended).Outcome, command)
	require.Empty(t, childrenOf(t, c, command.WorkflowID))
}

// A job that two requests wait for is the child of the one that started it; the other
// links it. When the first is cancelled, the job continues for the second.
func TestASharedJobIsTheChildOfOneRequest(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 1)
	for _, tag := range []string{"base", "one", "two"} {
		shell.artifact(t, tag, 1000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Queue: bench.QueuePolicy{MaxInProgress: 2}})
	try := func(pr int, tag string) apiclient.Request {
		t.Helper()
		r := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Try, PR: pr})
		_, err := s.api.ArtifactsReady(t.Context(), string(r.ID), apiclient.ArtifactsReady{Tag: tag, Parent: "base"})
		require.NoError(t, err)
		return r
	}

	// Both need results of the same parent.
	release := s.hold(t, failpoint.Measuring)
	one := try(1, "one")
	s.reached(t, failpoint.Measuring)
	shared := s.jobWorkflow(t, s.firstJob(t, one.ID))
	two := try(2, "two")
	s.awaitPhase(t, c, two.WorkflowID, string(protocol.RequestBackfilling))
	requireChildren(t, c, one.WorkflowID, shared)
	require.Contains(t, look(t, c, two.WorkflowID).details, "started by other requests: 1\n\n* ["+shared+"](/namespaces/benchloom/workflows/job%2Fshell%2F")
	require.NotContains(t, look(t, c, one.WorkflowID).details, "other requests")

	// The first one is cancelled; the job keeps running.
	_, err := s.api.CancelRequest(t.Context(), string(one.ID), apiclient.Act{Reason: "not needed"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ends(t, c, one.WorkflowID) }, patience, 20*time.Millisecond)
	s.awaitPhase(t, c, shared, string(protocol.JobBenchmarking))
	release()
	d := s.await(t, two.ID, ended)
	requireSuccess(t, d.Outcome, d)
	require.Equal(t, map[string]int{"count-1 base": smallIterations, "count-1 two": smallIterations}, shell.executions(t))
	requireChildren(t, c, one.WorkflowID, shared)
	requireChildren(t, c, two.WorkflowID, slices.DeleteFunc(workflowsOf(d), func(id string) bool { return id == shared })...)
	require.Contains(t, look(t, c, two.WorkflowID).details, "["+shared+"]", "also after its end")
	s.record(t, c, protocol.RequestWorkflow, two.WorkflowID, "completed_with_shared_job")
}
