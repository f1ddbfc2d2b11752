package simulate

import (
	"math"
)

// Random is a source of random numbers; a *rand.Rand is one. A simulated project calls
// it from one goroutine; it is never nil.
type Random interface {
	Float64() float64     // uniform in [0, 1)
	NormFloat64() float64 // normal, mean 0, standard deviation 1
	ExpFloat64() float64  // exponential, mean 1
}

// Noise is a model of how repeated measurements of one thing differ. All quantities are in units of the spread within a
// session, the standard deviation of the values of one run.
type Noise struct {
	ID   string // for options and names of benchmarks
	Name string
	// draw returns the deviation of one value; nil: normal.
	draw func(Random) float64
	// exponentiate makes a value e^x instead of 1 + x.
	exponentiate bool
	// correlation of neighbouring values of a session.
	correlation float64
	// offset (κ) is the standard deviation of what all values of a session share.
	offset float64
	// side (τ) is the part of it that belongs to one side. It remains when the sides take turns; the rest cancels out.
	side float64
	// modes is the distance of the two values between which each side of a session chooses; it remains in turns, too.
	modes float64
	// drift of the machine during two sessions; it then moves back during the next two.
	drift float64
	// canaries is set when runs of one thing in turns with itself have shown what side is. Otherwise the rule has to
	// assume a value.
	canaries bool
	// hopeless noise is worse than the rule assumes: its figures are reported, not bounded.
	hopeless bool
	// everything is set when all series are measured in turns, not those that raise a suspicion.
	everything bool
}

// Noises returns the models of the simulation.
func Noises() []Noise {
	return []Noise{
		{ID: "normal", Name: "normal"},
		{ID: "log-normal", Name: "log-normal", exponentiate: true},
		{ID: "skewed", Name: "skewed (log-normal above a floor)", draw: skewed},
		{ID: "heavy-tail", Name: "heavy tail (t, 2 df)", draw: heavyTail, exponentiate: true},
		{ID: "bimodal", Name: "bimodal 50/50", draw: bimodal},
		{ID: "bimodal-by-session", Name: "bimodal by session", modes: modeDistance},
		{ID: "ar1", Name: "AR(1) 0.5", correlation: 0.5},
		{ID: "drift", Name: "drift of 2 sd", drift: 2},
		{ID: "offset-0.6", Name: "session offset 0.6 sd", offset: 0.6},
		{ID: "offset-1", Name: "session offset 1 sd", offset: 1},
		{ID: "kappa-0.6", Name: "κ = 0.6, τ = 0.3", offset: 0.6, side: 0.3},
		{ID: "kappa-2", Name: "κ = 2, τ = 0.3", offset: 2, side: 0.3},
		{ID: "side-0.6-known", Name: "κ = 1, τ = 0.6, canaries", offset: 1, side: 0.6, canaries: true},
		{ID: "side-0.6", Name: "κ = 1, τ = 0.6, no canaries", offset: 1, side: 0.6, hopeless: true},
		{ID: "in-turns", Name: "normal, all in turns", everything: true},
	}
}

// Assured reports whether the rule is made for the noise: its false answers are bounded.
func (n *Noise) Assured() bool { return !n.hopeless }

// Everything reports whether all series are measured in turns.
func (n *Noise) Everything() bool { return n.everything }

// Two modes, as placement in memory makes them: their distance, and how often a session is in the slow one.
const (
	modeDistance = 12
	slowSessions = 0.2
)

func normal(random Random) float64 { return random.NormFloat64() }

// skewed draws from a log-normal distribution scaled to mean 0 and standard deviation 1: a floor that no value falls
// below, and a long tail above, as disturbances of a machine give.
func skewed(random Random) float64 {
	mean, deviation := math.Sqrt(math.E), math.Sqrt((math.E-1)*math.E)
	return (math.Exp(random.NormFloat64()) - mean) / deviation
}

// heavyTail draws from Student's distribution with two degrees of freedom, whose standard deviation is infinite. Its spread, as
// the noise model shows it ([noise.Within]), is 1. Half of its values then lie within 0.53, of normal ones within 0.67.
func heavyTail(random Random) float64 {
	const shown = 1.53 // by the model, of 5 values a session
	return random.NormFloat64() / math.Sqrt(random.ExpFloat64()) / shown
}

func bimodal(random Random) float64 {
	if random.Float64() < 0.5 {
		return random.NormFloat64() - modeDistance/2.0
	}
	return random.NormFloat64() + modeDistance/2.0
}

// session draws the values of a session, as deviations; only drift depends on its number.
func (n *Noise) session(random Random, number int, values []float64) {
	base := times(n.offset, random) + n.mode(random)
	ar := n.process(random)
	for i := range values {
		values[i] = base + n.ramp(number, float64(i)/float64(len(values))) + ar.next(random)
	}
}

// turns draws the values of one session in which two sides take turns.
func (n *Noise) turns(random Random, number int, a, b []float64) {
	shared := 0.0
	if n.offset > n.side {
		shared = math.Sqrt(n.offset*n.offset-n.side*n.side) * random.NormFloat64()
	}
	ofA := shared + times(n.side, random) + n.mode(random)
	ofB := shared + times(n.side, random) + n.mode(random)
	ar := n.process(random)
	for i := range a {
		a[i] = ofA + n.ramp(number, float64(2*i)/float64(2*len(a))) + ar.next(random)
		b[i] = ofB + n.ramp(number, float64(2*i+1)/float64(2*len(a))) + ar.next(random)
	}
}

// times draws a normal number with a standard deviation, and none if that is 0.
func times(deviation float64, random Random) float64 {
	if deviation == 0 {
		return 0
	}
	return deviation * random.NormFloat64()
}

func (n *Noise) mode(random Random) float64 {
	switch {
	case n.modes == 0:
		return 0
	case random.Float64() < slowSessions:
		return n.modes
	default:
		return 0
	}
}

// ramp returns the drift at a moment of a session, from 0 at its start to 1 at its end.
func (n *Noise) ramp(number int, moment float64) float64 {
	if n.drift == 0 {
		return 0
	}
	at := (float64(number%4) + moment) / 2 // 0 to 2: up, then down
	return n.drift * (1 - math.Abs(1-at))
}

// process generates the values of a session one after the other.
type process struct {
	draw                         func(Random) float64
	correlation, fresh, previous float64
}

func (n *Noise) process(random Random) process {
	p := process{draw: n.draw, correlation: n.correlation}
	if p.draw == nil {
		p.draw = normal
	}
	if p.correlation != 0 {
		p.previous, p.fresh = p.draw(random), math.Sqrt(1-p.correlation*p.correlation)
	}
	return p
}

func (p *process) next(random Random) float64 {
	if p.correlation == 0 {
		return p.draw(random)
	}
	p.previous = p.correlation*p.previous + p.fresh*p.draw(random)
	return p.previous
}

// value turns a deviation into a measured value around 1.
func (n *Noise) value(deviation float64) float64 {
	if n.exponentiate {
		return math.Exp(deviation)
	}
	return max(1+deviation, leastValue)
}

// leastValue keeps a wild deviation from making a duration negative.
const leastValue = 0.01
