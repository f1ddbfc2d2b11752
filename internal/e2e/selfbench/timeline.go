package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// timeline holds the times at which a job passed each point, by the clocks of the client,
// the collector, the Temporal server (workflows and activities) and Postgres (the fence),
// all on one machine.
type timeline struct {
	submission
	job             bench.JobKey
	steps           []step // of the request, from the start of its workflow
	jobStarted      time.Time
	scheduled       time.Time // RunJob
	activityStarted time.Time // RunJob
	fence           time.Time // the run's row
	command         time.Time
	completed       time.Time // the Request workflow
}

// step is a point that a job passes.
type step struct {
	name string
	at   time.Time
}

// all returns the points from the submission to the command's start, in order.
func (t timeline) all() []step {
	steps := append([]step{{"post", t.posted}}, t.steps...)
	return append(steps,
		step{"Job-started", t.jobStarted}, step{protocol.RunJob + "-scheduled", t.scheduled}, step{protocol.RunJob + "-started", t.activityStarted},
		step{"fence", t.fence}, step{"command", t.command})
}

// stepDurations returns the times between neighbouring points by the name of the later
// one, and these names in order.
func stepDurations(timelines []timeline) (names []string, durations map[string][]time.Duration) {
	durations = make(map[string][]time.Duration)
	for _, t := range timelines {
		all := t.all()
		for i, s := range all[1:] {
			if _, known := durations[s.name]; !known {
				names = append(names, s.name)
			}
			durations[s.name] = append(durations[s.name], s.at.Sub(all[i].at))
		}
	}
	return names, durations
}

// readTimeline reads a job's times from the histories of its workflows and from
// the record. The command's start is left to the caller.
func readTimeline(ctx context.Context, api *apiclient.Client, temporal client.Client, one submission) (timeline, error) {
	t := timeline{submission: one}
	fail := func(err error) (timeline, error) {
		return t, fmt.Errorf("reading the times of request %s: %w", one.request, err)
	}
	detail, err := api.Request(ctx, string(one.request))
	if err != nil {
		return fail(err)
	}
	if detail.Outcome != bench.Success || len(detail.Jobs) != 1 || len(detail.Runs) != 1 {
		return fail(fmt.Errorf("expected success with one run of one job: outcome %q, %s, runs %+v", detail.Outcome, detail.Message, detail.Runs))
	}
	t.job, t.fence = detail.Jobs[0].Key, detail.Runs[0].StartedAt
	request, err := readHistory(ctx, temporal, detail.WorkflowID)
	if err != nil {
		return fail(err)
	}
	job, err := readHistory(ctx, temporal, detail.Jobs[0].WorkflowID)
	if err != nil {
		return fail(err)
	}
	t.completed, t.jobStarted = request.ended, job.started
	for _, s := range request.activitySteps() {
		if s.at.After(job.started) {
			break
		}
		t.steps = append(t.steps, s)
	}
	runJob, found := job.activity(protocol.RunJob)
	if !found {
		return fail(errors.New("its job has no " + protocol.RunJob + " activity"))
	}
	t.scheduled, t.activityStarted = runJob.scheduled, runJob.started
	return t, nil
}

// history holds the times in a workflow's history, by the server's clock.
type history struct {
	workflowType   string
	started, ended time.Time
	activities     []activityTimes // in the order of their scheduling
}

type activityTimes struct {
	name                       string
	scheduled, started, closed time.Time
}

func readHistory(ctx context.Context, temporal client.Client, workflowID string) (history, error) {
	var events []*historypb.HistoryEvent
	for iter := temporal.GetWorkflowHistory(ctx, workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); iter.HasNext(); {
		event, err := iter.Next()
		if err != nil {
			return history{}, fmt.Errorf("reading the history of %s: %w", workflowID, err)
		}
		events = append(events, event)
	}
	return newHistory(events), nil
}

func newHistory(events []*historypb.HistoryEvent) history {
	var h history
	places := make(map[int64]int) // in activities, by the scheduling event
	for _, event := range events {
		at := event.GetEventTime().AsTime()
		switch event.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			h.workflowType, h.started = event.GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName(), at
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			h.ended = at
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			places[event.GetEventId()] = len(h.activities)
			h.activities = append(h.activities, activityTimes{name: event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(), scheduled: at})
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			h.activities[places[event.GetActivityTaskStartedEventAttributes().GetScheduledEventId()]].started = at
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			h.activities[places[event.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()]].closed = at
		}
	}
	return h
}

// activitySteps returns the start of the workflow and the three times of each of its
// activities, in the order of their scheduling.
func (h history) activitySteps() []step {
	steps := []step{{h.workflowType + "-started", h.started}}
	for _, a := range h.activities {
		steps = append(steps, step{a.name + "-scheduled", a.scheduled}, step{a.name + "-started", a.started}, step{a.name + "-completed", a.closed})
	}
	return steps
}

func (h history) activity(name string) (activityTimes, bool) {
	for _, a := range h.activities {
		if a.name == name {
			return a, true
		}
	}
	return activityTimes{}, false
}
