package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var zero = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func after(milliseconds int) time.Time {
	return zero.Add(time.Duration(milliseconds) * time.Millisecond)
}

func event(id int64, kind enumspb.EventType, milliseconds int) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: id, EventType: kind, EventTime: timestamppb.New(after(milliseconds))}
}

func started(id int64, workflowType string, milliseconds int) *historypb.HistoryEvent {
	e := event(id, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, milliseconds)
	e.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
		WorkflowType: &commonpb.WorkflowType{Name: workflowType},
	}}
	return e
}

func activityScheduled(id int64, name string, milliseconds int) *historypb.HistoryEvent {
	e := event(id, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, milliseconds)
	e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
		ActivityType: &commonpb.ActivityType{Name: name},
	}}
	return e
}

func activityStarted(id, scheduled int64, milliseconds int) *historypb.HistoryEvent {
	e := event(id, enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, milliseconds)
	e.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled}}
	return e
}

func activityCompleted(id, scheduled int64, milliseconds int) *historypb.HistoryEvent {
	e := event(id, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, milliseconds)
	e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled}}
	return e
}

func TestHistoryTimesEachActivity(t *testing.T) {
	t.Parallel()
	h := newHistory([]*historypb.HistoryEvent{
		started(1, "Request", 0),
		event(2, enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, 1),
		// Two activities at once: the second one starts and ends first.
		activityScheduled(5, "Slow", 10), activityScheduled(6, "Quick", 11),
		activityStarted(7, 6, 12), activityCompleted(8, 6, 13),
		activityStarted(9, 5, 14), activityCompleted(10, 5, 20),
		event(11, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, 30),
	})
	require.Equal(t, after(0), h.started)
	require.Equal(t, after(30), h.ended)
	require.Equal(t, []step{
		{"Request-started", after(0)},
		{"Slow-scheduled", after(10)}, {"Slow-started", after(14)}, {"Slow-completed", after(20)},
		{"Quick-scheduled", after(11)}, {"Quick-started", after(12)}, {"Quick-completed", after(13)},
	}, h.activitySteps())
	quick, found := h.activity("Quick")
	require.True(t, found)
	require.Equal(t, activityTimes{"Quick", after(11), after(12), after(13)}, quick)
	_, found = h.activity("RunJob")
	require.False(t, found)
}

func TestStepsAddUpToTheWholeWay(t *testing.T) {
	t.Parallel()
	ways := []timeline{
		{
			submission: submission{posted: after(0)}, steps: []step{{"Request-started", after(5)}, {"Expand-scheduled", after(9)}},
			jobStarted: after(20), scheduled: after(25), activityStarted: after(31), fence: after(38), command: after(50),
		},
		{
			submission: submission{posted: after(100)}, steps: []step{{"Request-started", after(101)}},
			jobStarted: after(110), scheduled: after(111), activityStarted: after(112), fence: after(113), command: after(114),
		},
	}
	names, durations := stepDurations(ways)
	require.Equal(t, []string{"Request-started", "Expand-scheduled", "Job-started", "RunJob-scheduled", "RunJob-started", "fence", "command"}, names)
	require.Equal(t, []time.Duration{11 * time.Millisecond, 9 * time.Millisecond}, durations["Job-started"])
	require.Len(t, durations["Expand-scheduled"], 1, "only one of them has this step")
	var sum time.Duration
	for _, all := range durations {
		for _, d := range all {
			sum += d
		}
	}
	require.Equal(t, 64*time.Millisecond, sum)
}
