package workers

import (
	"context"
	"errors"
	"sync"
)

// Host is a shared host: each slot is a separate collector, and they run jobs
// concurrently as far as their shared gate allows.
type Host struct {
	Slots []Collector
	// OnReady is called once all slots take jobs.
	OnReady func()
}

// Run runs all slots until the context ends, or all have ended. A slot that
// ends with an error ends the others, whose jobs are retried. An outdated slot
// does not: the others finish their jobs and follow it.
func (h Host) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(h.Slots))
	var ready, running sync.WaitGroup
	ready.Add(len(h.Slots))
	for i, slot := range h.Slots {
		slot.OnReady = sync.OnceFunc(ready.Done)
		running.Go(func() {
			// A slot that ends before it was ready delays nobody.
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

// first returns the most informative error: one that ended the others before
// those of outdated slots.
func first(errs []error) error {
	var found error
	for _, err := range errs {
		if _, outdated := errors.AsType[*OutdatedError](err); err != nil && (found == nil || !outdated) {
			found = err
		}
	}
	return found
}
