package workers

import (
	"context"
	"errors"
	"sync"
)

// Host is a shared host: its slots are collectors of their own, which run jobs
// side by side as far as the gate that they share lets them.
type Host struct {
	Slots []Collector
	// OnReady is called when all slots take jobs.
	OnReady func()
}

// Run runs all slots until the context ends, or all have ended. A slot that ends
// with an error ends the others, whose jobs are tried again; not so one that is
// out of date, for the others finish their jobs and follow it.
func (h Host) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(h.Slots))
	var ready, running sync.WaitGroup
	ready.Add(len(h.Slots))
	for i, slot := range h.Slots {
		slot.OnReady = sync.OnceFunc(ready.Done)
		running.Go(func() {
			// One that ends before it was ready keeps nobody waiting.
			defer slot.OnReady()
			errs[i] = slot.Run(ctx)
			if _, outdated := errors.AsType[*OutdatedError](errs[i]); errs[i] != nil && !outdated {
				stop()
			}
		})
	}
	running.Go(func() {
		ready.Wait()
		if ctx.Err() == nil {
			h.OnReady()
		}
	})
	running.Wait()
	return first(errs)
}

// first is the error that says most: one that has ended the others goes before
// those that are out of date.
func first(errs []error) error {
	var found error
	for _, err := range errs {
		if _, outdated := errors.AsType[*OutdatedError](err); err != nil && (found == nil || !outdated) {
			found = err
		}
	}
	return found
}
