package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Compare compares the two sides of every series. The package comment defines when a difference is significant. Series are
// never dropped: one that cannot be compared says so in its result. The input is not changed.
//
// The error is for options out of range and for series that contradict each other ([ErrInconsistent]).
func Compare(series []Series, options Options) (Comparison, error) {
	if err := options.validate(); err != nil {
		return Comparison{}, fmt.Errorf("comparing: %w", err)
	}
	all := make([]*Series, len(series))
	for i := range series {
		all[i] = &series[i]
	}
	if err := validateSeries(all); err != nil {
		return Comparison{}, fmt.Errorf("comparing: %w", err)
	}
	c := Comparison{Results: make([]Result, len(series)), Options: options}
	work := newWork(all)
	for i, s := range all {
		c.Results[i] = work.measure(s, options)
	}
	c.Tests = adjust(c.Results)
	limits := limits{Options: options, tests: c.Tests, quantiles: map[int]float64{}}
	for i := range c.Results {
		decide(&c.Results[i], limits)
	}
	slices.SortFunc(c.Results, func(x, y Result) int { return x.Key.Compare(y.Key) })
	return c, nil
}

// measure fills in everything that depends on the series alone; the decision needs the whole comparison.
func (w *work) measure(s *Series, options Options) Result {
	d := w.difference(s, options.Alpha)
	r := Result{
		Key: s.Key, Unit: s.Unit, Better: s.Better, Exact: s.Exact, Precise: s.Precise, Category: s.Category, InTurns: s.InTurns,
		A: d.A, B: d.B, Change: d.Change, MedianChange: d.MedianChange, Shift: d.Shift, Interval: d.Interval, NoInterval: d.NoInterval,
		Threshold: HistoryThreshold(s.History, cmp.Or(s.Threshold, options.Threshold)),
		Basis:     ByNothing, P: 1, AdjustedP: 1, Warnings: d.Warnings,
	}
	if r.Why = missingValues(r.A, r.B); r.Why != "" {
		return r
	}
	if r.Change.Defined() {
		r.Factor = factorOf(r.Change.Value, r.Threshold.Value)
	}
	if d.steady(s) {
		r.Basis = ByEquality
		return r
	}
	outcome := w.ranks.test(r.A.ascending, r.B.ascending)
	r.Delta = outcome.delta
	if attainableP(r.A.N, r.B.N) < options.Alpha {
		r.Basis, r.Tested, r.P = ByTest, true, outcome.p
	} else if r.Threshold.FromHistory {
		r.Basis = ByHistory
	}
	return r
}

func missingValues(a, b Side) string {
	name := func(a bool) string {
		if a {
			return "A"
		}
		return "B"
	}
	switch {
	case a.N == 0 && b.N == 0:
		return "neither side has values"
	case a.N == 0 || b.N == 0:
		return name(a.N == 0) + " has no values"
	case a.ascending == nil || b.ascending == nil:
		return name(a.ascending == nil) + " has a value that is not a finite number"
	default:
		return ""
	}
}

// adjust sets the p values corrected by Holm's method and returns the number of tests.
//
// Source: S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979).
func adjust(results []Result) int {
	var tested []*Result
	for i := range results {
		if results[i].Tested {
			tested = append(tested, &results[i])
		}
	}
	slices.SortStableFunc(tested, func(x, y *Result) int { return cmp.Compare(x.P, y.P) })
	largest := 0.0
	for i, r := range tested {
		largest = max(largest, min(1, float64(len(tested)-i)*r.P))
		r.AdjustedP = largest
	}
	return len(tested)
}

// limits holds the limits below which changes of a comparison count as noise.
type limits struct {
	Options
	tests     int
	quantiles map[int]float64 // Student's quantile by degrees of freedom, computed once
}

// decide fills in whether the difference is significant, and the consequences.
func decide(r *Result, limits limits) {
	r.Margin = limits.noiseMargin(*r)
	switch r.Basis {
	case ByNothing:
		r.Verdict = Undecided
		if r.Why == "" {
			r.Why = tooFew(r.A, r.B, limits.Alpha)
		}
	case ByEquality:
		r.Significant, r.Why = decideExact(*r)
	case ByHistory:
		r.Significant, r.Why = decideByHistory(*r)
	case ByTest:
		r.Significant, r.Why = decideByTest(*r, limits.Alpha)
	}
	if r.Change.Defined() {
		r.Magnitude = MagnitudeOf(r.Change.Value, r.Threshold.Value, r.Precise)
	}
	if !r.Significant {
		return
	}
	r.Verdict = Regression
	if (r.B.Value < r.A.Value) == (r.Better == LowerIsBetter) {
		r.Verdict = Improvement
	}
	r.Relevant = r.Magnitude >= Small || r.Magnitude == MagnitudeUndefined
	switch {
	case r.Basis == ByEquality, r.AdjustedP < limits.Alpha:
		r.Confirmed = true
	case r.Basis == ByHistory:
		r.WhyNotConfirmed = "decided by history, not by a test"
	default:
		r.WhyNotConfirmed = fmt.Sprintf("corrected for %s, p=%s; %d values per side are enough to confirm",
			plural(limits.tests, "test"), formatP(r.AdjustedP), MinSamples(limits.Alpha/float64(limits.tests)))
	}
}

// noiseMargin is the change that noise alone is not expected to reach in any series of the comparison: Student's margin
// for the difference of two means at alpha / tests (Bonferroni), with the sessions' variance added to that of the means
// where the sides are two sessions.
func (l limits) noiseMargin(r Result) float64 {
	if !r.Tested {
		return 0
	}
	spread, degrees := pooledSpread(r.A, r.B)
	if spread == 0 {
		return 0
	}
	quantile, known := l.quantiles[degrees]
	if !known {
		quantile = studentQuantile(l.Alpha/2/float64(l.tests), degrees)
		l.quantiles[degrees] = quantile
	}
	sessions := l.SessionVariance
	if r.InTurns {
		sessions = 0
	}
	return spread * quantile * math.Sqrt(sessions+1/float64(r.A.N)+1/float64(r.B.N))
}

func decideExact(r Result) (bool, string) {
	if r.A.Value == r.B.Value {
		return false, "exact metric, no change"
	}
	return true, "exact metric, any change counts"
}

func decideByHistory(r Result) (bool, string) {
	n := sizes(r.A, r.B)
	switch {
	case !r.Change.Defined():
		return false, fmt.Sprintf("n=%s is too few for a test, and %s", n, r.Change.Undefined)
	case r.A.Value == r.B.Value:
		return false, "no change"
	case math.Abs(r.Change.Value) < r.Threshold.Value:
		return false, belowThreshold(r)
	default:
		return true, fmt.Sprintf("n=%s is too few for a test, but change %s exceeds the threshold %s (%s)",
			n, formatChange(r.Change), Percent(r.Threshold.Value), r.Threshold.Source)
	}
}

func decideByTest(r Result, alpha float64) (bool, string) {
	byAggregate, byMedian := r.B.Value-r.A.Value, r.B.Median-r.A.Median
	p := "p=" + formatP(r.P)
	switch {
	case r.P >= alpha:
		return false, p
	case byAggregate == 0:
		return false, "the compared values are equal, although " + p
	case byAggregate*byMedian <= 0:
		return false, fmt.Sprintf("%s, but the compared values and the medians do not change in the same direction", p)
	case r.Change.Defined() && math.Abs(r.Change.Value) < r.Threshold.Value:
		return false, belowThreshold(r)
	case min(math.Abs(byAggregate), math.Abs(byMedian)) < r.Margin:
		return false, withinNoise(r)
	case !r.Change.Defined():
		return true, fmt.Sprintf("%s, and beyond the noise; no relative change: %s", p, r.Change.Undefined)
	default:
		return true, fmt.Sprintf("%s, change %s beyond the threshold %s and the noise",
			p, formatChange(r.Change), Percent(r.Threshold.Value))
	}
}

func belowThreshold(r Result) string {
	return fmt.Sprintf("change %s is below the threshold %s (%s)",
		formatChange(r.Change), Percent(r.Threshold.Value), r.Threshold.Source)
}

func withinNoise(r Result) string {
	if r.A.Median <= 0 || !r.Change.Defined() {
		return fmt.Sprintf("p=%s, but the change is within the noise of %s", formatP(r.P), formatNumber(r.Margin))
	}
	return fmt.Sprintf("p=%s, but change %s (of medians %s) is within the noise of %s",
		formatP(r.P), formatChange(r.Change), formatChange(r.MedianChange), Percent(r.Margin/r.A.Median))
}

// tooFew describes the values that a test would need: "n=3+3 cannot reach p<0.05; at least 4 per side are needed".
func tooFew(a, b Side, alpha float64) string {
	return fmt.Sprintf("n=%s cannot reach p<%s; at least %d per side are needed",
		sizes(a, b), formatNumber(alpha), MinSamples(alpha))
}

// sizes writes the number of values: "5" for each side, or "5+4".
func sizes(a, b Side) string {
	if a.N == b.N {
		return fmt.Sprintf("%d per side", a.N)
	}
	return fmt.Sprintf("%d+%d", a.N, b.N)
}
