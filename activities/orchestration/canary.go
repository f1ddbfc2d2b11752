package orchestration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// canaries records the outcomes of canaries that have ended, and begins those that are
// due.
func (p *pass) canaries(ctx context.Context) error {
	open, err := p.Store.OpenCanaries(ctx)
	if err != nil {
		return err
	}
	errs := []error{each(ctx, open, p.endCanary)}
	if !p.Canaries {
		return errors.Join(errs...)
	}
	due, err := p.Store.CollectorsWithoutCanary(ctx, p.OfflineAfter)
	return errors.Join(append(errs, err, each(ctx, due, p.beginCanary))...)
}

// endCanary records the outcome of a canary whose request has ended, and cancels a canary
// that has found no time for a day.
func (p *pass) endCanary(ctx context.Context, k store.OpenCanary) error {
	if !k.Ended {
		if !k.Overdue {
			return nil
		}
		// The workflows of rows that end here are cancelled as strays.
		_, err := p.Store.CancelRequest(ctx, *k.Request, bench.CanarySubmitter, "its collector had no time for it for a day")
		return err
	}
	outcome, message := bench.CanaryUnmeasured, k.Message
	if k.Request != nil {
		c, err := p.Store.ComparisonOf(ctx, *k.Request)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		outcome, message = canaryOutcome(k, c.Rows)
	}
	ended, setAside, err := p.Store.EndCanary(ctx, k.ID, outcome, message, p.OfflineAfter)
	if err != nil || !ended {
		return err
	}
	p.scope().Tagged(map[string]string{"collector": k.Collector, "outcome": string(outcome)}).Counter("canaries_total").Inc(1)
	if outcome.Failed() {
		p.Log.WarnContext(ctx, "a canary failed", "collector", k.Collector, "set_aside", setAside, "outcome", outcome, "found", message)
	}
	return nil
}

// canaryOutcome judges a canary by its comparison of an artifact with itself.
func canaryOutcome(k store.OpenCanary, rows []store.ComparisonRow) (bench.CanaryOutcome, string) {
	measured := 0
	var changed []string
	for _, row := range rows {
		if row.Verdict == nil || row.Verdict.Pairs == 0 {
			continue
		}
		measured++
		if row.Verdict.Kind == verdict.Changed {
			changed = append(changed, fmt.Sprintf("%s of %s by %+.2f %%", row.Metric, row.TestCase, 100*row.Verdict.Change))
		}
	}
	switch {
	case measured == 0:
		return bench.CanaryUnmeasured, k.Message
	case bench.SessionDisturbed(k.Disturbed, k.Collections):
		return bench.CanaryDisturbed, fmt.Sprintf("%d of %d iterations were disturbed", k.Disturbed, k.Collections)
	case len(changed) > 0:
		return bench.CanaryChanged, "an artifact differs from itself: " + strings.Join(changed[:min(len(changed), shownFailures)], ", ")
	}
	return bench.CanaryPassed, ""
}

// beginCanary begins a canary of a collector with the newest artifact that its pool has
// measured, if there is one that may be measured.
func (p *pass) beginCanary(ctx context.Context, c bench.Collector) error {
	sources, err := p.Store.CanarySources(ctx, c)
	if err != nil {
		return err
	}
	for _, source := range sources {
		config, err := bench.ReadProjectConfig(source.Config)
		if err != nil {
			return err
		}
		seconds := make(map[bench.TestCase]float64, len(source.Seconds))
		for _, s := range source.Seconds {
			seconds[s.TestCase] = s.Seconds
		}
		selection, ok := bench.CanaryCases(seconds)
		if !ok || config.VerifyMode() == bench.VerifyOff {
			continue
		}
		r, err := bench.NewCanary(source.Project, source.Tag, c, selection, fairshare.Idle)
		if err != nil {
			return err
		}
		if r.ID, err = bench.NewRequestID(p.Watching.Random); err != nil {
			return err
		}
		r, begun, err := p.Store.BeginCanary(ctx, c.Name, r)
		if err != nil || !begun {
			return err
		}
		// If this is cut off, the next pass starts the request's workflow.
		if err := p.Workflows.StartRequest(ctx, r.Ref()); err != nil {
			return err
		}
		return p.Store.MarkWorkflowStarted(ctx, r.ID)
	}
	return nil
}

// idleFor is the time after which a look or a canary leaves the queue idle. On collectors
// that are never idle, it and its request would otherwise wait forever.
const idleFor = 4 * time.Hour

// waitingLong moves looks and canaries that have waited in the queue idle for long to the
// queue of their project, in whose share they then take part. Queues that go before it, such
// as vip, still do.
func (p *pass) waitingLong(ctx context.Context) error {
	requests, err := p.Store.LongIdle(ctx, idleFor)
	if err != nil {
		return err
	}
	return each(ctx, requests, func(ctx context.Context, r bench.Request) error {
		_, config, err := p.config(ctx, r.Project)
		if err != nil {
			return err
		}
		return p.Store.AdvanceIdle(ctx, r.ID, fairshare.OfRequest("", "", r.Project, bench.Release, config), idleFor)
	})
}

// sideOffset groups the canaries that tell how far the sides of a session are apart.
type sideOffset struct {
	metric bench.Metric
	bench.Surrounding
	collector string // empty: the collectors of the surroundings together
}

// taus reads how far the sides of a session are apart, by metric and collector. For all
// collectors together, it is the largest value of any collector, since any of them may take
// a look.
func (a *Activities) taus(ctx context.Context, target bench.Target) (map[sideOffset]float64, error) {
	sessions, err := a.Store.CanarySessions(ctx, target)
	if err != nil {
		return nil, err
	}
	canaries := make(map[sideOffset][]noise.Canary)
	for _, s := range sessions {
		key := sideOffset{s.Metric, s.Surrounding, s.Collector}
		canaries[key] = append(canaries[key], s.Canary())
	}
	out := make(map[sideOffset]float64)
	for key, of := range canaries {
		if tau, ok := noise.Tau(of); ok {
			out[key] = tau
			key.collector = ""
			out[key] = max(out[key], tau)
		}
	}
	return out, nil
}
