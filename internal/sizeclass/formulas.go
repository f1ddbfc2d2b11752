package sizeclass

import (
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Factor returns f = (L/s)^x: how many times as long a job may take on class as
// on the class reference, with exponent x (specification of size classes,
// acceptable execution time). Only the ratio of the classes matters.
func Factor(reference, class bench.SizeClass, exponent float64) float64 {
	return math.Pow(float64(reference)/float64(class), exponent)
}

// Objective returns time × class^x, which is least for the best class.
func Objective(seconds float64, class bench.SizeClass, exponent float64) float64 {
	return seconds * math.Pow(float64(class), exponent)
}

// AcceptableTime returns A = median × f, with the median of the successes on
// the largest class: the longest time a job may take on a class with factor f.
// A is at least the minimum, as the specification says. The specification's
// implementation omits that, so a job of milliseconds would be too slow on a small class.
func AcceptableTime(median time.Duration, f float64, minimum time.Duration) time.Duration {
	return max(seconds(median.Seconds()*f), minimum)
}

// Timeout returns t = A × k, at most the job's own timeout.
func Timeout(acceptable time.Duration, multiplier float64, original time.Duration) time.Duration {
	return min(seconds(acceptable.Seconds()*multiplier), original)
}

// Median returns the median of durations: the mean of the two middle ones of an
// even number, 0 of none. It sorts its argument.
func Median(d []time.Duration) time.Duration {
	slices.Sort(d)
	switch n := len(d); {
	case n == 0:
		return 0
	case n%2 == 1:
		return d[n/2]
	default:
		return d[n/2-1] + (d[n/2]-d[n/2-1])/2
	}
}

// seconds converts without overflow.
func seconds(s float64) time.Duration {
	const longest = float64(math.MaxInt64 / 4)
	return time.Duration(min(s*float64(time.Second), longest))
}
