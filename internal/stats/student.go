package stats

import "math"

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

// studentTail is P(T > t) for t >= 0: half of the regularised incomplete beta function I_x(v/2, 1/2) at
// x = v / (v + t^2). Source: Abramowitz and Stegun, 26.7.1.
func studentTail(t float64, degrees int) float64 {
	v := float64(degrees)
	return incompleteBeta(v/(v+t*t), v/2, 0.5) / 2
}

// incompleteBeta is the regularised incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and
// Stegun, 26.5.8) evaluated with the modified Lentz algorithm.
func incompleteBeta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // the fraction converges fast only below this
		return 1 - incompleteBeta(1-x, b, a)
	}
	lgamma := func(v float64) float64 {
		g, _ := math.Lgamma(v)
		return g
	}
	front := math.Exp(lgamma(a+b) - lgamma(a) - lgamma(b) + a*math.Log(x) + b*math.Log1p(-x))
	const tiny = 1e-300 // in place of a zero denominator
	nonZero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/nonZero(1-(a+b)*x/(a+1))
	fraction := d
	for i := 1; i <= 500; i++ {
		m := float64(i)
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / nonZero(1+even*d)
		c = nonZero(1 + even/c)
		fraction *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / nonZero(1+odd*d)
		c = nonZero(1 + odd/c)
		fraction *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return front * fraction / a
}
