package verdict

import (
	"cmp"
	"math"
	"slices"

	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/stats/paired"
)

// Candidate is a test case that may take the next look.
type Candidate struct {
	// Prospect says how much the test case looks like a change: before the first look the T of its suspicion, then the
	// largest [Evidence.Prospect] of its series.
	Prospect float64
	// Cost of one pair, in the unit of the budget.
	Cost float64
}

// screening is the share of the budget that the first look may take where not all candidates can be decided.
const screening = 0.5

// Choose reports which candidates take the next look after a number of pairs, so that the budget is spent on those that look
// most like changes.
//
// Candidates take a look if the budget suffices to measure all of them up to the last look but one, which decides most. If it
// does not suffice for all before the first look, half of it is spent on first looks of more candidates, as long as the
// rest can decide one: six pairs tell a change from most false suspicions. As nothing is concluded from being left out, the
// level of the family is kept. If the budget suffices for none that far, the best candidate takes the next look, but
// the first one only if its change could be confirmed.
func Choose(candidates []Candidate, pairs int, budget float64) []bool {
	next := looks[len(looks)-1]
	for _, total := range slices.Backward(looks) {
		if total > pairs {
			next = total
		}
	}
	byProspect := make([]int, len(candidates))
	for i := range byProspect {
		byProspect[i] = i
	}
	slices.SortStableFunc(byProspect, func(i, j int) int { return cmp.Compare(candidates[j].Prospect, candidates[i].Prospect) })
	// afford takes the best candidates that a budget suffices for, each for a number of pairs.
	afford := func(pairs int, budget float64) (chosen []bool, n int) {
		chosen = make([]bool, len(candidates))
		for _, i := range byProspect {
			if cost := candidates[i].Cost * float64(pairs); cost <= budget {
				chosen[i], budget = true, budget-cost
				n++
			}
		}
		return chosen, n
	}
	toDecide := max(next, looks[len(looks)-2]) - pairs
	chosen, n := afford(toDecide, budget)
	if pairs == 0 && n > 0 && n < len(candidates) {
		rest := (1 - screening) * budget
		screened, more := afford(next, budget-rest)
		if best := candidates[byProspect[0]]; more > n && best.Cost*float64(toDecide-next) <= rest {
			return screened
		}
	}
	if n > 0 {
		return chosen
	}
	least := next - pairs
	if pairs == 0 {
		least = looks[1]
	}
	for _, i := range byProspect {
		if candidates[i].Cost*float64(least) <= budget {
			chosen[i] = true
			break
		}
	}
	return chosen
}

// Prospect returns how much a series that is measured in turns looks like the suspected change: the estimate's distance from
// none in its standard errors, negative in the other direction, plus a share of the suspicion's |T|. T is negative for a
// decrease and 0 if nothing was suspected; then the direction does not matter. Prospect decides nothing. It is 0 without pairs,
// and at most 1,000.
func (e Evidence) Prospect(t float64) float64 {
	s := surveyOf(e.Sessions)
	if len(s.all) == 0 {
		return 0
	}
	all := s.all.pairs()
	center := paired.Estimate(all)
	switch {
	case t == 0:
		center = math.Abs(center)
	case t < 0:
		center = -center
	}
	suspicion := shareOfT * min(math.Abs(t), largestT)
	if center == 0 {
		return suspicion
	}
	spread := max(e.spread(s.all), noise.Within(s.all)/math.Sqrt2)
	deviation := spread * math.Sqrt(2*math.Pi/3/float64(len(all))) // of the Hodges-Lehmann estimate
	offset := e.tau() * spread * math.Sqrt(2/float64(len(s.all)))
	return suspicion + min(max(center/math.Hypot(deviation, offset), -mostDistant), mostDistant)
}

// Constants of the prospect: the weight of a suspicion, the T beyond which it counts for no more, since tails of the noise
// reach as far, and the largest distance.
const (
	shareOfT    = 0.5
	largestT    = 5
	mostDistant = 900
)
