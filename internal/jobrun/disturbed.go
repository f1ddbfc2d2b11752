package jobrun

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
)

// Readings reads the machine; *machine.Reader implements it. The goroutine that runs the job calls it, before and after each
// measured command.
type Readings interface {
	Read() machine.Reading
}

// observe runs a measured command and returns the machine's delta; nil if it is not read, or the command did not start.
func (r *runner) observe(ctx context.Context, c call, m Measured) (measure.Sample, *machine.Delta, *Failure, error) {
	if r.m.Watcher != nil {
		r.forgetPhases()
	}
	var began time.Time
	var before *machine.Reading
	c.command.Begin = func() {
		if r.m.Watcher != nil {
			r.m.Watcher.Begin(m)
		}
		began = r.m.Now()
		if r.m.Readings != nil {
			reading := r.m.Readings.Read()
			before = &reading
		}
	}
	sample, failure, err := r.execute(ctx, c)
	var during *machine.Delta
	if before != nil {
		delta := machine.Between(*before, r.m.Readings.Read(), sample.UserCPU+sample.SystemCPU)
		during = &delta
	}
	if r.m.Watcher != nil && !began.IsZero() {
		r.m.Watcher.End()
		r.watched(began, sample)
	}
	return sample, during, failure, err
}

// judge returns why a collection is disturbed, compared with earlier jobs and with the undisturbed collections of its unit.
func (r *runner) judge(u *unit, c *Collection) []machine.Reason {
	if c.Machine == nil {
		return nil
	}
	return machine.Judge(*c.Machine, r.job.Norms[u.result.TestCase].Or(machine.NormsOf(u.quiet)))
}

// mayRepeat reports whether a disturbed iteration, which took this long, may be repeated; left counts the iterations of its unit
// that are left, itself included. Repeating is in vain on a machine that is never quiet: it ends when more than a fifth of the
// job's iterations stay disturbed, at the latest when it would double the time of the job, as known so far. It never begins on
// a machine with other work by configuration, nor for a person's command, which may have effects.
func (r *runner) mayRepeat(took time.Duration, left int) bool {
	return r.job.Kind != bench.KindCommand && !r.m.CoLocated && !bench.SessionDisturbed(r.disturbed, r.iterations) &&
		r.lost+took <= r.spent+time.Duration(left)*took
}

// keep adds a collection to the unit's result.
func (u *unit) keep(c Collection, reasons []machine.Reason) {
	c.Disturbed = reasons
	u.result.Collections = append(u.result.Collections, c)
	if c.Machine != nil && len(reasons) == 0 {
		u.quiet = append(u.quiet, *c.Machine)
	}
}

// markPair gives both sides of a pair the mark if one has it: in turns, two artifacts are compared by pairs. More than two
// artifacts have no pairs yet.
func (c testCase) markPair() {
	if len(c) != 2 {
		return
	}
	last := func(u *unit) *Collection {
		if n := len(u.result.Collections); n > 0 {
			return &u.result.Collections[n-1]
		}
		return nil
	}
	a, b := last(c[0]), last(c[1])
	if a == nil || b == nil || a.Iteration != b.Iteration {
		return
	}
	if len(a.Disturbed) > 0 && len(b.Disturbed) == 0 {
		b.Disturbed = fromOtherSide(a.Disturbed)
	} else if len(b.Disturbed) > 0 && len(a.Disturbed) == 0 {
		a.Disturbed = fromOtherSide(b.Disturbed)
	}
}

func fromOtherSide(reasons []machine.Reason) []machine.Reason {
	out := make([]machine.Reason, len(reasons))
	for i, r := range reasons {
		out[i] = machine.Reason{Cause: r.Cause, Detail: r.Detail + ", while the other side was measured"}
	}
	return out
}
