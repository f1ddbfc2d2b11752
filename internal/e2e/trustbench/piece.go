package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// trialBound is the time after which a trial has failed. On a machine with twelve other busy processes the longest took two
// minutes.
const trialBound = 10 * time.Minute

// mostFailures is the number of trials in a row that may fail.
const mostFailures = 3

// runner runs the trials of a piece.
type runner struct {
	plan     plan
	state    *state
	deadline time.Time // no trial begins that would end later
	try      func(context.Context, trial) (outcome, error)
	cleanUp  func(context.Context) error // ends what a failed trial left
	progress func(string, ...any)
}

// piece starts the service and runs trials that are missing until the time is over.
func piece(ctx context.Context, o options, s *state, progress func(string, ...any)) (err error) {
	missing := o.plan.missing(s.outcomes)
	if len(missing) == 0 {
		return nil
	}
	deadline := time.Now().Add(o.piece)
	whole, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	progress("%d of %d trials are missing; starting the service", len(missing), len(o.plan.trials()))
	b, err := openBed(whole, o.programs, o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(context.WithoutCancel(ctx))) }()
	cleanUp := func(ctx context.Context) error {
		_, err := b.cancelOpen(ctx)
		return err
	}
	err = runner{o.plan, s, deadline, b.try, cleanUp, progress}.run(whole, missing)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted; the next start repeats the trial under way")
	case err != nil && whole.Err() != nil:
		progress("the time is over; the next start repeats the trial under way")
		return nil
	}
	return err
}

// run runs trials. One that failed is left to the next start.
func (r runner) run(ctx context.Context, missing []trial) error {
	failures := 0
	for i, t := range missing {
		if time.Now().Add(expected(r.plan, r.state.outcomes, t.kind())).After(r.deadline) {
			return nil
		}
		bounded, cancel := context.WithTimeout(ctx, trialBound)
		outcome, err := r.try(bounded, t)
		cancel()
		if err == nil {
			if err := r.state.add(outcome); err != nil {
				return err
			}
			failures = 0
			r.progress("%d of %d, %s: %s in %.0f s; about %s left", len(r.state.outcomes), len(r.plan.trials()), t.ID, outcome.summary(t), outcome.Seconds,
				r.left(missing[i+1:]).Round(time.Minute))
			continue
		}
		err = fmt.Errorf("trial %s: %w", t.ID, err)
		if failures++; ctx.Err() != nil || failures == mostFailures {
			return err
		}
		r.progress("%s; the next start repeats it", err)
		if err := r.cleanUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// left returns how long trials will take.
func (r runner) left(trials []trial) time.Duration {
	sum := time.Duration(0)
	for _, t := range trials {
		sum += expected(r.plan, r.state.outcomes, t.kind())
	}
	return sum
}

// expected returns the mean duration of the kind's trials, of all trials for a kind without any, and a guess for the first.
func expected(p plan, outcomes []outcome, k kind) time.Duration {
	kinds := make(map[string]kind)
	for _, t := range p.trials() {
		kinds[t.ID] = t.kind()
	}
	var own, all time.Duration
	n := 0
	for _, o := range outcomes {
		took := time.Duration(o.Seconds * float64(time.Second))
		if all += took; kinds[o.Trial] == k {
			own += took
			n++
		}
	}
	switch {
	case n > 0:
		return own / time.Duration(n)
	case len(outcomes) > 0:
		return all / time.Duration(len(outcomes))
	}
	return 90 * time.Second
}
