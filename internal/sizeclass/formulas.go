package sizeclass

import (
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Factor is f = (L/s)^x: how many times as long as on the class reference a job
// may take on class, with exponent x (specification of size classes, acceptable
// execution time). Only the ratio of the classes counts.
func Factor(reference, class bench.SizeClass, exponent float64) float64 {
	return math.Pow(float64(reference)/float64(class), exponent)
}

// Objective is time × class^x: what the best class has least of.
func Objective(seconds float64, class bench.SizeClass, exponent float64) float64 {
	return seconds * math.Pow(float64(class), exponent)
}

// AcceptableTime is A = median × f, where median is that of the successes on the
// largest class: the longest a job may take on a class whose factor is f. The
// specification wants A to be at least the minimum as well; its implementation
// forgets that, so that a job of milliseconds would be too slow on a small class.
func AcceptableTime(median time.Duration, f float64, minimum time.Duration) time.Duration {
	return max(seconds(median.Seconds()*f), minimum)
}

// Timeout is t = A × k, at most the job's own timeout.
func Timeout(acceptable time.Duration, multiplier float64, original time.Duration) time.Duration {
	return min(seconds(acceptable.Seconds()*multiplier), original)
}

// Median of durations: of an even number the mean of the two middle ones; of none
// 0. The argument is sorted.
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
