package inspect

import (
	"context"
	"errors"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/store"
)

const (
	// maxJobs bounds the number of a request's jobs that are examined.
	maxJobs = 100
	// shownJobs bounds the number of open jobs in an explanation.
	shownJobs = 10
)

// RequestExplanation explains the state of a request.
type RequestExplanation struct {
	// Findings leaves out jobs that only wait: Open has them.
	Findings []diagnose.Finding
	// Open lists the first of its open jobs: running jobs, then the others in hand-out
	// order.
	Open []OpenJob
	// Next explains the first open job that does not run, or else the first; nil when
	// none is open.
	Next *diagnose.JobExplanation
}

// OpenJob is an open job with what it waits for; empty: it runs.
type OpenJob struct {
	Key    bench.JobKey
	Status bench.JobStatus
	Waits  string
}

// Request explains the state of a request. A Temporal that does not answer is a finding,
// not an error.
func (i *Inspector) Request(ctx context.Context, r bench.Request) (RequestExplanation, error) {
	var e RequestExplanation
	findings, err := i.Findings(ctx, r)
	if away, ok := errors.AsType[*TemporalError](err); ok {
		findings = []diagnose.Finding{{Subject: "Temporal", What: away.Error(), Stuck: true}}
	} else if err != nil {
		return e, err
	}
	e.Findings = slices.DeleteFunc(findings, func(f diagnose.Finding) bool { return f.Job != "" && !f.Stuck })
	open, err := i.Record.OpenJobsOf(ctx, r.ID, shownJobs)
	if err != nil || len(open) == 0 {
		return e, err
	}
	jobs := make([]bench.Job, len(open))
	running := make(map[bench.JobKey]bool)
	for n, j := range open {
		jobs[n], running[j.Key] = j.Job, j.Running
	}
	waits, err := i.Waits(ctx, jobs, running)
	if err != nil {
		return e, err
	}
	for _, j := range jobs {
		e.Open = append(e.Open, OpenJob{Key: j.Key, Status: j.Status, Waits: waits[j.Key]})
	}
	next := max(0, slices.IndexFunc(open, func(j store.OpenJob) bool { return !j.Running }))
	explained, err := i.Job(ctx, jobs[next])
	e.Next = &explained
	return e, err
}

// Findings lists what a request waits for, stuck things first. The error is a
// *TemporalError when Temporal does not answer.
func (i *Inspector) Findings(ctx context.Context, r bench.Request) ([]diagnose.Finding, error) {
	c, err := i.requestCase(ctx, r)
	if err != nil {
		return nil, err
	}
	return diagnose.Request(c, i.Now()), nil
}

// requestCase reads all facts about a request from the record and Temporal.
func (i *Inspector) requestCase(ctx context.Context, r bench.Request) (diagnose.RequestCase, error) {
	c := diagnose.RequestCase{
		Project: r.Project, ID: r.ID, Type: r.Type, Status: r.Status, Outcome: r.Outcome, Message: r.Message, Created: r.CreatedAt,
		WaitsFor: r.WaitsFor, Deferred: r.Deferred,
	}
	var err error
	if c.WaitsFor != "" {
		if c.ParentRun, err = i.Record.ParentDone(ctx, r.ID); err != nil {
			return c, err
		}
	}
	if c.Jobs, err = i.requestJobs(ctx, r.ID); err != nil {
		return c, err
	}
	if c.Status == bench.Completed && len(c.Jobs) == 0 {
		return c, nil
	}
	if err := i.addWorkflow(ctx, r.Ref(), &c); err != nil {
		return c, err
	}
	if c.Status == bench.Completed && len(c.Jobs) == 0 {
		return c, nil
	}
	if r.Type.Tracked() {
		if c.Queue, err = i.workflow(ctx, bench.QueueWorkflowID(r.Project)); err != nil {
			return c, err
		}
	}
	if c.Pause, err = i.pause(ctx, r.Project); err != nil {
		return c, err
	}
	c.Pollers, err = i.pollers(ctx, c.Jobs)
	return c, err
}

// addWorkflow adds a request's workflow. As with jobs, a missing workflow is reported
// only when the request, read again, still needs one.
func (i *Inspector) addWorkflow(ctx context.Context, request bench.RequestRef, c *diagnose.RequestCase) error {
	var err error
	if c.Deferred && len(c.Jobs) > 0 { // its workflow begins with its first job
		running, err := i.Record.InFlightOf(ctx, c.ID)
		if err != nil || !running {
			return err
		}
	}
	if c.Workflow, err = i.workflow(ctx, request.WorkflowID()); err != nil {
		return err
	}
	if c.Workflow.Status.Alive() {
		return nil
	}
	r, err := i.Record.Request(ctx, c.ID)
	if err == nil {
		c.Status, c.Outcome, c.Message = r.Status, r.Outcome, r.Message
	}
	return err
}

// requestJobs lists the open jobs of a request with their workflows.
func (i *Inspector) requestJobs(ctx context.Context, id bench.RequestID) ([]diagnose.RequestJob, error) {
	jobs, err := i.Record.RequestJobPage(ctx, id, store.JobPage{Open: true, Limit: maxJobs})
	if err != nil {
		return nil, err
	}
	var open []diagnose.RequestJob
	for _, j := range jobs {
		job, err := i.requestJob(ctx, j)
		if err != nil {
			return nil, err
		}
		if job.Status.Open() {
			open = append(open, job)
		}
	}
	return open, nil
}

// requestJob adds a job's workflow. Record and Temporal are read one after the other,
// and the job may end in between: a missing workflow is reported only when the row, read
// again, still needs one.
func (i *Inspector) requestJob(ctx context.Context, j bench.Job) (diagnose.RequestJob, error) {
	var out diagnose.RequestJob
	if j.Status != bench.JobQueued {
		var err error
		if out.Workflow, err = i.workflow(ctx, j.Ref().WorkflowID()); err != nil {
			return out, err
		}
		if !out.Workflow.Status.Alive() {
			if j, err = i.Record.Job(ctx, j.Key); err != nil {
				return out, err
			}
		}
	}
	out.Key, out.Status, out.TaskQueue, out.Created, out.HandedOut = j.Key, j.Status, j.TaskQueue, j.CreatedAt, timeOf(j.HandedOutAt)
	if j.Constraints != nil {
		out.Machines = j.Constraints.Machines
	}
	return out, nil
}

// pollers lists the collectors that serve each pool's task queue, and the task queues of
// sets in which jobs wait.
func (i *Inspector) pollers(ctx context.Context, jobs []diagnose.RequestJob) (map[string][]diagnose.Poller, error) {
	collectors, err := i.Record.Collectors(ctx)
	if err != nil {
		return nil, err
	}
	sets, err := i.setsOf(ctx, jobs)
	if err != nil {
		return nil, err
	}
	pollers := make(map[string][]diagnose.Poller)
	now := i.Now()
	for _, one := range collectors {
		poller := diagnose.Poller{Name: one.Name, State: one.State(now, i.OfflineAfter)}
		for _, taskQueue := range append(sets[one.Name], poolQueue(one)) {
			pollers[taskQueue] = append(pollers[taskQueue], poller)
		}
	}
	return pollers, nil
}

// setsOf lists, by collector, the task queues of the sets in which jobs wait.
func (i *Inspector) setsOf(ctx context.Context, jobs []diagnose.RequestJob) (map[string][]string, error) {
	sets := make(map[string][]string)
	seen := make(map[string]bool)
	for _, j := range jobs {
		if seen[j.TaskQueue] || !bench.IsSet(j.TaskQueue) {
			continue
		}
		seen[j.TaskQueue] = true
		members, err := i.Record.SetMembers(ctx, j.TaskQueue)
		if err != nil {
			return nil, err
		}
		for _, name := range members {
			sets[name] = append(sets[name], j.TaskQueue)
		}
	}
	return sets, nil
}
