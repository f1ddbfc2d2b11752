package workers

import (
	"slices"
	"sync"
)

// desiredState is the state of the collector that the API last asked for.
type desiredState struct {
	version string
	// changed, requeued and asked hold one token each: the state changed, the
	// task queues changed, and the API must be asked immediately.
	changed, requeued, asked chan struct{}

	mu       sync.Mutex
	active   bool
	outdated *OutdatedError
	idle     bool
	queues   []string
}

// newDesiredState returns the desired state of a collector that takes no jobs yet and
// will serve these task queues.
func newDesiredState(version string, queues []string) *desiredState {
	return &desiredState{version: version, queues: queues, changed: make(chan struct{}, 1), requeued: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
}

// now reports whether the collector takes jobs, and why it must exit once it
// has none; nil if it stays.
func (d *desiredState) now() (active bool, leave error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.outdated != nil:
		return d.active, d.outdated
	case d.idle:
		return d.active, errIdle
	}
	return d.active, nil
}

// set records the state and version that the API requests; an empty version
// means any. A collector whose version is requested again keeps running.
func (d *desiredState) set(active bool, version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	outdated := version != "" && version != d.version
	changed := active != d.active || outdated != (d.outdated != nil)
	d.active, d.outdated = active, nil
	if outdated {
		d.outdated = &OutdatedError{Version: d.version, Wanted: version}
	}
	if changed {
		give(d.changed)
	}
}

// serve records the task queues named by the API; none if the API names none.
func (d *desiredState) serve(queues []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(queues) > 0 && !slices.Equal(slices.Sorted(slices.Values(queues)), slices.Sorted(slices.Values(d.queues))) {
		d.queues = queues
		give(d.requeued)
	}
}

// taskQueues returns the task queues to serve.
func (d *desiredState) taskQueues() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues
}

// goIdle lets the collector exit because no job waits for it.
func (d *desiredState) goIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.idle {
		d.idle = true
		give(d.changed)
	}
}

// ask makes the collector ask the API immediately.
func (d *desiredState) ask() { give(d.asked) }

func give(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
