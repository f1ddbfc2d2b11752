package stats

import (
	"fmt"
	"math"
)

// Change is a relative change (0.2 means +20 %), or the reason why there is none.
type Change struct {
	// Value is the relative change; 0 when it is undefined.
	Value float64 `json:"value"`
	// Undefined is the reason why there is no value; empty if there is one.
	Undefined string `json:"undefined,omitempty"`
}

// Defined reports whether the change has a value.
func (c Change) Defined() bool { return c.Undefined == "" }

// relativeChange returns (b - a) / a. It is undefined if a is negative, or if only a is zero.
func relativeChange(a, b float64) Change {
	switch {
	case a == b:
		return Change{}
	case a == 0:
		return Change{Undefined: "the baseline is zero"}
	case a < 0:
		return Change{Undefined: "the baseline is negative"}
	}
	change := (b - a) / a
	if math.IsInf(change, 0) {
		return Change{Undefined: "the baseline is too close to zero"}
	}
	return Change{Value: change}
}

// Verdict is the conclusion about a series.
type Verdict int

const (
	// NoDifference means that no difference was shown. There may still be a small one.
	NoDifference Verdict = iota
	Improvement
	Regression
	// Undecided means that values are missing or too few for a verdict.
	Undecided
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case NoDifference:
		return "no difference"
	case Undecided:
		return "undecided"
	case Improvement:
		return "improvement"
	case Regression:
		return "regression"
	default:
		return fmt.Sprintf("Verdict(%d)", int(v))
	}
}

// MarshalText writes the verdict as its name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict's name.
func (v *Verdict) UnmarshalText(text []byte) (err error) {
	*v, err = named(text, NoDifference, Undecided)
	return err
}

// named returns the value from first to last with the given name.
func named[T interface {
	~int
	fmt.Stringer
}](text []byte, first, last T) (T, error) {
	for v := first; v <= last; v++ {
		if v.String() == string(text) {
			return v, nil
		}
	}
	return first, fmt.Errorf("%q is not the name of a %T", text, first)
}

// Basis names the evidence for a verdict.
type Basis string

const (
	// ByTest: the values of the sides were tested against each other.
	ByTest Basis = "test"
	// ByHistory: the sides are too small to be tested; the change was compared with the series' history.
	ByHistory Basis = "history"
	// ByEquality: the metric is exact, any change counts.
	ByEquality Basis = "exact"
	// ByNothing: there was no basis for a verdict.
	ByNothing Basis = "none"
)

// Result is the comparison of one series.
type Result struct {
	Key
	Unit     string   `json:"unit"`
	Better   Better   `json:"better"`
	Exact    bool     `json:"exact"`
	Precise  bool     `json:"precise"`
	Category Category `json:"category"`
	InTurns  bool     `json:"in_turns,omitempty"`
	A        Side     `json:"a"`
	B        Side     `json:"b"`

	// Change compares the aggregated values, MedianChange the medians.
	Change       Change `json:"change"`
	MedianChange Change `json:"median_change"`
	// Shift is the Hodges-Lehmann estimate of the relative change and Interval its confidence interval at 1 - alpha, nil for
	// the reason in NoInterval. They describe the values as a whole: a change of minima may lie outside.
	Shift      Change    `json:"shift"`
	Interval   *Interval `json:"interval,omitempty"`
	NoInterval string    `json:"no_interval,omitempty"`

	// Tested is set when a rank test was done; P is its two-sided p value and AdjustedP that value corrected for the
	// number of tests in the comparison by Holm's method.
	Tested    bool    `json:"tested"`
	P         float64 `json:"p"`
	AdjustedP float64 `json:"adjusted_p"`
	// Delta is Cliff's delta, -1 to 1: how much more often a value of B is above one of A than below.
	Delta float64 `json:"delta"`

	// Threshold is the least relative change that counts; Factor is the change as a multiple of it (0 if undefined). Margin
	// is the least change that stands out from the spread, in the metric's unit.
	Threshold Threshold `json:"threshold"`
	Factor    float64   `json:"factor"`
	Margin    float64   `json:"margin"`

	// Significant is the decision, Basis the evidence for it, Why the reason in words, either way.
	Significant bool    `json:"significant"`
	Basis       Basis   `json:"basis"`
	Why         string  `json:"why"`
	Verdict     Verdict `json:"verdict"`
	// Confirmed is set when the difference is significant and also survives Holm's correction (or is exact), so that
	// the chance of even one wrong confirmation in the whole comparison is below alpha whatever the noise looks
	// like, as long as values are independent. WhyNotConfirmed is empty unless a significant one is not confirmed.
	Confirmed       bool   `json:"confirmed"`
	WhyNotConfirmed string `json:"why_not_confirmed,omitempty"`

	Magnitude Magnitude `json:"magnitude"`
	// Relevant is set for a significant change of at least small (or undefined) magnitude: what summaries count.
	Relevant bool     `json:"relevant"`
	Warnings []string `json:"warnings,omitempty"`
}

// Comparison is the result of comparing two artifacts.
type Comparison struct {
	// Results are sorted by metric, then test case.
	Results []Result `json:"results"`
	// Tests is the number of rank tests: the family that was corrected for.
	Tests int `json:"tests"`
	// Options are the options used.
	Options Options `json:"options"`
}
