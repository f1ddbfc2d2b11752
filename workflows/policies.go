package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Every timeout, retry policy and interval of the workflows, with its reason.

// recordActivity reads or writes the record and signals workflows. An outage of
// the database is waited out for as long as it lasts: the work is durable, and
// the next try is never more than ten seconds away.
func recordActivity(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        200 * time.Millisecond,
			BackoffCoefficient:     2,
			MaximumInterval:        10 * time.Second,
			NonRetryableErrorTypes: []string{protocol.ErrTypePermanent},
		},
	}
}

// reconcileActivity compares the whole record with what is in flight: after
// Temporal's database was lost, thousands of workflows are started. It beats, so
// that one whose orchestrator died is soon tried by another; the next pass is 30 s
// away, so it need not outlive an outage.
func reconcileActivity() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    10 * time.Second,
		Summary:             "start what the record lacks a workflow for, hand out what waits",
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 3},
	}
}

// expandActivity reads a suite and writes up to thousands of job rows.
func expandActivity() workflow.ActivityOptions {
	o := recordActivity("suite × targets × backends × profiles → jobs")
	o.StartToCloseTimeout = 2 * time.Minute
	return o
}

// quickActivity runs in the workflow's own task, whose timeout is ten seconds: one
// try, short enough that a record that does not answer delays nothing else.
func quickActivity(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 3 * time.Second,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	}
}

// runJobActivity is one dispatch of a job to the collectors of its task queue.
//
// The policy retries the job's own failures only, as often as the job has
// attempts left. Lost collectors, shutdowns and timeouts come back to the
// workflow, which answers them without touching that number.
func runJobActivity(in protocol.JobInput, attempts int) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: in.TaskQueue,
		Summary:   in.Summary,
		// The suite's own timeouts bound what runs; this one only ends what
		// escaped them.
		StartToCloseTimeout: 24 * time.Hour,
		// Collectors beat every 3 s, so a dead one is noticed within 15 s.
		HeartbeatTimeout: 15 * time.Second,
		// The benchmark's processes are dead and its machine is free before the
		// workflow goes on.
		WaitForCancellation:   true,
		DisableEagerExecution: true, // eager execution would bypass priority and fairness
		Priority: temporal.Priority{
			PriorityKey:    in.Priority.Level,
			FairnessKey:    in.Priority.FairnessKey(),
			FairnessWeight: float32(in.Priority.Weight),
		},
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    30 * time.Second,
			MaximumAttempts:    int32(max(1, attempts)),
			NonRetryableErrorTypes: []string{
				protocol.ErrTypeInfrastructure, protocol.ErrTypeTooSmall, protocol.ErrTypePermanent, protocol.ErrTypeJobClosed,
				"TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat",
			},
		},
	}
}

// watchActivity looks at a repository that may be anywhere and of any size. The
// next look follows by its Schedule: this one need not outlive an outage.
func watchActivity() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		Summary: "fetch, record commits, request what is new",
		// The first fetch of a large repository takes minutes; the source itself
		// gives up after ten.
		StartToCloseTimeout: 20 * time.Minute,
		// It beats every 3 s, so a dead orchestrator is noticed within 15 s.
		HeartbeatTimeout:    15 * time.Second,
		WaitForCancellation: true, // git is dead before the workflow ends
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 3,
			NonRetryableErrorTypes: []string{protocol.ErrTypePermanent},
		},
	}
}

// Signals do the waking; these intervals only bound how long a lost signal can
// hold something up.
const (
	artifactsRecheck = time.Hour
	parentRecheck    = time.Hour
	admissionRecheck = 10 * time.Minute
	progressRecheck  = 2 * time.Minute
	queueRecheck     = 10 * time.Minute
)

// countPause is how long a request lets pass between two counts of its jobs. A
// count reads some 100,000 jobs in a tenth of a second, so it takes a hundredth of
// the time; the end of the last hundred is seen at once.
func countPause(jobs protocol.JobCounts) time.Duration {
	if jobs.Open <= 100 {
		return 0
	}
	return max(time.Second, time.Duration(jobs.Total)*100*time.Microsecond)
}

// maxDispatches is after how many dispatches a Job workflow continues as new:
// each leaves a dozen events.
const maxDispatches = 200
