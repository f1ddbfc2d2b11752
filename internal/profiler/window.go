package profiler

import (
	"fmt"
	"time"
)

// IndexError is the refusal of a batch index below the one before.
type IndexError struct{ From, To int }

func (e *IndexError) Error() string {
	return fmt.Sprintf("the batch index is %d and cannot become %d: it never decreases", e.From, e.To)
}

type phase int

const (
	waiting phase = iota
	active
	over
)

// window decides from the batch index when an agent is active: once, or never.
type window struct {
	first int
	last  *int
	// open is set once collection has begun.
	open  bool
	index int
	phase phase
}

func (w *window) begin() {
	w.open = true
	w.settle()
}

func (w *window) moveTo(index int) error {
	if index < w.index {
		return &IndexError{From: w.index, To: index}
	}
	w.index = index
	w.settle()
	return nil
}

func (w *window) settle() {
	switch {
	case w.phase == over:
	case w.last != nil && w.index > *w.last:
		w.phase = over
	case w.open && w.index >= w.first:
		w.phase = active
	}
}

// pace returns how long to wait for the next whole multiple of every after the beginning, of which elapsed has passed. It leaves out
// missed times, and the next one if less than half an interval remains: two samples are never closer.
func pace(elapsed, every time.Duration) time.Duration {
	wait := every - elapsed%every
	if elapsed < 0 { // the clock was set back, and has no monotonic part
		wait = -elapsed % every
	}
	if wait < every/2 {
		wait += every
	}
	return wait
}
