// Package unstick finds out why a request does not move: what it waits for, since
// when, and what of that can be mended.
//
// It is pure: what the record and Temporal say is handed in. It must not know how
// either is asked, and mends nothing itself.
package unstick

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/protocol"
)

// Repair is what can be done about a finding.
type Repair string

// Repairs. An empty one means that a person has to do something, or nobody.
const (
	// RestartRequest starts the request's workflow again.
	RestartRequest Repair = "restart-request"
	// StartQueue starts the project's queue again.
	StartQueue Repair = "start-queue"
	// Reconcile runs the reconciliation, which starts the workflows of jobs again
	// and hands out what waits.
	Reconcile Repair = "reconcile"
	// Reset sets a workflow back to its first decision. It throws away what the
	// workflow has decided since, so somebody has to want it.
	Reset Repair = "reset"
)

// Finding is something that the request waits for.
type Finding struct {
	// Subject is what it is about: a workflow's ID, a pool, or the request's.
	Subject string
	// What is the case, in words.
	What string
	// Since when; zero: not known.
	Since time.Time
	// Stuck: it does not go on by itself. Else it is only what comes next.
	Stuck bool
	// Remedy says what a person can do; empty: nothing is to be done.
	Remedy string
	Repair Repair
}

// Job is an open job of the request.
type Job struct {
	Key       bench.JobKey
	Status    bench.JobStatus
	TaskQueue string
	Created   time.Time
	// HandedOut is when it was handed out last; zero: it was not.
	HandedOut time.Time
	// Machines are those of which it needs one; none: any will do.
	Machines []string
	// Workflow is zero for a job that was not handed out.
	Workflow protocol.WorkflowState
}

// Collector is one that takes jobs of a task queue.
type Collector struct {
	Name  string
	State bench.CollectorState
}

// Pause is how a project's queue was paused.
type Pause struct {
	Who, Why string
	Since    time.Time
}

// startTime is how long after the hand-out a job may be without a workflow that
// runs: rows are handed out by the hundred, and their workflows started one by one.
const startTime = 15 * time.Second

// Case is all that is known of a request.
type Case struct {
	// Now is when all that was read.
	Now       time.Time
	Project   string
	ID        bench.RequestID
	Type      bench.RequestType
	Status    bench.RequestStatus
	Outcome   bench.Outcome
	Message   string
	Created   time.Time
	WaitsFor  string // tag whose jobs have to be done first
	ParentRun bool   // they are done
	Workflow  protocol.WorkflowState
	// Deferred: its workflow starts with its first job.
	Deferred bool
	// Queue is the project's, of a tracked request.
	Queue protocol.WorkflowState
	// Pause says by whom the project's queue was paused, and why; nil: it is not.
	Pause *Pause
	// Jobs are those of its jobs that are open.
	Jobs []Job
	// Collectors by task queue.
	Collectors map[string][]Collector
}

// Find lists what a request waits for: what is stuck first.
func Find(c Case) []Finding {
	if c.Status == bench.Completed && len(c.Jobs) == 0 {
		return []Finding{{Subject: string(c.ID), What: "it has ended with outcome " + string(c.Outcome)}}
	}
	var all []Finding
	if c.Deferred && absent(c.Workflow) && slices.ContainsFunc(c.Jobs, func(j Job) bool { return j.starting(c.Now) }) {
		all = append(all, Finding{Subject: c.Workflow.ID, What: "the request's workflow is being started, with its first job"})
	} else {
		all = append(all, workflow(c.Workflow, RestartRequest, "the request's")...)
	}
	if c.Pause != nil {
		all = append(all, Finding{
			Subject: bench.QueueWorkflowID(c.Project), What: fmt.Sprintf("the project's queue was paused by %s: %s", c.Pause.Who, c.Pause.Why), Since: c.Pause.Since,
			Stuck: true, Remedy: "benchloom queue resume " + c.Project,
		})
	}
	all = append(all, c.waits()...)
	pools := make(map[string]bool)
	for _, j := range c.Jobs {
		all = append(all, j.findings(c.Now)...)
		if !pools[j.TaskQueue] {
			pools[j.TaskQueue] = true
			all = append(all, c.pool(j)...)
		}
	}
	var stuck, others []Finding
	for _, f := range all {
		if f.Stuck {
			stuck = append(stuck, f)
		} else {
			others = append(others, f)
		}
	}
	return append(stuck, others...)
}

// waits is what a request waits for before its jobs are written.
func (c Case) waits() []Finding {
	switch {
	case c.Status == bench.WaitingForArtifacts:
		return []Finding{{
			Subject: string(c.ID), What: "it waits for a notification that its artifacts are ready", Since: c.Created,
			Remedy: "benchloom request artifacts-ready " + string(c.ID) + " --tag TAG",
		}}
	case c.Status == bench.ArtifactsReady && c.WaitsFor != "" && !c.ParentRun:
		return []Finding{{
			Subject: string(c.ID), What: "it waits for the jobs of " + c.WaitsFor + ", with which it is to be compared", Since: c.Created,
			Remedy: "benchloom request unstick " + c.Project + ":" + c.WaitsFor,
		}}
	case c.Status == bench.ArtifactsReady && c.Type.Tracked():
		what := "it waits for its turn"
		if c.Message != "" {
			what += ": " + c.Message
		}
		turn := Finding{Subject: bench.QueueWorkflowID(c.Project), What: what, Since: c.Created, Remedy: "benchloom status --project " + c.Project}
		return append(workflow(c.Queue, StartQueue, "the project's queue's"), turn)
	case c.Status == bench.InProgress && len(c.Jobs) == 0:
		return []Finding{{Subject: string(c.ID), What: "none of its jobs is open; its workflow writes the next ones, or the outcome", Remedy: "benchloom status " + string(c.ID)}}
	}
	return nil
}

// pool is whether somebody takes the jobs of a job's task queue.
func (c Case) pool(j Job) []Finding {
	taskQueue := j.TaskQueue
	var names []string
	for _, one := range c.Collectors[taskQueue] {
		if one.State == bench.CollectorWaiting || one.State == bench.CollectorBenchmarking {
			return nil
		}
		names = append(names, fmt.Sprintf("%s is %s", one.Name, one.State))
	}
	f := Finding{Subject: taskQueue, What: "no collector takes jobs from this task queue: none is registered", Stuck: true, Remedy: "start " + placement.StartWords(j.Machines)}
	if len(names) > 0 {
		f.What = "no collector takes jobs from this task queue: " + strings.Join(names, ", ")
		f.Remedy = "start one that is offline; 'benchloom collector activate NAME' for one that is inactive or draining"
	}
	return []Finding{f}
}

// absent tells whether a workflow that should run does not.
func absent(w protocol.WorkflowState) bool { return w.ID != "" && !w.Status.Alive() }

// starting tells whether a job was handed out so lately that its workflow may be
// about to start.
func (j Job) starting(now time.Time) bool {
	return j.Status == bench.JobHandedOut && now.Sub(j.HandedOut) < startTime
}

func (j Job) findings(now time.Time) []Finding {
	id := string(j.Key)
	switch j.Status {
	case bench.JobQueued:
		return []Finding{{Subject: id, What: "the job waits to be handed out: older jobs of its queue go first", Since: j.Created, Repair: Reconcile}}
	case bench.JobHandedOut, bench.JobInProgress:
		if absent(j.Workflow) && j.starting(now) {
			return []Finding{{Subject: j.Workflow.ID, What: "the job's workflow is being started", Since: j.HandedOut}}
		}
		return workflow(j.Workflow, Reconcile, "the job's")
	}
	return nil
}

// workflow is what is the matter with a workflow that should run.
func workflow(w protocol.WorkflowState, restart Repair, whose string) []Finding {
	switch {
	case w.ID == "":
		return nil
	case w.Status == protocol.WorkflowPaused:
		return []Finding{{Subject: w.ID, What: whose + " workflow is paused", Stuck: true, Remedy: "temporal workflow unpause --workflow-id " + w.ID}}
	case w.Status == protocol.WorkflowMissing:
		return []Finding{{Subject: w.ID, What: whose + " workflow does not exist: Temporal's database was lost, or its start failed", Stuck: true, Repair: restart}}
	case !w.Status.Alive():
		what := whose + " workflow is " + string(w.Status)
		if w.Ended != "" {
			what += ": " + w.Ended
		}
		return []Finding{{Subject: w.ID, What: what, Since: w.Closed, Stuck: true, Repair: restart}}
	case w.TaskAttempt > 1:
		what := fmt.Sprintf("%s workflow cannot decide: its workflow task is at attempt %d", whose, w.TaskAttempt)
		if w.TaskFailure != "" {
			what += ": " + w.TaskFailure
		}
		return []Finding{{
			Subject: w.ID, What: what, Stuck: true, Repair: Reset,
			Remedy: "run an orchestrator of the version that it began with; or set it back to its beginning with --force",
		}}
	}
	var out []Finding
	for _, a := range w.Activities {
		out = append(out, activity(w, a))
	}
	return out
}

func activity(w protocol.WorkflowState, a protocol.PendingActivity) Finding {
	f := Finding{Subject: w.ID, Since: a.Since}
	switch {
	case a.Started:
		f.What = a.Name + " runs"
	case a.Attempt > 1:
		f.What = a.Name + " failed and waits for its next attempt"
	case a.Name == protocol.RunJob:
		f.What = "the job waits for an idle collector"
	default:
		f.What = a.Name + " waits for an orchestrator"
		f.Remedy = "see that one runs: the process 'orchestrator' of 'benchloom up', or 'benchloom orchestrator'"
	}
	if a.Attempt > 1 {
		f.What = fmt.Sprintf("%s, attempt %d", f.What, a.Attempt)
	}
	if a.Failure != "" {
		f.What += "; the last attempt failed: " + a.Failure
		f.Remedy = "mend what the error names; it is tried again by itself"
	}
	return f
}
