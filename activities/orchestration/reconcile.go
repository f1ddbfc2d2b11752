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

// Repairs is how the reconciliation reaches workflows.
type Repairs interface {
	// Running lists the workflow IDs that Temporal's lists show as running; they
	// may lag behind.
	Running(ctx context.Context) ([]string, error)
	// Look tells what became of a workflow; it does not lag.
	Look(ctx context.Context, workflowID string) (protocol.WorkflowState, error)
	RestartRequest(ctx context.Context, request bench.RequestRef) error
	// RestartJob starts the workflow of a job whose last one has ended, or that is
	// nobody's child.
	RestartJob(ctx context.Context, in protocol.JobInput) error
	// HandOutAgain lets a request start jobs as its children; its workflow is started
	// again when it is not running: the row decides what else it does.
	HandOutAgain(ctx context.Context, request bench.RequestRef, jobs protocol.HandOut) error
	// CancelWorkflow cancels a workflow whose row has ended, or is gone.
	CancelWorkflow(ctx context.Context, workflowID string) error
}

const (
	// reconcileBatch bounds what one pass looks at closely: what is left comes
	// with the next one.
	reconcileBatch = 2000
	// reconcileAtOnce bounds how many calls are under way at a time.
	reconcileAtOnce = 8
	// startBound is how long whoever wrote a row may take to start its workflow.
	startBound = 5 * time.Second
	// handOutBound is how long whoever handed a job out may take to start its
	// workflow.
	handOutBound = 10 * time.Second
	// endBound is how long a workflow may take to end after its row has.
	endBound = 15 * time.Second
)

// A workflow that ended by its own error may end so again: it is started again
// after a pause that doubles. One that somebody terminated or that was lost is
// started at once.
const (
	failedPause    = 30 * time.Second
	maxFailedPause = 10 * time.Minute
)

// Reconcile compares the record with what is in flight and mends the difference.
// Rows that are open have a workflow that runs; workflows that run have a row that
// is open; what waits is handed out. Temporal's list of running workflows only
// narrows down what has to be looked at.
//
// What cannot be mended does not keep the rest from it.
func (a *Activities) Reconcile(ctx context.Context) (protocol.ReconcileResult, error) {
	stop := beat(ctx)
	defer stop()
	a.Points.Reach(ctx, failpoint.Reconciling)
	p := &pass{Activities: a, running: make(map[string]bool), open: make(map[string]bool)}
	// The list comes before the rows: a row is written before its workflow starts,
	// so what the list has, the rows have too, unless it ended.
	listed, err := a.Repairs.Running(ctx)
	for _, id := range listed {
		p.running[id] = true
	}
	errs := []error{err}
	for _, step := range []func(context.Context) error{p.requests, p.queues, p.jobs, p.refit, p.failover, p.handOut, p.strays, p.watches, p.pruneBuilds} {
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
	tracked []string        // projects with tracked requests that are open
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

// job starts the workflow of a job that is in flight without one. What was
// uploaded stays and is not measured again; a run that still goes on somewhere is
// closed, and the next one that passes the fence replaces it.
func (p *pass) job(ctx context.Context, j store.InFlightJob) error {
	state, err := p.absent(ctx, j.Project, j.Ref.WorkflowID())
	if err != nil || state == nil {
		return err
	}
	why := "the job's workflow is " + string(state.Status)
	if j.Request == "" {
		// Nobody waits for it, so nothing is started; it must not count as handed
		// out, either.
		if err := p.Store.Requeue(ctx, j.Job, why); err != nil {
			return err
		}
		return p.repaired(ctx, j.Project, *state, "took the job back: nobody waits for it")
	}
	if err := p.Store.CloseLostRuns(ctx, j.Job, why); err != nil {
		return err
	}
	row, err := p.Store.Job(ctx, j.Job)
	if err != nil || !row.Status.Open() {
		return err
	}
	_, config, err := p.config(ctx, j.Project)
	if err != nil {
		return err
	}
	runs, err := p.Store.JobRuns(ctx, j.Job)
	if err != nil {
		return err
	}
	d, err := p.decide(ctx, config, row, bench.FailInfrastructure)
	if err != nil {
		return err
	}
	measured := row.Build == nil && row.Done == len(row.TestCases) // a build has no test cases
	if measured || !d.Again {
		end := protocol.JobEndInput{Project: j.Project, Key: j.Job, TaskQueue: j.TaskQueue, GaveUp: d.Why}
		if _, err := p.RecordJobEnd(ctx, end); err != nil {
			return err
		}
		return p.repaired(ctx, j.Project, *state, "recorded the job's end")
	}
	in, err := p.jobInput(ctx, j.HandOut)
	if err != nil {
		return err
	}
	in.Attempts, in.Dispatches = d.AttemptsLeft, len(runs)
	// One that never had a workflow, or of which Temporal knows nothing any more, is
	// handed to its request once more.
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

// refit moves the rows of jobs with constraints; what waits in Temporal follows in
// the failover.
func (p *pass) refit(ctx context.Context) error {
	_, err := p.dispatcher().Refit(ctx)
	return errors.Join(err, p.Store.PruneSets(ctx))
}

func (p *pass) failover(ctx context.Context) error {
	return classify(p.dispatcher().Failover(ctx), "moving jobs from dead pools")
}

func (p *pass) handOut(ctx context.Context) error { return p.dispatcher().Sweep(ctx) }

// strays cancels workflows that run although their rows have ended, because they
// were not reached then, or although the record has no such row: it was restored
// from an older backup.
func (p *pass) strays(ctx context.Context) error {
	workflows := make(map[string]string) // by what they are for
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

// watches makes sure of the Schedules that are not confirmed.
func (p *pass) watches(ctx context.Context) error { return p.EnsureWatches(ctx, false) }

func (p *pass) stray(ctx context.Context, workflowID string) error {
	state, err := p.Repairs.Look(ctx, workflowID)
	if err != nil || !state.Status.Alive() {
		return err
	}
	if err := p.Repairs.CancelWorkflow(ctx, workflowID); err != nil {
		return err
	}
	_, project, _, _ := bench.ParseWorkflowID(workflowID)
	return p.repaired(ctx, project, state, "cancelled the workflow: the record has no open row for it")
}

// absent looks whether a workflow is really not running, and whether it is time
// to start it again: then it returns what was found in its place.
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

// repaired counts a repair, and remembers it where people ask.
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

// shownFailures bounds how many errors of one step are shown.
const shownFailures = 5

// each does something for all items, a few at a time and not for more than one
// pass can bear. One that fails keeps no other from being done.
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
	_ = group.Wait() // the errors are in errs: all of them count
	if more := len(errs) - shownFailures; more > 0 {
		errs = append(errs[:shownFailures], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// lostFromRecord says what it means that the record does not know what a workflow
// is for.
const lostFromRecord = "rows are written before workflows start, so the record was restored from an older backup or the row was removed; submit the request again"

func notInRecord(what string, err error) error {
	return permanent(fmt.Errorf("%s: %w; %s", strings.TrimSpace(what), err, lostFromRecord))
}
