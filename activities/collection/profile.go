package collection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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
	config := profiler.Config{
		Settings: *plan.Profiling, Attempt: string(plan.Run.ID), Host: c.Profiling.Host,
		Sender: &sender{api: c.API, run: plan.Run.ID}, Log: log, Now: time.Now, Alarm: profiler.NewAlarm,
	}
	p = &profile{log: log}
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

// end sends what there is, beside whatever the caller does. The function returned waits for it, [profiler.EndWithin] at most.
func (p *profile) end(ctx context.Context) (wait func()) {
	if p == nil {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.safely(func() {
			bounded, stop := context.WithTimeout(ctx, profiler.EndWithin)
			defer stop()
			sum, exceeding := p.meter.Close()
			totals := p.agent.End()
			if bounded.Err() != nil {
				return
			}
			err := p.config.Sender.Send(bounded, profiler.Upload{
				Attempt: p.config.Attempt, Host: p.config.Host, Batches: []profiler.Batch{}, Summary: &sum, DroppedTotal: totals.Dropped + exceeding,
			})
			p.log.DebugContext(ctx, "profile ended", "sent", totals.Sent, "dropped", totals.Dropped, "failed", totals.Failed, "error", err)
		})
	}()
	return func() { <-ended }
}

// sender sends the uploads of a run.
type sender struct {
	api API
	run bench.RunID
	// vain is set once the API has answered that it takes none.
	vain atomic.Bool
}

// Send implements [profiler.Sender].
func (s *sender) Send(ctx context.Context, u profiler.Upload) error {
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
