package api

import (
	"context"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// announceAfter is the age at which a run is announced. Most people do not see shorter runs, and
// announcing one would cost as much as the rest of its workflow.
const announceAfter = time.Second

// AnnouncementRecord says which runs were announced.
type AnnouncementRecord interface {
	// Job returns store.ErrNotFound for an unknown job.
	Job(ctx context.Context, key bench.JobKey) (bench.Job, error)
	// RunAnnounced records that a run was announced.
	RunAnnounced(ctx context.Context, run bench.RunID) error
}

// announcer tells jobs' workflows of their runs, which the workflows then show. A run that
// ends soon is not announced: the end of its job names it. When the announcement fails, or
// the process ends before it, the collector's next heartbeat leads to another.
type announcer struct {
	*base
	record    AnnouncementRecord
	workflows RunWorkflows
	after     time.Duration

	mu      sync.Mutex
	pending map[bench.RunID]context.CancelFunc
}

func newAnnouncer(s *base, record AnnouncementRecord, workflows RunWorkflows) *announcer {
	return &announcer{base: s, record: record, workflows: workflows, after: s.AnnounceAfter, pending: make(map[bench.RunID]context.CancelFunc)}
}

// begun announces a run of a job when it has lasted a moment.
func (a *announcer) begun(ctx context.Context, run bench.Run, job bench.JobRef) {
	if !run.Announced {
		a.announce(ctx, run, a.after, func(context.Context) (bench.JobRef, error) { return job, nil })
	}
}

// goesOn announces a run if its announcement was missed.
func (a *announcer) goesOn(ctx context.Context, run bench.Run) {
	if !run.Open() || run.Announced || a.Now().Sub(run.StartedAt) < a.after {
		return
	}
	a.announce(ctx, run, 0, func(ctx context.Context) (bench.JobRef, error) {
		job, err := a.record.Job(ctx, run.Job)
		return job.Ref(), err
	})
}

// ended cancels the announcement of a run that was not announced yet.
func (a *announcer) ended(run bench.RunID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if leave := a.pending[run]; leave != nil {
		leave()
	}
}

// announce announces a run after a time, in the background, unless that is under way.
func (a *announcer) announce(ctx context.Context, run bench.Run, after time.Duration, of func(context.Context) (bench.JobRef, error)) {
	wait, leave := context.WithCancel(context.WithoutCancel(ctx))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending[run.ID] != nil {
		leave()
		return
	}
	a.pending[run.ID] = leave
	a.afterwards.Go(func() {
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.pending, run.ID)
			leave()
		}()
		due := time.NewTimer(after)
		defer due.Stop()
		select {
		case <-wait.Done():
			return
		case <-due.C:
		}
		a.reach(ctx, "tell a job of its run", string(run.ID), func(ctx context.Context) error {
			job, err := of(ctx)
			if err != nil {
				return err
			}
			if err := a.workflows.RunStarted(ctx, job, protocol.RunStarted{Run: run.ID, Number: run.Number, Collector: run.Collector}); err != nil {
				return err
			}
			return a.record.RunAnnounced(ctx, run.ID)
		})
	})
}
