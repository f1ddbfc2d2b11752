package noise

import (
	"math"
	"time"

	"github.com/benchloom/benchloom/internal/stats/paired"
)

// Canary is a session in which one artifact was measured in turns with itself: A[i] and B[i] were measured one after the
// other.
type Canary struct {
	At        time.Time
	Collector string
	A, B      []float64
}

// Constants of the estimate of Tau.
const (
	fewestCanaries = 5   // from which the offset of a side is known
	expectedTau    = 0.3 // the most that was measured where nothing was wrong; counts as much as priorCanaries
	priorCanaries  = 5
	farCanary      = 10 // medians, to which a canary that stands out is drawn in
)

// Tau returns the standard deviation of the offset that one side has in a session, in units of the standard deviation within
// sessions; ok is false for fewer than five canaries with at least four pairs of positive values. The canaries may be those of
// different series, since each counts in units of its own spread. Few of them move the estimate little from 0.3.
//
// The mean of n differences has the variance 2 σ²(τ² + 1/n) if each value has σ² and each side τ² σ².
func Tau(canaries []Canary) (tau float64, ok bool) {
	var shares []float64 // of each session, with the mean τ² + 1/n
	explained := 0.0
	for _, c := range canaries {
		d := c.differences()
		if len(d) < 4 {
			continue
		}
		n := float64(len(d))
		center, variance := paired.Estimate(d), squares(d)/(n-1)
		if variance == 0 {
			if center == 0 {
				shares = append(shares, 0) // no noise, no offset
			}
			continue
		}
		// The mean of 1/variance is (n-1)/(n-3) of that of the true one.
		shares = append(shares, center*center/variance*(n-3)/(n-1))
		explained += math.Pi / 3 / n
	}
	if len(shares) < fewestCanaries {
		return 0, false
	}
	limit, sum := farCanary*median(shares), 0.0
	for _, share := range shares {
		sum += min(share, limit)
	}
	squared := priorCanaries*expectedTau*expectedTau + max(0, sum-explained)
	return math.Sqrt(squared / float64(priorCanaries+len(shares))), true
}

func (c Canary) differences() []float64 {
	var d []float64
	for i := range min(len(c.A), len(c.B)) {
		if a, b := c.A[i], c.B[i]; a > 0 && b > 0 && a <= largest && b <= largest {
			d = append(d, math.Log(b)-math.Log(a))
		}
	}
	return d
}
