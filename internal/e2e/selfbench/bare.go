package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The bare workflow is the minimum that runs something in Temporal: one workflow with
// one activity, on its own task queue, with a worker in this process.
const (
	bareTaskQueue = "selfbench/bare"
	bareWorkflow  = "Bare"
	bareActivity  = "Nothing"
)

type bareWorker struct {
	client client.Client
	worker worker.Worker
}

func startBare(temporal client.Client) (*bareWorker, error) { return startBareSlots(temporal, 1) }

// startBareSlots starts a worker that runs as many activities at once.
func startBareSlots(temporal client.Client, slots int) (*bareWorker, error) {
	w := worker.New(temporal, bareTaskQueue, worker.Options{
		// A benchmark's activity goes through matching too.
		DisableEagerActivities:             true,
		MaxConcurrentActivityExecutionSize: slots,
		MaxConcurrentActivityTaskPollers:   slots,
	})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) (time.Time, error) {
		var begun time.Time
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: submissionBound})
		err := workflow.ExecuteActivity(ctx, bareActivity).Get(ctx, &begun)
		return begun, err
	}, workflow.RegisterOptions{Name: bareWorkflow})
	w.RegisterWorkflowWithOptions(runShape, workflow.RegisterOptions{Name: bareGraph})
	w.RegisterActivityWithOptions(func(context.Context) (time.Time, error) { return time.Now(), nil }, activity.RegisterOptions{Name: bareActivity})
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("starting the worker of the bare workflow: %w", err)
	}
	return &bareWorker{temporal, w}, nil
}

func (b *bareWorker) stop() { b.worker.Stop() }

// run runs one bare workflow until it has ended.
func (b *bareWorker) run(ctx context.Context, n int) (workflowID string, err error) {
	ctx, cancel := context.WithTimeout(ctx, submissionBound)
	defer cancel()
	id := fmt.Sprintf("bare/%d", n)
	run, err := b.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: bareTaskQueue}, bareWorkflow)
	if err == nil {
		err = run.Get(ctx, nil)
	}
	if err != nil {
		return id, fmt.Errorf("running a bare workflow: %w", err)
	}
	return id, nil
}

// bareTimes holds the times at which a bare workflow passed each point.
type bareTimes struct {
	posted   time.Time // before the client's call, by its clock
	started  time.Time // event WorkflowExecutionStarted
	activity time.Time // event ActivityTaskStarted
	code     time.Time // first statement of the activity, by the worker's clock
}

func (b *bareWorker) times(ctx context.Context, workflowID string) (bareTimes, error) {
	var t bareTimes
	if err := b.client.GetWorkflow(ctx, workflowID, "").Get(ctx, &t.code); err != nil {
		return t, fmt.Errorf("reading the result of %s: %w", workflowID, err)
	}
	h, err := readHistory(ctx, b.client, workflowID)
	if err != nil {
		return t, err
	}
	nothing, found := h.activity(bareActivity)
	if !found {
		return t, fmt.Errorf("%s has no activity", workflowID)
	}
	t.started, t.activity = h.started, nothing.started
	return t, nil
}

// Start and end points of the bare workflow's figures.
const (
	fromWorkflow = "workflow" // event WorkflowExecutionStarted
	fromCall     = "call"     // before the client's call, by its clock
	toCode       = "code"     // first statement of the activity, by the worker's clock
)

func bareName(from, to string) string { return "Bare/from=" + from + "/to=" + to }

func reportBare(all []bareTimes, report *report) error {
	ends := []struct {
		from, to string
		took     func(bareTimes) time.Duration
	}{
		{fromWorkflow, toActivity, func(t bareTimes) time.Duration { return t.activity.Sub(t.started) }},
		{fromWorkflow, toCode, func(t bareTimes) time.Duration { return t.code.Sub(t.started) }},
		{fromCall, toCode, func(t bareTimes) time.Duration { return t.code.Sub(t.posted) }},
	}
	for _, e := range ends {
		durations := make([]time.Duration, len(all))
		for i, t := range all {
			durations[i] = e.took(t)
		}
		if err := report.addDurations(bareName(e.from, e.to), durations); err != nil {
			return err
		}
	}
	return nil
}
