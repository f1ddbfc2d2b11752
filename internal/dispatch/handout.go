// Package dispatch keeps task queues filled: it hands waiting jobs out and starts
// their workflows, and with its first job the workflow of a request that needed none
// before.
//
// It runs wherever something has changed that a waiting job may go for: at a
// submission, at a job's end, at a change of the queues; and every few seconds, for
// what was missed. Doing it twice, or in several processes at once, does no harm:
// each task queue is filled under a lock. It must not decide which job goes next:
// the record does.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
)

// Record is what is known of jobs that wait.
type Record interface {
	HandOut(ctx context.Context, taskQueue string, how store.Filling) ([]bench.HandOut, error)
	WaitingTaskQueues(ctx context.Context) ([]string, error)
	Room(ctx context.Context, account string) ([]string, error)
	TakeBack(ctx context.Context) error
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	Project(ctx context.Context, name string) (store.Project, error)
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
	Relevel(ctx context.Context) ([]store.Relevelled, error)
	SetLevel(ctx context.Context, key bench.JobKey, level int) error
}

// Workflows is how what was handed out is started. What runs or has run already is
// success.
type Workflows interface {
	StartJob(ctx context.Context, job protocol.JobInput) error
	StartRequest(ctx context.Context, project string, id bench.RequestID) error
	// SetLevel gives a job that waits in Temporal another level. done is false when
	// its workflow has not got that far: it is to be tried again.
	SetLevel(ctx context.Context, project string, key bench.JobKey, level int) (done bool, err error)
}

// Room is where jobs are handed out.
type Room struct {
	Record    Record
	Workflows Workflows
	// Sizes selects the size classes of jobs that are next; nil: they run where they
	// wait.
	Sizes *sizing.Sizes
}

// inTemporal is how many jobs of one queue wait in Temporal for a task queue with
// this many live collectors. Those that run do not count: by fair shares one queue
// may get several turns in a row, and must not be out of jobs at any of them; with
// fewer than four, shares of short jobs are not exact. The rest waits as rows, where
// weights, levels and cancellations still reach it.
func inTemporal(liveCollectors int) int { return 2*liveCollectors + 2 }

// strictInTemporal is the same for a strict queue, which gets every turn while it has
// work: more of it must be there, for nothing of a later level is to start in between.
func strictInTemporal(liveCollectors int) int { return 4 * inTemporal(liveCollectors) }

// Fill hands out what a task queue has room for, and starts it.
func (r Room) Fill(ctx context.Context, taskQueue string) error {
	view, err := r.view(ctx)
	if err != nil {
		return err
	}
	queues := []string{taskQueue}
	// Where there is anything to select, only those jobs are handed out that have a
	// size class. Some of them wait in other task queues afterwards.
	sized := view.Several()
	if sized {
		live := view.Live(taskQueue)
		elsewhere, err := view.Select(ctx, taskQueue, inTemporal(live), strictInTemporal(live))
		if err != nil {
			return err
		}
		queues = append(queues, elsewhere...)
	}
	var errs []error
	for _, q := range queues {
		errs = append(errs, r.fill(ctx, view, store.Filling{Depth: inTemporal, Strict: strictInTemporal, Sized: sized}, q))
	}
	return errors.Join(errs...)
}

// view is what is known of sizes now; nothing where they are not selected.
func (r Room) view(ctx context.Context) (sizing.View, error) {
	if r.Sizes == nil {
		return sizing.View{}, nil
	}
	return r.Sizes.View(ctx)
}

// fill hands out and starts: what was handed out does not wait for what is still to
// be looked at.
func (r Room) fill(ctx context.Context, view sizing.View, how store.Filling, taskQueue string) error {
	var errs []error
	for more := true; more; {
		handed, err := r.Record.HandOut(ctx, taskQueue, how)
		if more = errors.Is(err, store.ErrMore); err != nil && !more {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, r.startAll(ctx, view, handed))
	}
	return errors.Join(errs...)
}

// startAll starts what was handed out. Of one queue the jobs start in their order; the
// queues start beside each other, for Temporal decides between them.
func (r Room) startAll(ctx context.Context, view sizing.View, handed []bench.HandOut) error {
	byQueue := make(map[string][]bench.HandOut)
	var queues []string
	for _, h := range handed {
		if byQueue[h.Queue] == nil {
			queues = append(queues, h.Queue)
		}
		byQueue[h.Queue] = append(byQueue[h.Queue], h)
	}
	return each(queues, func(queue string) error {
		return wrap("starting what was handed out of queue "+queue, r.start(ctx, view, byQueue[queue]))
	})
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// start starts the workflows of jobs that were handed out, and then of their requests:
// one that was written with its jobs had none before. The jobs first: a collector may
// wait for them, and nothing of theirs waits for the request. One that cannot be
// started keeps no other from it.
//
// What is not started, because this process ends here or Temporal does not answer, the
// reconciliation starts.
func (r Room) start(ctx context.Context, view sizing.View, jobs []bench.HandOut) error {
	known := newKnown(r.Record, view)
	var errs []error
	for _, h := range jobs {
		in, err := known.input(ctx, h)
		if err == nil {
			err = r.Workflows.StartJob(ctx, in)
		}
		errs = append(errs, err)
	}
	for _, request := range known.requests {
		// One that has ended runs already, for what optional jobs are open.
		if request.Status == bench.Completed || request.WorkflowStartedAt != nil {
			continue
		}
		err := r.Workflows.StartRequest(ctx, request.Project, request.ID)
		if err == nil {
			err = r.Record.MarkWorkflowStarted(ctx, request.ID)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Input is the input of the workflow of a job that was handed out.
func (r Room) Input(ctx context.Context, job bench.HandOut) (protocol.JobInput, error) {
	view, err := r.view(ctx)
	if err != nil {
		return protocol.JobInput{}, err
	}
	return newKnown(r.Record, view).input(ctx, job)
}

// known is what was read to start jobs: for each request and project once.
type known struct {
	record   Record
	view     sizing.View
	requests map[bench.RequestID]bench.Request
	configs  map[string]bench.ProjectConfig // a parent's job is its own project's
}

func newKnown(record Record, view sizing.View) known {
	return known{record: record, view: view, requests: make(map[bench.RequestID]bench.Request), configs: make(map[string]bench.ProjectConfig)}
}

func (k known) input(ctx context.Context, h bench.HandOut) (protocol.JobInput, error) {
	request, ok := k.requests[h.Request]
	if !ok {
		var err error
		if request, err = k.record.Request(ctx, h.Request); err != nil {
			return protocol.JobInput{}, err
		}
		k.requests[h.Request] = request
	}
	config, err := k.config(ctx, h.Project)
	if err != nil {
		return protocol.JobInput{}, err
	}
	attempts, err := k.view.Attempts(ctx, config, h.Job)
	if err != nil {
		return protocol.JobInput{}, err
	}
	return protocol.JobInput{
		Project: h.Project, Key: h.Job, Request: h.Request, Tag: h.Tag, Target: h.Target, User: request.Submitter,
		Summary: h.Summary, TaskQueue: h.TaskQueue, SizeClass: h.SizeClass,
		Priority: protocol.Priority{Level: h.Priority, Queue: h.Queue, Turn: h.Turn, Weight: fairness(h.Weight)},
		Attempts: attempts,
	}, nil
}

func (k known) config(ctx context.Context, project string) (bench.ProjectConfig, error) {
	if config, ok := k.configs[project]; ok {
		return config, nil
	}
	p, err := k.record.Project(ctx, project)
	if err != nil {
		return bench.ProjectConfig{}, err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return config, fmt.Errorf("project %s: %w; apply a corrected configuration with 'benchloom project apply'", project, err)
	}
	k.configs[project] = config
	return config, nil
}

// fairness is a queue's weight as Temporal gets it. Only ratios count, and Temporal
// advances a key by 1000/weight, as a whole number, for each of its tasks: a weight
// of 30 would advance by 33 and one of 700 by 1, which is several per cent off. A
// hundredth of it advances by 3333 and 142. The range of weights, 0.1 to 1000,
// becomes 0.001 to 10; Temporal takes 0.001 to 1000.
func fairness(weight float64) float64 { return weight / 100 }

// AfterEnd hands out what a job's end makes room for: first where a collector waits
// for the next one, then wherever its account was at its limit.
func (r Room) AfterEnd(ctx context.Context, end bench.JobEnd) error {
	queues, err := r.Record.Room(ctx, end.Submitter)
	if err != nil {
		return errors.Join(r.Fill(ctx, end.TaskQueue), err)
	}
	errs := []error{r.Fill(ctx, end.TaskQueue)}
	for _, q := range queues {
		if q != end.TaskQueue {
			errs = append(errs, r.Fill(ctx, q))
		}
	}
	return errors.Join(errs...)
}

// Sweep fills every task queue with waiting jobs: what events have missed, and what a
// new collector has room for. What waits in Temporal gets the level that it has now.
func (r Room) Sweep(ctx context.Context) error {
	errs := []error{r.relevel(ctx), r.Record.TakeBack(ctx)}
	queues, err := r.Record.WaitingTaskQueues(ctx)
	errs = append(errs, err)
	for _, q := range queues {
		errs = append(errs, r.Fill(ctx, q))
	}
	return errors.Join(errs...)
}

// relevel gives what waits in Temporal the level that its queue and its account's
// limits say now. A new weight is no such thing: it would send what waits there
// behind everybody, so it reaches what is handed out from now on.
func (r Room) relevel(ctx context.Context) error {
	jobs, err := r.Record.Relevel(ctx)
	if err != nil {
		return err
	}
	return each(jobs, func(j store.Relevelled) error {
		done, err := r.Workflows.SetLevel(ctx, j.Project, j.Job, j.Level)
		if err != nil || !done {
			return err
		}
		return r.Record.SetLevel(ctx, j.Job, j.Level)
	})
}

// atOnce bounds how much is started at a time.
const atOnce = 8

// each does something for all, a few at a time. One that fails keeps no other from
// being done.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var workers sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, v := range all {
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(v)
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}
