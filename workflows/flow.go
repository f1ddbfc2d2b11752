package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// call runs an activity of the orchestrator and reads its result into out,
// which may be nil.
func call(ctx workflow.Context, options workflow.ActivityOptions, name string, in, out any) error {
	ctx = workflow.WithActivityOptions(ctx, options)
	if in == nil {
		return workflow.ExecuteActivity(ctx, name).Get(ctx, out)
	}
	return workflow.ExecuteActivity(ctx, name, in).Get(ctx, out)
}

// quick does the same as a local activity, which saves the round trip through a task
// queue. It tries once; when the record does not answer at once, the durable activity
// waits for it.
func quick(ctx workflow.Context, options workflow.ActivityOptions, name string, in, out any) error {
	if done, err := atOnce(ctx, options, name, in, out); done {
		return err
	}
	return call(ctx, options, name, in, out)
}

// atOnce makes the first attempt of quick. It is not done when the durable activity has to
// wait for the record.
func atOnce(ctx workflow.Context, options workflow.ActivityOptions, name string, in, out any) (done bool, err error) {
	err = workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, quickActivity(options.Summary)), name, in).Get(ctx, out)
	var application *temporal.ApplicationError
	return err == nil || ctx.Err() != nil || (errors.As(err, &application) && application.NonRetryable()), err
}

// wait blocks until one of the channels has a message, which it leaves there, or the
// time has passed. Its only error is the workflow's cancellation.
func wait(ctx workflow.Context, summary string, atMost time.Duration, channels ...workflow.ReceiveChannel) error {
	has := func() bool {
		for _, c := range channels {
			if c.Len() > 0 {
				return true
			}
		}
		return false
	}
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: atMost, TimerOptions: workflow.TimerOptions{Summary: summary}}, has)
	return err
}

// drain takes every message that has arrived and returns their number.
func drain(c workflow.ReceiveChannel) int {
	n := 0
	for c.ReceiveAsync(nil) {
		n++
	}
	return n
}
