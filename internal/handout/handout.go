// Package handout keeps task queues filled: it hands waiting jobs out, and lets the
// workflows of their requests start them.
//
// It runs wherever something has changed that a waiting job may go for: at a
// submission, at a job's end, at a change of the queues; and every few seconds, for
// what was missed. Doing it twice, or in several processes at once, does no harm:
// each task queue is filled under a lock. It must not decide which job goes next:
// the record does.
package handout

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
	HandOut(ctx context.Context, taskQueue string, how store.Filling) ([]store.HandOut, error)
	WaitingTaskQueues(ctx context.Context) ([]string, error)
	Room(ctx context.Context, account string) ([]string, error)
	TakeBack(ctx context.Context) error
	Request(ctx context.Context, id bench.RequestID) (store.Request, error)
	Project(ctx context.Context, name string) (store.Project, error)
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
	Relevel(ctx context.Context) ([]store.Relevelled, error)
	SetLevel(ctx context.Context, key bench.JobKey, level int) error
}

// Workflows is how requests are told. A workflow that has ended is no error: there
// is nobody to tell.
type Workflows interface {
	HandOut(ctx context.Context, project string, id bench.RequestID, jobs protocol.HandOut) error
	// StartWithHandOut starts the request's workflow if it was never started.
	StartWithHandOut(ctx context.Context, project string, id bench.RequestID, jobs protocol.HandOut) error
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

// Fill hands out what a task queue has room for, and tells the requests that are to
// start it.
func (r Room) Fill(ctx context.Context, taskQueue string) error {
	return r.FillFor(ctx, taskQueue, "")
}

// FillFor is Fill by a request that reads what was handed out to it by itself, so
// that it is not told.
func (r Room) FillFor(ctx context.Context, taskQueue string, asked bench.RequestID) error {
	sized, elsewhere, err := r.selectSizes(ctx, taskQueue)
	if err != nil {
		return err
	}
	errs := []error{r.fill(ctx, taskQueue, sized, asked)}
	for _, q := range elsewhere {
		errs = append(errs, r.fill(ctx, q, sized, asked))
	}
	return errors.Join(errs...)
}

// selectSizes selects the size classes of the jobs that are next, where there is
// anything to select: then only those that have one are handed out. Some of them wait
// in other task queues afterwards.
func (r Room) selectSizes(ctx context.Context, taskQueue string) (sized bool, elsewhere []string, err error) {
	if r.Sizes == nil {
		return false, nil, nil
	}
	view, err := r.Sizes.View(ctx)
	if err != nil || !view.Several() {
		return false, nil, err
	}
	elsewhere, err = view.Select(ctx, taskQueue, inTemporal(view.Live(taskQueue)))
	return true, elsewhere, err
}

func (r Room) fill(ctx context.Context, taskQueue string, sized bool, asked bench.RequestID) error {
	handed, err := r.Record.HandOut(ctx, taskQueue, store.Filling{Depth: inTemporal, Strict: strictInTemporal, Sized: sized})
	if err != nil {
		return err
	}
	byRequest := make(map[bench.RequestID][]store.HandOut)
	var requests []bench.RequestID // in the order of their jobs
	for _, h := range handed {
		if h.Request == asked {
			continue
		}
		if byRequest[h.Request] == nil {
			requests = append(requests, h.Request)
		}
		byRequest[h.Request] = append(byRequest[h.Request], h)
	}
	return each(requests, func(id bench.RequestID) error {
		return wrap("letting request "+string(id)+" start its jobs", r.tell(ctx, id, byRequest[id]))
	})
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// tell lets a request start jobs. Its workflow is started for it, unless its row has
// ended: then it runs, for what optional jobs are open, or nothing is to start.
func (r Room) tell(ctx context.Context, id bench.RequestID, jobs []store.HandOut) error {
	request, err := r.Record.Request(ctx, id)
	if err != nil {
		return err
	}
	inputs, err := r.inputs(ctx, request, jobs)
	if err != nil {
		return err
	}
	out := protocol.HandOut{Jobs: inputs}
	if request.Status == bench.Completed {
		return r.Workflows.HandOut(ctx, request.Project, id, out)
	}
	if err := r.Workflows.StartWithHandOut(ctx, request.Project, id, out); err != nil {
		return err
	}
	if request.WorkflowStartedAt != nil {
		return nil
	}
	return r.Record.MarkWorkflowStarted(ctx, id)
}

// Inputs are the inputs of the workflows of jobs that were handed out.
func (r Room) Inputs(ctx context.Context, jobs []store.HandOut) ([]protocol.JobInput, error) {
	inputs := make([]protocol.JobInput, 0, len(jobs))
	requests := make(map[bench.RequestID]store.Request)
	for _, h := range jobs {
		request, known := requests[h.Request]
		if !known {
			var err error
			if request, err = r.Record.Request(ctx, h.Request); err != nil {
				return nil, err
			}
			requests[h.Request] = request
		}
		in, err := r.inputs(ctx, request, []store.HandOut{h})
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in...)
	}
	return inputs, nil
}

func (r Room) inputs(ctx context.Context, request store.Request, jobs []store.HandOut) ([]protocol.JobInput, error) {
	var view sizing.View
	if r.Sizes != nil {
		var err error
		if view, err = r.Sizes.View(ctx); err != nil {
			return nil, err
		}
	}
	configs := make(map[string]bench.ProjectConfig) // a parent's job is its own project's
	inputs := make([]protocol.JobInput, 0, len(jobs))
	for _, h := range jobs {
		config, known := configs[h.Project]
		if !known {
			p, err := r.Record.Project(ctx, h.Project)
			if err != nil {
				return nil, err
			}
			if config, err = bench.ReadProjectConfig(p.Config); err != nil {
				return nil, fmt.Errorf("project %s: %w; apply a corrected configuration with 'benchloom project apply'", h.Project, err)
			}
			configs[h.Project] = config
		}
		attempts, err := view.Attempts(ctx, config, h.Job)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, protocol.JobInput{
			Project: h.Project, Key: h.Job, Request: h.Request, Tag: h.Tag, Target: h.Target, User: request.Submitter,
			Summary: h.Summary, TaskQueue: h.TaskQueue, SizeClass: h.SizeClass,
			Priority: protocol.Priority{Level: h.Priority, Queue: h.Queue, Weight: fairness(h.Weight)},
			Attempts: attempts,
		})
	}
	return inputs, nil
}

// fairness is a queue's weight as Temporal gets it. Only ratios count, and Temporal
// advances a key by 1000/weight, as a whole number, for each of its tasks: a weight
// of 30 would advance by 33 and one of 700 by 1, which is several per cent off. A
// hundredth of it advances by 3333 and 142. The range of weights, 0.1 to 1000,
// becomes 0.001 to 10; Temporal takes 0.001 to 1000.
func fairness(weight float64) float64 { return weight / 100 }

// AfterEnd hands out what a job's end makes room for: first where a collector waits
// for the next one, then wherever its account was at its limit.
func (r Room) AfterEnd(ctx context.Context, end store.JobEnd) error {
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

// atOnce bounds how many requests are told at a time.
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
