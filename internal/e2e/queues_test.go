package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// begun waits until n jobs have started after the first skip ones, and returns their
// queues in order.
func begun(t *testing.T, db *pgx.Conn, skip, n int) []string {
	t.Helper()
	var queues []string
	require.Eventually(t, func() bool {
		rows, err := db.Query(t.Context(), `
			select j.queue from job_run r join job_queue j on j.id = r.job_id order by r.started_at, r.id offset $1 limit $2`, skip, n)
		require.NoError(t, err)
		queues, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return len(queues) == n
	}, patience, 50*time.Millisecond, "fewer than %d jobs begin", skip+n)
	return queues
}

// Three accounts share one collector 5 : 3 : 2, then by changed weights; then the queue
// of one of them becomes strict and goes first.
func TestLongQueuesShareACollectorAsTheyAreConfigured(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	db := s.database(t)
	apply := func(queue string, weight int) {
		t.Helper()
		_, code := s.run(t, "queue", "set-weight", queue, fmt.Sprint(weight), "--create")
		require.Zero(t, code)
	}
	release := s.hold(t, failpoint.Measuring)
	t.Cleanup(release)
	first := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	s.reached(t, failpoint.Measuring)
	clients := make(map[string]*apiclient.Client)
	for name, weight := range map[string]int{"ada": 50, "bob": 30, "eve": 20} {
		apply("user:"+name, weight)
		clients[name] = s.account(t, name).api
		jobs := slices.Repeat([]apiclient.NewJob{{Command: apiclient.Command{Argv: []string{"true"}}}}, 300)
		_, err := clients[name].CreateBatch(t.Context(), apiclient.NewRequest{}, slices.Values(jobs))
		require.NoError(t, err)
	}
	// Few jobs of each queue are in Temporal, however many wait.
	inTemporal := func(queue string) (n int) {
		require.NoError(t, db.QueryRow(t.Context(), `select count(*) from job_queue where queue = $1 and status = 'handed_out'`, queue).Scan(&n))
		return n
	}
	for name := range clients {
		require.Eventually(t, func() bool { return inTemporal("user:"+name) == 4 }, patience, 20*time.Millisecond)
	}
	release()
	s.await(t, first.ID, ended)
	shares(t, begun(t, db, 1, 40), map[string]int{"user:ada": 50, "user:bob": 30, "user:eve": 20})

	// A new weight takes effect once those few have started.
	apply("user:ada", 20)
	apply("user:eve", 50)
	var so int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from job_run`).Scan(&so))
	shares(t, begun(t, db, so+20, 40), map[string]int{"user:ada": 20, "user:bob": 30, "user:eve": 50})

	// Jobs already in Temporal go first once their queue is strict.
	release = s.hold(t, failpoint.Measuring)
	t.Cleanup(release)
	s.reached(t, failpoint.Measuring)
	_, err := s.api.ApplyQueues(t.Context(), apiclient.QueueConfig{
		Queues: []fairshare.QueueSetting{{Name: "user:bob", Class: fairshare.Strict, Level: new(fairshare.FirstLevel)}},
	})
	require.NoError(t, err)
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from job_run`).Scan(&so))
	release()
	// Temporal rewrites their tasks, which takes a moment. With fair shares no queue gets
	// four turns in a row here.
	require.Contains(t, strings.Join(begun(t, db, so, 24), " "), strings.Join(slices.Repeat([]string{"user:bob"}, 4), " "))
}

// shares requires that each queue has started its share of the jobs, within two.
func shares(t *testing.T, begun []string, weights map[string]int) {
	t.Helper()
	total := 0
	got := make(map[string]int)
	for queue, w := range weights {
		total += w
		got[queue] = 0
	}
	for _, queue := range begun {
		got[queue]++
	}
	t.Logf("%d jobs: %v", len(begun), got)
	for queue, w := range weights {
		require.InDelta(t, float64(len(begun)*w)/float64(total), got[queue], 2, "%s of %v in %v", queue, got, begun)
	}
	require.Len(t, got, len(weights))
}
