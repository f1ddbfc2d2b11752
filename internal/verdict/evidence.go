package verdict

import (
	"math"

	"github.com/benchloom/benchloom/internal/stats/noise"
)

// Pair is one iteration of both sides, measured in turns. A is the baseline. Disturbed is set if something else used the
// machine meanwhile.
type Pair struct {
	A, B      float64
	Disturbed bool
}

// Evidence holds what is known of one series of a family.
type Evidence struct {
	// Exact is set for metrics without noise: any change beyond Delta counts, and one pair is enough. If the values of a
	// side differ nevertheless, they are judged like others.
	Exact bool
	// Delta is the least relevant relative change, fixed before measuring: 0.01 stands for factors from 1/1.01 to 1.01, so that
	// it does not matter which side is called first.
	Delta float64
	// Sessions holds the pairs of each look, in order of measuring.
	Sessions [][]Pair
	// SigmaWithin and Tau are those of the noise model: the standard deviation within sessions, of logarithms, and that of a
	// side's offset in a session in units of SigmaWithin. 0 means unknown: Tau is 0.3 then, and SigmaWithin that of the pairs.
	SigmaWithin, Tau float64
	// BimodalBySession is set if the series' differences have two modes, one for all pairs of a session. Each session counts as
	// one pair then, as with a Tau above 0.5.
	BimodalBySession bool
	// Young is set if the series has too few sessions of history to show how sessions differ, see [Young]. A change must then
	// show in four sessions that differ from each other by no more than their pairs and the usual offsets of sides explain:
	// modes of sessions that nobody knows yet hardly ever give the same change four times.
	Young bool
}

// Young reports whether a history of that many sessions is too short to show how sessions differ: a machine with two
// modes, the slow one rare, shows both from some twenty on.
func Young(sessions int) bool { return sessions < grownSessions }

// tau returns the spread of a side's offset in a session, in units of the spread within.
func (e Evidence) tau() float64 {
	if e.Tau > 0 && !math.IsInf(e.Tau, 1) {
		return e.Tau
	}
	return defaultTau
}

// onePerSession reports whether sessions differ so much that each of them counts as one pair.
func (e Evidence) onePerSession() bool { return e.BimodalBySession || e.tau() > largestTau }

// relevant returns Delta as a difference of logarithms.
func (e Evidence) relevant() float64 { return relevant(e.Delta) }

func relevant(delta float64) float64 {
	if !(delta > 0) || math.IsInf(delta, 1) {
		return 0
	}
	return math.Log1p(delta)
}

// sample holds differences of logarithms per session; no session is empty.
type sample [][]float64

// pairs returns the differences of all sessions.
func (s sample) pairs() []float64 {
	var all []float64
	for _, session := range s {
		all = append(all, session...)
	}
	return all
}

// survey is the evidence as differences of logarithms.
type survey struct {
	all   sample // every pair that has a difference
	quiet sample // those that may support no difference

	measured  int // pairs
	disturbed int // marked pairs among all
	unusable  int // pairs without a difference
}

// surveyOf sorts the pairs by what they may support. Pairs without a difference, such as those during which a clock jumped
// back, count as disturbed. If more than a fifth of a session's pairs are disturbed, none of its pairs supports no difference.
func surveyOf(sessions [][]Pair) survey {
	var s survey
	for _, session := range sessions {
		var all, quiet []float64
		for _, pair := range session {
			d, ok := logRatio(pair.A, pair.B)
			switch {
			case !ok:
				s.unusable++
				continue
			case pair.Disturbed:
				s.disturbed++
			default:
				quiet = append(quiet, d)
			}
			all = append(all, d)
		}
		s.measured += len(session)
		if len(all) > 0 {
			s.all = append(s.all, all)
		}
		if lost := len(session) - len(quiet); len(quiet) > 0 && float64(lost) <= disturbedShare*float64(len(session)) {
			s.quiet = append(s.quiet, quiet)
		}
	}
	return s
}

// undisturbed reports whether every pair may support no difference.
func (s survey) undisturbed() bool { return s.disturbed == 0 && s.unusable == 0 }

// broken reports whether so many pairs have no difference that the others say nothing either.
func (s survey) broken() bool { return float64(s.unusable) > disturbedShare*float64(s.measured) }

// absurd is the ratio of two values above which one of them was not measured.
const absurd = 1e9

// logRatio returns the logarithm of b/a; ok is false if it does not exist, or if one side is more than a billion times the
// other, as after a clock has jumped. Swapping the sides changes exactly the sign.
func logRatio(a, b float64) (d float64, ok bool) {
	switch {
	case math.IsNaN(a), math.IsNaN(b), math.IsInf(a, 0), math.IsInf(b, 0):
		return 0, false
	case a == b:
		return 0, true
	}
	low, high := min(a, b), max(a, b)
	if low <= 0 || high/low > absurd {
		return 0, false
	}
	d = math.Log1p((high - low) / low)
	if b < a {
		d = -d
	}
	return d, true
}

// spread returns the standard deviation of a side's values within sessions, of logarithms: that of the noise model, else
// that of the pairs, whose differences have twice the variance.
func (e Evidence) spread(s sample) float64 {
	if e.SigmaWithin > 0 && !math.IsInf(e.SigmaWithin, 1) {
		return e.SigmaWithin
	}
	return noise.Within(s) / math.Sqrt2
}
