package collection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/profiler"
)

// Profiling has the means of this machine for the agents beside runs.
type Profiling struct {
	// Host names the machine.
	Host string
	// Lock returns the lock that the agents of all collectors of the machine share.
	Lock func() profiler.HostLock
	// Job and Machine return collectors of the slot's control group and of the machine, Devices those of the machine that keep a
	// program running. Each run has its own.
	Job, Machine, Devices func() []profiler.Collector
}

// profile accompanies a run with a profiling agent. Nothing that goes wrong in it concerns the run: a panic ends the profile. All
// methods may be called on nil, the profile of a run without one.
type profile struct {
	agent  *profiler.Agent
	meter  *profiler.Meter
	config profiler.Config
	sender *sender
	log    *slog.Logger
	// index numbers the measured commands of the run, over all attempts at its test cases.
	index int
	// broken is set by the first panic. Only the goroutine of the run uses it.
	broken bool
}

// profile begins the profile of a run as its plan says; nil if there is none. It ends with the context at the latest.
func (c *Collector) profile(ctx context.Context, plan apiclient.RunPlan, log *slog.Logger) (p *profile) {
	if c.Profiling == nil || plan.Profiling == nil || len(plan.Missing) == 0 && plan.Build == nil {
		return nil
	}
	// A run is one attempt at its job, by one process.
	p = &profile{log: log, sender: &sender{api: c.API, run: plan.Run.ID}}
	config := profiler.Config{
		Settings: *plan.Profiling, Attempt: string(plan.Run.ID), Host: c.Profiling.Host,
		Sender: p.sender, Log: log, Now: time.Now, Alarm: profiler.NewAlarm,
	}
	p.safely(func() {
		var job, machine []profiler.Collector
		if config.SystemMetrics {
			config.Lock, config.Job = c.Profiling.Lock(), c.Profiling.Job()
			config.Machine = append(c.Profiling.Machine(), c.Profiling.Devices()...)
			job, machine = c.Profiling.Job(), c.Profiling.Machine()
		}
		agent, err := profiler.New(config)
		if err != nil {
			log.WarnContext(ctx, "the run has no profile", "error", err)
			return
		}
		agent.Start(ctx)
		p.agent, p.meter, p.config = agent, profiler.NewMeter(ctx, job, machine, time.Now), config
	})
	if p.agent == nil {
		return nil
	}
	return p
}

// safely calls what must not end the run.
func (p *profile) safely(do func()) {
	if p == nil || p.broken {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			p.broken = true
			p.log.Error("the profile of a run has ended by a panic", "panic", r)
		}
	}()
	do()
}

// Begin implements [jobrun.Watcher].
func (p *profile) Begin(m jobrun.Measured) {
	p.safely(func() {
		p.index++
		_ = p.agent.UpdateBatch(p.index) // it only grows
		p.meter.Begin(profiler.Command{Batch: p.index, Artifact: m.Subject, Case: m.TestCase.String(), Iteration: max(m.Iteration, m.Warmup), WarmUp: m.Warmup > 0})
	})
}

// End implements [jobrun.Watcher].
func (p *profile) End() { p.safely(func() { p.meter.End() }) }

// Timed implements [jobrun.Watcher].
func (p *profile) Timed(phase jobrun.Phase, own string, begin, end time.Time) {
	p.safely(func() {
		name := string(phase)
		if own != "" {
			name += "/" + own
		}
		p.agent.RecordTiming(name, begin, end)
		if p.config.Timings {
			p.meter.Phase(name, end.Sub(begin))
		}
	})
}

// timed records a phase outside of package jobrun that ends now.
func (p *profile) timed(phase jobrun.Phase, begin time.Time) { p.Timed(phase, "", begin, time.Now()) }

// end takes the last sample and keeps what is to be sent from then on, beside whatever the caller
// does. The caller has to close what it returns.
func (p *profile) end(ctx context.Context) *profileEnd {
	if p == nil {
		return nil
	}
	e := &profileEnd{profile: p, gathered: make(chan struct{}), closed: make(chan struct{}), ended: make(chan struct{})}
	p.sender.keep()
	go func() {
		defer close(e.ended)
		p.safely(func() {
			bounded, stop := context.WithTimeout(ctx, profiler.EndWithin)
			defer stop()
			e.gather()
			e.lighten(bounded)
			close(e.gathered)
			select {
			case <-e.closed:
			case <-bounded.Done():
				return
			}
			if !e.sent {
				for _, u := range e.uploads {
					if err := p.sender.send(bounded, u); err != nil {
						p.log.DebugContext(ctx, "samples of the run are lost", "error", err)
					}
				}
			}
		})
	}()
	return e
}

// profileEnd is the end of a profile. All methods may be called on nil, that of a run without one.
type profileEnd struct {
	*profile
	// gathered is closed once uploads has what is to be sent, closed by the caller, ended when nothing
	// more happens.
	gathered, closed, ended chan struct{}
	uploads                 []profiler.Upload
	// offered: the caller got the only upload; sent: it has delivered that.
	offered, sent bool
}

// gather ends the agent and the meter. The summary goes with the last samples.
func (e *profileEnd) gather() {
	sum, exceeding := e.meter.Close()
	totals := e.agent.End()
	e.uploads = e.sender.kept()
	if len(e.uploads) == 0 {
		e.uploads = []profiler.Upload{{Attempt: e.config.Attempt, Host: e.config.Host, Batches: []profiler.Batch{}}}
	}
	last := &e.uploads[len(e.uploads)-1]
	last.Summary, last.DroppedTotal = &sum, totals.Dropped+exceeding
}

// lighten sends samples that are too many to go with the end of the run. What is left goes with
// it: a run whose samples the API does not take in time still has its summary, which counts them
// as dropped.
func (e *profileEnd) lighten(ctx context.Context) {
	if len(e.uploads) == 1 && e.uploads[0].Values() <= maxRestValues {
		return
	}
	last := e.uploads[len(e.uploads)-1]
	rest := profiler.Upload{
		Attempt: e.config.Attempt, Host: e.config.Host, Batches: []profiler.Batch{}, Summary: last.Summary, DroppedTotal: last.DroppedTotal,
	}
	for _, u := range e.uploads {
		u.Summary = nil
		if err := e.sender.send(ctx, u); err != nil {
			e.log.DebugContext(ctx, "samples of the run are lost", "error", err)
			rest.DroppedTotal += int64(u.Values())
		}
	}
	e.uploads = []profiler.Upload{rest}
}

const (
	// restWithin bounds how long the end of a run waits for its last samples. It is a little more
	// than sending them may take.
	restWithin = profiler.EndWithin + profiler.EndWithin/4
	// maxRestValues bounds the samples that go with the end of a run: those of a second.
	maxRestValues = 2000
)

// rest returns the part of the profile that goes with the end of the run; nil if it is not there in time.
func (e *profileEnd) rest() *profiler.Upload {
	if e == nil {
		return nil
	}
	bound := time.NewTimer(restWithin)
	defer bound.Stop()
	select {
	case <-e.gathered:
	case <-e.ended:
		return nil
	case <-bound.C:
		return nil
	}
	e.offered = true
	return &e.uploads[0]
}

// close sends what the caller got by rest and could not deliver, or did not get. It returns within
// [profiler.EndWithin].
func (e *profileEnd) close(delivered bool) {
	if e == nil {
		return
	}
	e.sent = e.offered && delivered
	close(e.closed)
	<-e.ended
}

// sender sends the uploads of a run.
type sender struct {
	api API
	run bench.RunID
	// vain is set once the API has answered that it takes none.
	vain atomic.Bool

	mu      sync.Mutex
	keeping bool
	uploads []profiler.Upload
}

// keep makes Send keep uploads from now on.
func (s *sender) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeping = true
}

// kept returns the uploads that were kept.
func (s *sender) kept() []profiler.Upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uploads
}

// Send implements [profiler.Sender].
func (s *sender) Send(ctx context.Context, u profiler.Upload) error {
	s.mu.Lock()
	if s.keeping {
		s.uploads = append(s.uploads, u)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.send(ctx, u)
}

func (s *sender) send(ctx context.Context, u profiler.Upload) error {
	if s.vain.Load() {
		return profiler.ErrNoReceiver
	}
	err := s.api.SendProfile(ctx, s.run, u)
	var problem *apiclient.Problem
	switch {
	case !errors.As(err, &problem):
		return err
	case problem.Status == http.StatusNotFound: // an older API, or one that does not know the run
		s.vain.Store(true)
		return fmt.Errorf("%w: %w", profiler.ErrNoReceiver, err)
	case problem.Status/100 == 4 && problem.Status != http.StatusTooManyRequests && problem.Status != http.StatusRequestTimeout:
		return fmt.Errorf("%w: %w", profiler.ErrRefused, err)
	}
	return err
}
