package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
)

// otherTarget is measured on the same machines, as a target of its own.
const otherTarget = bench.Target("x86_64-unknown-linux-musl")

// What a tracked request waits for, and what passes quickly: the Temporal record
// speaks of these states as well.
func TestLongTemporalRecordSpeaksOfWaiting(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 1)
	for _, tag := range []string{"p", "c", "t", "o", "r"} {
		shell.artifact(t, tag, 1000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	requestID := func(r apiclient.Request) string { return r.WorkflowID }

	// No orchestrator is there to take it up.
	pid, err := s.pid("orchestrator")
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	parent := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Master, Tag: "p"})
	s.checkStarting(t, c, requestID(parent))
	expanding := s.hold(t, failpoint.Expanding)
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))

	// Its jobs are being written, then measured; two others wait for it.
	s.check(t, c, expectation{workflow: "Request", id: requestID(parent), state: string(protocol.RequestExpanding), details: []string{"are being written"}, attributes: requestAttributes})
	measuring := s.hold(t, failpoint.Measuring)
	expanding()
	s.reached(t, failpoint.Measuring)
	child := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Master, Tag: "c", Parent: "p"})
	s.check(t, c, expectation{workflow: "Request", id: requestID(child), state: string(protocol.RequestWaitsForParent), details: []string{"waits for the jobs of `p`"}, attributes: requestAttributes})
	try := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Try, PR: 7})
	s.check(t, c, expectation{
		workflow: "Request", id: requestID(try), state: string(protocol.RequestWaitsForArtifacts),
		details: []string{"benchloom request artifacts-ready " + string(try.ID)}, attributes: []string{"Project", "Request", "User", "Target", "PR"},
	})
	measuring()
	for _, r := range []apiclient.Request{parent, child} {
		requireSuccess(t, s.await(t, r.ID, ended).Outcome, r)
	}

	// Its parent lacks everything, and is measured first.
	measuring = s.hold(t, failpoint.Measuring)
	_, err = s.api.ArtifactsReady(t.Context(), string(try.ID), apiclient.ArtifactsReady{Tag: "t", Parent: "o"})
	require.NoError(t, err)
	s.check(t, c, expectation{workflow: "Request", id: requestID(try), state: string(protocol.RequestBackfilling), details: []string{"1 of 1 jobs open"}, attributes: append([]string{"PR"}, requestAttributes...)})

	// The collector dies twice: before the second retry there is a pause.
	key := s.firstJob(t, try.ID)
	for range 2 {
		s.reached(t, failpoint.Measuring)
		s.kill(t, "collector-local-1")
		require.NoError(t, os.RemoveAll(filepath.Join(s.points, "reached-"+failpoint.Measuring)))
	}
	s.check(t, c, expectation{workflow: "Job", id: s.jobWorkflow(t, key), state: string(protocol.JobPausing), details: []string{"before the next try"}, attributes: jobAttributes})
	measuring()
	requireSuccess(t, s.await(t, try.ID, ended).Outcome, try)
	s.check(t, c, expectation{workflow: "Request", id: requestID(try), state: string(protocol.RequestCompleted), recordAs: "completed_try", details: []string{"compared with | o"}, attributes: requestAttributes})

	// A target that nobody waits for.
	g := s.enrol(t, "other", "--target", string(otherTarget))
	g.start(t, s.bin, "collector", "run", "--co-located")
	s.awaitState(t, "other", bench.CollectorWaiting)
	_, code := s.run(t, "collector", "drain", "other")
	require.Zero(t, code)
	target := s.collector(t, "local-1").Target
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Targets: []bench.Target{target}, OptionalTargets: []bench.Target{otherTarget}, FailoverAfter: "never"})
	optional := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "r"})
	d := s.await(t, optional.ID, ended)
	requireSuccess(t, d.Outcome, d)
	s.check(t, c, expectation{workflow: "Request", id: requestID(optional), state: string(protocol.RequestOptionalJobs), details: []string{"optional targets are still open"}, attributes: requestAttributes})
	_, code = s.run(t, "collector", "activate", "other")
	require.Zero(t, code)
	s.check(t, c, expectation{workflow: "Request", id: requestID(optional), state: string(protocol.RequestCompleted), recordAs: "completed_with_optional_jobs", attributes: requestAttributes})
	require.Equal(t, 3*2, shell.executions(t)["count-1 r"], "both targets were measured")
}

// What is built, looked at and compared from time to time.
func TestTemporalRecordSpeaksOfPasses(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)

	dir, _ := exampleSuite(t, "shell-program")
	s.applyProject(t, "example", dir, bench.ProjectConfig{})
	preparing := s.hold(t, failpoint.Fetching)
	built := s.submit(t, apiclient.NewRequest{Project: "example", Type: bench.Release, Tag: "1.0.0"})
	s.check(t, c, expectation{workflow: "Request", id: built.WorkflowID, state: string(protocol.RequestBuilding), details: []string{"1 of 1 jobs open"}, attributes: requestAttributes})
	preparing()
	requireSuccess(t, s.await(t, built.ID, ended).Outcome, built)

	shell, repository := newShellSuite(t, 1), newGitRepository(t)
	shell.artifact(t, repository.commit(t, "first"), 1000)
	looking := s.hold(t, failpoint.Looking)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Source: bench.CommitSource{Git: repository.dir, Every: "24h"}})
	s.check(t, c, expectation{workflow: "Watch", id: running(t, c, protocol.WatchWorkflow), state: string(protocol.WatchInProgress), attributes: []string{"Project"}})
	looking()

	reconciling := s.hold(t, failpoint.Reconciling)
	triggerReconcile(t, c)
	// The list may still have a pass that began before this was held up, and has ended.
	var held string
	require.Eventually(t, func() bool {
		held = running(t, c, protocol.ReconcileWorkflow)
		return look(t, c, held).attributes["State"] == string(protocol.ReconcileInProgress)
	}, patience, 100*time.Millisecond)
	s.check(t, c, expectation{workflow: "Reconcile", id: held, state: string(protocol.ReconcileInProgress)})
	reconciling()

	removing := s.hold(t, failpoint.Removing)
	require.NoError(t, c.ScheduleClient().GetHandle(t.Context(), protocol.RetainScheduleID).Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	pass := running(t, c, protocol.RetainWorkflow)
	s.check(t, c, expectation{workflow: "Retain", id: pass, state: string(protocol.RetainInProgress)})
	removing()
	s.check(t, c, expectation{workflow: "Retain", id: pass, state: string(protocol.RetainCompleted)})
}

// running waits until a workflow of the type runs, and gives its ID.
func running(t *testing.T, c client.Client, workflow string) string {
	t.Helper()
	var id string
	require.Eventually(t, func() bool {
		list, err := c.ListWorkflow(context.Background(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf(`WorkflowType="%s" AND State="%s" AND ExecutionStatus="Running"`, workflow, string(protocol.RequestInProgress)),
		})
		if err != nil || len(list.GetExecutions()) == 0 {
			return false
		}
		id = list.GetExecutions()[0].GetExecution().GetWorkflowId()
		return true
	}, time.Minute, 50*time.Millisecond, "no %s runs", workflow)
	return id
}

// checkStarting demands what a workflow shows that nobody has taken up: there is
// no worker to ask for its current details.
func (s *stack) checkStarting(t *testing.T, c client.Client, id string) {
	t.Helper()
	described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	var summary, details, state string
	from := converter.GetDefaultDataConverter().FromPayload
	metadata := described.GetExecutionConfig().GetUserMetadata()
	require.NoError(t, from(metadata.GetSummary(), &summary))
	require.NoError(t, from(metadata.GetDetails(), &details))
	require.NoError(t, from(described.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()["State"], &state))
	require.NotEmpty(t, summary)
	require.Contains(t, details, "waits for an orchestrator")
	require.Equal(t, string(protocol.RequestStarting), state)
	s.record(t, c, "Request", id, string(protocol.RequestStarting))
}
