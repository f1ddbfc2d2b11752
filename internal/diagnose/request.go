package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/protocol"
)

// RequestCase holds the facts about a request.
type RequestCase struct {
	Project   string
	ID        bench.RequestID
	Type      bench.RequestType
	Status    bench.RequestStatus
	Outcome   bench.Outcome
	Message   string
	Created   time.Time
	WaitsFor  string // tag of the artifact to be measured first; empty: none
	ParentRun bool   // the jobs of WaitsFor are done
	// Workflow is zero when it is not examined.
	Workflow protocol.WorkflowState
	// Deferred is set for a request whose workflow starts with its first job.
	Deferred bool
	// Queue is the project's Queue workflow; zero for an ad-hoc request.
	Queue protocol.WorkflowState
	Pause *Pause // of the project's queue; nil: it is not paused
	// Jobs lists its open jobs.
	Jobs []RequestJob
	// Pollers by task queue.
	Pollers map[string][]Poller
}

// RequestJob is an open job of a request.
type RequestJob struct {
	Key       bench.JobKey
	Status    bench.JobStatus
	TaskQueue string
	Created   time.Time
	// HandedOut is the time of its last hand-out; zero: there was none.
	HandedOut time.Time
	// Machines lists the machines that it accepts; empty: any.
	Machines []string
	// Workflow is zero for a job that has not been handed out.
	Workflow protocol.WorkflowState
}

// Poller is a registered collector that serves a task queue.
type Poller struct {
	Name  string
	State bench.CollectorState
}

// Finding is one reason for the state of a request.
type Finding struct {
	// Subject is a workflow's ID, a job's key, a task queue or the request's ID.
	Subject string
	// Job that the finding concerns; empty: it concerns something else.
	Job bench.JobKey
	// What describes the finding in words.
	What string
	// Since when; zero: not known.
	Since time.Time
	// Stuck is set when the request does not continue by itself; otherwise the finding
	// only names the next step.
	Stuck bool
	// Remedy says what a person can do; empty: nothing is needed.
	Remedy string
	// Repair is the repair that Benchloom can carry out; empty: none.
	Repair Repair
}

// Repair names a repair that Benchloom can carry out for a finding.
type Repair string

// Repairs.
const (
	// RestartRequest restarts the request's workflow.
	RestartRequest Repair = "restart-request"
	// StartQueue restarts the project's Queue workflow.
	StartQueue Repair = "start-queue"
	// Reconcile runs the reconciliation, which restarts the workflows of jobs and hands
	// out waiting jobs.
	Reconcile Repair = "reconcile"
	// Reset resets a workflow to its first decision. All later decisions are lost, so it
	// is done only on demand.
	Reset Repair = "reset"
)

// startTime is the time after hand-out during which a job may lack a running workflow:
// rows are handed out by the hundred, and their workflows started one by one.
const startTime = 15 * time.Second

// Request lists what a request waits for, stuck things first.
func Request(c RequestCase, now time.Time) []Finding {
	if c.Status == bench.Completed && len(c.Jobs) == 0 {
		return []Finding{{Subject: string(c.ID), What: "it has ended with outcome " + string(c.Outcome)}}
	}
	var all []Finding
	if c.Deferred && absent(c.Workflow) && slices.ContainsFunc(c.Jobs, func(j RequestJob) bool { return j.starting(now) }) {
		all = append(all, Finding{Subject: c.Workflow.ID, What: "the request's workflow is being started, with its first job"})
	} else {
		all = append(all, workflow(c.Workflow, RestartRequest, "the request's")...)
	}
	if c.Pause != nil {
		all = append(all, Finding{
			Subject: bench.QueueWorkflowID(c.Project), What: fmt.Sprintf("the project was paused by %s: %s", c.Pause.Who, c.Pause.Why), Since: c.Pause.Since,
			Stuck: true, Remedy: "benchloom queue resume " + c.Project,
		})
	}
	all = append(all, c.waits()...)
	taskQueues := make(map[string]bool)
	for _, j := range c.Jobs {
		all = append(all, j.findings(now)...)
		if !taskQueues[j.TaskQueue] {
			taskQueues[j.TaskQueue] = true
			all = append(all, c.unserved(j)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return rank(a) - rank(b) })
	return all
}

// rank sorts stuck things first.
func rank(f Finding) int {
	if f.Stuck {
		return 0
	}
	return 1
}

// waits lists the reasons that hold a request without jobs.
func (c RequestCase) waits() []Finding {
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
		return append(workflow(c.Queue, StartQueue, "the project's Queue"), turn)
	case c.Status == bench.InProgress && len(c.Jobs) == 0:
		return []Finding{{Subject: string(c.ID), What: "none of its jobs is open; its workflow writes the next ones, or the outcome", Remedy: "benchloom status " + string(c.ID)}}
	}
	return nil
}

// unserved reports a job's task queue that no active collector serves.
func (c RequestCase) unserved(j RequestJob) []Finding {
	var names []string
	for _, one := range c.Pollers[j.TaskQueue] {
		if one.State == bench.CollectorWaiting || one.State == bench.CollectorBenchmarking {
			return nil
		}
		names = append(names, fmt.Sprintf("%s is %s", one.Name, one.State))
	}
	f := Finding{Subject: j.TaskQueue, What: "no collector takes jobs from this task queue: none is registered", Stuck: true, Remedy: "start " + placement.StartWords(j.Machines)}
	if len(names) > 0 {
		f.What = "no collector takes jobs from this task queue: " + strings.Join(names, ", ")
		f.Remedy = "start one that is offline; 'benchloom collector activate NAME' for one that is inactive or draining"
	}
	return []Finding{f}
}

// starting reports whether the hand-out was so recent that the job's workflow may not
// have started yet.
func (j RequestJob) starting(now time.Time) bool {
	return j.Status == bench.JobHandedOut && now.Sub(j.HandedOut) < startTime
}

func (j RequestJob) findings(now time.Time) []Finding {
	var found []Finding
	switch {
	case j.Status == bench.JobQueued:
		found = []Finding{{Subject: string(j.Key), What: "the job waits to be handed out: older jobs of its queue go first", Since: j.Created, Repair: Reconcile}}
	case j.Status != bench.JobHandedOut && j.Status != bench.JobInProgress:
	case absent(j.Workflow) && j.starting(now):
		found = []Finding{{Subject: j.Workflow.ID, What: "the job's workflow is being started", Since: j.HandedOut}}
	default:
		found = workflow(j.Workflow, Reconcile, "the job's")
	}
	for i := range found {
		found[i].Job = j.Key
	}
	return found
}
