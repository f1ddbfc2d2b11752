package stats

import (
	"fmt"
	"math"
)

// Sign is the evidence of stored results about a series: enough to suspect a difference, never enough to tell one.
type Sign struct {
	// Suspect is set if the change reaches Sees.
	Suspect bool
	// Sees is the least relative change that raises a suspicion; 0 if nothing can be seen.
	Sees float64
	// Blind is the reason why nothing can be seen; empty if something can.
	Blind string
}

// suspicious is the number of standard errors from which a change is suspicious.
const suspicious = 3

// SignOf looks for a sign of a difference of at least delta (0.01 means 1 %) between the sides of a series that were
// described with the options. Both sides are two sessions: a change is suspicious from 3 s √(v + 1/nA + 1/nB), with the pooled
// spread s of the clipped logarithms and the variance v of sessions. The sign depends on this series alone, not on the
// comparison it is part of, nor on which side is called A.
func SignOf(a, b Side, options Options, delta float64) Sign {
	if missing := missingValues(a, b); missing != "" {
		return Sign{Blind: missing}
	}
	if a.N+b.N < 3 {
		return Sign{Blind: fmt.Sprintf("n=%s shows no noise", sizes(a, b))}
	}
	var memory [2][usualValues / 2]float64
	if a.Min > 0 && b.Min > 0 {
		a, b = mapped(a, math.Log, memory[0][:0]), mapped(b, math.Log, memory[1][:0])
	} else if scale := (math.Abs(a.Median) + math.Abs(b.Median)) / 2; scale > 0 {
		divided := func(v float64) float64 { return v / scale }
		a, b = mapped(a, divided, memory[0][:0]), mapped(b, divided, memory[1][:0])
	}
	spread, _ := pooledSpread(a, b)
	threshold := max(math.Log1p(delta), suspicious*spread*math.Sqrt(options.SessionVariance+1/float64(a.N)+1/float64(b.N)))
	shift := math.Abs(b.Median - a.Median)
	return Sign{Suspect: shift > 0 && shift >= threshold, Sees: math.Expm1(threshold)}
}

// mapped returns the side with an increasing function applied to its values, in the given memory if that is enough.
func mapped(s Side, f func(float64) float64, memory []float64) Side {
	values := memory
	for _, v := range s.ascending {
		values = append(values, f(v))
	}
	return Side{N: s.N, Median: median(values), ascending: values}
}
