package collection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/measure"
)

// usage is what a run has used so far.
type usage struct {
	now        func() time.Time
	measured   time.Duration // without fetching, which depends on what is cached
	cpu        time.Duration
	peakMemory int64 // largest resident set of a single process, in bytes
}

// add counts one command. Resident sets are taken, not the control group's peak:
// that has the page cache, which any program fills as far as it may.
func (u *usage) add(s measure.Sample) {
	u.cpu += s.UserCPU + s.SystemCPU
	u.peakMemory = max(u.peakMemory, s.MaxRSSBytes)
}

// errOverran ends what exceeds the run's time limit.
var errOverran = errors.New("the run's time limit has passed")

// within carries out what a run is for, within the time that its size class
// allows for all of it together, and gives an error its kind.
func (c *Collector) within(ctx context.Context, plan apiclient.RunPlan, s *sink, do func(context.Context) error) error {
	began := s.used.now()
	defer func() { s.used.measured = s.used.now().Sub(began) }()
	limit := time.Duration(plan.TimeoutSeconds * float64(time.Second))
	if limit <= 0 {
		return c.failed(do(ctx))
	}
	limited, stop := context.WithTimeoutCause(ctx, limit, errOverran)
	defer stop()
	err := do(limited)
	if err != nil && ctx.Err() == nil && errors.Is(err, errOverran) {
		return &kindError{bench.FailTimeout, fmt.Errorf("killed after %s, the time limit on size class %d: %w; it is tried on a larger one", limit.Round(time.Millisecond), plan.Run.SizeClass, errOverran)}
	}
	return c.failed(err)
}

// overran tells whether a run was ended at its time limit: what it has finished
// by then counts.
func overran(err error) bool { return errors.Is(err, errOverran) }
