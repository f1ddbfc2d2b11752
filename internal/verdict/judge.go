package verdict

import (
	"fmt"
	"math"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/paired"
)

// Verdict is the conclusion about one series, with what it rests on.
type Verdict struct {
	Kind Kind `json:"kind"`
	// Change is the Hodges-Lehmann estimate of the relative change, 0.02 meaning +2 %; 0 if it is undefined.
	Change float64 `json:"change"`
	// Interval of the relative change; nil if there is none. It lies within ±Delta (see [Within]) if and only if
	// Kind is NoDifference.
	Interval *stats.Interval `json:"interval,omitempty"`
	// Pairs is the number of pairs with usable values, Disturbed that of those during which something else used the machine.
	// Sessions is the number of sessions with such pairs.
	Pairs     int `json:"pairs"`
	Sessions  int `json:"sessions"`
	Disturbed int `json:"disturbed,omitempty"`
	// P is the p value of the signed-rank test, 1 if nothing was tested. Level is what it must be below.
	P     float64 `json:"p"`
	Level float64 `json:"level"`
	// Sees is the relative change that would have been called changed with this evidence; 0 if none would have been, and for
	// exact values, where any change is seen.
	Sees float64 `json:"sees,omitempty"`
	// Reason says how the series was decided, or begins with the reason why not, such as "noise".
	Reason string `json:"reason"`
	// Needs says what would decide the series; empty if it is decided.
	Needs string `json:"needs,omitempty"`
}

// rounding is the error in the logarithm of a ratio that must decide nothing.
const rounding = 1e-12

// Within reports whether an interval of a relative change lies within ±delta: factors from 1/(1+delta) to 1+delta.
// Rounding errors do not count, unless delta is 0.
func Within(interval stats.Interval, delta float64) bool {
	limit := relevant(delta)
	if limit > 0 {
		limit += rounding
	}
	return math.Log1p(interval.High) <= limit && -math.Log1p(interval.Low) <= limit
}

func within(interval *stats.Interval, delta float64) bool {
	return interval != nil && Within(*interval, delta)
}

// relative returns the relative change of a difference of logarithms. It is finite.
func relative(d float64) float64 { return math.Expm1(min(d, 700)) }

// Judge returns the verdict after the pairs so far.
//
// The series is changed if the signed-rank test gives p below the level, with at least the pairs of the first look that can
// confirm; if the estimated change comes near Delta and reaches what pairs and sessions together leave open at that level, at
// least three standard deviations of the offset that sides have in sessions; and if no session has the other sign at p = 0.1 of its own
// pairs. With heavy tails, six pairs lie on the wrong side by chance in one session of a hundred. Near Delta means
// three quarters of it, since half of the estimates of a change of exactly Delta are below it, however many pairs there are; after the
// last look any estimate will do. In any case the interval reaches Delta. Disturbed pairs count here,
// since the load meets both sides. A series without history ([Evidence.Young]) must show the change in four agreeing sessions.
//
// There is no difference if the whole interval lies within ±Delta. Only undisturbed pairs of sessions with at most a fifth
// disturbed support this. The interval that is returned rests on them if it can, except beside a change. One that can
// rest only on disturbed pairs is left out if it lies within ±Delta.
//
// Values that are not positive have no relative change, and a pair with one counts as disturbed and for nothing else. With more
// than a fifth of such pairs, the series is undecided.
func (f Family) Judge(e Evidence) Verdict {
	if v, ok := f.judgeExact(e); ok {
		return v
	}
	s := surveyOf(e.Sessions)
	v := Verdict{
		P: 1, Level: f.levelOf(len(e.Sessions)), Disturbed: s.disturbed,
		Pairs: s.measured - s.unusable, Sessions: len(s.all),
	}
	if s.broken() || len(s.all) == 0 {
		v.Reason, v.Needs = unusable(s)
		return v
	}
	all := f.estimate(e, s.all, v.Level)
	quiet := all
	if !s.undisturbed() {
		quiet = f.estimate(e, s.quiet, v.Level)
	}
	v.P, v.Change, v.Interval = all.p, relative(all.center), all.shown
	v.Sees = f.sees(e, all)
	if quiet.shown != nil {
		v.Change, v.Interval = relative(quiet.center), quiet.shown
	}
	if within(quiet.shown, e.Delta) {
		v.Kind, v.Reason = NoDifference, withinDelta(e)
		return v
	}
	_, more := f.NextLook(s.measured)
	if f.confirmed(all, v.Level) && (all.relevant || !more) && !within(all.shown, e.Delta) {
		v.Kind, v.Change, v.Interval = Changed, relative(all.center), all.shown
		v.Reason = agreement(v, all.oneSign)
		return v
	}
	if quiet.shown == nil && within(all.shown, e.Delta) {
		v.Interval = nil
	}
	v.Reason, v.Needs = f.undecided(e, all, quiet, v)
	return v
}

// Settled reports whether no further look is needed: the series is decided, or no look could decide it.
func (f Family) Settled(e Evidence) bool { return f.Judge(e).Kind != Undecided || f.Hopeless(e) }

// Hopeless reports whether no look could decide a series that is undecided.
func (f Family) Hopeless(e Evidence) bool {
	s := surveyOf(e.Sessions)
	switch {
	case s.measured == 0:
		return !f.Decidable(e)
	case s.unusable == s.measured:
		return true
	default:
		return f.tooFewSessions(e)
	}
}

// Decidable reports whether the looks can decide the series, as far as that is known before the first. They cannot where
// sessions count as one pair each, and no machine time should be spent there. Series without spread within sessions may still
// turn out to be equal.
func (f Family) Decidable(e Evidence) bool {
	return e.Exact || !(e.SigmaWithin > 0) || !f.tooFewSessions(e)
}

// Undecidable returns the verdict on any series that is not [Family.Decidable].
func (f Family) Undecidable() Verdict {
	v := Verdict{P: 1, Level: f.Level()}
	v.Reason = fmt.Sprintf("%s: %s; the %d of a comparison are too few, so none is measured", Noise, onePairEach, len(f.Looks))
	v.Needs = f.moreSessions()
	return v
}

// tooFewSessions reports whether sessions that count as one pair each suffice neither for a test nor for an interval.
func (f Family) tooFewSessions(e Evidence) bool {
	m := len(f.Looks)
	return e.onePerSession() && m < f.fewest() && m < f.Confirms()
}

// judgeExact judges values that do not vary; ok is false if these do, or are not meant to be exact. Load does not matter to
// exact values. Of other metrics, undisturbed values that are all equal are decided after the first look: the interval of
// six such pairs is a point.
func (f Family) judgeExact(e Evidence) (v Verdict, ok bool) {
	a, b, ok := constant(e.Sessions)
	if !ok {
		return Verdict{}, false
	}
	s := surveyOf(e.Sessions)
	v = Verdict{P: 1, Level: f.levelOf(len(e.Sessions)), Pairs: s.measured, Disturbed: s.disturbed}
	for _, session := range e.Sessions {
		v.Sessions += min(len(session), 1)
	}
	confidence := 1.0
	if !e.Exact {
		if a != b || !s.undisturbed() || s.measured < looks[0] {
			return Verdict{}, false
		}
		confidence -= paired.Smallest(s.measured)
	}
	d, defined := logRatio(a, b)
	if defined {
		v.Change = relative(d)
		v.Interval = &stats.Interval{Low: v.Change, High: v.Change, Confidence: confidence}
	}
	switch {
	case a == b:
		v.Kind, v.Reason = NoDifference, "all values are equal"
	case defined && Within(*v.Interval, e.Delta):
		v.Kind, v.Reason = NoDifference, withinDelta(e)
	default:
		v.Kind, v.Reason = Changed, exactChange(a, b, defined)
	}
	return v, true
}

// constant returns the values of both sides, if each side has a single finite one.
func constant(sessions [][]Pair) (a, b float64, ok bool) {
	for _, session := range sessions {
		for _, pair := range session {
			if !ok {
				a, b, ok = pair.A, pair.B, true
			}
			if pair.A != a || pair.B != b { // also if one is not a number
				return 0, 0, false
			}
		}
	}
	return a, b, ok && !math.IsInf(a, 0) && !math.IsInf(b, 0)
}

// estimate is the result of a sample, on logarithms.
type estimate struct {
	n, sessions int // differences and sessions
	unit        []float64
	p           float64
	center      float64
	offset      float64         // standard deviation of the mean offset between the sides that the pairs do not show
	apart       float64         // the largest distance of a session from the center
	enough      bool            // pairs and sessions suffice for a change
	oneSign     bool            // all sessions have the sign of the center
	opposed     bool            // a session has the other sign, beyond what its own pairs leave open
	relevant    bool            // the center comes near Delta
	open        float64         // the change that pairs and sessions leave open at the level of the test; infinite if they show none
	short       float64         // the same towards no change: what the center must reach
	shown       *stats.Interval // of the relative change; nil if there are too few pairs
}

// confidence returns the level of the intervals: two one-sided tests at 5 %, divided by the number of looks.
func (f Family) confidence() float64 { return 1 - 2*equivalence/float64(max(len(f.Looks), 1)) }

// estimate estimates the change from a sample, for a test at a level.
func (f Family) estimate(e Evidence, s sample, level float64) estimate {
	if len(s) == 0 {
		return estimate{p: 1}
	}
	r := estimate{unit: s.pairs(), sessions: len(s), oneSign: true}
	r.offset = e.tau() * e.spread(s) * math.Sqrt(2/float64(len(s)))
	centers := make([]float64, len(s))
	for i, session := range s {
		centers[i] = paired.Estimate(session)
	}
	if e.onePerSession() {
		r.unit, r.offset = centers, 0 // the offsets are part of the differences
	}
	r.n = len(r.unit)
	r.p = paired.P(r.unit)
	r.center = paired.Estimate(r.unit)
	r.enough = f.enough(r.n) && (!e.Young || r.sessions >= youngSessions && e.agree(s, r.center))
	for i, center := range centers {
		r.apart = max(r.apart, math.Abs(center-r.center))
		if center*r.center <= 0 {
			r.oneSign = false
			r.opposed = r.opposed || e.onePerSession() || paired.P(s[i]) <= contradiction
		}
	}
	r.relevant = math.Abs(r.center) >= nearlyDelta*e.relevant()-rounding
	r.open, r.short = math.Inf(1), math.Inf(1)
	if tested, ok := r.interval(1 - level); ok {
		r.short = max(r.center-tested.Low, offsets*r.offset)
		if r.center < 0 {
			r.short = max(tested.High-r.center, offsets*r.offset)
		}
		r.open = max(r.center-tested.Low, tested.High-r.center, offsets*r.offset)
	}
	if shown, ok := r.interval(f.confidence()); ok {
		r.shown = &stats.Interval{Low: relative(shown.Low), High: relative(shown.High), Confidence: shown.Confidence}
	}
	return r
}

// interval returns the interval of the change: that of the differences, widened by the offset. ok is false if there are too
// few of them.
func (r estimate) interval(confidence float64) (widened paired.Range, ok bool) {
	walsh, ok := paired.Interval(r.unit, confidence)
	if !ok {
		return paired.Range{}, false
	}
	widening := r.offset * math.Sqrt2 * math.Erfinv(confidence) // by the quantile of the normal distribution
	return paired.Range{
		Low:        r.center - math.Hypot(r.center-walsh.Low, widening),
		High:       r.center + math.Hypot(walsh.High-r.center, widening),
		Confidence: walsh.Confidence,
	}, true
}

// confirmed reports whether there is a change, relevant or not.
func (f Family) confirmed(r estimate, level float64) bool {
	return r.enough && r.p < level && !r.opposed && r.exceeds()
}

// exceeds reports whether the change is larger than what pairs and sessions leave open: the interval at the level of the test does not
// contain 0.
func (r estimate) exceeds() bool { return math.Abs(r.center) >= r.short-rounding }

// enough reports whether a number of pairs can be called changed.
func (f Family) enough(n int) bool { return f.Confirms() > 0 && n >= f.Confirms() }

// sees returns the relative change that the same differences, shifted, would need to be called changed; 0 if no shift would
// do.
func (f Family) sees(e Evidence, r estimate) float64 {
	if !r.enough || math.IsInf(r.open, 1) {
		return 0
	}
	return relative(max(e.relevant(), r.open, r.apart))
}

// agree reports whether the sessions differ from each other by no more than their pairs and the usual offsets of sides
// explain.
func (e Evidence) agree(s sample, center float64) bool {
	spread := e.spread(s)
	for _, session := range s {
		deviation := spread * math.Sqrt2 * math.Hypot(math.Sqrt(math.Pi/3/float64(len(session))), e.tau())
		if math.Abs(paired.Estimate(session)-center) > agreeing*deviation {
			return false
		}
	}
	return true
}
