package dispatch

import (
	"context"
	"errors"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
)

// Starts starts the workflows of jobs that were handed out, and of their requests.
// What runs or has run already is success. It is called without any lock; several
// processes may start the same job at once.
type Starts interface {
	StartJob(ctx context.Context, job protocol.JobInput) error
	StartRequest(ctx context.Context, project string, id bench.RequestID) error
}

// startAll starts jobs that were handed out. Those of one queue start in their order;
// queues start concurrently, for Temporal decides between them.
func (d *Dispatcher) startAll(ctx context.Context, view sizing.View, handed []bench.HandOut) error {
	byQueue := make(map[string][]bench.HandOut)
	var queues []string
	for _, h := range handed {
		if byQueue[h.Queue] == nil {
			queues = append(queues, h.Queue)
		}
		byQueue[h.Queue] = append(byQueue[h.Queue], h)
	}
	return each(queues, func(queue string) error {
		return wrap("starting what was handed out of queue "+queue, d.start(ctx, view, byQueue[queue]))
	})
}

// start starts the workflows of jobs that were handed out, and then of their requests:
// one that was written with its jobs had none before. The jobs first: a collector may
// wait for them, and nothing of theirs waits for the request. One that cannot be
// started keeps no other from it.
//
// What is not started, because this process ends here or Temporal does not answer, the
// reconciliation starts.
func (d *Dispatcher) start(ctx context.Context, view sizing.View, jobs []bench.HandOut) error {
	inputs := newInputs(d.Record, view)
	var errs []error
	for _, h := range jobs {
		in, err := inputs.of(ctx, h)
		if err == nil {
			err = d.Workflows.StartJob(ctx, in)
		}
		errs = append(errs, err)
	}
	for _, request := range inputs.requests {
		// One that has ended runs already, for what optional jobs are open.
		if request.Status == bench.Completed || request.WorkflowStartedAt != nil {
			continue
		}
		err := d.Workflows.StartRequest(ctx, request.Project, request.ID)
		if err == nil {
			err = d.Record.MarkWorkflowStarted(ctx, request.ID)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Input makes the input of the workflow of a job that was handed out. The error wraps
// [bench.ErrInvalid] when the project's configuration is invalid.
func (d *Dispatcher) Input(ctx context.Context, job bench.HandOut) (protocol.JobInput, error) {
	view, err := d.view(ctx)
	if err != nil {
		return protocol.JobInput{}, err
	}
	return newInputs(d.Record, view).of(ctx, job)
}

// inputs makes the inputs of jobs' workflows. It reads each request and project once.
type inputs struct {
	record   Record
	view     sizing.View
	requests map[bench.RequestID]bench.Request
	configs  configs // a parent's job is its own project's
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
	attempts, err := in.view.Attempts(ctx, config, h.Job)
	if err != nil {
		return protocol.JobInput{}, err
	}
	return protocol.JobInput{
		Project: h.Project, Key: h.Job, Request: h.Request, Tag: h.Tag, Target: h.Target, User: request.Submitter,
		Summary: h.Summary, TaskQueue: h.TaskQueue, SizeClass: h.SizeClass,
		Priority: protocol.Priority{Level: h.Priority, Queue: h.Queue, Turn: h.Turn, Weight: fairshare.TemporalWeight(h.Weight)},
		Attempts: attempts,
	}, nil
}
