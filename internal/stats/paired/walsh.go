package paired

import (
	"math"
	"slices"
)

// Estimate returns the Hodges-Lehmann estimate of the shift: the median of all means of two differences, each also with
// itself (Walsh averages). It is 0 for no differences, which must be finite.
//
// Source: J. L. Hodges, E. L. Lehmann, Estimates of location based on rank tests, Ann. Math. Statist. 34 (1963).
func Estimate(differences []float64) float64 {
	if len(differences) == 0 {
		return 0
	}
	ascending := sorted(differences)
	count := averages(len(ascending))
	if count <= few {
		var list [few]float64
		all := list[:0]
		for i, x := range ascending {
			for _, y := range ascending[i:] {
				all = append(all, mean(x, y))
			}
		}
		slices.Sort(all)
		return mean(all[(count+1)/2-1], all[count/2])
	}
	lower := walsh(ascending, (count+1)/2)
	if count%2 == 1 {
		return lower
	}
	return mean(lower, following(ascending, count/2, lower))
}

// few is the number of Walsh averages up to which listing them is faster than searching.
const few = 28

// Range is a confidence interval of the shift.
type Range struct {
	Low, High  float64
	Confidence float64 // reached by the interval, at least the requested one
}

// Interval returns the narrowest interval between two Walsh averages whose confidence is at least the given one, between 0
// and 1. ok is false if the differences, which must be finite, are too few: n of them reach 1-2/2^n at most.
//
// The order statistics are those of the signed-rank distribution without ties, and both ends belong to the interval; with
// ties and zeros it then covers the shift more often, never less often.
//
// Source: G. E. Noether, Wilcoxon confidence intervals for location parameters in the discrete case, J. Amer. Statist.
// Assoc. 62 (1967).
func Interval(differences []float64, confidence float64) (r Range, ok bool) {
	n := len(differences)
	cut, p := critical(n, 1-confidence)
	if cut == 0 {
		return Range{}, false
	}
	ascending := sorted(differences)
	return Range{
		Low: walsh(ascending, cut), High: walsh(ascending, averages(n)+1-cut), Confidence: 1 - p,
	}, true
}

// critical returns the largest k for which the k-th smallest and k-th largest Walsh averages of n differences miss the shift
// with a probability p of at most alpha; 0 if there is none.
func critical(n int, alpha float64) (k int, p float64) {
	// The k-th Walsh average from below is above the shift if at most k-1 are not, and their number has the signed-rank
	// distribution. The small factor forgives the rounding of 1-confidence.
	alpha *= 1 + 1e-9
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	if n > exactLimit {
		for i := range ranks {
			ranks[i] *= 2
		}
		at := func(k int) float64 { return normalP(ranks, 2*(k-1)) }
		low, high := 0, averages(n)/2 // at(low) <= alpha < at(high+1)
		for low < high {
			middle := (low + high + 1) / 2
			if at(middle) <= alpha {
				low = middle
			} else {
				high = middle - 1
			}
		}
		if low == 0 {
			return 0, 0
		}
		return low, at(low)
	}
	// The distribution takes most of the time, and only its end counts.
	for limit := n; ; limit *= 2 {
		limit = min(limit, averages(n)/2)
		tail := tailOf(ranks, limit)
		if 2*tail[limit] <= alpha && limit < averages(n)/2 {
			continue
		}
		for s, below := range tail {
			if 2*below > alpha {
				break
			}
			k, p = s+1, 2*below
		}
		return k, p
	}
}

// averages returns the number of Walsh averages of n differences.
func averages(n int) int { return n * (n + 1) / 2 }

func mean(x, y float64) float64 { return x/2 + y/2 }

// sorted returns a sorted copy without negative zeros.
func sorted(values []float64) []float64 {
	ascending := make([]float64, len(values))
	for i, v := range values {
		ascending[i] = v + 0
	}
	slices.Sort(ascending)
	return ascending
}

// walsh returns the k-th smallest Walsh average, counted from 1, without listing them all: by bisection between averages,
// until a few remain. It is exact.
func walsh(ascending []float64, k int) float64 {
	least, most := ascending[0], ascending[len(ascending)-1]
	low, high := mean(least, least), mean(most, most)
	below, upTo := notAbove(ascending, low), averages(len(ascending))
	if below >= k {
		return low
	}
	for step := 0; upTo-below > few; step++ {
		middle := mean(low, high)
		if step > halvings || middle <= low || middle >= high { // values that lie far apart, or next to each other
			first, last := ordinal(low), ordinal(high)
			middle = number(first + int64(uint64(last-first)/2))
		}
		if middle == low {
			return high // all that remain are tied
		}
		if n := notAbove(ascending, middle); n >= k {
			high, upTo = middle, n
		} else {
			low, below = middle, n
		}
	}
	var list [few]float64
	remaining := between(ascending, low, high, list[:0])
	slices.Sort(remaining)
	return remaining[k-below-1]
}

// halvings is the number of steps after which the bisection takes half of the floating-point numbers, not of the distance.
const halvings = 40

// notAbove counts the Walsh averages that do not exceed a limit.
func notAbove(ascending []float64, limit float64) int {
	count, j := 0, len(ascending)-1
	for i, x := range ascending {
		for j >= i && mean(x, ascending[j]) > limit {
			j--
		}
		if j < i {
			break
		}
		count += j - i + 1
	}
	return count
}

// between appends the Walsh averages above one limit and not above another.
func between(ascending []float64, low, high float64, list []float64) []float64 {
	j := len(ascending) - 1
	for i, x := range ascending {
		for j >= i && mean(x, ascending[j]) > high {
			j--
		}
		for at := j; at >= i; at-- {
			average := mean(x, ascending[at])
			if average <= low {
				break
			}
			list = append(list, average)
		}
	}
	return list
}

// following returns the smallest Walsh average after the k-th one.
func following(ascending []float64, k int, average float64) float64 {
	count, j := 0, len(ascending)-1
	closest := mean(ascending[j], ascending[j])
	for i, x := range ascending {
		for j >= i && mean(x, ascending[j]) > average {
			closest = min(closest, mean(x, ascending[j]))
			j--
		}
		if j < i {
			closest = min(closest, mean(x, x))
			break
		}
		count += j - i + 1
	}
	if count > k {
		return average
	}
	return closest
}

// ordinal numbers the finite floating-point numbers in ascending order, 0 being 0.
func ordinal(v float64) int64 {
	bits := int64(math.Float64bits(v))
	if bits < 0 {
		return math.MinInt64 - bits
	}
	return bits
}

func number(ordinal int64) float64 {
	if ordinal < 0 {
		ordinal = math.MinInt64 - ordinal
	}
	return math.Float64frombits(uint64(ordinal))
}
