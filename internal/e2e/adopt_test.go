package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// activities lists the types of activities in the history of a workflow's newest run, in
// the order in which they were scheduled; a local one stands where its end was recorded.
func activities(t *testing.T, c client.Client, workflowID string) []string {
	t.Helper()
	var out []string
	history := c.GetWorkflowHistory(t.Context(), workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(t, err)
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			out = append(out, a.GetActivityType().GetName())
		}
		if m := e.GetMarkerRecordedEventAttributes(); m.GetMarkerName() == "LocalActivity" {
			var local struct{ ActivityType string }
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(m.GetDetails()["data"], &local))
			out = append(out, local.ActivityType)
		}
	}
	return out
}

// adopted is a command that is being run, whose job has lost its workflow and got another
// one, which awaits the run.
type adopted struct {
	id       bench.RequestID
	workflow string // of the job
	finish   func() // lets the command end
}

// adopt brings a stack there.
func (s *stack) adopt(t *testing.T, c client.Client) adopted {
	t.Helper()
	held := filepath.Join(t.TempDir(), "held")
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	id := s.submit(t, apiclient.NewRequest{Project: apiclient.AdHocProject, Type: bench.AdHoc, Command: heldCommand(held)}).ID
	s.runsOn(t, id)
	a := adopted{id: id, workflow: s.jobWorkflow(t, s.firstJob(t, id)), finish: func() { require.NoError(t, os.Remove(held)) }}
	require.NoError(t, c.TerminateWorkflow(t.Context(), a.workflow, "", "a test"))
	s.ripen(t)
	triggerReconcile(t, c)
	s.awaitsRun(t, c, a)
	return a
}

// awaitsRun waits until the job's workflow awaits its run, and requires that it says so.
func (s *stack) awaitsRun(t *testing.T, c client.Client, a adopted) {
	t.Helper()
	s.awaitPhase(t, c, a.workflow, string(protocol.JobBenchmarking))
	var status protocol.JobStatus
	answer, err := c.QueryWorkflow(t.Context(), a.workflow, "", protocol.StatusQuery)
	require.NoError(t, err)
	require.NoError(t, answer.Get(&status))
	require.Contains(t, status.Waits, "goes on at collector `local-1`")
}

// A run goes on without the workflow that dispatched it: the next one awaits its end.
func TestLongARunIsAdopted(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)

	t.Run("and ends", func(t *testing.T) {
		a := s.adopt(t, c)
		a.finish()
		d := s.await(t, a.id, ended)
		requireSuccess(t, d.Outcome, d)
		require.Len(t, d.Runs, 1)
		require.NotContains(t, activities(t, c, a.workflow), protocol.RunJob, "nothing was dispatched again")
	})
	t.Run("its cancellation reaches the collector through the record", func(t *testing.T) {
		a := s.adopt(t, c)
		_, err := s.api.CancelRequest(t.Context(), string(a.id), apiclient.Act{})
		require.NoError(t, err)
		d := s.await(t, a.id, ended)
		require.Equal(t, bench.Cancelled, d.Outcome)
		require.Eventually(t, func() bool {
			collectors, err := s.api.Collectors(t.Context())
			require.NoError(t, err)
			return collectors[0].CurrentRun == ""
		}, patience, 50*time.Millisecond, "the collector goes on with a cancelled run")
		require.Eventually(t, func() bool { return ends(t, c, a.workflow) }, patience, 50*time.Millisecond)
		d, err = s.api.Request(t.Context(), string(a.id))
		require.NoError(t, err)
		require.Len(t, d.Runs, 1)
		require.Equal(t, bench.RunCancelled, d.Runs[0].Outcome)
	})
	// A process that dies meanwhile costs no more than that run.
	t.Run("and the orchestrator dies", func(t *testing.T) {
		a := s.adopt(t, c)
		s.kill(t, "orchestrator")
		a.finish()
		d := s.await(t, a.id, ended)
		requireSuccess(t, d.Outcome, d)
		require.Len(t, d.Runs, 1)
	})
	t.Run("and the collector dies", func(t *testing.T) {
		a := s.adopt(t, c)
		s.kill(t, "collector-local-1")
		a.finish()
		d := s.await(t, a.id, ended)
		requireSuccess(t, d.Outcome, d)
		require.Len(t, d.Runs, 2, "the collector's death is a run's")
		require.Equal(t, bench.RunLost, d.Runs[0].Outcome)
		require.Equal(t, []string{protocol.AwaitRun, protocol.AssessJob, protocol.RunJob, protocol.RecordJobEnd}, activities(t, c, a.workflow))
	})
}
