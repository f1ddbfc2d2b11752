package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/benchloom/benchloom/internal/protocol"
)

// Every timeout, retry policy and interval of the workflows, with its reason.

// recordActivity reads or writes the record and signals workflows. It waits out an
// outage of the database however long: the work is durable, and the next attempt is
// never more than ten seconds away.
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

// reconcileActivity compares the whole record with Temporal: after the loss of
// Temporal's database it starts thousands of workflows. It heartbeats, so that
// another orchestrator soon retries it when its own dies; the next pass is 30 s
// away, so it need not outlive an outage.
func reconcileActivity() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    10 * time.Second,
		Summary:             "start what the record lacks a workflow for, hand out what waits",
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 3},
	}
}

// retainActivity removes what was kept long enough, in small transactions. A first pass
// over years of data takes longer than its time, and the next, an hour later, continues. It
// heartbeats every 3 s, so that another orchestrator soon takes over when its own dies.
func retainActivity() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Minute,
		HeartbeatTimeout:    15 * time.Second,
		Summary:             "remove what was kept long enough",
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 3},
	}
}

// expandActivity reads a suite and writes up to thousands of job rows.
func expandActivity() workflow.ActivityOptions {
	o := recordActivity("suite × targets × backends × profiles → jobs")
	o.StartToCloseTimeout = 2 * time.Minute
	return o
}

// lookActivity reads the history of all series of a request, once: 80 sessions of thousands
// of series take a few seconds, and a minute on a machine with too much else to do. The
// pairs of a look are judged in milliseconds. It heartbeats every 3 s, so that another
// orchestrator soon takes over when its own dies.
func lookActivity() workflow.ActivityOptions {
	o := recordActivity("verdicts so far, and the next look")
	o.StartToCloseTimeout = 5 * time.Minute
	o.HeartbeatTimeout = 15 * time.Second
	return o
}

// quickActivity runs within the workflow task, whose timeout is ten seconds: one
// attempt, short enough to delay nothing else when the record does not answer.
func quickActivity(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 3 * time.Second,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	}
}

// runJobActivity is one dispatch of a job to the collectors of its task queue.
//
// The policy retries only the job's own failures, within the job's remaining
// attempts. Lost collectors, shutdowns and timeouts return to the workflow, which
// handles them without using up an attempt.
func runJobActivity(in protocol.JobInput, attempts int) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: in.TaskQueue,
		Summary:   in.Summary,
		// The suite's own timeouts bound the run; this one only ends what
		// escaped them.
		StartToCloseTimeout: 24 * time.Hour,
		// Collectors heartbeat every 3 s, so a dead one is noticed within 15 s.
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

// awaitRunActivity looks at an adopted run and fails while it goes on. Retries cost no
// history and hold no orchestrator's slot, so a hundred adopted runs are a hundred short
// queries every five seconds, for as long as they take.
func awaitRunActivity() workflow.ActivityOptions {
	o := recordActivity("the end of a run that Temporal had lost sight of")
	o.RetryPolicy = &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 1.5, MaximumInterval: 5 * time.Second,
		NonRetryableErrorTypes: []string{protocol.ErrTypePermanent},
	}
	return o
}

// doubtPause is the time between two looks at a run whose collector seems to be gone: five
// heartbeats to the API. It and the silence that raised the doubt (half of the silence that
// makes a collector offline) add up to the whole.
const doubtPause = 15 * time.Second

// watchActivity looks at a repository that may be anywhere and of any size. Its
// Schedule starts the next look, so this one need not outlive an outage.
func watchActivity() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		Summary: "fetch, record commits, request what is new",
		// The first fetch of a large repository takes minutes; the source itself
		// gives up after ten.
		StartToCloseTimeout: 20 * time.Minute,
		// It heartbeats every 3 s, so a dead orchestrator is noticed within 15 s.
		HeartbeatTimeout:    15 * time.Second,
		WaitForCancellation: true, // git is dead before the workflow ends
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 3,
			NonRetryableErrorTypes: []string{protocol.ErrTypePermanent},
		},
	}
}

// Signals wake workflows; these intervals only bound the delay when one is lost.
const (
	artifactsRecheck = time.Hour
	parentRecheck    = time.Hour
	admissionRecheck = 10 * time.Minute
	progressRecheck  = 2 * time.Minute
	queueRecheck     = 10 * time.Minute
)

// countPause is a request's pause between two counts of its jobs. A count reads
// 100,000 jobs in about 0.1 s, so counting takes a hundredth of the time; the end of
// the last hundred is seen immediately.
func countPause(jobs protocol.JobCounts) time.Duration {
	if jobs.Open <= 100 {
		return 0
	}
	return max(time.Second, time.Duration(jobs.Total)*100*time.Microsecond)
}

// maxDispatches is the number of dispatches after which a Job workflow continues as
// new: each adds a dozen events.
const maxDispatches = 200
