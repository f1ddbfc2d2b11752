package orchestration

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/retry"
	"github.com/benchloom/benchloom/internal/store"
)

// dispatcher hands jobs out and moves waiting ones.
func (a *Activities) dispatcher() *dispatch.Dispatcher {
	return &dispatch.Dispatcher{Record: a.Store, Workflows: a.Workflows, Sizes: &a.Sizes, OfflineAfter: a.OfflineAfter, Fills: &a.fills, Log: a.Log}
}

// jobInput returns the workflow input of a job that was handed out.
func (a *Activities) jobInput(ctx context.Context, job bench.HandOut) (protocol.JobInput, error) {
	in, err := a.dispatcher().Input(ctx, job)
	return in, classify(err, "reading what was handed out")
}

// classify makes an invalid configuration and an unknown row permanent errors.
func classify(err error, what string) error {
	if errors.Is(err, bench.ErrInvalid) {
		return permanent(err)
	}
	return found(err, what)
}

// AssessJob decides from the record whether a job is dispatched again after a run
// without success. A run that its collector could not close is closed as lost. A run that
// goes on, as far as the record can tell, is adopted instead.
// Each further dispatch gets another secret, so that the fence refuses tasks of the last one.
func (a *Activities) AssessJob(ctx context.Context, in protocol.AssessInput) (protocol.Assessment, error) {
	answer, in, err := a.byRun(ctx, in)
	if err != nil {
		return protocol.Assessment{}, err
	}
	if answer != nil {
		return *answer, nil
	}
	if err := a.Store.CloseLostRuns(ctx, in.Key, in.Rerun, in.Message); err != nil {
		return protocol.Assessment{}, err
	}
	job, err := a.Store.Job(ctx, in.Key)
	if err != nil {
		return protocol.Assessment{}, found(err, "reading the job")
	}
	if job.Rerun != in.Rerun {
		return protocol.Assessment{GaveUp: "the job has ended, and was asked for again by " + job.AskedBy}, nil
	}
	if !job.Status.Open() {
		return protocol.Assessment{GaveUp: "the job has ended: " + job.Message}, nil
	}
	_, config, err := a.config(ctx, job.Project)
	if err != nil {
		return protocol.Assessment{}, err
	}
	if err := a.learn(ctx, in.Key); err != nil {
		return protocol.Assessment{}, err
	}
	d, err := a.decide(ctx, config, job, in.Kind)
	if err != nil {
		return protocol.Assessment{}, err
	}
	if !d.Again {
		return protocol.Assessment{GaveUp: strings.TrimSuffix(d.Why+": "+in.Message, ": ")}, nil
	}
	if d.EscalateTo != 0 {
		if job, d, err = a.escalate(ctx, config, job, d); err != nil {
			return protocol.Assessment{}, err
		}
	}
	level, err := a.Store.RenewLevel(ctx, in.Key)
	if err != nil {
		return protocol.Assessment{}, err
	}
	unbegun, err := a.unbegun(ctx, in)
	if err != nil {
		return protocol.Assessment{}, err
	}
	dispatch, err := a.Store.NextDispatch(ctx, in.Key, in.Rerun, in.Dispatch)
	if errors.Is(err, store.ErrJobClosed) {
		return protocol.Assessment{GaveUp: "the job has ended"}, nil
	}
	if err != nil {
		return protocol.Assessment{}, err
	}
	return protocol.Assessment{
		Level: level, Unbegun: unbegun, Dispatch: dispatch,
		Again: true, PauseSeconds: int(max(d.Pause, retry.Unbegun(unbegun.Dispatches)) / time.Second), Attempts: d.AttemptsLeft, Reason: d.Reason,
		Moved: protocol.Moved{TaskQueue: job.TaskQueue, SizeClass: job.SizeClass},
	}, nil
}

// unbegun counts the assessed dispatch if it began no run. A dispatch that was given back
// says nothing about the next one.
func (a *Activities) unbegun(ctx context.Context, in protocol.AssessInput) (protocol.Unbegun, error) {
	runs, err := a.Store.JobRuns(ctx, in.Key)
	if err != nil {
		return protocol.Unbegun{}, err
	}
	last := 0 // since the job was last asked for
	for _, r := range runs {
		if r.Rerun == in.Rerun {
			last = r.Number
		}
	}
	counted := in.Unbegun
	switch {
	case last > counted.Runs:
		counted = protocol.Unbegun{Runs: last}
	case in.Kind != bench.FailNotTaken:
		counted.Dispatches++
	}
	return counted, nil
}

// RecordJobEnd closes a job as the record says, tells every request that waits
// for it, and hands out the next job.
func (a *Activities) RecordJobEnd(ctx context.Context, in protocol.JobEndInput) (protocol.JobEndResult, error) {
	a.Points.Reach(ctx, failpoint.Recording)
	finish := a.Store.FinishJob
	if in.Cancelled {
		finish = a.Store.CancelJob
	}
	end, err := finish(ctx, in.Key, in.Rerun, in.GaveUp)
	if err != nil {
		return protocol.JobEndResult{}, found(err, "recording the job's end")
	}
	// The next job first: an idle collector waits for it.
	if err := a.dispatcher().AfterEnd(ctx, in.Key, end); err != nil {
		return protocol.JobEndResult{}, err
	}
	if !end.OneClass {
		if err := a.learn(ctx, in.Key); err != nil {
			return protocol.JobEndResult{}, err
		}
	}
	if err := a.tellWaiters(ctx, in.Key, end); err != nil {
		return protocol.JobEndResult{}, err
	}
	return protocol.JobEndResult{Status: end.Status, Message: end.Message, Run: end.Run, Collector: end.Collector}, nil
}

// tellBound bounds the time for telling a request of ends that were put off.
const tellBound = 10 * time.Second

// tellWaiters tells every request that waits for a job that it has ended. While other jobs of
// its batch are open, the batch's request hears of several ends together.
func (a *Activities) tellWaiters(ctx context.Context, key bench.JobKey, end bench.JobEnd) error {
	ended := protocol.JobEnded{Key: key, Status: end.Status}
	for _, w := range end.Waiters {
		if w.ID == end.Batch && end.BatchOpen && a.notices.later(w.ID, func() { a.tellLater(context.WithoutCancel(ctx), w, ended) }) {
			continue
		}
		if err := a.Workflows.JobEnded(ctx, w, ended); err != nil {
			return err
		}
	}
	return nil
}

func (a *Activities) tellLater(ctx context.Context, request bench.RequestRef, ended protocol.JobEnded) {
	ctx, stop := context.WithTimeout(ctx, tellBound)
	defer stop()
	if err := a.Workflows.JobEnded(ctx, request, ended); err != nil {
		a.Log.WarnContext(ctx, "a request hears of ended jobs only with the next one", "request", request.ID, "error", err)
	}
}

// learn updates the learned sizes with a job's runs. Jobs that wait for another class
// from then on are handed out there, because idle collectors may wait for them.
func (a *Activities) learn(ctx context.Context, key bench.JobKey) error {
	var errs []error
	for _, queue := range a.Sizes.Learn(ctx, key) {
		errs = append(errs, a.dispatcher().Fill(ctx, queue))
	}
	return errors.Join(errs...)
}
