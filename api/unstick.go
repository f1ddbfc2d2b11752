package api

import (
	"context"
	"fmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Repairer looks into workflows and mends them.
type Repairer interface {
	Explain(ctx context.Context, workflowID string) (protocol.WorkflowState, error)
	RestartRequest(ctx context.Context, project string, id bench.RequestID) error
	QueueChanged(ctx context.Context, project string) error
	ResetToStart(ctx context.Context, workflowID, reason string) error
	TriggerReconcile(ctx context.Context) error
}

type unstickRequest struct {
	Request string `path:"request" doc:"ID of the request, or project:tag for one of an artifact." example:"go:1.26.0"`
	Body    apiclient.Unstick
}

// maxExplained bounds how many of a request's jobs are looked into.
const maxExplained = 100

func (s *server) unstickRequest(ctx context.Context, in *unstickRequest) (*body[apiclient.Unstuck], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	c, err := s.caseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	out := apiclient.Unstuck{Request: requestOf(r), Findings: []apiclient.Finding{}}
	done := make(map[string]error) // repairs, by what they are and what they mend
	for _, f := range diagnose.Request(c, s.Now()) {
		found := findingOf(f)
		if f.Repair != "" && !in.Body.DryRun && (f.Repair != diagnose.Reset || in.Body.Force) {
			key := string(f.Repair)
			if f.Repair == diagnose.Reset {
				key += f.Subject
			}
			failed, before := done[key]
			if !before {
				failed = s.repair(ctx, r, f)
				done[key] = failed
			}
			found.Repaired = failed == nil
			if failed != nil {
				found.RepairError = failed.Error()
			}
		}
		out.Findings = append(out.Findings, found)
	}
	return answer(out, nil)
}

func findingOf(f diagnose.Finding) apiclient.Finding {
	found := apiclient.Finding{Subject: f.Subject, What: f.What, Stuck: f.Stuck, Remedy: f.Remedy, Repair: string(f.Repair)}
	if !f.Since.IsZero() {
		found.Since = &f.Since
	}
	return found
}

func (s *server) repair(ctx context.Context, r bench.Request, f diagnose.Finding) error {
	s.Log.InfoContext(ctx, "unstick", "project", r.Project, "request", r.ID, "subject", f.Subject, "found", f.What, "repair", f.Repair, "by", caller(ctx).Owner)
	switch f.Repair {
	case diagnose.RestartRequest:
		return s.Repairs.RestartRequest(ctx, r.Project, r.ID)
	case diagnose.StartQueue:
		return s.Repairs.QueueChanged(ctx, r.Project)
	case diagnose.Reset:
		return s.Repairs.ResetToStart(ctx, f.Subject, "unstick, asked for by "+caller(ctx).Owner)
	case diagnose.Reconcile:
		return s.Repairs.TriggerReconcile(ctx)
	}
	return fmt.Errorf("there is no repair %s", f.Repair)
}

// caseOf asks the record and Temporal for all that is known of a request.
func (s *server) caseOf(ctx context.Context, r bench.Request) (diagnose.RequestCase, error) {
	c := diagnose.RequestCase{
		Project: r.Project, ID: r.ID, Type: r.Type, Status: r.Status, Outcome: r.Outcome, Message: r.Message, Created: r.CreatedAt,
		WaitsFor: r.WaitsFor, Deferred: r.Deferred, Pollers: make(map[string][]diagnose.Poller),
	}
	var err error
	if c.WaitsFor != "" {
		if c.ParentRun, err = s.Store.ParentDone(ctx, r.ID); err != nil {
			return c, err
		}
	}
	jobs, err := s.Store.RequestJobPage(ctx, r.ID, store.JobPage{Open: true, Limit: maxExplained})
	if err != nil {
		return c, err
	}
	for _, j := range jobs {
		job, err := s.unstickJob(ctx, j)
		if err != nil {
			return c, err
		}
		if job.Status.Open() {
			c.Jobs = append(c.Jobs, job)
		}
	}
	if r.Status == bench.Completed && len(c.Jobs) == 0 {
		return c, nil
	}
	running := true
	if r.Deferred && len(c.Jobs) > 0 { // its workflow begins with its first job
		if running, err = s.Store.InFlightOf(ctx, r.ID); err != nil {
			return c, err
		}
	}
	if running {
		if c.Workflow, err = s.Repairs.Explain(ctx, bench.RequestWorkflowID(r.Project, r.ID)); err != nil {
			return c, temporalAway(err)
		}
		if !c.Workflow.Status.Alive() { // as with jobs: it may have ended meanwhile
			if r, err = s.Store.Request(ctx, r.ID); err != nil {
				return c, err
			}
			c.Status, c.Outcome, c.Message = r.Status, r.Outcome, r.Message
			if r.Status == bench.Completed && len(c.Jobs) == 0 {
				return c, nil
			}
		}
	}
	if r.Type.Tracked() {
		if c.Queue, err = s.Repairs.Explain(ctx, bench.QueueWorkflowID(r.Project)); err != nil {
			return c, temporalAway(err)
		}
	}
	pause, err := s.Store.QueuePause(ctx, r.Project)
	if err != nil {
		return c, err
	}
	if pause != nil {
		c.Pause = &diagnose.Pause{Who: pause.By, Why: pause.Reason, Since: pause.At}
	}
	now := s.Now()
	collectors, err := s.Store.Collectors(ctx)
	if err != nil {
		return c, err
	}
	sets, err := s.setsOf(ctx, c.Jobs)
	if err != nil {
		return c, err
	}
	for _, one := range collectors {
		for _, set := range sets[one.Name] {
			c.Pollers[set] = append(c.Pollers[set], diagnose.Poller{Name: one.Name, State: one.State(now, s.OfflineAfter)})
		}
		queue := bench.Pool{Target: one.Target, SizeClass: one.SizeClass, Name: one.Pool}.TaskQueue()
		c.Pollers[queue] = append(c.Pollers[queue], diagnose.Poller{Name: one.Name, State: one.State(now, s.OfflineAfter)})
	}
	return c, nil
}

// setsOf are the sets of collectors in which jobs wait, by the collectors in them.
func (s *server) setsOf(ctx context.Context, jobs []diagnose.RequestJob) (map[string][]string, error) {
	sets := make(map[string][]string)
	seen := make(map[string]bool)
	for _, j := range jobs {
		if seen[j.TaskQueue] || !bench.IsSet(j.TaskQueue) {
			continue
		}
		seen[j.TaskQueue] = true
		members, err := s.Store.SetMembers(ctx, j.TaskQueue)
		if err != nil {
			return nil, err
		}
		for _, name := range members {
			sets[name] = append(sets[name], j.TaskQueue)
		}
	}
	return sets, nil
}

// unstickJob asks Temporal for what is known of a job. Record and Temporal are read
// one after the other, and while they are a job may end: one whose workflow does
// not run is therefore believed only when its row, read again, still says that it
// should.
func (s *server) unstickJob(ctx context.Context, j bench.Job) (diagnose.RequestJob, error) {
	var workflow protocol.WorkflowState
	var err error
	if j.Status != bench.JobQueued {
		if workflow, err = s.Repairs.Explain(ctx, bench.JobWorkflowID(j.Project, j.Key)); err != nil {
			return diagnose.RequestJob{}, temporalAway(err)
		}
		if !workflow.Status.Alive() {
			if j, err = s.Store.Job(ctx, j.Key); err != nil {
				return diagnose.RequestJob{}, err
			}
		}
	}
	out := diagnose.RequestJob{Key: j.Key, Status: j.Status, TaskQueue: j.TaskQueue, Created: j.CreatedAt, Workflow: workflow}
	if j.Constraints != nil {
		out.Machines = j.Constraints.Machines
	}
	if j.HandedOutAt != nil {
		out.HandedOut = *j.HandedOutAt
	}
	return out, nil
}

func temporalAway(err error) error {
	return problemf(503, "temporal-away", "Temporal cannot be asked: %v; is it running, and TEMPORAL_ADDRESS right?", err)
}
