package hostile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// task is a dispatch that a collector has taken from Temporal.
type task struct {
	run       bench.RunID
	dispatch  any
	taskQueue string
}

// take takes the next job of the collector's pool from Temporal, as its worker would, and
// holds it until the test ends.
func (s service) take(t *testing.T, e *enrolled, class bench.SizeClass) task {
	t.Helper()
	c, err := s.Temporal(t.Context())
	require.NoError(t, err)
	queue := fmt.Sprintf("bench/%s/%d/pool-of-%s", target, class, e.name)
	taken, over := make(chan task, 1), make(chan struct{})
	w := worker.New(c, queue, worker.Options{DisableWorkflowWorker: true, MaxConcurrentActivityExecutionSize: 1})
	w.RegisterActivityWithOptions(func(ctx context.Context, in map[string]any) error {
		info := activity.GetInfo(ctx)
		key, _ := in["Key"].(string)
		taken <- task{
			run:      bench.NewRunID(bench.JobKey(key), info.WorkflowExecution.RunID, info.ActivityID, info.Attempt),
			dispatch: in["Dispatch"], taskQueue: info.TaskQueue,
		}
		for {
			select {
			case <-over:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
				activity.RecordHeartbeat(ctx)
			}
		}
	}, activity.RegisterOptions{Name: protocol.RunJob})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		close(over)
		w.Stop()
		c.Close()
	})
	select {
	case is := <-taken:
		return is
	case <-time.After(patience):
		t.Fatal("Temporal dispatched no job to ", queue)
	}
	return task{}
}

// begin passes the fence with a task.
func (s service) begin(t *testing.T, e *enrolled, is task) apiclient.RunPlan {
	t.Helper()
	body := map[string]any{"reason": "scheduled", "collector": e.name, "epoch": e.epoch}
	if is.dispatch != nil {
		body["dispatch"], body["task_queue"] = is.dispatch, is.taskQueue
	}
	r := s.call(t, e.token, http.MethodPost, "/api/v1/runs/"+string(is.run)+"/start", body)
	require.Equal(t, http.StatusOK, r.status, r.String())
	var plan apiclient.RunPlan
	require.NoError(t, json.Unmarshal([]byte(r.body), &plan))
	return plan
}

// A collector may claim for its own run only what the plan asks for.
func TestResultsAreBoundedByThePlan(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	trent := s.enrol(t, "trent", 11)
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}, Iterations: 3}, PlacementWish: apiclient.PlacementWish{SizeClass: 11}})
	plan := s.begin(t, trent, s.take(t, trent, 11))
	require.Len(t, plan.Missing, 1)

	collection := func(iteration any, values string) string {
		return fmt.Sprintf(`{"iteration": %v, "collected_at": "2026-01-02T03:04:05Z", "values": %s}`, iteration, values)
	}
	tc, err := json.Marshal(plan.Missing[0])
	require.NoError(t, err)
	block := func(collections ...string) string {
		return fmt.Sprintf(`{"results": [{"test_case": %s, "collections": [%s]}]}`, tc, strings.Join(collections, ","))
	}
	whole := func(values string) string {
		return block(collection(1, values), collection(2, values), collection(3, values))
	}
	var countless, metrics []string
	for i := range 100_000 {
		countless = append(countless, collection(i+1, `{"m":1}`))
	}
	for i := range 100_000 {
		metrics = append(metrics, fmt.Sprintf(`"m%d": 1`, i))
	}
	const wall = `{"wall-time": 1}`
	for name, body := range map[string]string{
		"100,000 iterations":                block(countless...),
		"100,000 metrics":                   whole("{" + strings.Join(metrics, ",") + "}"),
		"more iterations than planned":      block(collection(1, wall), collection(2, wall), collection(3, wall), collection(4, wall)),
		"an iteration beyond the plan":      block(collection(1, wall), collection(2, wall), collection(1_000_000, wall)),
		"an iteration of 2^62":              block(collection(uint64(1)<<62, wall)),
		"an iteration of 0":                 block(collection(0, wall)),
		"a negative iteration":              block(collection(-1, wall)),
		"half an iteration":                 block(collection(0.5, wall)),
		"one iteration twice":               block(collection(1, wall), collection(1, wall), collection(2, wall)),
		"an infinite value":                 whole(`{"wall-time": 1e999}`),
		"no number":                         whole(`{"wall-time": NaN}`),
		"a number as text":                  whole(`{"wall-time": "1"}`),
		"no value":                          whole(`{}`),
		"a metric with a line break":        whole(`{"wall\ntime": 1}`),
		"a metric as long as a book":        whole(`{"` + strings.Repeat("m", 100_000) + `": 1}`),
		"another's test case":               strings.Replace(whole(wall), string(tc), `{"benchmark": "gin", "profile": "build", "scenario": "full", "backend": "gc", "target": "`+string(target)+`"}`, 1),
		"the same field twice":              strings.Replace(whole(wall), `"values"`, `"iteration": 1, "values"`, 1),
		"an artifact that nobody asked for": strings.Replace(whole(wall), `"collections"`, `"tag": "1.0", "collections"`, 1),
	} {
		r := s.call(t, trent.token, http.MethodPost, "/api/v1/runs/"+string(plan.Run.ID)+"/blocks/1", body)
		require.True(t, r.status >= 400 && r.status < 500, "%s: %s", name, r)
	}
	// Nothing of it has hurt anybody: the honest block is taken, and the job ends well.
	r := s.call(t, trent.token, http.MethodPost, "/api/v1/runs/"+string(plan.Run.ID)+"/blocks/1", whole(wall))
	require.Equal(t, http.StatusOK, r.status, r.String())
	require.Contains(t, r.body, `"accepted":1`)
	d, err := s.API.Request(t.Context(), string(id))
	require.NoError(t, err)
	require.Len(t, d.Runs, 1)
}
