package e2e_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// A collector serves its pool and a set of which it is the only member. It runs one job
// at a time, neither task queue waits for the other's backlog, and it counts as idle when
// both are empty.
func TestACollectorServesItsPoolAndItsSet(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	g, other := s.enrol(t, "guest"), s.enrol(t, "other")
	g.start(t, s.bin, "collector", "run")
	other.start(t, s.bin, "collector", "run")
	s.awaitState(t, "guest", bench.CollectorWaiting)
	s.awaitState(t, "other", bench.CollectorWaiting)
	// The pool has two collectors, one of them drained.
	_, code := s.run(t, "collector", "drain", "other")
	require.Zero(t, code)

	submit := func(bound bool) bench.RequestID {
		wish := apiclient.PlacementWish{SizeClass: guestClass}
		if bound {
			wish.Constraints = bench.ConstraintSpec{Machines: []string{"guest"}}
		}
		return s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}, Iterations: 1}, PlacementWish: wish}).ID
	}
	first := s.gated(t)
	first.begun(t)
	var ids []bench.RequestID
	bound := map[bench.RequestID]bool{}
	for i := range 12 {
		id := submit(i%2 == 1)
		ids, bound[id] = append(ids, id), i%2 == 1
	}
	require.Eventually(t, func() bool { return strings.Contains(g.output(t), "serves other task queues") }, patience, 20*time.Millisecond)
	// Both task queues have a backlog in Temporal when the machine becomes idle.
	temporal := s.temporal(t)
	for _, q := range s.taskQueues(t) {
		require.Eventually(t, func() bool { return backlog(t, temporal, q) >= 4 }, patience, 20*time.Millisecond, q)
	}
	first.letGo(t)
	s.done(t, first)
	type run struct {
		bound      bool
		begin, end time.Time
	}
	var runs []run
	for _, id := range ids {
		d := s.await(t, id, ended)
		requireSuccess(t, d.Outcome, d)
		of := s.runsOf(t, id)
		require.Len(t, of, 1, "a job that was given back does not count as a run")
		require.Equal(t, "guest", of[0].Collector)
		require.Equal(t, bench.Scheduled, of[0].Reason)
		runs = append(runs, run{bound[id], of[0].StartedAt, *of[0].FinishedAt})
	}
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.begin.UnixNano(), b.begin.UnixNano()) })
	changes := 0
	for i := range runs[1:] {
		require.False(t, runs[i+1].begin.Before(runs[i].end), "one job at a time")
		if runs[i+1].bound != runs[i].bound {
			changes++
		}
	}
	require.Greater(t, changes, 1, "neither waits for the other's backlog")

	// --exit-when-idle considers both task queues.
	require.NoError(t, g.command.Process.Signal(os.Interrupt))
	require.Zero(t, g.code(t))
	rest := []bench.RequestID{submit(true), submit(false)}
	g.start(t, s.bin, "collector", "run", "--exit-when-idle")
	for _, id := range rest {
		d := s.await(t, id, ended)
		requireSuccess(t, d.Outcome, d)
	}
	require.Zero(t, g.code(t))
}

// taskQueues returns the task queues of waiting jobs.
func (s *stack) taskQueues(t *testing.T) []string {
	t.Helper()
	rows, err := s.database(t).Query(t.Context(), `select distinct task_queue from job_queue where status in ('queued', 'handed_out')`)
	require.NoError(t, err)
	queues, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, queues, 2)
	return queues
}

// backlog returns the number of jobs that wait in Temporal in a task queue.
func backlog(t *testing.T, temporal client.Client, queue string) int64 {
	t.Helper()
	answer, err := temporal.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
		Namespace: "benchloom", TaskQueue: &taskqueue.TaskQueue{Name: queue}, TaskQueueType: enums.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true,
	})
	require.NoError(t, err)
	return answer.GetStats().GetApproximateBacklogCount()
}
