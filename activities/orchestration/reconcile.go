package orchestration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uber-go/tally/v4"
	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Repairs lets the reconciliation look at and repair workflows; a *starter.Starter is one. It
// is called under no lock, for several workflows at once, and is never nil.
type Repairs interface {
	// Running lists the workflow IDs that Temporal's lists show as running. The lists
	// may lag.
	Running(ctx context.Context) ([]string, error)
	// Look describes the newest run of a workflow. It does not lag.
	Look(ctx context.Context, workflowID string) (protocol.WorkflowState, error)
	RestartRequest(ctx context.Context, request bench.RequestRef) error
	// RestartJob starts the workflow of a job whose last one has ended, or that has no
	// parent workflow.
	RestartJob(ctx context.Context, in protocol.JobInput) error
	// HandOutAgain lets a request start jobs as its children, and restarts its workflow
	// unless it runs: the row decides what else it does.
	HandOutAgain(ctx context.Context, request bench.RequestRef, jobs protocol.HandOut) error
	// CancelWorkflow cancels a workflow whose row has ended or is gone.
	CancelWorkflow(ctx context.Context, workflowID string) error
	// ForgetPasses deletes up to most closed workflows that Schedules have started, except
	// the newest of each Schedule.
	ForgetPasses(ctx context.Context, most int) (deleted int, err error)
}

const (
	// reconcileBatch bounds the items examined in one pass; the next one continues
	// with the rest.
	reconcileBatch = 2000
	// reconcileAtOnce bounds the number of concurrent calls.
	reconcileAtOnce = 8
	// startBound is the time from writing a row to the start of its workflow.
	startBound = 5 * time.Second
	// handOutBound is the time from the hand-out of a job to the start of its workflow.
	handOutBound = 10 * time.Second
	// endBound is the time from the end of a row, or from a reset after it, to the end of its workflow.
	endBound = 15 * time.Second
)

// A workflow that failed may fail again, so it is restarted after a pause that doubles.
// A workflow that was terminated or lost is restarted immediately.
const (
	failedPause    = 30 * time.Second
	maxFailedPause = 10 * time.Minute
)

// Reconcile compares the record with Temporal and repairs the difference: every open
// row has a running workflow, every running workflow has an open row, and waiting jobs
// are handed out. Temporal's list of running workflows only narrows the search.
//
// A failed repair does not prevent the others. Only one pass goes on at a time, in any
// process; Reconcile waits for it. Orchestrators call Reconcile every 30 s, and the
// Schedule's workflow as an activity.
func (a *Activities) Reconcile(ctx context.Context) (result protocol.ReconcileResult, err error) {
	stop := beat(ctx)
	defer stop()
	err = a.Store.Alone(ctx, "reconciliation", func(ctx context.Context) error {
		result, err = a.reconcile(ctx)
		return err
	})
	return result, err
}

func (a *Activities) reconcile(ctx context.Context) (protocol.ReconcileResult, error) {
	a.Points.Reach(ctx, failpoint.Reconciling)
	p := &pass{Activities: a, running: make(map[string]bool), open: make(map[string]bool)}
	// The list is read before the rows: a row is written before its workflow starts,
	// so every listed workflow has a row, unless it ended.
	listed, err := a.Repairs.Running(ctx)
	for _, id := range listed {
		p.running[id] = true
	}
	errs := []error{err}
	for _, step := range []func(context.Context) error{p.rebuilt, p.requests, p.queues, p.jobs, p.refit, p.failover, p.canaries, p.waitingLong, p.handOut, p.strays, p.watches, p.pruneBuilds, p.tally, p.pack, p.forget} {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, step(ctx))
	}
	return protocol.ReconcileResult{Repairs: int(p.repairs.Load())}, errors.Join(errs...)
}

// pass is one reconciliation.
type pass struct {
	*Activities
	repairs atomic.Int64
	running map[string]bool // by workflow ID, as listed
	open    map[string]bool // by workflow ID, of rows
	tracked []string        // projects with open tracked requests
}

func (p *pass) requests(ctx context.Context) error {
	open, err := p.Store.OpenRequests(ctx, startBound)
	if err != nil {
		return err
	}
	var unseen []store.OpenRequest
	for _, r := range open {
		id := r.WorkflowID()
		p.open[id] = true
		if r.Type.Tracked() && !slices.Contains(p.tracked, r.Project) {
			p.tracked = append(p.tracked, r.Project)
		}
		if r.Confirmed && !p.running[id] {
			unseen = append(unseen, r)
		}
	}
	return each(ctx, unseen, p.request)
}

func (p *pass) request(ctx context.Context, r store.OpenRequest) error {
	state, err := p.absent(ctx, r.Project, r.WorkflowID())
	if err != nil || state == nil {
		return err
	}
	// Read again: it may have ended between the list and the look.
	ended, err := p.Store.EndedRequests(ctx, []bench.RequestID{r.ID}, 0)
	if err != nil || len(ended) > 0 {
		return err
	}
	if err := p.Repairs.RestartRequest(ctx, r.RequestRef); err != nil {
		return err
	}
	if err := p.Store.MarkWorkflowStarted(ctx, r.ID); err != nil {
		return err
	}
	return p.repaired(ctx, r.Project, *state, "started the request's workflow again")
}

// queues starts the queues of projects whose requests wait for admission.
func (p *pass) queues(ctx context.Context) error {
	return each(ctx, p.tracked, func(ctx context.Context, project string) error {
		id := bench.QueueWorkflowID(project)
		p.open[id] = true
		if p.running[id] {
			return nil
		}
		state, err := p.absent(ctx, project, id)
		if err != nil || state == nil {
			return err
		}
		if err := p.Workflows.QueueChanged(ctx, project); err != nil {
			return err
		}
		return p.repaired(ctx, project, *state, "started the project's queue again")
	})
}

func (p *pass) jobs(ctx context.Context) error {
	inFlight, err := p.Store.InFlight(ctx, handOutBound)
	if err != nil {
		return err
	}
	unseen := slices.DeleteFunc(inFlight, func(j store.InFlightJob) bool { return p.running[j.Ref.WorkflowID()] })
	return each(ctx, unseen, p.job)
}

// job starts the workflow of a job that was handed out and has none. Uploaded results
// stay and are not measured again. A run that still goes on at its collector is adopted;
// any other is closed.
func (p *pass) job(ctx context.Context, j store.InFlightJob) error {
	state, err := p.absent(ctx, j.Project, j.Ref.WorkflowID())
	if err != nil || state == nil {
		return err
	}
	why := "the job's workflow is " + string(state.Status)
	if j.Request == "" {
		// No request waits for it, so nothing is started; it must not count as handed
		// out either.
		if err := p.Store.Requeue(ctx, j.Job, why); err != nil {
			return err
		}
		return p.repaired(ctx, j.Project, *state, "took the job back: nobody waits for it")
	}
	runs, err := p.Store.JobRuns(ctx, j.Job)
	if err != nil {
		return err
	}
	adopt, err := p.goesOn(ctx, runs)
	if err != nil {
		return err
	}
	if adopt.Run == "" {
		if err := p.Store.CloseLostRuns(ctx, j.Job, j.Rerun, why); err != nil {
			return err
		}
	}
	row, err := p.Store.Job(ctx, j.Job)
	if err != nil || !row.Status.Open() || row.Rerun != j.Rerun {
		return err
	}
	_, config, err := p.config(ctx, j.Project)
	if err != nil {
		return err
	}
	d, err := p.decide(ctx, config, row, bench.FailInfrastructure)
	if err != nil {
		return err
	}
	measured := row.Build == nil && row.Done == len(row.TestCases) // a build has no test cases
	if adopt.Run == "" && (measured || !d.Again) {
		end := protocol.JobEndInput{Project: j.Project, Key: j.Job, Rerun: j.Rerun, TaskQueue: j.TaskQueue, GaveUp: d.Why}
		if _, err := p.RecordJobEnd(ctx, end); err != nil {
			return err
		}
		return p.repaired(ctx, j.Project, *state, "recorded the job's end")
	}
	in, err := p.jobInput(ctx, j.HandOut)
	if err != nil {
		return err
	}
	in.Attempts, in.Dispatches, in.Adopt = d.AttemptsLeft, len(runs), adopt
	in.Unbegun.Runs = len(runs)
	// A job that never had a workflow, or whose workflow Temporal has forgotten, is
	// handed to its request again.
	if j.Kind.ChildOfRequest() && state.Status == protocol.WorkflowMissing {
		request, err := p.Store.Request(ctx, j.Request)
		if err != nil {
			return err
		}
		if err := p.Repairs.HandOutAgain(ctx, request.Ref(), protocol.HandOut{Jobs: []protocol.JobInput{in}}); err != nil {
			return err
		}
		return p.repaired(ctx, j.Project, *state, "handed the job to its request again")
	}
	if err := p.Repairs.RestartJob(ctx, in); err != nil {
		return err
	}
	return p.repaired(ctx, j.Project, *state, "started the job's workflow again")
}

// refit moves the rows of jobs with constraints; tasks that wait in Temporal follow in
// the failover.
func (p *pass) refit(ctx context.Context) error {
	_, err := p.dispatcher().Refit(ctx)
	return errors.Join(err, p.Store.PruneSets(ctx))
}

func (p *pass) failover(ctx context.Context) error {
	return classify(p.dispatcher().Failover(ctx), "moving jobs from dead pools")
}

func (p *pass) handOut(ctx context.Context) error { return p.dispatcher().Sweep(ctx) }

// strays cancels running workflows whose rows have ended, because the cancellation did not
// reach them, or have no row, because the record was restored from an older backup.
func (p *pass) strays(ctx context.Context) error {
	workflows := make(map[string]string) // by the row they belong to
	var requests []bench.RequestID
	var jobs []bench.JobKey
	for id := range p.running {
		kind, _, name, ours := bench.ParseWorkflowID(id)
		switch {
		case !ours || p.open[id]:
			continue
		case kind == bench.RequestWorkflow:
			requests = append(requests, bench.RequestID(name))
		case kind == bench.JobWorkflow:
			jobs = append(jobs, bench.JobKey(name))
		}
		workflows[name] = id
	}
	ended, err := p.Store.EndedRequests(ctx, requests, endBound)
	if err != nil {
		return err
	}
	endedJobs, err := p.Store.EndedJobs(ctx, jobs, endBound)
	if err != nil {
		return err
	}
	return errors.Join(
		each(ctx, ended, func(ctx context.Context, id bench.RequestID) error { return p.stray(ctx, workflows[string(id)]) }),
		each(ctx, endedJobs, func(ctx context.Context, key bench.JobKey) error { return p.stray(ctx, workflows[string(key)]) }),
	)
}

// watches creates or removes the Schedules that are not confirmed.
func (p *pass) watches(ctx context.Context) error { return p.EnsureWatches(ctx, false) }

// tally sums up the counts of open jobs, which each change of a job adds to.
func (p *pass) tally(ctx context.Context) error { return p.Store.CompactTally(ctx) }

// forgetBatch bounds the closed workflows that one pass deletes. What earlier versions left,
// a workflow every 30 s for up to a month, is gone after some hours.
const forgetBatch = 200

// forget deletes what earlier passes have left in Temporal. A cluster that does not
// permit it keeps them for the namespace's retention, and all else works.
func (p *pass) forget(ctx context.Context) error {
	deleted, err := p.Repairs.ForgetPasses(ctx, forgetBatch)
	p.scope().Counter("schedule_passes_deleted_total").Inc(int64(deleted))
	if err != nil {
		p.Log.WarnContext(ctx, "closed workflows of Schedules stay in Temporal until the namespace's retention is over", "error", err)
	}
	return nil
}

func (p *pass) stray(ctx context.Context, workflowID string) error {
	state, err := p.Repairs.Look(ctx, workflowID)
	// A workflow that was reset after its row had ended closes by itself, like one whose row ends.
	if err != nil || !state.Status.Alive() || time.Since(state.Started) < endBound {
		return err
	}
	if err := p.Repairs.CancelWorkflow(ctx, workflowID); err != nil {
		return err
	}
	_, project, _, _ := bench.ParseWorkflowID(workflowID)
	return p.repaired(ctx, project, state, "cancelled the workflow: the record has no open row for it")
}

// absent checks whether a workflow is really not running and is due for a restart. If
// so, it returns the workflow's last state.
func (p *pass) absent(ctx context.Context, project, workflowID string) (*protocol.WorkflowState, error) {
	state, err := p.Repairs.Look(ctx, workflowID)
	if err != nil || state.Status.Alive() {
		return nil, err
	}
	if state.Status != protocol.WorkflowFailed && state.Status != protocol.WorkflowTimedOut {
		return &state, nil
	}
	before, err := p.Store.Repairs(ctx, workflowID, time.Hour)
	if err != nil {
		return nil, err
	}
	if len(before) > 0 {
		pause := min(failedPause<<min(len(before)-1, 10), maxFailedPause)
		if before[0].Ago < pause {
			p.Log.DebugContext(ctx, "a workflow that failed again waits to be started", "project", project, "workflow", workflowID, "pause", pause)
			return nil, nil //nolint:nilnil // nothing to do now is an answer
		}
	}
	return &state, nil
}

// repaired counts a repair, and records it for people to see.
func (p *pass) repaired(ctx context.Context, project string, found protocol.WorkflowState, done string) error {
	p.repairs.Add(1)
	p.Log.WarnContext(ctx, "reconciled", "project", project, "workflow", found.ID, "found", found.Status, "done", done)
	kind, _, _, _ := bench.ParseWorkflowID(found.ID)
	p.scope().Tagged(map[string]string{"workflow": string(kind), "found": string(found.Status)}).Counter("reconcile_repairs_total").Inc(1)
	return p.Store.RecordRepair(ctx, store.Repair{WorkflowID: found.ID, Project: project, Found: string(found.Status), Done: done})
}

func (a *Activities) scope() tally.Scope {
	if a.Scope == nil {
		return tally.NoopScope
	}
	return a.Scope
}

// shownFailures bounds the number of errors shown per step.
const shownFailures = 5

// each calls a function for the items, a few at once and at most reconcileBatch of them.
// A failure does not stop the others.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(reconcileAtOnce)
	for _, item := range items[:min(len(items), reconcileBatch)] {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := do(ctx, item); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // errs has all errors
	if more := len(errs) - shownFailures; more > 0 {
		errs = append(errs[:shownFailures], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// lostFromRecord explains a workflow without a row.
const lostFromRecord = "rows are written before workflows start, so the record was restored from an older backup or the row was removed; submit the request again"

func notInRecord(what string, err error) error {
	return permanent(fmt.Errorf("%s: %w; %s", strings.TrimSpace(what), err, lostFromRecord))
}
