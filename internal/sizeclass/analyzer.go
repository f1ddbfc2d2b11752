package sizeclass

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

const (
	// young is the number of runs of a shape, since it changed last, during which a
	// class that could be better is probed immediately or, when samples of it do not
	// tell yet, in half the runs. Later one run in oncePer is such a probe, and one
	// in recheckPer goes to a class that has not been tried for long.
	young      = 10
	half       = 1.0 / 2
	oncePer    = 1.0 / 4
	recheckPer = 1.0 / 8
	// infeasible is the number of failures, or of runs out of memory, after which a
	// class counts as too small.
	infeasible = 3
)

// ErrNoClasses reports that there is no class to select from.
var ErrNoClasses = errors.New("no size class")

// Question is the input of a selection.
type Question struct {
	// Classes that the job may run on, ascending, without duplicates, at least one.
	Classes []bench.SizeClass
	// Original is the job's own timeout.
	Original time.Duration
	Now      time.Time
	// Random is a number in [0, 1), different for each run of a shape.
	Random float64
	// Attempt is the ID of the attempt for which a class is selected; see
	// [Attempt].
	Attempt string
	// Memory of a collector of the class in bytes, if known.
	Memory map[bench.SizeClass]int64
	// CPUs is the number of CPUs that a job may use on a collector of the
	// class, if known: a class is a relative size.
	CPUs map[bench.SizeClass]int
}

// Check returns an error if the question cannot be answered.
func (q Question) Check() error {
	if len(q.Classes) == 0 {
		return ErrNoClasses
	}
	for i, c := range q.Classes {
		if _, err := bench.NewSizeClass(int(c)); err != nil {
			return err
		}
		if i > 0 && q.Classes[i-1] >= c {
			return fmt.Errorf("size classes %v are not in ascending order", q.Classes)
		}
	}
	if q.Original <= 0 {
		return fmt.Errorf("the job's own timeout is %s; it has to be above 0", q.Original)
	}
	return nil
}

// Selection is the class selected for a run, with the reasons.
type Selection struct {
	Class bench.SizeClass `json:"class"`
	// Expected is the expected duration: the median of the successes there,
	// else the timeout.
	Expected time.Duration `json:"expected_ns"`
	// Timeout ends the attempt. On the largest class it is the job's own.
	Timeout time.Duration `json:"timeout_ns"`
	// Probe is set if another class is the best known and the run serves
	// learning; its results must not be compared. The first run of a shape is
	// not a probe.
	Probe bool `json:"probe"`
	// Why is the reason in a sentence.
	Why string `json:"why"`
	// Choices describes each class, ascending.
	Choices []Choice `json:"choices"`
}

// Choice describes one class as a selection sees it.
type Choice struct {
	Class bench.SizeClass `json:"class"`
	// Probability that a run is sent there; the sum over all classes is 1.
	Probability float64       `json:"probability"`
	Acceptable  time.Duration `json:"acceptable_ns"`
	Timeout     time.Duration `json:"timeout_ns"`
	// Median of the successes; 0 if there are none.
	Median time.Duration `json:"median_ns"`
	// Succeeded and TooSmall count samples; other samples prove nothing.
	Succeeded int `json:"succeeded"`
	TooSmall  int `json:"too_small"`
	// Objective is the expected time × class^exponent, including repetitions on
	// the largest class; 0 if unknown.
	Objective float64 `json:"objective"`
	Verdict   string  `json:"verdict"`
}

// Analyzer selects size classes and learns. Its only state is its policy.
type Analyzer struct {
	policy Policy
}

// New returns an analyzer with a policy, or the error of [Policy.Check].
func New(p Policy) (*Analyzer, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &Analyzer{policy: p}, nil
}

// Policy returns the analyzer's policy.
func (a *Analyzer) Policy() Policy { return a.policy }

// decision is a selection before random numbers are drawn.
type decision struct {
	known
	settled int     // index of the class where a run goes unless it is a probe
	why     string  // of the settled class
	probes  []probe // at most two
	whyNot  skipped // probes that would be due
}

// probe is a class that a run may be sent to for learning.
type probe struct {
	class  int // index
	chance float64
	why    string
}

type skipped int

const (
	notSkipped skipped = iota
	inFlight
	overBudget
)

// Select selects the class and timeout of a run. If the run is a probe, the
// returned statistics contain it; the caller must store them only if they have
// not changed since they were read.
func (a *Analyzer) Select(s Statistics, q Question) (Selection, Statistics, error) {
	if err := q.Check(); err != nil {
		return Selection{}, s, fmt.Errorf("selecting a size class: %w", err)
	}
	s = s.clone()
	// If called again for the same attempt, its own probe does not count as
	// outstanding.
	s.Marks = slices.DeleteFunc(s.live(q.Now), func(m Mark) bool { return m.ID == q.Attempt })
	d := a.decide(s, q)
	switch d.whyNot {
	case inFlight:
		s.Counts.InFlight++
	case overBudget:
		s.Counts.Budget++
	case notSkipped:
	}
	i, probed := d.draw(q.Random)
	selection := d.selection(i, probed)
	if probed != nil {
		s.Counts.Probes++
		s.Marks = append(s.Marks, Mark{
			ID: q.Attempt, Class: selection.Class, Instead: d.usual(),
			Expires: q.Now.Add(selection.Timeout + time.Duration(a.policy.ProbeExpiry)),
		})
	}
	return selection, s, nil
}

// draw picks a class, and the probe that leads there.
func (d *decision) draw(random float64) (int, *probe) {
	for i, p := range d.probes {
		if random -= p.chance; random < 0 {
			return p.class, &d.probes[i]
		}
	}
	return d.settled, nil
}

// Explain returns what [Analyzer.Select] would select, without side effects.
// Its class is the likeliest.
func (a *Analyzer) Explain(s Statistics, q Question) (Selection, error) {
	if err := q.Check(); err != nil {
		return Selection{}, fmt.Errorf("explaining size classes: %w", err)
	}
	d := a.decide(s, q)
	if len(d.probes) > 0 && d.probes[0].chance > half {
		return d.selection(d.probes[0].class, &d.probes[0]), nil
	}
	return d.selection(d.settled, nil), nil
}

// Escalate selects the class for a job for which the class from was too small:
// the largest class or, with a stepwise policy, the next one. It returns false
// if from is the largest: a failure there is final.
func (a *Analyzer) Escalate(s Statistics, q Question, from bench.SizeClass) (Selection, bool) {
	if q.Check() != nil {
		return Selection{}, false
	}
	next, ok := Next(q.Classes, from, a.policy.Stepwise)
	if !ok {
		return Selection{}, false
	}
	d := a.decide(s, q)
	d.probes = nil
	d.settled, d.why = slices.Index(q.Classes, next), fmt.Sprintf("class %d was too small", from)
	return d.selection(d.settled, nil), true
}

// Next returns the class to which a failure on from escalates; false if there
// is none.
func Next(classes []bench.SizeClass, from bench.SizeClass, stepwise bool) (bench.SizeClass, bool) {
	above := slices.IndexFunc(classes, func(c bench.SizeClass) bool { return c > from })
	if above < 0 {
		return 0, false
	}
	if stepwise {
		return classes[above], true
	}
	return classes[len(classes)-1], true
}

// decide weighs the classes.
func (a *Analyzer) decide(s Statistics, q Question) decision {
	last := len(q.Classes) - 1
	d := decision{known: a.policy.know(s, q), settled: last}
	since := q.Now.Sub(s.FailedOnLargest)
	switch {
	case last == 0:
		d.why = "it is the only class"
		return d
	case !s.FailedOnLargest.IsZero() && since <= time.Duration(a.policy.FailureCache):
		d.why = fmt.Sprintf("a run failed on the largest class at %s, and none has succeeded there since", s.FailedOnLargest.UTC().Format(time.RFC3339))
		return d
	case d.best >= 0:
		d.settled = d.best
		d.why = "least time × class^" + number(a.policy.Exponent) + " of the classes known"
		d.propose(s)
	default:
		d.why = "no run has succeeded on any class yet"
		if first := d.classes[0]; len(first.history.Samples) == 0 && d.excluded(0) == "" {
			d.probes = []probe{{0, 1, "nothing is known yet: the smallest class is tried for the minimum acceptable time"}}
		}
	}
	d.restrain(s)
	return d
}

// propose selects the probes: the most promising of the classes that could be
// better than the best known one and have rested long enough; and the most
// promising of the classes that have not been tried for long, because their
// samples may be outdated.
func (d *decision) propose(s Statistics) {
	could, stale := -1, -1
	// A job that also fails on the largest class makes probes more expensive,
	// because they fail as well: if the largest class is best for it, tried
	// classes are not tried again.
	unsteady := d.best == len(d.classes)-1 && !s.LastFailure.IsZero() && d.question.Now.Sub(s.LastFailure) <= time.Duration(d.policy.FailureCache)
	least := func(i, than int) bool { return than < 0 || d.classes[i].bound < d.classes[than].bound }
	for i, e := range d.classes {
		if i == d.best || d.dominated(i) || unsteady && len(e.history.Samples) > 0 || d.objective(0, e.class) >= d.classes[d.best].cost {
			continue
		}
		rest := s.Runs - s.Since
		if len(e.history.Samples) > 0 {
			rest = s.Runs - e.history.Tried
		}
		if e.bound < d.classes[d.best].cost && rest >= d.pause(i, s) && least(i, could) {
			could = i
		}
		if rest >= d.policy.Recheck && s.Runs-s.Since >= young && least(i, stale) {
			stale = i
		}
	}
	best := d.classes[d.best].class
	if could >= 0 {
		d.probes = append(d.probes, d.improving(could, s.Runs-s.Since < young))
	}
	if stale >= 0 {
		d.probes = append(d.probes, probe{stale, recheckPer, fmt.Sprintf("it has not been tried for %d runs: is class %d still better?", d.policy.Recheck, best)})
	}
}

// improving returns a probe of a class that could be better.
func (d *decision) improving(i int, isYoung bool) probe {
	e, best := d.classes[i], d.classes[d.best].class
	p := probe{i, oncePer, fmt.Sprintf("its samples, %d so far, do not tell yet whether class %d is better", e.good+e.bad, best)}
	if e.good+e.bad == 0 {
		p.why = fmt.Sprintf("no sample tells about it, and it could be better than class %d", best)
	}
	switch {
	case isYoung && e.good == 0:
		p.chance = 1
	case isYoung:
		p.chance = half
	}
	return p
}

// pause returns the number of runs that must end between two tries of a class.
func (d *decision) pause(i int, s Statistics) int {
	e := &d.classes[i]
	tooSmall := e.bad - e.good
	switch {
	case d.excluded(i) != "" || tooSmall >= infeasible:
		return d.policy.Recheck
	case tooSmall == 2:
		return d.policy.Recheck / 5
	case tooSmall == 1:
		return d.policy.Recheck / 25
	case e.good > 0 && d.own(e) < d.classes[d.best].cost:
		// Its own samples do not distinguish it from the best yet.
		return e.good
	case e.good > 0:
		// They do, unless they were exceptions, which is the less likely the
		// more there are.
		return min(d.policy.Recheck, 4<<min(2*e.good, 20))
	}
	// After a class has run out of memory, the next run is not a probe of a
	// larger class: it should succeed.
	for j := range i {
		if h := d.classes[j].history; d.classes[j].memory > 0 && s.Runs-h.Tried < 2 {
			return math.MaxInt
		}
	}
	return 0
}

// own returns the bound of a class by its own samples.
func (d *decision) own(e *estimate) float64 {
	return d.objective(d.low(e), e.class)
}

// excluded returns the reason why a class cannot suffice, known without trying
// it. The largest class is never excluded: a measured size must not prevent a
// job from running.
func (d *decision) excluded(i int) string {
	e := &d.classes[i]
	memory := d.question.Memory[e.class]
	if i < len(d.classes)-1 && memory > 0 && d.peak > memory && e.good == 0 {
		return fmt.Sprintf("runs needed up to %s, it has %s", inBytes(d.peak), inBytes(memory))
	}
	return ""
}

// dominated reports whether a larger class has run out of memory and never
// succeeded: then this one has too little, too.
func (d *decision) dominated(i int) bool {
	for _, o := range d.classes[i+1:] {
		if o.memory > 0 && o.good == 0 {
			return true
		}
	}
	return false
}

// restrain drops probes while another is outstanding, or if they exceed the
// remaining budget. The first runs are exempt: there is no cost yet to take a
// share of.
func (d *decision) restrain(s Statistics) {
	if len(d.probes) > 0 && len(s.live(d.question.Now)) > 0 {
		d.probes, d.whyNot = nil, inFlight
	}
	if s.Runs-s.Since < young {
		return
	}
	d.probes = slices.DeleteFunc(d.probes, func(p probe) bool {
		if s.Spent.Probes+d.extra(p.class) <= d.policy.ProbeBudget*s.Spent.Total {
			return false
		}
		d.whyNot = overBudget
		return true
	})
}

// extra returns the expected additional cost of a probe over a run on the
// settled class, in core-seconds. A probe of a class that is probably too small
// costs its timeout.
func (d *decision) extra(i int) float64 {
	e := d.classes[i]
	switch {
	case e.bad > e.good:
		return e.timeout.Seconds() * float64(e.class)
	case e.good > 0:
		return max(0, e.centre*float64(e.class)-d.usual())
	}
	return max(0, e.least*float64(e.class)-d.usual())
}

// usual returns the cost of a run on the settled class, in core-seconds; 0 if
// unknown.
func (d *decision) usual() float64 {
	e := d.classes[d.settled]
	return e.centre * float64(e.class)
}

func (d *decision) selection(i int, probed *probe) Selection {
	e := d.classes[i]
	selection := Selection{Class: e.class, Timeout: e.timeout, Expected: e.timeout, Why: d.why, Choices: d.choices()}
	if e.good > 0 && e.median < e.timeout {
		selection.Expected = e.median
	}
	if probed != nil {
		selection.Probe, selection.Why = d.best >= 0, probed.why
	}
	return selection
}
