package verdict

import (
	"fmt"
	"math"
	"strconv"

	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/paired"
)

const (
	quieterMachine = "a quieter machine"
	onePairEach    = "sessions differ more than the pairs of one, so that each counts as one pair"
	largerDelta    = "a larger relevant change"
	mostPairs      = 500 // more are not worth proposing
)

func withinDelta(e Evidence) string {
	return "the whole interval lies within ±" + share(e.Delta)
}

func agreement(v Verdict, oneSign bool) string {
	sessions := "one session"
	if v.Sessions > 1 {
		sessions = fmt.Sprintf("all %d sessions agree", v.Sessions)
	}
	if !oneSign {
		sessions = fmt.Sprintf("none of %d sessions is clearly opposed", v.Sessions)
	}
	return fmt.Sprintf("p=%s is below %s, %s", short(v.P), short(v.Level), sessions)
}

func exactChange(a, b float64, defined bool) string {
	text := "exact metric, any change counts"
	if !defined {
		text += fmt.Sprintf("; from %s to %s there is no relative change", number(a), number(b))
	}
	return text
}

func unusable(s survey) (reason, needs string) {
	if s.measured == 0 {
		return TooFewValues + ": nothing was measured in turns", "pairs measured in turns"
	}
	return fmt.Sprintf("%s: %d of %d pairs have a value that is not a positive number", TooFewValues, s.unusable, s.measured),
		"a metric with positive values"
}

// undecided returns why there is no verdict, and what would lead to one.
func (f Family) undecided(e Evidence, all, quiet estimate, v Verdict) (reason, needs string) {
	switch {
	case e.onePerSession() && quiet.shown == nil:
		return fmt.Sprintf("%s: %s; %d are too few", Noise, onePairEach, all.sessions), f.moreSessions()
	case all.shown == nil:
		return fmt.Sprintf("%s: %s cannot decide, at least %d are needed", TooFewValues, plural(all.n, "pair"), f.fewest()),
			plural(f.fewest()-all.n, "more pair")
	case quiet.shown == nil && v.Interval == nil:
		return fmt.Sprintf("%s: %d of %d pairs were disturbed, which cannot show that there is no difference", Disturbance, v.Disturbed, v.Pairs),
			quieterMachine
	}
	switch {
	case e.Young && f.enough(all.n) && !all.enough && all.p < v.Level && !all.opposed:
		const short = "its history is too short to show how sessions differ"
		if all.sessions >= youngSessions {
			return Noise + ": sessions differ more than their pairs explain, and " + short, fmt.Sprintf("a history of %d sessions", grownSessions)
		}
		return fmt.Sprintf("%s: %s show it, but %s", Noise, plural(all.sessions, "session"), short), plural(youngSessions-all.sessions, "more session")
	case all.opposed && all.p < v.Level:
		reason = "the sessions differ in direction"
	case all.enough && all.p < v.Level && !all.exceeds():
		reason = fmt.Sprintf("sessions shift the sides by so much that a change is only told from %s on", share(relative(all.short)))
	case f.confirmed(all, v.Level) && !all.relevant:
		reason = fmt.Sprintf("there is a change, but of less than %s by its estimate of %s", share(e.Delta), signed(v.Change))
	default:
		reason = fmt.Sprintf("the interval from %s to %s reaches beyond ±%s", signed(v.Interval.Low), signed(v.Interval.High), share(e.Delta))
	}
	if quiet.shown == nil {
		return fmt.Sprintf("%s: %d of %d pairs were disturbed, and %s", Disturbance, v.Disturbed, v.Pairs, reason), quieterMachine
	}
	return Noise + ": " + reason, needed(e, v)
}

// moreSessions says what decides a series whose sessions count as one pair each.
func (f Family) moreSessions() string {
	n := f.fewest()
	for paired.Smallest(n) >= f.levelOf(n) {
		n++
	}
	return fmt.Sprintf("a machine whose sessions agree ('benchloom doctor' names settings that shift them), or %d sessions for no difference and %d for a change, more than the %d looks of a comparison",
		f.fewest(), n, len(f.Looks))
}

// fewest returns the least number of pairs with which there is an interval.
func (f Family) fewest() int {
	n := 1
	for paired.Smallest(n) > (1-f.confidence())*(1+1e-9) {
		n++
	}
	return n
}

// needed estimates what would decide the series if its estimate is right: half the width of the interval, and the change
// that is seen, shrink with the square root of the number of pairs.
func needed(e Evidence, v Verdict) string {
	change, relevant := math.Abs(math.Log1p(v.Change)), e.relevant()
	factor := math.Inf(1)
	if change < relevant {
		factor = square(halfWidth(*v.Interval) / (relevant - change))
	}
	if change > relevant && v.Sees > 0 {
		factor = min(factor, square(math.Log1p(v.Sees)/change))
	}
	more := math.Ceil((factor-1)*float64(v.Pairs)/10) * 10
	switch {
	case more > 0 && float64(v.Pairs)+more <= mostPairs:
		return fmt.Sprintf("about %.0f more pairs", more)
	case relevant == 0:
		return quieterMachine
	default:
		return quieterMachine + " or " + largerDelta
	}
}

func halfWidth(i stats.Interval) float64 { return (math.Log1p(i.High) - math.Log1p(i.Low)) / 2 }

func square(v float64) float64 { return v * v }

func share(v float64) string { return strconv.FormatFloat(100*v, 'g', 2, 64) + " %" }

func signed(v float64) string {
	if v > 0 {
		return "+" + share(v)
	}
	return share(v)
}

func short(p float64) string { return strconv.FormatFloat(p, 'g', 1, 64) }

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
