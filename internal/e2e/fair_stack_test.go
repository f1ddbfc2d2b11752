package e2e_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
)

// account is an account of the service with its own token.
type account struct {
	name, token string
	api         *apiclient.Client
}

// queue returns the name of the account's own queue.
func (a account) queue() string { return "user:" + a.name }

// account creates an account with the role writer.
func (s *stack) account(t *testing.T, name string) account {
	t.Helper()
	token := "blm_" + rand.Text()
	hash := sha256.Sum256([]byte(token))
	_, err := s.database(t).Exec(t.Context(), `insert into access_token (hash, kind, owner, role) values ($1, 'user', $2, 'writer')`, hash[:], name)
	require.NoError(t, err)
	api, err := apiclient.New(s.api.BaseURL(), token, &http.Client{Timeout: time.Minute})
	require.NoError(t, err)
	return account{name: name, token: token, api: api}
}

// configure sets the weights of queues as an administrator.
func (s *stack) configure(t *testing.T, weights map[string]int) {
	t.Helper()
	var text strings.Builder
	text.WriteString("queues:\n")
	for queue, w := range weights {
		fmt.Fprintf(&text, "  - {name: %q, weight: %d}\n", queue, w)
	}
	file := filepath.Join(t.TempDir(), "queues.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	_, code := s.run(t, "queue", "apply", "-f", file)
	require.Zero(t, code)
}

// short returns a command that takes 50 ms.
func short() []string { return []string{"sleep", "0.05"} }

// queueFile submits n equal jobs with one call.
func (a account) queueFile(t *testing.T, n int, queue string, argv ...string) bench.RequestID {
	t.Helper()
	jobs := slices.Repeat([]apiclient.NewJob{{Command: apiclient.Command{Argv: argv}}}, n)
	r, err := a.api.CreateBatch(t.Context(), apiclient.NewRequest{PlacementWish: apiclient.PlacementWish{Queue: queue}}, slices.Values(jobs))
	require.NoError(t, err)
	return r.ID
}

// queueOne submits one job.
func (a account) queueOne(t *testing.T, queue string, argv ...string) bench.RequestID {
	t.Helper()
	r, err := a.api.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: argv}, PlacementWish: apiclient.PlacementWish{Queue: queue}})
	require.NoError(t, err)
	return r.ID
}

// queueSingly submits n jobs with one call each, over several connections.
func (a account) queueSingly(t *testing.T, n, connections int, argv ...string) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var all sync.WaitGroup
	for worker := range connections {
		all.Go(func() {
			for i := worker; i < n && ctx.Err() == nil; i += connections {
				if _, err := a.api.CreateRequest(ctx, apiclient.NewRequest{Command: &apiclient.Command{Argv: argv}}); err != nil {
					stop(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, context.Cause(ctx))
}

// fairness reads from the record in which order jobs start.
type fairness struct {
	*stack
	conn *pgx.Conn
}

func (s *stack) fairness(t *testing.T) fairness {
	t.Helper()
	return fairness{s, s.database(t)}
}

// now returns the time by the record's clock.
func (f fairness) now(t *testing.T) (now time.Time) {
	t.Helper()
	require.NoError(t, f.conn.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&now))
	return now
}

// busy stops the collector in the middle of the next job that it starts, until proceed
// is called.
func (f fairness) busy(t *testing.T) (proceed func()) {
	t.Helper()
	release := f.hold(t, failpoint.Measuring)
	t.Cleanup(release)
	f.reached(t, failpoint.Measuring)
	return release
}

// isNext requires that a job submitted while the collector is busy is one of the next
// two to start.
func (f fairness) isNext(t *testing.T, who account, queue, what string) {
	t.Helper()
	proceed := f.busy(t)
	id := who.queueOne(t, queue, short()...)
	if queue == "" {
		queue = who.queue()
	}
	f.waits(t, queue, 1)
	proceed()
	require.LessOrEqual(t, f.overtaken(t, id), 1, what)
}

// starts waits for the first n jobs to start after a time and returns their queues, in
// order.
func (f fairness) starts(t *testing.T, after time.Time, n int) []string {
	t.Helper()
	var queues []string
	require.Eventually(t, func() bool {
		rows, err := f.conn.Query(t.Context(), `
			select j.queue from job_run n join job_queue j on j.id = n.job_id
			where n.number = 1 and n.started_at > $1 order by n.started_at, n.id limit $2`, after, n)
		require.NoError(t, err)
		queues, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return len(queues) == n
	}, 3*patience, 100*time.Millisecond, "fewer than %d jobs start", n)
	return queues
}

// counted counts the starts of each queue.
func counted(starts []string) map[string]int {
	count := make(map[string]int)
	for _, queue := range starts {
		count[queue]++
	}
	return count
}

// exact requires that each queue's number of starts follows its weight, within a bound.
func exact(t *testing.T, weights map[string]int, starts []string, within float64) {
	t.Helper()
	total := 0
	for _, w := range weights {
		total += w
	}
	count := counted(starts)
	t.Logf("%d starts: %v of weights %v", len(starts), count, weights)
	for queue := range count {
		require.Contains(t, weights, queue)
	}
	for queue, w := range weights {
		require.InDelta(t, float64(len(starts))*float64(w)/float64(total), count[queue], within, "starts of %s of %d, by weights %v: %v", queue, len(starts), weights, count)
	}
}

// waits waits until n jobs of a queue wait in Temporal for a collector.
func (f fairness) waits(t *testing.T, queue string, n int) {
	t.Helper()
	temporal := f.temporal(t)
	var jobs []string
	require.Eventually(t, func() bool {
		rows, err := f.conn.Query(t.Context(), `select key from job_queue where queue = $1 and status = 'handed_out' order by id`, queue)
		require.NoError(t, err)
		jobs, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return len(jobs) >= n
	}, patience, 20*time.Millisecond, "fewer than %d jobs of %s are handed out", n, queue)
	for _, key := range jobs {
		f.awaitPhase(t, temporal, f.jobWorkflow(t, bench.JobKey(key)), string(protocol.JobWaitsForCollector))
	}
	// A task takes a moment to arrive.
	var taskQueue string
	var all int64
	require.NoError(t, f.conn.QueryRow(t.Context(), `select task_queue, count(*) from job_queue where status = 'handed_out' group by task_queue`).Scan(&taskQueue, &all))
	require.Eventually(t, func() bool {
		d, err := temporal.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
			Namespace: "benchloom", TaskQueue: &taskqueuepb.TaskQueue{Name: taskQueue}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true,
		})
		return err == nil && d.GetStats().GetApproximateBacklogCount() >= all
	}, patience, 20*time.Millisecond, "fewer than %d tasks wait in %s", all, taskQueue)
}

// overtaken waits for a request's only job to start, and counts the other jobs that
// started after Temporal had its task. The way from the row's hand-out to that moment
// takes time too, more on a busy machine; 'make bench' counts from the hand-out.
func (f fairness) overtaken(t *testing.T, id bench.RequestID) (others int) {
	t.Helper()
	var key bench.JobKey
	require.Eventually(t, func() bool {
		err := f.conn.QueryRow(t.Context(), `select j.key from job_queue j join request_job rj on rj.job_id = j.id
			join job_run n on n.job_id = j.id and n.number = 1 where rj.request_id = $1`, id).Scan(&key)
		return err == nil
	}, patience, 20*time.Millisecond, "the job of request %s does not start", id)
	var scheduled time.Time
	events := f.temporal(t).GetWorkflowHistory(t.Context(), f.jobWorkflow(t, key), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for scheduled.IsZero() {
		require.True(t, events.HasNext(), "the job's workflow has scheduled nothing")
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == protocol.RunJob {
			scheduled = e.GetEventTime().AsTime()
		}
	}
	require.NoError(t, f.conn.QueryRow(t.Context(), `
		with mine as (select j.id, n.started_at from job_queue j join job_run n on n.job_id = j.id and n.number = 1 where j.key = $1)
		select count(*) from mine, job_run o where o.job_id <> mine.id and o.started_at > $2 and o.started_at < mine.started_at`, key, scheduled).Scan(&others))
	return others
}

// cancel cancels requests and waits until they have ended.
func (f fairness) cancel(t *testing.T, ids ...bench.RequestID) {
	t.Helper()
	for _, id := range ids {
		_, err := f.api.CancelRequest(t.Context(), string(id), apiclient.Act{Reason: "seen enough"})
		require.NoError(t, err)
	}
	for _, id := range ids {
		f.await(t, id, ended)
	}
}
