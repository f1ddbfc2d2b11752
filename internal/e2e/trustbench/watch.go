package main

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
)

// sample is the total of what the hypervisor took from the job's CPUs.
type sample struct {
	at    time.Time
	steal time.Duration
}

const sampleEvery = 200 * time.Millisecond

// watcher samples steal while a trial runs.
type watcher struct {
	stopped context.CancelFunc
	ended   chan []sample
}

func startWatcher(ctx context.Context, cpus measure.CPUList) *watcher {
	ctx, stopped := context.WithCancel(ctx)
	w := &watcher{stopped: stopped, ended: make(chan []sample, 1)}
	reader := machine.NewReader(machine.Config{Root: "/", CPUs: cpus, Now: time.Now})
	go func() {
		var samples []sample
		for {
			reading := reader.Read()
			s := sample{at: reading.Wall}
			for _, times := range reading.CPUs {
				s.steal += times.Steal
			}
			samples = append(samples, s)
			if ctx.Err() != nil {
				w.ended <- samples
				return
			}
			wait(ctx, sampleEvery)
		}
	}()
	return w
}

func (w *watcher) stop() []sample {
	w.stopped()
	return <-w.ended
}

// loadShare returns the share of a time in which the load ran.
func loadShare(in interval, ran []interval) float64 {
	total := in.to.Sub(in.from)
	if total <= 0 {
		return 0
	}
	var common time.Duration
	for _, r := range ran {
		from, to := r.from, r.to
		if from.Before(in.from) {
			from = in.from
		}
		if to.After(in.to) {
			to = in.to
		}
		common += max(0, to.Sub(from))
	}
	return float64(common) / float64(total)
}

// stealShare returns the share of the CPUs' time that was stolen between the samples around a time.
func stealShare(in interval, samples []sample, cpus int) float64 {
	if len(samples) == 0 || cpus == 0 {
		return 0
	}
	first, last := samples[0], samples[len(samples)-1]
	for _, s := range samples {
		if !s.at.After(in.from) {
			first = s
		}
	}
	for i := len(samples) - 1; i >= 0; i-- {
		if !samples[i].at.Before(in.to) {
			last = samples[i]
		}
	}
	elapsed := last.at.Sub(first.at)
	if elapsed <= 0 {
		return 0
	}
	return float64(last.steal-first.steal) / float64(elapsed) / float64(cpus)
}
