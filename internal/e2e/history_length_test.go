package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// mostEvents bounds the history of a job that ends at once: Temporal's work grows with it.
const mostEvents = 15

// A trivial command leaves a short history, which tells of its end as much as a long one:
// its run, its collector and its state, though no run was announced.
func TestATrivialCommandHasAShortHistory(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	// Of several, the others find everything warm.
	for range 3 {
		r := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
		require.Equal(t, bench.Success, s.await(t, r.ID, ended).Outcome)
		d, err := s.api.Request(t.Context(), string(r.ID))
		require.NoError(t, err)
		job, err := s.api.Job(t.Context(), d.Jobs[0].Key)
		require.NoError(t, err)
		require.Len(t, job.Runs, 1)
		var result struct{ Run bench.RunID }
		require.NoError(t, c.GetWorkflow(t.Context(), job.WorkflowID, "").Get(t.Context(), &result))
		require.Equal(t, job.Runs[0].ID, result.Run)
		s.check(t, c, expectation{
			workflow: "Job", id: job.WorkflowID, state: string(bench.JobSuccess), recordAs: "success_of_a_short_command",
			details: []string{"| collector | `local-1` |", string(result.Run)}, attributes: jobAttributes[:4],
		})
		var kinds []enumspb.EventType
		announced := false
		events := c.GetWorkflowHistory(t.Context(), job.WorkflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(t, err)
			kinds = append(kinds, e.GetEventType())
			announced = announced || e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
		}
		if announced { // on a busy machine a run can take a second
			continue
		}
		require.LessOrEqual(t, len(kinds), mostEvents, "%v", kinds)
		return
	}
	t.Fatal("each of three trivial commands ran for more than a second")
}
