package main

import (
	"cmp"
	"fmt"
	"math"

	"github.com/aclements/go-moremath/mathx"

	"github.com/benchloom/benchloom/internal/verdict"
)

// Limits between which a session neither counts as loaded nor as quiet.
const (
	// loadedFrom is the least share of a session in which the load ran: more than the fifth of disturbed iterations that
	// marks a session.
	loadedFrom = 1.0 / 3
	// quietSteal is the share of the job's CPUs below which steal leaves a session quiet.
	quietSteal = 0.005
)

// figure is a share of counted trials or sessions.
type figure struct {
	name      string
	found, of int
	expected  int // trials; 0: as many sessions as there are
	limit     limit
}

// limit bounds a share.
type limit struct {
	rule  rule
	share float64 // of 1
}

type rule int

const (
	unlimited rule = iota
	atMost
	atLeast
)

var never = limit{atMost, 0}

func (l limit) String() string {
	switch l.rule {
	case atMost:
		return fmt.Sprintf("at most %g %%", 100*l.share)
	case atLeast:
		return fmt.Sprintf("at least %g %%", 100*l.share)
	case unlimited:
	}
	return "–"
}

// broken reports whether the limit is broken. A figure of nothing keeps none.
func (f figure) broken() bool {
	switch share := float64(f.found) / float64(max(f.of, 1)); f.limit.rule {
	case atMost:
		return f.of == 0 || share > f.limit.share
	case atLeast:
		return f.of == 0 || share < f.limit.share
	case unlimited:
	}
	return false
}

// lost reports whether the limit is broken whatever the missing trials find.
func (f figure) lost() bool {
	if f.expected == 0 {
		return false
	}
	best := f
	best.of = f.expected
	if f.limit.rule == atLeast {
		best.found += f.expected - f.of
	}
	return best.broken()
}

// figures counts what the trials found.
func (p plan) figures(outcomes []outcome) []figure {
	kinds := make(map[string]kind)
	for _, t := range p.trials() {
		kinds[t.ID] = t.kind()
	}
	of := make(map[kind][]outcome)
	for _, o := range outcomes {
		of[kinds[o.Trial]] = append(of[kinds[o.Trial]], o)
	}
	var all []figure
	trials := func(name string, k kind, expected int, l limit, found func(outcome) bool) {
		f := figure{name: name, of: len(of[k]), expected: expected, limit: l}
		for _, o := range of[k] {
			if found(o) {
				f.found++
			}
		}
		all = append(all, f)
	}
	trials("requests of unchanged code that tell a change, without load", kind{0, false}, p.Requests-p.Requests/2, never, outcome.notifies)
	trials("the same under a load that starts and stops", kind{0, true}, p.Requests/2, never, outcome.notifies)
	all = append(all, sessionFigures(append(of[kind{0, false}], of[kind{0, true}]...))...)
	for _, slower := range slowdowns() {
		for _, loaded := range []bool{false, true} {
			k, name := kind{slower, loaded}, fmt.Sprintf("%d %% slower", slower)
			if loaded {
				name += " under load"
			}
			changed := limit{}
			if slower == 10 {
				changed = limit{atLeast, 1}
				if loaded {
					changed.share = 0.6
				}
			}
			trials(name+": *changed*", k, p.Slowdowns, changed, func(o outcome) bool { r, ok := o.planted(); return ok && r.Verdict == verdict.Changed && r.Worse })
			trials(name+": *no difference*", k, p.Slowdowns, never, func(o outcome) bool { r, ok := o.planted(); return ok && r.Verdict == verdict.NoDifference })
		}
	}
	return all
}

// sessionFigures counts sessions of unchanged code that have the mark disturbed.
func sessionFigures(outcomes []outcome) []figure {
	loaded := figure{name: "loaded sessions that are marked disturbed", limit: limit{atLeast, 0.9}}
	quiet := figure{name: "quiet sessions that are marked disturbed", limit: limit{atMost, 0.02}}
	partly := figure{name: "sessions marked disturbed, of those with less load or with steal"}
	for _, o := range outcomes {
		for _, s := range o.Sessions {
			f := &partly
			switch {
			case s.Load >= loadedFrom:
				f = &loaded
			case s.quiet():
				f = &quiet
			}
			f.of++
			if s.Marked {
				f.found++
			}
		}
	}
	return []figure{loaded, quiet, partly}
}

func (s session) quiet() bool { return s.Load == 0 && s.Steal < quietSteal }

// notifies reports whether any row of a request changed.
func (o outcome) notifies() bool {
	for _, r := range o.Rows {
		if r.Verdict == verdict.Changed {
			return true
		}
	}
	return false
}

// planted returns the row with the planted slowdown.
func (o outcome) planted() (r row, found bool) {
	for _, r := range o.Rows {
		if r.Benchmark == slowed && r.Metric == slowedMetric {
			return r, true
		}
	}
	return row{}, false
}

// confidence is the level of the interval of a share.
const confidence = 0.95

// clopperPearson returns the exact interval of a share (Clopper and Pearson, Biometrika 26, 1934): quantiles of beta
// distributions.
func clopperPearson(found, of int) (low, high float64) {
	k, n := float64(found), float64(of)
	low, high = 0, 1
	if found > 0 {
		low = betaQuantile((1-confidence)/2, k, n-k+1)
	}
	if found < of {
		high = betaQuantile((1+confidence)/2, k+1, n-k)
	}
	return low, high
}

// betaQuantile inverts the regularised incomplete beta function by bisection.
func betaQuantile(p, a, b float64) float64 {
	low, high := 0.0, 1.0
	for high-low > 1e-9 {
		middle := (low + high) / 2
		if cmp.Compare(mathx.BetaInc(middle, a, b), p) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// percent writes a share with at most one decimal place.
func percent(share float64) string {
	return fmt.Sprintf("%g %%", math.Round(1000*share)/10)
}
