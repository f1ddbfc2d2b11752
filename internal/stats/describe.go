package stats

import (
	"math"
	"slices"
)

// Side describes the values of one side.
type Side struct {
	// N is the number of values.
	N int `json:"n"`
	// Value is the aggregate of the values. Value, Median, Min and Max are 0 if N is 0 or a value is not a finite number.
	Value  float64 `json:"value"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Spread is the sample standard deviation, in the metric's unit; 0 for fewer than two values.
	Spread float64 `json:"spread"`
	// Outliers counts values further than 10 robust standard deviations from the median (|x - median| > 14.826 MAD). They
	// are kept. If more than half of the values are equal there are none.
	Outliers int `json:"outliers,omitempty"`

	ascending []float64
}

// Describe describes values. They need no order and are not changed.
func Describe(values []float64, aggregation Aggregation) Side {
	var memory arena
	return describe(values, aggregation, &memory)
}

// arena gives out memory for the values of many sides in large pieces.
type arena struct{ rest []float64 }

// grow makes room for n more values.
func (m *arena) grow(n int) { m.rest = make([]float64, 0, n) }

// clone returns a copy of values that shares its memory with others.
func (m *arena) clone(values []float64) []float64 {
	n := len(values)
	if cap(m.rest) < n {
		m.grow(n)
	}
	out := append(m.rest, values...)
	m.rest = out[n:]
	return out[:n:n]
}

// Known reports whether the side has values, all of them finite numbers. A side that was read from JSON is not known.
func (s Side) Known() bool { return s.ascending != nil }

// outlierDistance is 10 robust standard deviations in units of the median absolute deviation: 10 x 1.4826.
const outlierDistance = 14.826

func describe(values []float64, aggregation Aggregation, memory *arena) Side {
	s := Side{N: len(values)}
	if s.N == 0 || !allFinite(values) {
		return s
	}
	s.ascending = memory.clone(values)
	slices.Sort(s.ascending)
	s.Value = aggregation.of(s.ascending)
	s.Median = median(s.ascending)
	s.Min, s.Max = s.ascending[0], s.ascending[s.N-1]
	s.Spread = math.Sqrt(squaredDeviations(values) / float64(max(s.N-1, 1)))
	if mad := medianAbsoluteDeviation(s.ascending, s.Median); mad > 0 {
		for _, v := range values {
			if math.Abs(v-s.Median) > outlierDistance*mad {
				s.Outliers++
			}
		}
	}
	return s
}

// largestValue keeps squares of values finite. No measured value comes near it.
const largestValue = 1e150

func allFinite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !finite(v) })
}

func finite(v float64) bool { return math.Abs(v) <= largestValue }

func median(ascending []float64) float64 {
	n := len(ascending)
	if n%2 == 1 {
		return ascending[n/2]
	}
	return ascending[n/2-1]/2 + ascending[n/2]/2
}

// medianAbsoluteDeviation returns the median distance of ascending values from a center among them. The nearest values lie to both
// sides of it, so that no distances need sorting.
func medianAbsoluteDeviation(ascending []float64, center float64) float64 {
	n := len(ascending)
	above, _ := slices.BinarySearch(ascending, center)
	below := above - 1
	before, distance := 0.0, 0.0 // of the last two values that were passed
	for range n/2 + 1 {
		before = distance
		if below < 0 || above < n && ascending[above]-center < center-ascending[below] {
			distance = ascending[above] - center
			above++
		} else {
			distance = center - ascending[below]
			below--
		}
	}
	if n%2 == 1 {
		return distance
	}
	return before/2 + distance/2
}

// squaredDeviations returns the sum of squared distances from the mean, computed in two passes so that a small spread on a
// large value is not lost.
func squaredDeviations(values []float64) float64 {
	if !slices.ContainsFunc(values, func(v float64) bool { return v != values[0] }) {
		return 0 // exactly, whatever the mean is rounded to
	}
	mean := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

// clipDistance caps a value's distance from its side's median in the pooled spread, in units of the pooled median
// absolute deviation: 4 robust standard deviations.
const clipDistance = 4 * 1.4826

// usualValues is the number of values up to which both sides of a series are worked on without memory of their own.
const usualValues = 32

// pooledSpread returns the standard deviation within the sides, in the metric's unit, and its degrees of freedom. Values
// beyond clipDistance are clipped first (winsorised); otherwise a single disturbed value would hide any difference.
func pooledSpread(a, b Side) (spread float64, degrees int) {
	degrees = max(a.N-1, 0) + max(b.N-1, 0)
	if degrees == 0 {
		return 0, 0
	}
	var memory [usualValues]float64
	distances := memory[:0]
	for _, side := range [...]*Side{&a, &b} {
		for _, v := range side.ascending {
			distances = append(distances, math.Abs(v-side.Median))
		}
	}
	slices.Sort(distances)
	reach := clipDistance * median(distances)
	sum := 0.0
	for _, side := range [...]*Side{&a, &b} {
		values := append(distances[:0], side.ascending...)
		if reach > 0 {
			for i, v := range values {
				values[i] = min(max(v, side.Median-reach), side.Median+reach)
			}
		}
		sum += squaredDeviations(values)
	}
	return math.Sqrt(sum / float64(degrees)), degrees
}
