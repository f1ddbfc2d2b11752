package stats

import (
	"fmt"
	"iter"
)

// Difference describes both sides of a series and the change between them. It decides nothing.
type Difference struct {
	A, B Side
	// Change compares the aggregated values, MedianChange the medians.
	Change, MedianChange Change
	// Shift is the Hodges-Lehmann estimate of the relative change and Interval its confidence interval, nil for the reason in
	// NoInterval; see [Result].
	Shift      Change
	Interval   *Interval
	NoInterval string
	Warnings   []string
}

// Differences describes each series as [Compare] does, without a decision, one after the other in their order. Each is valid
// until the next: thousands need not be in memory at once. The input is not changed. Series in the order of their keys take the least time.
//
// The error is for options out of range and for series that contradict each other ([ErrInconsistent]).
func Differences(series []*Series, options Options) (iter.Seq2[int, *Difference], error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("comparing: %w", err)
	}
	if err := validateSeries(series); err != nil {
		return nil, fmt.Errorf("comparing: %w", err)
	}
	return func(yield func(int, *Difference) bool) {
		var d Difference
		work := newWork(series)
		for i, s := range series {
			if d = work.difference(s, options.Alpha); !yield(i, &d) {
				return
			}
		}
	}, nil
}

// work describes many series with the same memory. It is not safe for concurrent use.
type work struct {
	ranks  rankTest
	memory arena
	// intervals are given out one after the other.
	intervals []Interval
}

func newWork(series []*Series) *work {
	w := &work{intervals: make([]Interval, 0, len(series))}
	values := 0
	for _, s := range series {
		values += len(s.A) + len(s.B)
	}
	w.memory.grow(values)
	return w
}

func (w *work) difference(s *Series, alpha float64) Difference {
	d := Difference{A: describe(s.A, s.Aggregation, &w.memory), B: describe(s.B, s.Aggregation, &w.memory)}
	if s.EnvironmentsDiffer {
		d.Warnings = append(d.Warnings, "the sides were measured in different environments")
	}
	if missing := missingValues(d.A, d.B); missing != "" {
		undefined := Change{Undefined: missing}
		d.Change, d.MedianChange, d.Shift, d.NoInterval = undefined, undefined, undefined, missing
		return d
	}
	d.Change = relativeChange(d.A.Value, d.B.Value)
	d.MedianChange = relativeChange(d.A.Median, d.B.Median)
	d.Warnings = append(d.Warnings, sideWarnings(s, "A", &d.A)...)
	d.Warnings = append(d.Warnings, sideWarnings(s, "B", &d.B)...)
	if d.steady(s) {
		d.Shift, d.NoInterval = d.Change, "an exact metric has no noise"
		return d
	}
	d.shift(alpha, w)
	return d
}

// steady reports whether an exact metric has shown no noise.
func (d *Difference) steady(s *Series) bool {
	return s.Exact && d.A.Min == d.A.Max && d.B.Min == d.B.Max
}

func sideWarnings(s *Series, name string, side *Side) []string {
	var warnings []string
	switch {
	case s.Exact && side.Min != side.Max:
		warnings = append(warnings, fmt.Sprintf("%s: an exact metric varies, so it is treated as a noisy one", name))
	case !s.Exact && side.N == 1:
		warnings = append(warnings, fmt.Sprintf("%s: n=1, nothing is known of its noise", name))
	case !s.Exact && side.Min == side.Max && (s.Unit == "sec" || s.Unit == "ns"):
		// Counts, such as allocations, are often all equal; times never are.
		warnings = append(warnings, fmt.Sprintf("%s: all %d values are equal; a coarse clock or copied values?", name, side.N))
	}
	if side.Outliers > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %s of %d beyond 10 robust standard deviations",
			name, plural(side.Outliers, "value"), side.N))
	}
	return warnings
}

func (d *Difference) shift(alpha float64, w *work) {
	if d.A.Min <= 0 || d.B.Min <= 0 {
		d.NoInterval = "not all values are positive"
		d.Shift = Change{Undefined: d.NoInterval}
		return
	}
	estimate, interval, ok := w.ranks.shiftInterval(d.A.ascending, d.B.ascending, alpha)
	if !finite(estimate) || !finite(interval.Low) || !finite(interval.High) {
		d.NoInterval = "some values are too close to zero"
		d.Shift = Change{Undefined: d.NoInterval}
		return
	}
	d.Shift = Change{Value: estimate}
	if !ok {
		d.NoInterval = tooFew(d.A, d.B, alpha)
		return
	}
	w.intervals = append(w.intervals, interval)
	d.Interval = &w.intervals[len(w.intervals)-1]
}
