package orchestration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/retry"
	"github.com/benchloom/benchloom/internal/store"
)

func placementPools(counts []store.PoolCount) []placement.Pool {
	pools := make([]placement.Pool, len(counts))
	for i, c := range counts {
		pools[i] = placement.Pool{Pool: c.Pool, Live: c.Live, Total: c.Total, Away: c.Away}
	}
	return pools
}

// inTemporal is how many jobs of one queue stand in Temporal for a task queue
// with this many live collectors: enough to keep each busy while the next
// hand-out is under way, and at least two, so that matching sees whom to be fair
// to. The rest waits as rows, where weights, priorities and cancellations still
// reach it.
func inTemporal(liveCollectors int) int { return 2*liveCollectors + 2 }

// handOut fills one task queue and signals the requests whose jobs were handed
// out, except the one that asked.
func (a *Activities) handOut(ctx context.Context, taskQueue string, asked bench.RequestID) error {
	handed, err := a.Store.HandOut(ctx, taskQueue, inTemporal)
	if err != nil {
		return fmt.Errorf("handing out jobs to %s: %w", taskQueue, err)
	}
	byRequest := make(map[bench.RequestID][]store.HandOut)
	for _, h := range handed {
		if h.Request != asked {
			byRequest[h.Request] = append(byRequest[h.Request], h)
		}
	}
	for id, jobs := range byRequest {
		inputs, err := a.jobInputs(ctx, jobs)
		if err != nil {
			return err
		}
		if err := a.Workflows.HandOut(ctx, jobs[0].Project, id, protocol.HandOut{Jobs: inputs}); err != nil {
			return err
		}
	}
	return nil
}

// jobInputs are the inputs of the workflows of jobs that were handed out.
func (a *Activities) jobInputs(ctx context.Context, jobs []store.HandOut) ([]protocol.JobInput, error) {
	inputs := make([]protocol.JobInput, 0, len(jobs))
	fails := make(map[string]int)
	users := make(map[bench.RequestID]string)
	for _, h := range jobs {
		if _, ok := fails[h.Project]; !ok {
			_, config, err := a.config(ctx, h.Project)
			if err != nil {
				return nil, err
			}
			fails[h.Project] = config.Fails()
		}
		if _, ok := users[h.Request]; !ok {
			r, err := a.Store.Request(ctx, h.Request)
			if err != nil {
				return nil, found(err, "reading the request")
			}
			users[h.Request] = r.Submitter
		}
		inputs = append(inputs, protocol.JobInput{
			Project: h.Project, Key: h.Job, Request: h.Request, Tag: h.Tag, Target: h.Target, User: users[h.Request],
			Summary: h.Summary, TaskQueue: h.TaskQueue, SizeClass: h.SizeClass,
			Priority: protocol.Priority{Level: h.Priority, Queue: h.Queue, Weight: h.Weight},
			Attempts: fails[h.Project],
		})
	}
	return inputs, nil
}

// AssessJob decides from the record what follows a run that ended without
// success. A run that its collector could not close is closed as lost.
func (a *Activities) AssessJob(ctx context.Context, in protocol.AssessInput) (protocol.Assessment, error) {
	if err := a.Store.CloseLostRuns(ctx, in.Key, in.Message); err != nil {
		return protocol.Assessment{}, err
	}
	job, err := a.Store.Job(ctx, in.Key)
	if err != nil {
		return protocol.Assessment{}, found(err, "reading the job")
	}
	if !job.Status.Open() {
		return protocol.Assessment{GaveUp: "the job has ended: " + job.Message}, nil
	}
	_, config, err := a.config(ctx, job.Project)
	if err != nil {
		return protocol.Assessment{}, err
	}
	runs, err := a.Store.JobRuns(ctx, in.Key)
	if err != nil {
		return protocol.Assessment{}, err
	}
	outcomes := make([]bench.RunOutcome, len(runs))
	for i, r := range runs {
		outcomes[i] = r.Outcome
	}
	d := retry.Decide(retry.Policy{MaxJobFails: config.Fails()}, outcomes, in.Kind)
	if d.Again {
		return protocol.Assessment{Again: true, PauseSeconds: int(d.Pause / time.Second), Attempts: d.AttemptsLeft, Reason: bench.Retry, Moved: protocol.Moved{TaskQueue: job.TaskQueue, SizeClass: job.SizeClass}}, nil
	}
	return protocol.Assessment{GaveUp: strings.TrimSuffix(d.Why+": "+in.Message, ": ")}, nil
}

// RecordJobEnd closes a job as the record says, tells every request that waits
// for it, and hands the next one out.
func (a *Activities) RecordJobEnd(ctx context.Context, in protocol.JobEndInput) (protocol.JobEndResult, error) {
	a.Points.Reach(ctx, failpoint.Recording)
	finish := a.Store.FinishJob
	if in.Cancelled {
		finish = a.Store.CancelJob
	}
	end, err := finish(ctx, in.Key, in.GaveUp)
	if err != nil {
		return protocol.JobEndResult{}, found(err, "recording the job's end")
	}
	// The next job first: an idle collector waits for it.
	if err := a.handOut(ctx, end.TaskQueue, ""); err != nil {
		return protocol.JobEndResult{}, err
	}
	for _, w := range end.Waiters {
		if err := a.Workflows.JobEnded(ctx, w.Project, w.Request, protocol.JobEnded{Key: in.Key, Status: end.Status}); err != nil {
			return protocol.JobEndResult{}, err
		}
	}
	return protocol.JobEndResult{Status: end.Status, Message: end.Message}, nil
}
