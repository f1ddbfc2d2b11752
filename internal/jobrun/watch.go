package jobrun

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Watcher accompanies a job, for recordings of what it does when. The goroutine that runs the job calls it and waits for it: it
// must be quick, and handle its own errors. No call lies within a measured command.
type Watcher interface {
	// Begin is called right before a measured command starts, End right after the last of its processes is gone.
	Begin(Measured)
	End()
	// Timed is called when a phase has ended: [Preparing] for each variant and subject, [SettingUp] and [Measuring] for each
	// attempt at an iteration, [Building] once. Own is the command's name for a part of [Measuring]; empty for a whole phase.
	Timed(phase Phase, own string, begin, end time.Time)
}

// Measured identifies a measured command. A repeated iteration has several.
type Measured struct {
	TestCase bench.TestCase
	// Subject is the tag of the artifact; empty for a command.
	Subject string
	// Iteration counts from 1; 0 for warm-ups, which Warmup counts from 1.
	Iteration, Warmup int
}

// timed tells the watcher of a phase that ends now.
func (r *runner) timed(phase Phase, begin time.Time) {
	if r.m.Watcher != nil {
		r.m.Watcher.Timed(phase, "", begin, r.m.Now())
	}
}
