package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
)

// Starts starts the workflows of jobs that were handed out, and of their requests.
// Starting a workflow that runs or has run already succeeds. It is called without any
// lock; several processes may start the same job at once.
type Starts interface {
	// StartJob starts the workflow of a job that is not a child workflow.
	StartJob(ctx context.Context, job protocol.JobInput) error
	// HandOut lets a request's workflow start jobs as its children. It is no error if
	// that workflow does not run: the reconciliation restarts it and hands out again.
	HandOut(ctx context.Context, request bench.RequestRef, jobs protocol.HandOut) error
	StartRequest(ctx context.Context, request bench.RequestRef) error
}

// startAll starts jobs that were handed out. Jobs of one queue start in order. Queues
// start concurrently, since Temporal decides between them.
func (d *Dispatcher) startAll(ctx context.Context, f filling, handed []bench.HandOut) error {
	byQueue := make(map[string][]bench.HandOut)
	var queues []string
	for _, h := range handed {
		if byQueue[h.Queue] == nil {
			queues = append(queues, h.Queue)
		}
		byQueue[h.Queue] = append(byQueue[h.Queue], h)
	}
	return each(queues, func(queue string) error {
		return wrap("starting jobs of queue "+queue, d.start(ctx, f.view, byQueue[queue], f.asks))
	})
}

// handOutAtOnce bounds the number of jobs in one message to a request.
const handOutAtOnce = 100

// start starts jobs that were handed out: commands directly, the jobs of suites through
// their requests (see [bench.JobKind.ChildOfRequest]). It skips the children of the
// request asks, which reads them itself. Commands start before the workflow of their
// request, since a collector may be waiting for them and they do not need the workflow,
// which starts after RequestDelay. A job that cannot be started does not stop the others.
//
// The reconciliation starts the jobs that are not started here because this process ends
// or Temporal does not answer.
func (d *Dispatcher) start(ctx context.Context, view sizing.View, jobs []bench.HandOut, asks bench.RequestID) error {
	inputs := newInputs(d.Record, view)
	var errs []error
	var parents []bench.RequestID // in the order of their jobs
	children := make(map[bench.RequestID][]protocol.JobInput)
	begun := false // a command
	for _, h := range jobs {
		child := h.Kind.ChildOfRequest()
		if child && h.Request == asks {
			continue
		}
		in, err := inputs.of(ctx, h)
		switch {
		case err != nil:
		case child:
			if children[h.Request] == nil {
				parents = append(parents, h.Request)
			}
			children[h.Request] = append(children[h.Request], in)
		default:
			err = d.Workflows.StartJob(ctx, in)
			begun = true
		}
		errs = append(errs, err)
	}
	requests := withoutWorkflow(inputs.requests)
	if begun && len(requests) > 0 && len(parents) == 0 && d.RequestDelay > 0 {
		d.startRequestsLater(ctx, requests)
	} else {
		errs = append(errs, d.startRequests(ctx, requests))
	}
	for _, id := range parents {
		for part := range slices.Chunk(children[id], handOutAtOnce) {
			errs = append(errs, d.Workflows.HandOut(ctx, inputs.requests[id].Ref(), protocol.HandOut{Jobs: part}))
		}
	}
	return errors.Join(errs...)
}

// withoutWorkflow returns the requests whose workflow has not been started. The workflow of
// a completed request runs already, for its open optional jobs.
func withoutWorkflow(all map[bench.RequestID]bench.Request) []bench.Request {
	var requests []bench.Request
	for _, r := range all {
		if r.Status != bench.Completed && r.WorkflowStartedAt == nil {
			requests = append(requests, r)
		}
	}
	return requests
}

func (d *Dispatcher) startRequests(ctx context.Context, requests []bench.Request) error {
	var errs []error
	for _, request := range requests {
		err := d.Workflows.StartRequest(ctx, request.Ref())
		if err == nil {
			err = d.Record.MarkWorkflowStarted(ctx, request.ID)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// startRequestsLater starts the workflows of requests after the delay. The reconciliation makes
// up for a failure.
func (d *Dispatcher) startRequestsLater(ctx context.Context, requests []bench.Request) {
	ctx = context.WithoutCancel(ctx)
	d.later.Go(func() {
		time.Sleep(d.RequestDelay)
		ctx, stop := context.WithTimeout(ctx, laterBound)
		defer stop()
		if err := d.startRequests(ctx, requests); err != nil {
			d.Log.WarnContext(ctx, "could not start the workflow of a request; the reconciliation repeats it", "error", err)
		}
	})
}

// laterBound bounds the start of workflows that nobody waits for.
const laterBound = 10 * time.Second

// HandedOutTo returns the inputs of jobs that were handed out to a request and have not
// begun, for its workflow to start. It returns at most as many as fit into one message
// and sends the others to the workflow.
func (d *Dispatcher) HandedOutTo(ctx context.Context, id bench.RequestID) ([]protocol.JobInput, error) {
	jobs, err := d.Record.HandedOutTo(ctx, id)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	jobs = slices.DeleteFunc(jobs, func(h bench.HandOut) bool { return !h.Kind.ChildOfRequest() })
	view, err := d.view(ctx)
	if err != nil {
		return nil, err
	}
	first := jobs[:min(len(jobs), handOutAtOnce)]
	if err := d.start(ctx, view, jobs[len(first):], ""); err != nil {
		return nil, err
	}
	inputs := newInputs(d.Record, view)
	out := make([]protocol.JobInput, len(first))
	for i, h := range first {
		if out[i], err = inputs.of(ctx, h); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Input returns the input of the workflow of a job that was handed out. The error wraps
// [bench.ErrInvalid] when the project's configuration is invalid.
func (d *Dispatcher) Input(ctx context.Context, job bench.HandOut) (protocol.JobInput, error) {
	view, err := d.view(ctx)
	if err != nil {
		return protocol.JobInput{}, err
	}
	return newInputs(d.Record, view).of(ctx, job)
}

// inputs builds the inputs of jobs' workflows. It reads each request and project once.
type inputs struct {
	record   Record
	view     sizing.View
	requests map[bench.RequestID]bench.Request
	configs  configs
}

func newInputs(record Record, view sizing.View) inputs {
	return inputs{record: record, view: view, requests: make(map[bench.RequestID]bench.Request), configs: newConfigs(record)}
}

func (in inputs) of(ctx context.Context, h bench.HandOut) (protocol.JobInput, error) {
	request, ok := in.requests[h.Request]
	if !ok {
		var err error
		if request, err = in.record.Request(ctx, h.Request); err != nil {
			return protocol.JobInput{}, err
		}
		in.requests[h.Request] = request
	}
	config, err := in.configs.of(ctx, h.Project)
	if err != nil {
		return protocol.JobInput{}, err
	}
	var former []bench.Run
	if h.Rerun > 0 {
		if former, err = in.record.JobRuns(ctx, h.Job); err != nil {
			return protocol.JobInput{}, err
		}
	}
	attempts, err := in.view.Attempts(ctx, config, h.Job, former)
	if err != nil {
		return protocol.JobInput{}, err
	}
	return protocol.JobInput{
		Project: h.Project, Key: h.Job, Rerun: h.Rerun, Workflow: h.Ref.WorkflowID(), Request: h.Request, RequestWorkflow: request.Ref().WorkflowID(), Tag: h.Tag, Target: h.Target, User: request.Submitter,
		Summary: h.Summary, TaskQueue: h.TaskQueue, SizeClass: h.SizeClass,
		Priority: protocol.Priority{Level: h.Priority, Queue: h.Queue, Turn: h.Turn, Weight: fairshare.TemporalWeight(h.Weight)},
		Attempts: attempts, Dispatch: h.Dispatch,
	}, nil
}
