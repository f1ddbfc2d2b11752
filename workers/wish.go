package workers

import (
	"slices"
	"sync"
)

// wish is the collector's desired state as last received from the API.
type wish struct {
	version string
	// changed, requeued and asked hold one token each: the state changed, the
	// task queues changed, and the API must be asked at once.
	changed, requeued, asked chan struct{}

	mu       sync.Mutex
	active   bool
	outdated *OutdatedError
	idle     bool
	queues   []string
}

// newWish returns the desired state of a collector that takes no jobs yet and
// will serve these task queues.
func newWish(version string, queues []string) *wish {
	return &wish{version: version, queues: queues, changed: make(chan struct{}, 1), requeued: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
}

// now reports whether the collector takes jobs, and why it must exit once it
// has none; nil if it stays.
func (w *wish) now() (active bool, leave error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.outdated != nil:
		return w.active, w.outdated
	case w.idle:
		return w.active, errIdle
	}
	return w.active, nil
}

// set records the state and version that the API requests; an empty version
// means any. A collector whose version is requested again keeps running.
func (w *wish) set(active bool, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	outdated := version != "" && version != w.version
	changed := active != w.active || outdated != (w.outdated != nil)
	w.active, w.outdated = active, nil
	if outdated {
		w.outdated = &OutdatedError{Version: w.version, Wanted: version}
	}
	if changed {
		give(w.changed)
	}
}

// serve records the task queues named by the API; none if the API names none.
func (w *wish) serve(queues []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(queues) > 0 && !slices.Equal(slices.Sorted(slices.Values(queues)), slices.Sorted(slices.Values(w.queues))) {
		w.queues = queues
		give(w.requeued)
	}
}

// taskQueues returns the task queues to serve.
func (w *wish) taskQueues() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queues
}

// goIdle lets the collector exit because no job waits for it.
func (w *wish) goIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.idle {
		w.idle = true
		give(w.changed)
	}
}

// ask makes the collector ask the API at once.
func (w *wish) ask() { give(w.asked) }

func give(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
