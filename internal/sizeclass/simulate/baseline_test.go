package simulate_test

import (
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass/simulate"
)

// baseline is the algorithm that the analyzer must beat: pairwise rank
// comparison of all classes, their stationary distribution, and background runs
// on classes that mostly fail. It is implemented from its description, only for
// these tests.
type baseline struct {
	exponent, multiplier, convergence float64
	minimum, original, failureCache   time.Duration
	history                           int

	classes     []bench.SizeClass
	factors     []float64            // of acceptable times, by class
	samples     [][]simulate.Attempt // by class, newest last
	median      float64              // of those of the largest class, in seconds
	probability []float64            // of the smaller classes, where the iteration starts
	lastFailure time.Time
}

func newBaseline(in simulate.Input) *baseline {
	b := &baseline{
		exponent: in.Policy.Exponent, multiplier: in.Policy.TimeoutMultiplier, convergence: 0.002,
		minimum: time.Duration(in.Policy.Minimum), original: time.Duration(in.OriginalTimeout),
		failureCache: time.Duration(in.Policy.FailureCache), history: in.Policy.History,
		classes: in.Classes, samples: make([][]simulate.Attempt, len(in.Classes)), probability: make([]float64, len(in.Classes)),
	}
	for _, c := range in.Classes {
		b.factors = append(b.factors, math.Pow(float64(in.Classes[len(in.Classes)-1])/float64(c), b.exponent))
	}
	return b
}

// strategy is one of the smaller classes with its probability.
type strategy struct {
	probability float64
	background  bool
	timeout     time.Duration
}

func (b *baseline) Run(_ int, m *simulate.Machine) []simulate.Attempt {
	largest := len(b.classes) - 1
	if !b.lastFailure.IsZero() && m.Now.Sub(b.lastFailure) <= b.failureCache {
		return []simulate.Attempt{b.onLargest(m)}
	}
	choice, u := largest, m.Float64()
	var chosen strategy
	for i, s := range b.strategies() {
		if u -= s.probability; u < 0 {
			choice, chosen = i, s
			break
		}
	}
	switch {
	case choice == largest:
		return []simulate.Attempt{b.onLargest(m)}
	case chosen.background:
		first := b.onLargest(m)
		if first.Outcome != simulate.Success {
			return []simulate.Attempt{first}
		}
		_, timeout := b.limits(choice)
		second := m.Try(b.classes[choice], timeout)
		second.Background = true
		b.add(choice, second)
		return []simulate.Attempt{first, second}
	}
	first := b.try(m, choice, chosen.timeout)
	if first.Outcome == simulate.Success {
		b.add(choice, first)
		return []simulate.Attempt{first}
	}
	second := b.onLargest(m)
	if second.Outcome == simulate.Success {
		b.add(choice, first)
	}
	return []simulate.Attempt{first, second}
}

func (b *baseline) try(m *simulate.Machine, i int, timeout time.Duration) simulate.Attempt {
	a := m.Try(b.classes[i], timeout)
	m.Now = m.Now.Add(time.Duration(a.Seconds * float64(time.Second)))
	return a
}

func (b *baseline) onLargest(m *simulate.Machine) simulate.Attempt {
	a := b.try(m, len(b.classes)-1, b.original)
	if a.Outcome == simulate.Success {
		b.add(len(b.classes)-1, a)
	} else {
		b.lastFailure = m.Now
	}
	return a
}

func (b *baseline) add(i int, a simulate.Attempt) {
	b.samples[i] = append(b.samples[i], a)
	b.samples[i] = b.samples[i][max(0, len(b.samples[i])-b.history):]
	if i < len(b.classes)-1 {
		return
	}
	var seconds []float64
	for _, s := range b.samples[i] {
		seconds = append(seconds, s.Seconds)
	}
	b.median = median(seconds)
}

// limits returns the acceptable time in seconds and the timeout of a class.
func (b *baseline) limits(i int) (acceptable float64, timeout time.Duration) {
	acceptable = b.median * b.factors[i]
	t := min(max(acceptable*b.multiplier, b.minimum.Seconds()), b.original.Seconds())
	return min(acceptable, t/b.multiplier), time.Duration(t * float64(time.Second))
}

func median(seconds []float64) float64 {
	slices.Sort(seconds)
	n := len(seconds)
	if n == 0 {
		return 0
	}
	return (seconds[(n-1)/2] + seconds[n/2]) / 2
}

// ranked returns the usable samples of a class as normalised seconds, failures
// as infinity.
func (b *baseline) ranked(i int) []float64 {
	var values []float64
	if i == len(b.classes)-1 {
		for _, a := range b.samples[i] {
			values = append(values, a.Seconds)
		}
		return values
	}
	acceptable, _ := b.limits(i)
	for _, a := range b.samples[i] {
		switch {
		case a.Outcome == simulate.Timeout && a.Seconds < acceptable:
		case a.Outcome == simulate.Success && a.Seconds < acceptable:
			values = append(values, a.Seconds/b.factors[i])
		default:
			values = append(values, math.Inf(1))
		}
	}
	return values
}

func (b *baseline) strategies() []strategy {
	n := len(b.classes)
	if len(b.samples[n-1]) == 0 {
		list := []strategy{}
		for i := range n - 1 {
			if len(b.samples[i]) == 0 {
				return append(list, strategy{probability: 1, timeout: min(b.original, b.minimum)})
			}
			list = append(list, strategy{})
		}
		return nil
	}
	values, list, background := make([][]float64, n), []strategy{}, true
	for i := range n {
		values[i] = b.ranked(i)
		if i == n-1 {
			break
		}
		_, timeout := b.limits(i)
		if len(values[i]) > 0 {
			failures := 0
			for _, v := range values[i] {
				if math.IsInf(v, 1) {
					failures++
				}
			}
			background = failures > len(values[i])-failures
		} else if background {
			return append(list, strategy{probability: 1, background: true, timeout: timeout})
		}
		list = append(list, strategy{background: background, timeout: timeout})
	}
	for i, p := range b.stationary(values) {
		if i < n-1 {
			list[i].probability, b.probability[i] = p, p
		}
	}
	return list
}

// stationary returns the stationary distribution of the chain whose steps go to
// the faster class.
func (b *baseline) stationary(values [][]float64) []float64 {
	n := len(values)
	matrix := make([][]float64, n)
	for i := range matrix {
		matrix[i] = make([]float64, n)
		matrix[i][i] = 1
	}
	step := func(from, to int, p float64) {
		matrix[from][to] = p / float64(n-1)
		matrix[from][from] -= p / float64(n-1)
	}
	for i := range n {
		for j := range i {
			p := faster(values[i], values[j])
			step(j, i, p)
			step(i, j, 1-p)
		}
	}
	v, rest := make([]float64, n), 1.0
	for i := range n - 1 {
		if v[i] = b.probability[i]; v[i] <= 0 || v[i] >= 1 {
			v[i] = 0.5
		}
		rest -= v[i]
	}
	v[n-1] = rest
	for {
		next, change := make([]float64, n), 0.0
		for i := range n {
			for j := range n {
				next[j] += v[i] * matrix[i][j]
			}
		}
		for i := range n {
			change += math.Abs(next[i] - v[i])
		}
		if v = next; change < b.convergence {
			return v
		}
	}
}

// faster returns the probability that a is faster than b.
func faster(a, b []float64) float64 {
	sum := 1 + len(b)
	for _, x := range a {
		for _, y := range b {
			switch {
			case x < y:
				sum += 2
			case x == y:
				sum++
			}
		}
	}
	return float64(sum) / float64(2+len(a)+len(b)+2*len(a)*len(b))
}
