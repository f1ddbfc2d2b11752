package suspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/noise"
)

// Thresholds of T. All series at the lower one would exceed the budget, so that others than primary benchmarks are suspected
// from the higher one, and from the lower one only where the budget is not used up.
const (
	PrimaryThreshold = 3.0
	OtherThreshold   = 3.5
)

const (
	longest      = 8   // newest commits that are taken together
	history      = 60  // commits before them that they are compared with, and that tell their spread
	reach        = 60  // of the drift rule: the newest commits are compared with those so many before
	ownSpread    = 8   // sessions from which a series has a spread of its own
	quietCommits = 8   // for which a suspicion that was not reproduced is not raised again,
	quietGrowth  = 0.7 // unless T has grown by this,
	openGrowth   = 0.1 // or by this if the budget did not suffice to decide it,
	reproduced   = 0.1 // or if the pairs agree with it at this p value
	newestFirst  = 3   // a change that came with more commits than these is less urgent,
	olderLater   = 0.5 // by this T
	nearlyAsFar  = 0.5 // of T: more commits whose T is lower by no more may hold the change as well
	largestT     = 100 // of series without spread
)

// Series is the history of one deciding metric of one test case on one hardware.
type Series struct {
	Key stats.Key
	// Primary is set for primary benchmarks, which are suspected earlier.
	Primary bool
	// Exact is set for metrics without noise. Series that had no spread in 20 sessions are exact as well.
	Exact bool
	// Delta is the least relevant relative change. A change that is smaller beyond doubt is not suspected.
	Delta float64
	// Sessions holds one session per commit since the last confirmed change, oldest first. The last one is that of the
	// newest commit.
	Sessions []noise.Session
	// Lent are the models of series of the same benchmark and metric, which new series borrow from.
	Lent []noise.Model
	// Tried are earlier suspicions that measuring in turns did not reproduce.
	Tried []Tried
}

// Tried is an earlier suspicion that was measured in turns and not confirmed.
type Tried struct {
	T   float64
	Up  bool // the values had grown
	Ago int  // commits since
	// Change is the relative change in turns and P the p value of the pairs.
	Change, P float64
	// Open is set if the budget did not suffice to decide it.
	Open bool
}

// Suspicion is a series that may have changed.
type Suspicion struct {
	Key stats.Key
	// T is the distance of the newest commits from those before, in standard deviations; 0 if the series is exact.
	T float64
	// Change is the relative change that raised the suspicion; 0 if it is undefined. It is no estimate to be shown: the
	// largest of many changes is mostly too large.
	Change float64
	// Commits is the number of newest commits that differ from those before, 60 for a drift.
	Commits int
	// Against is the index of the session before those commits in the series' Sessions. To decide the suspicion, the newest
	// commit has to be measured in turns with that one, which need not be its parent.
	Against int
	// Exact is set if a metric without noise changed: stored values decide.
	Exact bool
	// Postponed is set for what the budget does not allow now. It waits for idle machines.
	Postponed bool
	// Reason says what raised the suspicion.
	Reason string

	urgency float64
	weak    bool // below the series' own threshold
}

// Threshold returns the T from which the series is suspected in any case.
func (s Series) Threshold() float64 {
	if s.Primary {
		return PrimaryThreshold
	}
	return OtherThreshold
}

// Sees returns the relative change of the newest commit that would have been suspected in any case; 0 if any would have been, or if the
// series has no history.
func (s Series) Sees() float64 {
	if len(s.Sessions) == 0 || s.Exact {
		return 0
	}
	if t, ok := newTrack(s); ok {
		return t.model().Sees(s.Threshold())
	}
	return 0
}

// TestCases returns how many test cases a request may have measured again: 10 % of its runs, at the 26 runs that one takes on
// average if most take only the first look, see [verdict.Choose], but at least three.
func TestCases(runs int) int {
	const (
		share  = 0.1
		each   = 26
		fewest = 3
	)
	return max(fewest, int(share*float64(runs)/each))
}

// Find returns the series that may have changed: exact ones first, then the most urgent first.
//
// For the k = 1 … 8 newest commits and up to 60 commits before them,
//
//	T = |mean of the newest k - Hodges-Lehmann estimate of the older| / (σ √(1/k + 1/n)),
//
// where σ is the spread of a session by [noise.SessionSpread], of up to 60 sessions before the newest 8. Until there are eight
// of them it is that of all sessions before the newest, by [noise.Fit], which may be borrowed or follow from the values within
// a session; so a first request is compared with its one baseline session in the same way. The k with the largest T counts, or more commits whose T is hardly
// lower. Where none reaches the lower threshold, by its urgency at least, the
// newest 8 commits are compared in the same way with those before the newest 60 (drift). Of exact metrics, any change
// counts. Disturbed sessions do not count, but for the newest commit's, and for a history that has no others.
//
// The most urgent suspicions, see [Urgency], of up to the given number of test cases are for now, the others are postponed. Those of exact
// metrics take no runs and do not count. A T between the thresholds is only for now, where there is room.
func Find(series []Series, testCases int) []Suspicion {
	var found []Suspicion
	for _, s := range series {
		if suspicion, ok := s.suspicion(); ok {
			found = append(found, suspicion)
		}
	}
	slices.SortFunc(found, func(x, y Suspicion) int {
		return cmp.Or(first(x.Exact, y.Exact), cmp.Compare(y.urgency, x.urgency), cmp.Compare(x.Key.String(), y.Key.String()))
	})
	chosen := map[stats.TestCase]bool{}
	for i, s := range found {
		switch {
		case s.Exact, chosen[s.Key.TestCase]:
		case len(chosen) < testCases:
			chosen[s.Key.TestCase] = true
		default:
			found[i].Postponed = true
		}
	}
	return slices.DeleteFunc(found, func(s Suspicion) bool { return s.weak && s.Postponed })
}

// Urgency returns T as it ranks among those of other series. For the newest few commits k, noise is about k times less likely to
// reach a T than for the newest alone, since it was looked at before; ln(k)/3 makes T = 3 as likely for each. A change that came with
// earlier commits waits: their own requests had the first chance to find it.
func Urgency(t float64, commits int) float64 {
	if commits > newestFirst {
		return t - olderLater
	}
	return t + math.Log(float64(commits))/PrimaryThreshold
}

// Suspected reports whether the T of a number of commits reaches a threshold, by itself or by its urgency.
func Suspected(t float64, commits int, threshold float64) bool {
	return max(t, Urgency(t, commits)) >= threshold
}

// first orders what is set before what is not.
func first(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	default:
		return 1
	}
}

func (s Series) suspicion() (Suspicion, bool) {
	t, ok := newTrack(s)
	if !ok {
		return Suspicion{}, false
	}
	if found, exact := s.exactChange(t); exact {
		return found, found.Exact
	}
	best := candidate{commits: 1}
	for k := 1; k <= longest; k++ {
		if c := t.candidate(k, k); c.t > best.t {
			best = c
		}
	}
	reason := "%s over %s, T=%.1f"
	if !Suspected(best.t, best.commits, PrimaryThreshold) {
		best = t.candidate(longest, reach)
		reason = "drift of %s over %s, T=%.1f"
	}
	if !Suspected(best.t, best.commits, PrimaryThreshold) || t.irrelevant(best, s.Delta) || s.Quiet(math.Copysign(best.t, best.change)) {
		return Suspicion{}, false
	}
	found := Suspicion{
		Key: s.Key, T: best.t, urgency: Urgency(best.t, best.commits), weak: !Suspected(best.t, best.commits, s.Threshold()),
	}
	best = t.reachingBack(best)
	found.Commits, found.Change, found.Against = best.commits, t.relative(best), t.indices[len(t.sessions)-1-best.commits]
	found.Reason = fmt.Sprintf(reason, t.describe(best), commits(found.Commits), found.T)
	if t.sessions[len(t.sessions)-1].Disturbed {
		found.Reason += ", measured while disturbed"
	}
	return found, true
}

// exactChange decides series without noise; exact is false if the series has some. The suspicion is empty if nothing changed.
func (s Series) exactChange(t track) (found Suspicion, exact bool) {
	last := len(t.sessions) - 1
	if !s.Exact && !t.exact {
		return Suspicion{}, false
	}
	before, after := t.sessions[last-1].Values, t.sessions[last].Values
	if slices.Min(before) != slices.Max(before) {
		return Suspicion{}, false // exact in name only
	}
	i := slices.IndexFunc(after, func(v float64) bool { return v != before[0] })
	if i < 0 {
		return Suspicion{}, true
	}
	found = Suspicion{Key: s.Key, Commits: 1, Against: t.indices[last-1], Exact: true}
	if before[0] > 0 && after[i] > 0 {
		found.Change = after[i]/before[0] - 1
	}
	found.Reason = fmt.Sprintf("exact metric, from %s to %s", number(before[0]), number(after[i]))
	return found, true
}

// Quiet reports whether a change was suspected lately with a similar T, which is negative for a decrease, and not reproduced.
func (s Series) Quiet(t float64) bool {
	return slices.ContainsFunc(s.Tried, func(tried Tried) bool {
		return tried.Up == (t > 0) && tried.Ago <= quietCommits && math.Abs(t) < tried.T+tried.growth()
	})
}

// growth returns by how much T has to grow before the same is suspected again.
func (t Tried) growth() float64 {
	switch {
	case t.P <= reproduced && t.Change != 0 && t.Up == (t.Change > 0):
		return math.Inf(-1)
	case t.Open:
		return openGrowth
	default:
		return quietGrowth
	}
}

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func percent(change float64) string {
	sign := ""
	if change > 0 {
		sign = "+"
	}
	if math.Abs(change) >= 0.995 {
		return sign + strconv.FormatFloat(100*change, 'f', 0, 64) + " %"
	}
	return sign + strconv.FormatFloat(100*change, 'g', 2, 64) + " %"
}

// candidate is the difference of the newest commits from those before.
type candidate struct {
	commits int
	t       float64
	change  float64 // of logarithms, or in the metric's unit
	error   float64 // its standard deviation
	before  float64 // the level of the older sessions
}
