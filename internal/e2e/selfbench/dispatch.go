package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/up"
)

// Start and end points of the figures.
const (
	fromPost   = "post"     // before the client's call, by its clock
	fromJob    = "job"      // event WorkflowExecutionStarted of the Job workflow
	toActivity = "activity" // event ActivityTaskStarted of RunJob
	toCommand  = "command"  // the collector's clock right before it starts the command
)

func dispatchName(from, to string) string { return "Dispatch/from=" + from + "/to=" + to }

// blocks is the number of blocks in which submissions and bare workflows alternate, so
// that both see the same machine.
const blocks = 10

// workflowSoon is the interval between two looks for a workflow that does not run yet.
const workflowSoon = 5 * time.Millisecond

// submissionBound bounds the duration of a submission.
const submissionBound = time.Minute

// measureDispatch submits jobs with the command true, one after the other, in
// alternation with bare Temporal workflows.
func measureDispatch(ctx context.Context, s *stack, submissions int, report *report) error {
	// The SDK logs polls that end with the stack, which is of no use here.
	quiet := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	temporal, err := client.DialContext(ctx, client.Options{HostPort: s.up.Addresses[up.AddressTemporal], Namespace: "benchloom", Logger: quiet})
	if err != nil {
		return fmt.Errorf("connecting to the stack's Temporal: %w", err)
	}
	defer temporal.Close()
	bare, err := startBare(temporal)
	if err != nil {
		return err
	}
	defer bare.stop()
	var timelines []timeline
	var bares []bareTimes
	for block := range blocks {
		from, to := submissions*block/blocks, submissions*(block+1)/blocks
		submitted := make([]submission, 0, to-from)
		for range to - from {
			one, err := submit(ctx, s.api, temporal)
			if err != nil {
				return err
			}
			submitted = append(submitted, one)
		}
		ids := make([]string, 0, to-from)
		posted := make([]time.Time, 0, to-from)
		for n := from; n < to; n++ {
			posted = append(posted, time.Now())
			id, err := bare.run(ctx, n)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		// Reading histories loads the server, so it happens after the block.
		for _, one := range submitted {
			t, err := readTimeline(ctx, s.api, temporal, one)
			if err != nil {
				return err
			}
			timelines = append(timelines, t)
		}
		for i, id := range ids {
			t, err := bare.times(ctx, id)
			if err != nil {
				return err
			}
			t.posted = posted[i]
			bares = append(bares, t)
		}
	}
	starts, err := commandStarts(ctx, s.api)
	if err != nil {
		return err
	}
	for i := range timelines {
		start, known := starts[timelines[i].job]
		if !known {
			return fmt.Errorf("job %s has no collection in the record", timelines[i].job)
		}
		timelines[i].command = start
	}
	if err := reportDispatch(timelines, report); err != nil {
		return err
	}
	return reportBare(bares, report)
}

// submission is the submission of one job, with times by the client's clock.
type submission struct {
	request          bench.RequestID
	posted, answered time.Time
}

// submit submits one job and waits until its request's workflow has closed, by a long
// poll that costs the stack next to nothing.
func submit(ctx context.Context, api *apiclient.Client, temporal client.Client) (submission, error) {
	ctx, cancel := context.WithTimeout(ctx, submissionBound)
	defer cancel()
	s := submission{posted: time.Now()}
	request, err := api.CreateRequest(ctx, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	s.answered = time.Now()
	if err != nil {
		return s, fmt.Errorf("submitting a job: %w", err)
	}
	s.request = request.ID
	for {
		err := temporal.GetWorkflow(ctx, request.WorkflowID, "").Get(ctx, nil)
		var notYet *serviceerror.NotFound
		if errors.As(err, &notYet) { // the hand-out starts it shortly after the answer
			err = sleep(ctx, workflowSoon)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return s, fmt.Errorf("waiting for request %s: %w", request.ID, err)
		}
		return s, nil
	}
}

// commandStarts returns the starts of all ad-hoc commands by job: the time of a
// collection is the collector's, taken right before the command starts. The results of
// a command have its job's key as their tag.
func commandStarts(ctx context.Context, api *apiclient.Client) (map[bench.JobKey]time.Time, error) {
	var text bytes.Buffer
	if err := api.Export(ctx, &text, apiclient.AdHocProject, "json"); err != nil {
		return nil, fmt.Errorf("reading the starts of commands: %w", err)
	}
	var collections []apiclient.ExportedCollection
	if err := json.Unmarshal(text.Bytes(), &collections); err != nil {
		return nil, fmt.Errorf("reading the starts of commands: %w", err)
	}
	starts := make(map[bench.JobKey]time.Time, len(collections))
	for _, c := range collections {
		starts[bench.JobKey(c.Tag)] = c.CollectedAt
	}
	return starts, nil
}

// reportDispatch reports the total times, then the steps.
func reportDispatch(timelines []timeline, report *report) error {
	ends := []struct {
		from, to string
		took     func(timeline) time.Duration
	}{
		{fromPost, toCommand, func(t timeline) time.Duration { return t.command.Sub(t.posted) }},
		{fromJob, toCommand, func(t timeline) time.Duration { return t.command.Sub(t.jobStarted) }},
		{fromPost, toActivity, func(t timeline) time.Duration { return t.activityStarted.Sub(t.posted) }},
		{fromJob, toActivity, func(t timeline) time.Duration { return t.activityStarted.Sub(t.jobStarted) }},
		{fromPost, "answer", func(t timeline) time.Duration { return t.answered.Sub(t.posted) }},
		{toCommand, "completed", func(t timeline) time.Duration { return t.completed.Sub(t.command) }},
	}
	for _, e := range ends {
		durations := make([]time.Duration, len(timelines))
		for i, t := range timelines {
			durations[i] = e.took(t)
		}
		if err := report.addDurations(dispatchName(e.from, e.to), durations); err != nil {
			return err
		}
	}
	names, durations := stepDurations(timelines)
	for _, name := range names {
		if err := report.addDurations("Step/to="+name, durations[name]); err != nil {
			return err
		}
	}
	return nil
}
