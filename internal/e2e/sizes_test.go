package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/protocol"
)

// runs lists the outcomes and size classes of a request's runs: "oom@1, success@4".
func runs(d apiclient.RequestDetail) string {
	var words []string
	for _, r := range d.Runs {
		words = append(words, fmt.Sprintf("%s@%d", r.Outcome, r.SizeClass))
	}
	return strings.Join(words, ", ")
}

// attempts returns the maximum attempts of each RunJob activity in a job's history.
func (s *stack) attempts(t *testing.T, project string, key bench.JobKey) []int32 {
	t.Helper()
	var most []int32
	events := s.temporal(t).GetWorkflowHistory(t.Context(), s.jobWorkflow(t, key), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if scheduled := e.GetActivityTaskScheduledEventAttributes(); scheduled.GetActivityType().GetName() == protocol.RunJob {
			most = append(most, scheduled.GetRetryPolicy().GetMaximumAttempts())
		}
	}
	return most
}

// Benchloom learns by running a job which size classes are too small for it, and
// remembers it: nobody has to say how large a machine the job needs.
func TestLongJobsFindTheirSizeClass(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1,1x2,1x4", "--share-cores", "--memory", "800MiB")
	for _, name := range []string{"local-1", "local-2", "local-3"} {
		s.awaitCollector(t, name, bench.CollectorWaiting)
	}
	// A busy machine may take long to fill the memory that a class has.
	minimum := map[string]string{"": "6s", "-memory": "2m"}
	for project, stepwise := range map[string]bool{"straight": false, "steps": true} {
		for suffix, limit := range minimum {
			_, err := s.api.ApplyProject(t.Context(), apiclient.Project{Name: project + suffix, Config: bench.ProjectConfig{
				Size: bench.SizePolicy{Minimum: limit, Stepwise: stepwise},
			}}, false)
			require.NoError(t, err)
		}
	}
	run := func(project string, argv ...string) apiclient.RequestDetail {
		t.Helper()
		r := s.submit(t, apiclient.NewRequest{Project: project, Type: bench.AdHoc, Command: &apiclient.Command{Argv: argv}})
		return s.await(t, r.ID, ended)
	}
	// The share of class 1 is 200 MiB, that of class 2 is 400 MiB.
	large := []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=450M", "count=1"}
	slow := []string{"sleep", "8"}
	limited := s.limited(t)
	for project, want := range map[string][2]string{
		"straight": {"oom@1, success@4", "timeout@1, success@4"},
		"steps":    {"oom@1, oom@2, success@4", "timeout@1, timeout@2, success@4"},
	} {
		if limited {
			d := run(project+"-memory", large...)
			requireSuccess(t, d.Outcome, d)
			require.Equal(t, want[0], runs(d))
			require.Equal(t, bench.Escalation, d.Runs[1].Reason)
		}
		d := run(project, slow...)
		requireSuccess(t, d.Outcome, d)
		require.Equal(t, want[1], runs(d))
		require.Equal(t, slices.Concat(slices.Repeat([]int32{1}, len(d.Runs)-1), []int32{3}), s.attempts(t, project, d.Jobs[0].Key))
		s.record(t, s.temporal(t), "Job", d.Jobs[0].WorkflowID, "success_after_escalation_"+project)
	}

	// A job fails only after using up its attempts on the largest class.
	d := run("straight", "sh", "-c", "exit 3")
	require.Equal(t, bench.Failure, d.Outcome)
	require.Equal(t, "failure@1, failure@4, failure@4, failure@4", runs(d))
	require.Equal(t, []int32{1, 3}, s.attempts(t, "straight", d.Jobs[0].Key))

	// Learned sizes survive a restart of all processes.
	s.kill(t, "up")
	s.start(t)
	if limited {
		d = run("straight-memory", large...)
		requireSuccess(t, d.Outcome, d)
		require.Equal(t, "success@4", runs(d))
	}
}

// limited reports whether collectors can limit memory on this machine.
func (s *stack) limited(t *testing.T) bool {
	t.Helper()
	all, err := s.api.Collectors(t.Context())
	require.NoError(t, err)
	return !slices.ContainsFunc(all, func(c apiclient.Collector) bool {
		return slices.ContainsFunc(c.Unenforced, func(u apiclient.Unenforced) bool { return u.Name == string(measure.LimitMemory) })
	})
}
