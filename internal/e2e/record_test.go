package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
)

// seen holds the Temporal Web UI's view of a workflow.
type seen struct {
	summary, details string
	attributes       map[string]string
}

// look asks the server what an operator would see.
func look(t *testing.T, c client.Client, workflowID string) seen {
	t.Helper()
	described, err := c.DescribeWorkflowExecution(t.Context(), workflowID, "")
	require.NoError(t, err)
	out := seen{attributes: make(map[string]string)}
	if payload := described.GetExecutionConfig().GetUserMetadata().GetSummary(); payload != nil {
		require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &out.summary))
	}
	for name, payload := range described.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields() {
		var value any
		require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &value))
		out.attributes[name] = fmt.Sprint(value)
	}
	value, err := c.QueryWorkflow(t.Context(), workflowID, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	out.details = metadata.GetCurrentDetails()
	return out
}

// expectation describes a workflow in one state.
type expectation struct {
	workflow, id, state string
	recordAs            string   // where the history's name is not the state's
	details             []string // what the details name
	attributes          []string // that are set, besides State
}

var (
	requestAttributes = []string{"Project", "Request", "User", "Target", "Tag"}
	jobAttributes     = []string{"Project", "Request", "User", "Target", "Tag"}
)

// check waits until the workflow shows the state, then demands what it must show
// and that the documented filter finds it.
func (s *stack) check(t *testing.T, c client.Client, want expectation) {
	t.Helper()
	var got seen
	require.Eventually(t, func() bool {
		if _, err := c.DescribeWorkflowExecution(t.Context(), want.id, ""); err != nil {
			return false
		}
		got = look(t, c, want.id)
		return got.attributes["State"] == want.state
	}, time.Minute, 50*time.Millisecond, "%s is not seen in state %s: %+v", want.id, want.state, &got)
	require.NotEmpty(t, got.summary, "summary of %s in %s", want.id, want.state)
	for _, text := range want.details {
		require.Contains(t, got.details, text, "details of %s in %s", want.id, want.state)
	}
	for _, name := range want.attributes {
		require.NotEmpty(t, got.attributes[name], "attribute %s of %s in %s", name, want.id, want.state)
	}
	filter := fmt.Sprintf(`WorkflowType="%s" AND State="%s"`, want.workflow, want.state)
	require.Eventually(t, func() bool {
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: filter})
		if err != nil {
			return false
		}
		for _, e := range list.GetExecutions() {
			if e.GetExecution().GetWorkflowId() == want.id {
				return true
			}
		}
		return false
	}, time.Minute, 100*time.Millisecond, "filter %s does not find %s", filter, want.id)
	as := want.recordAs
	if as == "" {
		as = want.state
	}
	s.record(t, c, want.workflow, want.id, as)
}

// record keeps a history as a fixture for replay tests, when
// BENCHLOOM_RECORD_HISTORIES names a directory. An existing file is never
// overwritten.
func (s *stack) record(t *testing.T, c client.Client, workflow, id, state string) {
	t.Helper()
	dir := os.Getenv("BENCHLOOM_RECORD_HISTORIES")
	if dir == "" {
		return
	}
	var history historypb.History
	events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		history.Events = append(history.Events, e)
	}
	text, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(&history)
	require.NoError(t, err)
	name := fmt.Sprintf("%s-%s-%s.json", strings.ToLower(workflow), state, time.Now().UTC().Format("20060102"))
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return
	}
	require.NoError(t, err)
	_, err = f.Write(neutral(t, text))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

var payloadData = regexp.MustCompile(`"data":( +)"([A-Za-z0-9+/=]+)"`)

// neutral takes the name and the temporary directory of this machine out of a history.
func neutral(t *testing.T, history []byte) []byte {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	history = bytes.ReplaceAll(history, []byte("@"+host+"/"), []byte("@host/"))
	return payloadData.ReplaceAllFunc(history, func(field []byte) []byte {
		parts := payloadData.FindSubmatch(field)
		data, err := base64.StdEncoding.DecodeString(string(parts[2]))
		require.NoError(t, err)
		data = bytes.ReplaceAll(data, []byte(os.TempDir()+"/"), []byte("/srv/"))
		return []byte(`"data":` + string(parts[1]) + `"` + base64.StdEncoding.EncodeToString(data) + `"`)
	})
}

// The Temporal record alone tells an operator what happens and why something
// waits: every workflow type is taken to every state and looked at there.
func TestLongTemporalRecordSpeaks(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell := newShellSuite(t, 1)
	for _, tag := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		shell.artifact(t, tag, 1000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	requestID := func(r apiclient.Request) string { return r.WorkflowID }
	jobID := func(r apiclient.Request) string {
		t.Helper()
		var key bench.JobKey
		require.Eventually(t, func() bool {
			d, err := s.api.Request(t.Context(), string(r.ID))
			if err != nil || len(d.Jobs) == 0 {
				return false
			}
			key = d.Jobs[0].Key
			return true
		}, time.Minute, 20*time.Millisecond)
		return s.jobWorkflow(t, key)
	}

	// The first release is measured, held in the middle.
	release := s.hold(t, failpoint.Measuring)
	first := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.0.0"})
	s.check(t, c, expectation{workflow: "Request", id: requestID(first), state: string(protocol.RequestInProgress), details: []string{"1 of 1 jobs open", string(first.ID)}, attributes: requestAttributes})
	s.check(t, c, expectation{workflow: "Job", id: jobID(first), state: string(protocol.JobBenchmarking), details: []string{"on collector `local-1`", "bench/"}, attributes: jobAttributes})
	s.check(t, c, expectation{workflow: "Queue", id: bench.QueueWorkflowID("shell"), state: string(protocol.QueueAdmitting), details: []string{string(first.ID), "1 of 1 slots"}, attributes: []string{"Project"}})

	// The second waits for the first one's slot, and is cancelled there.
	second := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.1.0"})
	s.check(t, c, expectation{workflow: "Request", id: requestID(second), state: string(protocol.RequestWaitsForAdmission), details: []string{"waits for a slot of the queue `queue/shell`"}, attributes: requestAttributes})
	s.check(t, c, expectation{workflow: "Queue", id: bench.QueueWorkflowID("shell"), state: string(protocol.QueueFull), details: []string{"waits for a request in progress", string(second.ID)}, attributes: []string{"Project"}})
	_, err := s.api.PauseQueue(t.Context(), "shell", apiclient.Act{Reason: "maintenance"})
	require.NoError(t, err)
	s.check(t, c, expectation{workflow: "Queue", id: bench.QueueWorkflowID("shell"), state: string(protocol.QueuePaused), details: []string{"maintenance", "benchloom queue resume shell"}, attributes: []string{"Project"}})
	_, err = s.api.ResumeQueue(t.Context(), "shell", apiclient.Act{})
	require.NoError(t, err)
	_, err = s.api.CancelRequest(t.Context(), string(second.ID), apiclient.Act{Reason: "changed my mind"})
	require.NoError(t, err)
	s.check(t, c, expectation{workflow: "Request", id: requestID(second), state: string(protocol.RequestCancelled), details: []string{"cancelled"}, attributes: requestAttributes})

	// A person's command waits for the busy collector, and is cancelled too.
	command := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"true"}}})
	s.check(t, c, expectation{workflow: "Job", id: jobID(command), state: string(protocol.JobWaitsForCollector), details: []string{"waits in task queue", "for an idle collector"}, attributes: []string{"Project", "Request", "User", "Target"}})
	waiting := jobID(command)
	_, err = s.api.CancelRequest(t.Context(), string(command.ID), apiclient.Act{Reason: "not needed"})
	require.NoError(t, err)
	s.check(t, c, expectation{workflow: "Job", id: waiting, state: string(bench.JobCancelled), attributes: jobAttributes[:4]})
	release()

	// Its end, step by step.
	release = s.hold(t, failpoint.Recording)
	s.reached(t, failpoint.Recording)
	s.check(t, c, expectation{workflow: "Job", id: jobID(first), state: string(protocol.JobRecording), details: []string{"end is being recorded"}, attributes: jobAttributes})
	completing := s.hold(t, failpoint.Completing)
	release()
	s.check(t, c, expectation{workflow: "Request", id: requestID(first), state: string(protocol.RequestCompleting), details: []string{"outcome and the comparison"}, attributes: requestAttributes})
	completing()
	require.Equal(t, bench.Success, s.await(t, first.ID, ended).Outcome)
	s.check(t, c, expectation{workflow: "Request", id: requestID(first), state: string(protocol.RequestCompleted), details: []string{"outcome | success"}, attributes: requestAttributes})
	s.check(t, c, expectation{workflow: "Job", id: jobID(first), state: string(bench.JobSuccess), attributes: jobAttributes})
	s.check(t, c, expectation{workflow: "Queue", id: bench.QueueWorkflowID("shell"), state: string(protocol.QueueIdle), details: []string{"waits for the next request"}, attributes: []string{"Project"}})

	// A benchmark that fails three times.
	failing := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: &apiclient.Command{Argv: []string{"false"}}})
	require.Equal(t, bench.Failure, s.await(t, failing.ID, ended).Outcome)
	s.check(t, c, expectation{workflow: "Job", id: jobID(failing), state: string(bench.JobFailure), details: []string{"it failed 3 times"}, attributes: jobAttributes[:4]})
	s.check(t, c, expectation{workflow: "Request", id: requestID(failing), state: string(protocol.RequestCompleted), recordAs: "completed_with_failure", details: []string{"outcome | failure"}, attributes: requestAttributes[:4]})

	// One whose collector dies in the middle runs again.
	release = s.hold(t, failpoint.Measuring)
	retried := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.2.0"})
	s.reached(t, failpoint.Measuring)
	s.kill(t, "collector-local-1")
	release()
	require.Equal(t, bench.Success, s.await(t, retried.ID, ended).Outcome)
	s.check(t, c, expectation{workflow: "Job", id: jobID(retried), state: string(bench.JobSuccess), recordAs: "success_after_retry", details: []string{"| dispatches | 2 |"}, attributes: jobAttributes})

	// The Schedule's reconciliation leaves its own trace.
	var reconcile string
	require.Eventually(t, func() bool {
		list, err := c.ListWorkflow(context.Background(), &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf(`WorkflowType="%s" AND State="%s"`, protocol.ReconcileWorkflow, string(protocol.ReconcileCompleted))})
		if err != nil || len(list.GetExecutions()) == 0 {
			return false
		}
		reconcile = list.GetExecutions()[0].GetExecution().GetWorkflowId()
		return true
	}, time.Minute, 100*time.Millisecond)
	s.check(t, c, expectation{workflow: "Reconcile", id: reconcile, state: string(protocol.ReconcileCompleted)})
}
