package jobrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/suite"
)

// unit is one test case on one subject, measured in a series of iterations.
type unit struct {
	places places
	recipe suite.Recipe
	// source is the directory that each iteration starts with a copy of; empty
	// for none.
	source string
	// link lists directories of source, relative, whose files may be linked.
	link   []string
	result Result
	// delivered is set once the result is part of a block.
	delivered bool
	// quiet holds the machine's readings of the undisturbed iterations.
	quiet []machine.Delta
}

// open reports whether the unit still has to be measured.
func (u *unit) open() bool { return u.result.Failure == nil && u.result.Skipped == "" }

// fail records a failure and drops earlier collections: a result is complete or
// absent.
func (u *unit) fail(f *Failure) {
	u.result.Failure, u.result.Collections = f, nil
}

// rounds returns the number of times the unit runs, warm-ups included.
func (u *unit) rounds() int {
	if !u.open() {
		return 0
	}
	return u.recipe.Warmups + u.recipe.Iterations
}

// testCase holds the units of one test case, one per subject.
type testCase []*unit

func (c testCase) rounds() int {
	most := 0
	for _, u := range c {
		most = max(most, u.rounds())
	}
	return most
}

// runCommand measures an ad-hoc job's command.
func (r *runner) runCommand(ctx context.Context) error {
	r.phase(Preparing)
	work := r.m.place(workName)
	tc := r.job.TestCases[0]
	r.report(tc, "")
	if err := (copier{owner: r.m.Owner}).makeDirs(work); err != nil {
		return err
	}
	p, err := newPlaces(suite.Paths{Work: work, CPUs: r.m.CPUs})
	if err != nil {
		return err
	}
	u := &unit{places: p, result: Result{TestCase: tc}}
	if s := r.job.Command.Script; s != nil {
		if r.script, err = newScripted(*s); err != nil {
			return err
		}
		if u.source, err = r.checkOut(ctx, r.script); err != nil {
			return err
		}
	}
	u.recipe = r.commandRecipe(work)
	r.phase(Measuring)
	return r.measure(ctx, []testCase{{u}})
}

// runVariant prepares a variant for each subject and measures its test cases.
func (r *runner) runVariant(ctx context.Context, testCases []bench.TestCase) error {
	r.phase(Preparing)
	cases := make([]testCase, len(testCases))
	for number, subject := range r.job.Subjects {
		began := r.m.Now()
		prepared, err := r.prepare(ctx, subject, number, suite.VariantOf(testCases[0]))
		if err != nil {
			return err
		}
		for i, tc := range testCases {
			u := &unit{places: prepared.places, result: Result{TestCase: tc, Subject: subject.Tag, Failure: prepared.failure, Skipped: prepared.skipped}}
			if u.open() {
				if err := r.prepareScenario(ctx, u, prepared, fmt.Sprintf("%s%d-%03d", outcomeName, number, i)); err != nil {
					return err
				}
			}
			cases[i] = append(cases[i], u)
		}
		r.timed(Preparing, began)
	}
	r.phase(Measuring)
	if r.job.Profile != nil {
		return r.profile(ctx, cases[0])
	}
	err := r.measure(ctx, cases)
	if err != nil && ctx.Err() != nil && r.job.KeepPairs {
		return errors.Join(err, r.deliverPairs(ctx, cases))
	}
	return err
}

// deliverPairs delivers what a cancelled block has measured on all subjects.
func (r *runner) deliverPairs(ctx context.Context, cases []testCase) error {
	var whole []testCase
	for _, c := range cases {
		rounds := c.measured()
		if rounds == 0 || c[0].delivered {
			continue
		}
		for _, u := range c {
			u.result.Collections = u.result.Collections[:min(rounds, len(u.result.Collections))]
		}
		whole = append(whole, c)
	}
	if len(whole) == 0 {
		return nil
	}
	return r.deliver(context.WithoutCancel(ctx), whole)
}

// measured returns the number of collections that all subjects except failed ones have; 0 if all have failed.
func (c testCase) measured() int {
	var counts []int
	for _, u := range c {
		if u.open() {
			counts = append(counts, len(u.result.Collections))
		}
	}
	if len(counts) == 0 {
		return 0
	}
	return slices.Min(counts)
}

// measure takes all iterations of the test cases of one block, interleaved, and
// delivers them. If the first round predicts that this takes too long, each
// remaining test case becomes a separate block, so that a dying collector loses
// less.
func (r *runner) measure(ctx context.Context, cases []testCase) error {
	var expected time.Duration
	for _, c := range cases {
		began := r.m.Now()
		rounds := c.rounds()
		if err := r.round(ctx, c, 0); err != nil {
			return err
		}
		expected += r.m.Now().Sub(began) * time.Duration(rounds)
	}
	if expected <= r.m.maxBlock() {
		return r.remaining(ctx, cases)
	}
	for i := range cases {
		if err := r.remaining(ctx, cases[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// remaining runs all rounds but the first and delivers the block.
func (r *runner) remaining(ctx context.Context, cases []testCase) error {
	rounds := 0
	for _, c := range cases {
		rounds = max(rounds, c.rounds())
	}
	for n := 1; n < rounds; n++ {
		for _, c := range cases {
			if err := r.round(ctx, c, n); err != nil {
				return err
			}
		}
	}
	return r.deliver(ctx, cases)
}

// round runs each subject of a test case once, every other time in reverse
// order (ABBA), so that neither always comes first.
func (r *runner) round(ctx context.Context, c testCase, n int) error {
	order := slices.Clone(c)
	if n%2 == 1 {
		slices.Reverse(order)
	}
	for _, u := range order {
		if n >= u.rounds() {
			continue
		}
		if err := r.iterate(ctx, u, n); err != nil {
			return err
		}
	}
	c.markPair()
	return nil
}

// label returns a unit's name for the log: benchmark, scenario, and the
// artifact when there are several.
func (r *runner) label(tc bench.TestCase, subject string) string {
	parts := []string{tc.Benchmark}
	for _, p := range []string{tc.Profile, tc.Scenario} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(r.job.Subjects) > 1 {
		parts = append(parts, "["+subject+"]")
	}
	return strings.Join(parts, " ")
}
