package stats

import "github.com/aclements/go-moremath/mathx"

// studentQuantile returns the t with P(T > t) = tail for Student's distribution; tail is in (0, 0.5).
func studentQuantile(tail float64, degrees int) float64 {
	low, high := 0.0, 1.0
	for studentTail(high, degrees) > tail {
		low, high = high, 2*high
		if high > 1e12 { // one degree of freedom and a tail of 1e-12: nothing is beyond this margin anyway
			return high
		}
	}
	for range 200 {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if studentTail(middle, degrees) > tail {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// studentTail returns P(T > t) for t >= 0: half of the regularised incomplete beta function I_x(v/2, 1/2) at
// x = v / (v + t^2). Source: Abramowitz and Stegun, 26.7.1.
//
// It uses only the beta function of a library: the libraries' distributions lose small tails by subtracting from 1 or
// inverting in few steps.
func studentTail(t float64, degrees int) float64 {
	v := float64(degrees)
	return mathx.BetaInc(v/(v+t*t), v/2, 0.5) / 2
}
