package profiler

import (
	"errors"
	"sync"
	"time"
)

// reusedFor is the time for which collectors are used again: what was absent when they looked is not looked for anew.
const reusedFor = time.Minute

// Reused returns a function that answers as open does, with collectors of an earlier call once all of these have been closed. A run
// that takes milliseconds spends more time on opening the files of its collectors than on reading them. Now is the clock.
func Reused(open func() []Collector, now func() time.Time) func() []Collector {
	r := &reuse{now: now}
	return func() []Collector {
		if s := r.take(); s != nil {
			return s.lend()
		}
		return (&lentSet{reuse: r, collectors: open(), opened: now()}).lend()
	}
}

// reuse holds the sets of collectors that nobody uses.
type reuse struct {
	now func() time.Time

	mu   sync.Mutex
	idle []*lentSet
}

// take returns an idle set; nil if there is none.
func (r *reuse) take() *lentSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.idle)
	if n == 0 {
		return nil
	}
	s := r.idle[n-1]
	r.idle = r.idle[:n-1]
	return s
}

// lentSet holds collectors that are used, and closed, together.
type lentSet struct {
	reuse      *reuse
	collectors []Collector
	opened     time.Time

	mu   sync.Mutex
	left int // not closed yet
}

// lend returns the collectors for one use.
func (s *lentSet) lend() []Collector {
	s.left = len(s.collectors)
	lent := make([]Collector, len(s.collectors))
	for i, c := range s.collectors {
		lent[i] = &lentCollector{Collector: c, set: s}
	}
	return lent
}

// giveBack counts a closed collector. The last one makes the set idle, or closes an old one.
func (s *lentSet) giveBack() error {
	s.mu.Lock()
	s.left--
	last := s.left == 0
	s.mu.Unlock()
	if !last {
		return nil
	}
	r := s.reuse
	if r.now().Sub(s.opened) < reusedFor {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.idle = append(r.idle, s)
		return nil
	}
	var failed []error
	for _, c := range s.collectors {
		failed = append(failed, c.Close())
	}
	return errors.Join(failed...)
}

// lentCollector is a collector for one use.
type lentCollector struct {
	Collector
	set    *lentSet
	closed sync.Once
}

// Close gives the collector back.
func (c *lentCollector) Close() (err error) {
	c.closed.Do(func() { err = c.set.giveBack() })
	return err
}
