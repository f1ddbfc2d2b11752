package apiclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// RetryPolicy bounds the retries after transient errors. The zero value retries until
// the context ends.
type RetryPolicy struct {
	// Attempts bounds the number of attempts; 0: no bound.
	Attempts int
	// For bounds the time from the first attempt to the start of the last; 0: no
	// bound.
	For time.Duration
	// First is the pause before the second attempt; 0: 200 ms. It doubles with each
	// attempt up to Longest; 0: 15 s.
	First, Longest time.Duration
	// Failing, unless nil, is told the error of an attempt that is repeated, once for
	// each message.
	Failing func(error)
	// Now, Sleep and Random (0 to below 1, for jitter) replace the real ones unless
	// nil.
	Now    func() time.Time
	Sleep  func(ctx context.Context, pause time.Duration) error
	Random func() float64
}

// Forever returns the policy without bounds: only the context ends it.
func (p RetryPolicy) Forever() RetryPolicy {
	p.Attempts, p.For = 0, 0
	return p
}

// Retry calls f until it succeeds, fails with an error that is not transient
// ([IsTransient]), or the policy or the context ends it. It returns the last error of
// f, joined with the context's if that ended.
func Retry(ctx context.Context, policy RetryPolicy, f func(ctx context.Context) error) error {
	p := policy.withDefaults()
	begun := p.Now()
	pause, told := p.First, ""
	for attempt := 1; ; attempt++ {
		err := f(ctx)
		if err == nil || !IsTransient(err) {
			return err
		}
		// Half of the pause is random, so that clients do not all return at once when
		// the API does.
		wait := pause/2 + time.Duration(p.Random()*float64(pause/2))
		var asked *Problem
		if errors.As(err, &asked) {
			wait = max(wait, min(asked.RetryAfter, p.Longest))
		}
		switch {
		case p.Attempts > 0 && attempt >= p.Attempts:
			return fmt.Errorf("tried %d times: %w", attempt, err)
		case p.For > 0 && p.Now().Add(wait).Sub(begun) > p.For:
			return fmt.Errorf("tried for %s: %w", p.Now().Sub(begun).Round(time.Second), err)
		}
		if text := err.Error(); p.Failing != nil && text != told {
			p.Failing(err)
			told = text
		}
		if stopped := p.Sleep(ctx, wait); stopped != nil {
			return fmt.Errorf("%w; stopped: %w", err, stopped)
		}
		pause = min(2*pause, p.Longest)
	}
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.First <= 0 {
		p.First = 200 * time.Millisecond
	}
	if p.Longest <= 0 {
		p.Longest = 15 * time.Second
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.Random == nil {
		p.Random = rand.Float64
	}
	if p.Sleep == nil {
		p.Sleep = sleep
	}
	return p
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
