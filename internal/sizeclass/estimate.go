package sizeclass

import (
	"math"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

const (
	// spreadPrior is the assumed relative spread of a job's times without
	// samples, weighted like priorWeight samples.
	spreadPrior = 0.15
	priorWeight = 4
	// doubt is the margin of an estimate, in standard errors.
	doubt = 1
	// cpuTrust is the share of CPU time that counts as work: a part of it may
	// be busy waiting.
	cpuTrust = 0.9
)

// estimate summarises the samples of one class.
type estimate struct {
	class   bench.SizeClass
	history History
	median  time.Duration // of the successes
	// good counts the samples that succeeded, bad those whose class was too
	// small, memory those of the latter that ran out of memory.
	good, bad, memory int
	centre            float64 // seconds, duration of a success, see typical
	wasted            float64 // seconds, the mean of those that were too small
	censored          float64 // seconds, the longest that it timed out after
	acceptable        time.Duration
	timeout           time.Duration
	// cost is the expected cost of a run that starts here: its objective, including
	// a repetition on the largest class. Infinite without a success.
	cost float64
	// least is the shortest time, in seconds, that other classes' samples
	// allow; bound is the least plausible cost.
	least float64
	bound float64
}

// known holds an estimate of every admissible class.
type known struct {
	policy    Policy
	question  Question
	classes   []estimate
	reference int // index of the largest class with a success; -1: none
	best      int // index of the class with the least cost; -1: none
	spread    float64
	peak      int64   // bytes, the largest peak seen
	work      float64 // core-seconds, the least CPU time seen
}

func (p Policy) know(s Statistics, q Question) known {
	k := known{policy: p, question: q, reference: -1, best: -1, classes: make([]estimate, len(q.Classes))}
	times := make([]time.Duration, 0, p.History)
	squares, freedom := spreadPrior*spreadPrior*priorWeight, float64(priorWeight)
	for i, class := range q.Classes {
		e := &k.classes[i]
		e.class, e.history = class, s.Of(class)
		times = times[:0]
		for _, sample := range e.history.Samples {
			if sample.Outcome == Succeeded {
				times = append(times, sample.Duration)
				k.evidence(sample)
			}
		}
		if e.good = len(times); e.good == 0 {
			continue
		}
		k.reference = i
		e.median = Median(times)
		e.centre = typical(times, e.median)
		for _, t := range times {
			off := capped(t, e.median)/e.centre - 1
			squares += off * off
		}
		freedom += float64(e.good - 1)
	}
	k.spread = math.Sqrt(squares / freedom)
	for i := range k.classes {
		k.limit(i)
		k.countTooSmall(i)
	}
	k.weigh()
	return k
}

func medianOf(h History) time.Duration {
	var d []time.Duration
	for _, sample := range h.Samples {
		if sample.Outcome == Succeeded {
			d = append(d, sample.Duration)
		}
	}
	return Median(d)
}

// outlier caps a time, in medians.
const outlier = 3

// typical returns the mean of times, in seconds, each capped at a few medians:
// one run in twenty that takes ten times as long must not decide, and two kinds
// of runs must count by their frequency.
func typical(times []time.Duration, median time.Duration) float64 {
	sum := 0.0
	for _, t := range times {
		sum += capped(t, median)
	}
	return sum / float64(len(times))
}

// capped returns a time in seconds, above 0.
func capped(t, median time.Duration) float64 {
	return min(max(t, 1).Seconds(), outlier*max(median, 1).Seconds())
}

func (k *known) evidence(sample Sample) {
	k.peak = max(k.peak, sample.PeakMemory)
	if work := sample.CPUTime.Seconds(); work > 0 && (k.work == 0 || work < k.work) {
		k.work = work
	}
}

// limit sets the acceptable time and timeout of a class.
//
// The specification derives them from the median on the largest class. Without
// a success there, the largest class with one is used; without any, a run on a
// small class may take the minimum.
func (k *known) limit(i int) {
	e, p, original := &k.classes[i], k.policy, k.question.Original
	minimum := time.Duration(p.Minimum)
	switch {
	case i == len(k.classes)-1:
		e.acceptable, e.timeout = original, original
		if e.good > 0 {
			e.acceptable = min(max(e.median, minimum), original)
		}
	case k.reference < 0:
		e.timeout = min(original, minimum)
		e.acceptable = e.timeout
	default:
		reference := k.classes[k.reference]
		f := max(1, Factor(reference.class, e.class, p.Exponent))
		e.acceptable = AcceptableTime(reference.median, f, minimum)
		e.timeout = Timeout(e.acceptable, p.TimeoutMultiplier, original)
		e.acceptable = min(e.acceptable, seconds(e.timeout.Seconds()/p.TimeoutMultiplier))
	}
}

// countTooSmall classifies the samples that did not succeed. A timeout below
// the acceptable time of today proves nothing, unless the limit was the job's
// own; nor does a pending failure.
func (k *known) countTooSmall(i int) {
	e, sum := &k.classes[i], 0.0
	for _, sample := range e.history.Samples {
		switch {
		case sample.Outcome == Succeeded || sample.Pending:
			continue
		case sample.Outcome == TimedOut:
			e.censored = max(e.censored, sample.Duration.Seconds())
			if sample.Duration < e.acceptable && !sample.OwnLimit {
				continue
			}
		case sample.Outcome == OutOfMemory:
			e.memory++
		}
		e.bad++
		sum += sample.Duration.Seconds()
	}
	if e.bad > 0 {
		e.wasted = sum / float64(e.bad)
	}
}

// objective returns the objective of a time on a class. Times below the minimum
// count as the minimum: no class is too slow for them.
func (k *known) objective(time float64, class bench.SizeClass) float64 {
	return Objective(max(time, time2s(k.policy.Minimum)), class, k.policy.Exponent)
}

func time2s(d Duration) float64 { return time.Duration(d).Seconds() }

// weigh computes each class's cost and bound, and the best class.
func (k *known) weigh() {
	if k.reference < 0 {
		for i := range k.classes {
			k.classes[i].cost, k.classes[i].bound = math.Inf(1), 0
		}
		return
	}
	largest := k.classes[len(k.classes)-1].class
	again := k.objective(k.classes[k.reference].centre, largest) // on the largest class
	for i := range k.classes {
		e := &k.classes[i]
		if e.cost = math.Inf(1); e.good > 0 {
			e.cost = k.mixed(e, e.centre, e.failing(), again)
			if k.best < 0 || e.cost < k.classes[k.best].cost {
				k.best = i
			}
		}
		k.bind(i, again)
	}
}

// failing returns the share of runs for which the class is too small.
func (e *estimate) failing() float64 { return float64(e.bad) / float64(e.good+e.bad) }

// mixed returns the expected objective of a run that takes time on the class,
// or fails there with the probability failing and is repeated.
func (k *known) mixed(e *estimate, time, failing, again float64) float64 {
	cost := (1 - failing) * k.objective(time, e.class)
	if failing > 0 {
		cost += failing * (Objective(e.wasted, e.class, k.policy.Exponent) + again)
	}
	return cost
}

// low returns the least time, in seconds, that samples with this centre allow.
func (k *known) low(e *estimate) float64 {
	return e.centre * math.Exp(-doubt*k.spread/math.Sqrt(float64(e.good)))
}

// bind computes the least plausible cost of a class from its own samples and
// from those of others, because a larger class is never slower, and never
// faster by more than its relative size.
func (k *known) bind(i int, again float64) {
	e := &k.classes[i]
	least := 0.0
	if cpus := k.question.CPUs[e.class]; cpus > 0 {
		least = cpuTrust * k.work / float64(cpus)
	}
	for j := range k.classes {
		o := &k.classes[j]
		scale := 1.0
		if o.class < e.class {
			scale = float64(o.class) / float64(e.class)
		}
		switch {
		case j == i:
		case o.good > 0:
			least = max(least, k.low(o)*scale)
		case o.censored > 0 && o.class < e.class:
			least = max(least, o.censored*math.Exp(-doubt*k.spread)*scale)
		}
	}
	e.least = least
	switch {
	case e.good > 0:
		n := math.Sqrt(float64(e.good + e.bad))
		e.bound = k.mixed(e, max(least, k.low(e)), max(0, e.failing()-doubt/(2*n)), again)
	case e.censored > 0:
		e.bound = k.objective(max(least, e.censored*math.Exp(-doubt*k.spread)), e.class)
	default:
		e.bound = k.objective(least, e.class)
	}
}
