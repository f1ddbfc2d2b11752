package stats

import (
	"math"
	"slices"
	"sort"
)

// Up to these sizes per side the distribution of U is computed exactly, beyond them it is approximated by the normal
// distribution with corrections for ties and continuity. They are the limits of golang.org/x/perf and benchstat.
const (
	exactLimit     = 50
	exactLimitTies = 25
)

// rankTest performs two-sided Mann-Whitney U tests. It caches computed distributions, since most series of a comparison have
// equal sizes. It is not safe for concurrent use.
//
// Source: H. B. Mann, D. R. Whitney, On a test of whether one of two random variables is stochastically larger than
// the other, Ann. Math. Statist. 18 (1947).
type rankTest struct {
	tails  map[[2]int][]float64 // by sizes: P(U <= u) without ties
	ratios []float64            // memory that is used again
}

// rankResult is the outcome of a test of a against b.
type rankResult struct {
	p     float64 // two-sided: twice the smaller tail, at most 1
	delta float64 // Cliff's delta: P(b > a) - P(b < a) among the pairs
}

// test compares two sides of at least one value each, given in ascending order.
func (r *rankTest) test(a, b []float64) rankResult {
	u, tieSizes := uStatistic(a, b)
	n, m := len(a), len(b)
	result := rankResult{delta: 2*u/(float64(n)*float64(m)) - 1}
	switch {
	case len(tieSizes) == 0 && n <= exactLimit && m <= exactLimit:
		tail := r.distribution(n, m)
		smaller := min(int(u), n*m-int(u))
		result.p = min(1, 2*tail[smaller])
	case len(tieSizes) > 0 && n <= exactLimitTies && m <= exactLimitTies:
		result.p = exactWithTies(a, b)
	default:
		result.p = normalP(u, n, m, tieSizes)
	}
	return result
}

// uStatistic counts the pairs in which b is larger, a tied pair as a half, and lists the sizes of groups of equal
// values.
func uStatistic(a, b []float64) (u float64, tieSizes []int) {
	all := slices.Concat(a, b)
	slices.Sort(all)
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j] == all[i] {
			j++
		}
		if j-i > 1 {
			tieSizes = append(tieSizes, j-i)
		}
		i = j
	}
	for _, y := range b {
		below, _ := slices.BinarySearch(a, y)
		notAbove := below + sort.Search(len(a)-below, func(i int) bool { return a[below+i] > y })
		u += float64(below) + float64(notAbove-below)/2
	}
	return u, tieSizes
}

// distribution returns P(U <= u) for u = 0 ... n*m when all values differ. The number of arrangements with a given U
// follows f(u; i, j) = f(u - j; i - 1, j) + f(u; i, j - 1): the largest value belongs to one side or the other.
func (r *rankTest) distribution(n, m int) []float64 {
	n, m = min(n, m), max(n, m)
	if tail, known := r.tails[[2]int{n, m}]; known {
		return tail
	}
	// counts[i] is f(.; i, j) for the current j.
	counts := make([][]float64, n+1)
	for i := range counts {
		counts[i] = make([]float64, n*m+1)
		counts[i][0] = 1
	}
	for j := 1; j <= m; j++ {
		for i := 1; i <= n; i++ {
			for u := i * j; u >= j; u-- {
				counts[i][u] += counts[i-1][u-j]
			}
		}
	}
	tail := make([]float64, n*m+1)
	total := 0.0
	for u, count := range counts[n] {
		total += count
		tail[u] = total
	}
	for u := range tail {
		tail[u] /= total
	}
	if r.tails == nil {
		r.tails = map[[2]int][]float64{}
	}
	r.tails[[2]int{n, m}] = tail
	return tail
}

// exactWithTies returns the two-sided p value over all assignments of the observed values to the sides. Mid-ranks are
// doubled, so that rank sums are integers, and the subsets of a's size are counted by their sum.
func exactWithTies(a, b []float64) float64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	ranks := make([]int, len(all)) // doubled mid-ranks
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j] == all[i] {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + j + 1
		}
		i = j
	}
	observed := 0
	for _, v := range a {
		at, _ := slices.BinarySearch(all, v)
		observed += ranks[at]
	}
	n, largest := len(a), 0
	for _, rank := range ranks[len(b):] {
		largest += rank
	}
	counts := make([][]float64, n+1) // counts[k][s]: subsets of k values with doubled rank sum s
	for k := range counts {
		counts[k] = make([]float64, largest+1)
	}
	counts[0][0] = 1
	for done, rank := range ranks {
		for k := min(done+1, n); k >= 1; k-- {
			for s := largest; s >= rank; s-- {
				counts[k][s] += counts[k-1][s-rank]
			}
		}
	}
	var below, above, total float64 // both tails hold the observed sum
	for s, count := range counts[n] {
		total += count
		if s <= observed {
			below += count
		}
		if s >= observed {
			above += count
		}
	}
	return min(1, 2*min(below, above)/total)
}

func normalP(u float64, n, m int, tieSizes []int) float64 {
	a, b := float64(n), float64(m)
	all := a + b
	ties := 0.0
	for _, size := range tieSizes {
		t := float64(size)
		ties += t*t*t - t
	}
	variance := a * b / 12 * (all + 1 - ties/(all*(all-1)))
	if variance <= 0 { // all values are equal
		return 1
	}
	distance := max(0, math.Abs(u-a*b/2)-0.5)
	return math.Erfc(distance / math.Sqrt(2*variance))
}

// attainableP returns the smallest p value that sides of these sizes can reach: complete separation, 2 / C(n+m, n).
func attainableP(n, m int) float64 {
	if n == 0 || m == 0 {
		return 1
	}
	choose := 1.0
	for i := 1; i <= min(n, m); i++ {
		choose *= float64(max(n, m)+i) / float64(i)
	}
	return min(1, 2/choose)
}

// MinSamples returns the number of values that each side needs for the rank test to reach p < alpha at all: 4 for 0.05.
// Divide alpha by the number of series for a corrected verdict: 9 for 0.05 over 500. It returns 0 if alpha is not between 0
// and 1, or so small that no feasible number would do.
func MinSamples(alpha float64) int {
	if !(alpha > 0 && alpha < 1) {
		return 0
	}
	for n := 1; n <= 500; n++ {
		if attainableP(n, n) < alpha {
			return n
		}
	}
	return 0
}

// Interval is a confidence interval of the relative change, 0.2 meaning +20 %.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Confidence is the level of the interval, at least the requested one.
	Confidence float64 `json:"confidence"`
}

// shiftInterval returns the Hodges-Lehmann estimate of the factor between the sides, less one, and its confidence interval:
// the median, and two order statistics, of the ratios of all pairs. The interval is the inverted rank test: without ties it
// excludes 0 exactly if p < alpha. All values must be positive; ok is false if the sides are too small for the level. Beyond
// exactLimit the normal approximation places the order statistics.
//
// Source: J. L. Hodges, E. L. Lehmann, Estimates of location based on rank tests, Ann. Math. Statist. 34 (1963),
// applied to logarithms.
func (r *rankTest) shiftInterval(a, b []float64, alpha float64) (estimate float64, interval Interval, ok bool) {
	n, m := len(a), len(b)
	ratios := r.orderedRatios(a, b)
	estimate = ratios.at((n*m-1)/2)/2 + ratios.at(n*m/2)/2 - 1
	cut := -1 // the largest u with 2 P(U <= u) < alpha
	confidence := 0.0
	if n <= exactLimit && m <= exactLimit {
		tail := r.distribution(n, m)
		for 2*tail[cut+1] < alpha {
			cut++
		}
		if cut >= 0 {
			confidence = 1 - 2*tail[cut]
		}
	} else {
		cut = sort.Search(n*m/2+1, func(u int) bool { return normalP(float64(u), n, m, nil) >= alpha }) - 1
		if cut >= 0 {
			confidence = 1 - normalP(float64(cut), n, m, nil)
		}
	}
	if cut < 0 {
		return estimate, Interval{}, false
	}
	return estimate, Interval{Low: ratios.at(cut) - 1, High: ratios.at(n*m-1-cut) - 1, Confidence: confidence}, true
}

// mostListed is the number of ratios up to which listing them is faster than searching. It also bounds the memory and the
// time that a series with very many values takes: of a thousand values a side, listing takes half a second.
const mostListed = 1 << 12

// ratios of the values of b to the values of a.
type ratios struct {
	a, b []float64
	// listed holds them in ascending order; nil: there are too many.
	listed []float64
}

// at returns the k-th smallest ratio, counted from 0.
func (r ratios) at(k int) float64 {
	if r.listed == nil {
		return searchRatio(r.a, r.b, k)
	}
	return r.listed[k]
}

// orderedRatios returns the ratios of two sides, which are valid until the next call. Both sides are positive and ascending.
func (r *rankTest) orderedRatios(a, b []float64) ratios {
	if len(a)*len(b) > mostListed {
		return ratios{a: a, b: b}
	}
	listed := r.ratios[:0]
	// Both sides ascend, so that ratios of one diagonal are about equal, and come nearly in their order.
	for d := range len(a) + len(b) - 1 {
		for i := max(0, d-len(b)+1); i <= min(d, len(a)-1); i++ {
			listed = append(listed, b[d-i]/a[len(a)-1-i])
		}
	}
	r.ratios = listed
	if len(listed) <= fewRatios {
		insertionSort(listed)
	} else {
		slices.Sort(listed)
	}
	return ratios{a, b, listed}
}

// fewRatios is the number of ratios up to which insertion is the fastest way to put them in order.
const fewRatios = 64

// insertionSort sorts values that are nearly in ascending order.
func insertionSort(values []float64) {
	for i, v := range values {
		for i > 0 && values[i-1] > v {
			values[i] = values[i-1]
			i--
		}
		values[i] = v
	}
}

// searchRatio returns the k-th smallest ratio without listing them: the smallest number that more than k ratios do not
// exceed, by bisection over all positive floating-point numbers, whose order is that of their bits. It is exact.
func searchRatio(a, b []float64, k int) float64 {
	low, high := math.Float64bits(b[0]/a[len(a)-1]), math.Float64bits(b[len(b)-1]/a[0])
	for low < high {
		middle := low + (high-low)/2
		if ratiosNotAbove(a, b, math.Float64frombits(middle)) > k {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return math.Float64frombits(low)
}

// ratiosNotAbove counts the ratios that do not exceed a limit.
func ratiosNotAbove(a, b []float64, limit float64) int {
	count, j := 0, 0
	for _, x := range a {
		for j < len(b) && b[j]/x <= limit {
			j++
		}
		count += j
	}
	return count
}
